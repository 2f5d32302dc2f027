"""Luma and chroma to red, green and blue and back, as the tags of a clip say.

In floats with one rounding at the end: FFmpeg's own scaler was up to 3 of 1023 levels off with 10 bits.
"""

from dataclasses import dataclass, replace

import numpy as np

# Number of the matrix in the tags (ITU-T H.273) -> shares of red and of blue in luma.
MATRICES = {
    1: (0.2126, 0.0722),
    4: (0.30, 0.11),
    5: (0.299, 0.114),
    6: (0.299, 0.114),
    7: (0.212, 0.087),
    9: (0.2627, 0.0593),
}
RGB_MATRIX, BT709, UNSPECIFIED, BT601 = 0, 1, 2, 6
LIMITED, FULL = 1, 2
SRGB_TRANSFER = 13
# Where halved chroma lies between the two rows of a field that share it, of the even and of the odd field (ITU-T H.262,
# 6.1.1.8; H.264, 6.2).
_FIELD_ROWS = (0.25, 0.75)
_HIGH = 720  # rows from which on an untagged clip is taken for high definition, as players do


@dataclass(frozen=True)
class Coding:
    """How the numbers of a clip are meant, by the numbers of ITU-T H.273.

    Attributes
    ----------
    matrix : int
        Key in `MATRICES`, or `RGB_MATRIX`.
    range : int
        `LIMITED` (16 to 235 with 8 bits) or `FULL`.
    primaries, transfer : int
        Kept as they are; `UNSPECIFIED` where they are not known.
    """

    matrix: int = BT709
    range: int = LIMITED
    primaries: int = BT709
    transfer: int = SRGB_TRANSFER

    def sure(self, height, full=False):
        """The same without gaps: the matrix by the height of the picture where no tag says it, the range limited unless
        `full`.
        """
        matrix = (BT709 if height >= _HIGH else BT601) if self.matrix == UNSPECIFIED else self.matrix
        return replace(self, matrix=matrix, range=self.range or (FULL if full else LIMITED))


def to_rgb(luma, blue, red, bits, coding, field=None):
    """Red, green and blue of a picture in luma and chroma.

    Parameters
    ----------
    luma : (H, W) ndarray of unsigned integers
    blue, red : (h, w) ndarray of unsigned integers
        Chroma, with as many or half or a quarter as many rows and columns, rounded up.
    bits : int
        Of each of them.
    coding : Coding
    field : int or None
        0 where the rows are the even ones of an interlaced frame, 1 where they are the odd ones: halved chroma lies a
        quarter of a row higher or lower then.

    Returns
    -------
    (H, W, 3) ndarray of uint8 or uint16
        From 0 to 2**bits - 1.
    """
    share_red, share_blue = MATRICES[coding.matrix]
    offset, spread, spread_chroma = _scale(bits, coding)
    y = (luma.astype(np.float32) - offset) / spread
    middle = 1 << (bits - 1)
    u, v = (_enlarged((p.astype(np.float32) - middle) / spread_chroma, luma.shape, field) for p in (blue, red))
    rgb = np.empty((*luma.shape, 3), dtype=np.float32)
    rgb[..., 0] = y + 2 * (1 - share_red) * v
    rgb[..., 2] = y + 2 * (1 - share_blue) * u
    rgb[..., 1] = (y - share_red * rgb[..., 0] - share_blue * rgb[..., 2]) / (1 - share_red - share_blue)
    return _levels(rgb * np.float32((1 << bits) - 1), bits)


