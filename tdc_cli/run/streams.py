"""Streams of random numbers: ``SeedSequence([seed, STREAM])`` makes them independent, so that the holes do not depend
on the method nor the noise on the holes.
"""

import numpy as np

HOLES, NOISE, DRAWS, SHARED, GRAIN = 1, 2, 3, 4, 5


def stream(seed, purpose, *place):
    """Generator of the stream `purpose` (`HOLES`, `NOISE`, `DRAWS`, `SHARED` or `GRAIN`) of `seed`.

    Parameters
    ----------
    seed, purpose : int
    *place : int
        Where in the input, if each place has a stream of its own: the number of a frame, a row, a column. Zeros at its
        end do not count, so that what begins with frame 0 and in the first row and column draws as a picture or an
        array of the same seed does.
    """
    words = [seed, purpose, *place]
    while not words[-1]:
        words.pop()
    return np.random.default_rng(np.random.SeedSequence(words))
