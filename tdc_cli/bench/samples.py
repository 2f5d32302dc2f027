"""Media for who has none: photographs that scikit-image brings along, as in `sample_data`, and a clip and faces made
from them.
"""

import numpy as np

# Name in scikit-image -> the largest square of it.
_SQUARES = {"astronaut": (0, 512, 0, 512), "camera": (0, 512, 0, 512), "chelsea": (0, 300, 75, 375)}
NAMES = tuple(_SQUARES)
# In colours; their side in suites that take a while.
COLOURED, SIDE = ("astronaut", "chelsea"), 128
CLIPS, FRAMES = ("astronaut-pan", "chelsea-pan"), 12
FACES, POSES, LIGHTS, FACE_SIDE = ("reliefs",), 5, 21, 32


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


def clip(name):
    """A window that moves over a photograph, a pixel or two a frame: an invented clip.

    Parameters
    ----------
    name : str
        One of `CLIPS`.

    Returns
    -------
    (48, 64, 3, FRAMES) ndarray of uint8
    """
    picture = photograph(name.removesuffix("-pan"), 100)
    return np.stack([picture[20 + t : 68 + t, 2 * t : 64 + 2 * t] for t in range(FRAMES)], axis=-1)


def faces():
    """Reliefs in changing light, invented: brightness of the sample photographs as height and as colour of a matt
    surface.

    Returns
    -------
    (3, POSES, LIGHTS, FACE_SIDE^2) ndarray of uint8
        Seen from five sides, which moves and turns the surface, and lit from 21.
    """
    made = np.zeros((len(NAMES), POSES, LIGHTS, FACE_SIDE, FACE_SIDE))
    for person, name in enumerate(NAMES):
        picture = photograph(name, 50) / 255
        surface = picture if picture.ndim == 2 else picture.mean(axis=2)
        for pose in range(POSES):
            seen = surface[9 : 9 + FACE_SIDE, 5 + 2 * pose : 5 + 2 * pose + FACE_SIDE]
            down, right = np.gradient(3 * seen)
            right = right + 0.2 * (pose - POSES // 2)
            length = np.sqrt(1 + down**2 + right**2)
            for light in range(LIGHTS):
                across, up = np.linspace(-1.2, 1.2, 7)[light % 7], (-0.6, 0.0, 0.6)[light // 7]
                shade = (1 - across * right - up * down) / length / np.sqrt(1 + across**2 + up**2)
                made[person, pose, light] = (0.2 + 0.8 * seen) * np.maximum(shade, 0)
    return np.rint(255 * made).astype(np.uint8).reshape(len(NAMES), POSES, LIGHTS, -1)
