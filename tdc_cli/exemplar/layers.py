"""What patches are compared by: colours, and texture beside them."""

import numpy as np

from .planes import means

# Range of the colours; they are rounded to whole numbers when they are compared.
SPAN = 510
# Colours compared; more channels are compared by so many principal components.
MOST_CHANNELS = 4
# Layers of texture, which come after the colours.
TEXTURES = 2
# Weight of texture in a squared difference, in Newson et al. 50.
TEXTURE = 50


def layers(values, known, width):
    """Colours from 0 to `SPAN` and mean absolute gradients along both axes.

    Flat patches have small distances to everything; the gradients keep them from filling what is textured (Newson et
    al., 2014).

    Parameters
    ----------
    values : (H, W, C) float64 ndarray
        Not read where not `known`.
    known : (H, W) bool ndarray
    width : int
        Side of the square over which gradients are averaged, in pixels.

    Returns
    -------
    (H, W, min(C, MOST_CHANNELS) + TEXTURES) float32 ndarray
        0 where not known, but for gradients, which are means of what is known nearby.
    """
    seen = values[known]
    if values.shape[2] > MOST_CHANNELS:
        centred = seen - seen.mean(axis=0)
        axes = np.linalg.eigh(centred.T @ centred)[1][:, : -MOST_CHANNELS - 1 : -1]
        seen = seen @ axes
    low, span = seen.min(), float(np.ptp(seen)) or 1.0
    colours = np.zeros((*known.shape, seen.shape[1]), np.float32)
    colours[known] = (seen - low) * (SPAN / span)
    grey = colours.mean(axis=2)
    textures = []
    for axis in (0, 1):
        end = [(0, int(axis == 0)), (0, int(axis == 1))]
        step = np.pad(np.abs(np.diff(grey, axis=axis)), end)
        first, second = (np.take(known, range(k, known.shape[axis] - 1 + k), axis) for k in (0, 1))
        sure = np.pad(first & second, end).astype(np.float32)
        # Beyond its border a picture goes on as its mirror image.
        beyond = width // 2, (width - 1) // 2
        total, weight = (means(np.pad(each, beyond, "symmetric"), width) for each in (step * sure, sure))
        textures.append(total / np.maximum(weight, 1 / width**2))
    return np.dstack([colours, *(np.float32(np.sqrt(TEXTURE)) * each for each in textures)])
