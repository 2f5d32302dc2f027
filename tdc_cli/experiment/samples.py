"""Photographs for who has none: those of `sample_data`, from the same source, scikit-image."""

import numpy as np

# Name in scikit-image -> the largest square of it.
_SQUARES = {"astronaut": (0, 512, 0, 512), "camera": (0, 512, 0, 512), "chelsea": (0, 300, 75, 375)}
NAMES = tuple(_SQUARES)


def photograph(name, side):
    """A sample photograph, reduced by means over equal squares of pixels, what is left over at the far edges cut off.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    side : int
        Pixels of the result, at most those of the photograph.

    Returns
    -------
    (side, side, 3) or (side, side) ndarray of uint8
    """
    from skimage import data

    top, bottom, left, right = _SQUARES[name]
    picture = getattr(data, name)()[top:bottom, left:right]
    factor = len(picture) // side
    squares = picture[: factor * side, : factor * side].reshape(side, factor, side, factor, -1).mean(axis=(1, 3))
    return np.rint(squares).astype(np.uint8).reshape((side, side, *picture.shape[2:]))
