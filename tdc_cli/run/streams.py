"""Streams of random numbers: ``SeedSequence([seed, STREAM])`` makes them independent, so that the holes do not depend on the method nor the
noise on the holes."""

import numpy as np

HOLES, NOISE, DRAWS, SHARED = 1, 2, 3, 4


def stream(seed, purpose, *place):
    """Generator of the stream `purpose` (`HOLES`, `NOISE`, `DRAWS` or `SHARED`) of `seed`.

    Parameters
    ----------
    seed, purpose : int
    *place : int
        Where in the input, if each place has a stream of its own: the number of a frame, a row, a column. NumPy fills such lists up with zeros, so that
        what begins with frame 0 draws as a picture or an array of the same seed does.
    """
    return np.random.default_rng(np.random.SeedSequence([seed, purpose, *place]))
