"""`Media`, the content of a picture file; what the frames of a clip have in common with it; levels of odd depths."""

from dataclasses import dataclass, field, replace

import numpy as np


class Pixels:
    """What a picture and the frames of a clip have in common: values of a `mode` and a `dtype`.

    Attributes
    ----------
    bits : int or None
        Of a channel as stored, where the dtype has more.
    """

    mode: str
    bits: int | None = None

    @property
    def has_alpha(self):
        """Whether the last channel is alpha."""
        return self.mode in ("LA", "RGBA")

    @property
    def full_range(self):
        """Largest value of the integer type; None for floats, and for wider or signed integers, which are counts rather
        than shades.
        """
        shades = self.dtype.kind == "u" and self.dtype.itemsize <= 2
        return int(np.iinfo(self.dtype).max) if shades else None

    @property
    def kind(self):
        """Mode and depth in words, such as "mode RGBA with 16 bits"."""
        if self.mode == "tensor":
            return f"a tensor of {self.dtype}"
        depth = f"with {self.bits or 8 * self.dtype.itemsize} bits" if self.dtype.kind == "u" else f"of {self.dtype}"
        return f"{'an array' if self.mode == 'array' else f'mode {self.mode}'} {depth}"


@dataclass(frozen=True)
class Media(Pixels):
    """The content of a file.

    Attributes
    ----------
    values : (H, W) or (H, W, C) ndarray
        As stored, of a type in `formats.ALL_TYPES`. Alpha, if any, is the last channel. Those of a tensor have 2 to 6
        modes and may be of other types, see `tdc_cli.media.tensor`.
    mode : str
        ``L``, ``LA``, ``RGB``, ``RGBA``, ``CMYK``, ``array`` where the channels have no names, or ``tensor``.
    path : str
        Where it was read.
    sha256 : str
        Of the file's bytes.
    metadata : dict
        What is kept beside the values: ``icc_profile``, ``exif`` and ``xmp`` (bytes), ``dpi`` (two floats), ``text``
        (of a PNG, dict), ``transparency`` (colour of a PNG, int or tuple), ``colour_chunks`` (of a PNG, name to bytes),
        ``comment`` (of a JPEG, bytes), ``premultiplied`` (True, of a TIFF), ``tags`` and ``layout`` (of a TIFF, see
        `tiff_tags`).
    format : str
        Name in `FORMATS` of the file that was read.
    notes : tuple of str
        What the user should know about how the file was read.
    nodata : tuple of float
        Numbers that the file itself declares to stand for what is missing.
    bits : int or None
        Of a channel as stored, where the dtype has more: 9 to 15 in uint16. The values fill the dtype's range all the
        same.
    """

    values: np.ndarray
    mode: str
    path: str
    sha256: str
    metadata: dict = field(default_factory=dict)
    format: str = "NPY"
    notes: tuple = ()
    nodata: tuple = ()
    bits: int | None = None

    @property
    def dtype(self):
        """Of the values."""
        return self.values.dtype

    @property
    def colour(self):
        """(H, W) or (H, W, C) view of the values without alpha."""
        if self.mode == "LA":
            return self.values[..., 0]
        return self.values[..., :3] if self.mode == "RGBA" else self.values

    @property
    def alpha(self):
        """(H, W) alpha from 0 to 1, None without any."""
        return self.values[..., -1] / (self.full_range or 1) if self.has_alpha else None

    def with_colour(self, colour, opaque=None):
        """The same file with other colours; alpha stays as it is.

        Parameters
        ----------
        colour : ndarray of the shape of `colour` and the dtype of `values`
        opaque : (H, W) ndarray of bool, or None
            Where alpha, if there is any, becomes opaque.
        """
        values = np.array(self.values)
        if self.mode == "LA":
            values[..., 0] = colour
        elif self.mode == "RGBA":
            values[..., :3] = colour
        else:
            values[...] = colour
        if opaque is not None and self.has_alpha:
            values[..., -1][opaque] = self.full_range or 1
        return replace(self, values=values)


def widen(levels, bits):
    """Levels of `bits` bits as uint8 or uint16 that fill the whole range, each at its own place; `narrow` is the
    inverse.
    """
    if bits in (8, 16):
        return levels
    top = (1 << bits) - 1
    table = np.rint(np.arange(top + 1) * (65535 / top)).astype(np.uint16)
    return table[levels]


def narrow(values, bits):
    """Levels of `bits` bits nearest to uint8 or uint16 values that fill the whole range."""
    if bits == 8 * values.dtype.itemsize:
        return values
    full = np.iinfo(values.dtype).max
    top = (1 << bits) - 1
    return np.rint(np.arange(full + 1) * (top / full)).astype(np.uint16)[values]