def from_rgb(rgb, bits, coding, size, field=None):
    """Luma and chroma of a picture in red, green and blue; see `to_rgb`.

    Parameters
    ----------
    rgb : (H, W, 3) ndarray of unsigned integers
        From 0 to 2**bits - 1.
    bits : int
    coding : Coding
    size : (h, w)
        Of the chroma planes.
    field : int or None
        See `to_rgb`.

    Returns
    -------
    luma, blue, red : ndarray of uint8 or uint16
    """
    share_red, share_blue = MATRICES[coding.matrix]
    offset, spread, spread_chroma = _scale(bits, coding)
    red, green, blue = np.moveaxis(rgb.astype(np.float32) / ((1 << bits) - 1), -1, 0)
    y = share_red * red + (1 - share_red - share_blue) * green + share_blue * blue
    middle = 1 << (bits - 1)
    chroma = [(blue - y) / (2 * (1 - share_blue)), (red - y) / (2 * (1 - share_red))]
    return [
        _levels(y * spread + offset, bits),
        *(_levels(_reduced(plane, size, field) * spread_chroma + middle, bits) for plane in chroma),
    ]


def grey_to_full(luma, bits, coding):
    """Grey levels from 0 to 2**bits - 1 of luma in its range; (H, W) ndarray of unsigned integers in and out."""
    if coding.range == FULL:
        return luma
    offset, spread, _ = _scale(bits, coding)
    return _levels((luma.astype(np.float32) - offset) * ((1 << bits) - 1) / spread, bits)


def grey_from_full(levels, bits, coding):
    """Luma in its range of grey levels from 0 to 2**bits - 1; the inverse of `grey_to_full` up to rounding."""
    if coding.range == FULL:
        return levels
    offset, spread, _ = _scale(bits, coding)
    return _levels(levels.astype(np.float32) * (spread / ((1 << bits) - 1)) + offset, bits)


def _scale(bits, coding):
    """Luma of black, and the distance from black to white in luma and in chroma."""
    if coding.range == FULL:
        top = (1 << bits) - 1
        return 0, top, top
    unit = 1 << (bits - 8)
    return 16 * unit, 219 * unit, 224 * unit


def _levels(values, bits):
    """Rounded and clipped to what `bits` bits can hold."""
    return np.rint(np.clip(values, 0, (1 << bits) - 1)).astype(np.uint8 if bits == 8 else np.uint16)


def _factors(size, whole):
    """How many rows and columns of a picture of size `whole` share a sample of chroma of size `size`."""
    return tuple(-(-w // s) for s, w in zip(size, whole))


def _enlarged(plane, shape, field):
    """Chroma for every pixel, linear between the samples.

    A sample lies between the rows and on the first of the columns that share it, as MPEG-2, H.264 and H.265 have it
    unless they say otherwise; in the fields of an interlaced frame see `_FIELD_ROWS`.
    """
    rows, columns = _factors(plane.shape, shape)
    first = (rows - 1) / 2 if field is None or rows != 2 else _FIELD_ROWS[field]
    return _between(_between(plane, rows, shape[0], first).T, columns, shape[1], 0).T


def _between(plane, factor, count, offset):
    """`count` rows out of fewer, where row k of `plane` lies at k * factor + offset."""
    if factor == 1:
        return plane
    place = np.clip((np.arange(count) - offset) / factor, 0, len(plane) - 1)
    lower = place.astype(int)
    weight = (place - lower).astype(np.float32)[:, None]
    return plane[lower] * (1 - weight) + plane[np.minimum(lower + 1, len(plane) - 1)] * weight


def _reduced(plane, size, field):
    """Chroma of fewer samples: means over rows, and over columns with half weights on the neighbours; see `_enlarged`.
    """
    rows, columns = _factors(size, plane.shape)
    if rows > 1:
        padded = np.pad(plane, ((0, size[0] * rows - len(plane)), (0, 0)), mode="edge")
        shared = padded.reshape(size[0], rows, -1)
        if field is None or rows != 2:
            plane = shared.mean(axis=1)
        else:
            plane = (1 - _FIELD_ROWS[field]) * shared[:, 0] + _FIELD_ROWS[field] * shared[:, 1]
    if columns > 1:
        padded = np.pad(plane, ((0, 0), (columns - 1, columns - 1 + size[1] * columns - plane.shape[1])), mode="edge")
        weights = np.concatenate([np.arange(1, columns + 1), np.arange(columns - 1, 0, -1)]) / columns**2
        plane = sum(w * padded[:, k : k + size[1] * columns : columns][:, : size[1]] for k, w in enumerate(weights))
    return plane
