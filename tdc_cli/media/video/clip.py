"""A clip that can be read: what is known of its frames before any of them is held."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from ..pixels import Media, Pixels

DEFAULT_RATE = Fraction(25)  # frames a second, where nothing is known of time


class Source(Protocol):
    """Where the frames of a clip come from."""

    def frames(self, start: int, stop: int) -> Iterator[Media]:
        """Frames `start` to `stop` - 1, one after another."""


@dataclass(frozen=True)
class Clip(Pixels):
    """A clip whose frames are decoded as they are asked for.

    Attributes
    ----------
    path : str
        Where it was read.
    sha256 : str
        Of the file's bytes; of a folder, of the names and hashes of its frames.
    format : str
        Name in `clip_formats.CLIP_FORMATS`.
    count : int
        Frames, counted one by one.
    shape : (H, W) or (H, W, C)
        Of the values of a frame; alpha, if any, is the last channel.
    dtype : np.dtype
        Of the values, in `formats.ALL_TYPES`.
    mode : str
        ``L``, ``LA``, ``RGB``, ``RGBA``, ``CMYK`` or ``array``, as in `Media`.
    rate : Fraction or None
        Frames a second where every frame is shown equally long; None where they are not, or where nothing is known of
        time.
    times : tuple of Fraction, or None
        When each frame is shown, in seconds from the start of the file; None where nothing is known of it.
    notes : tuple of str
        What the user should know about how the clip was read.
    end : Fraction or None
        When the last frame ends.
    bits : int or None
        Of a channel as stored, where the dtype has more: 10 or 12 in uint16. The values fill the dtype's range all the
        same.
    details : dict
        What is to be kept beside the frames. Of a container ``aspect`` (width to height of a pixel, Fraction),
        ``coding`` (`colour.Coding`), ``codec`` (str) and of interlaced video ``fields`` (which comes first, see
        `fields`); of an animation ``plays`` (how often it is shown, 0 without end) and ``durations`` (of the frames in
        seconds, tuple of Fraction); of a folder ``names`` (of its files, tuple of str) and ``beside`` (words for what
        its pictures hold beside the pixels, tuple of str).
    source : Source
    nodata : tuple of float
        Numbers that the file itself declares to stand for what is missing.
    """

    path: str
    sha256: str
    format: str
    count: int
    shape: tuple
    dtype: np.dtype
    mode: str
    rate: Fraction | None = None
    times: tuple | None = None
    notes: tuple = ()
    end: Fraction | None = None
    bits: int | None = None
    details: dict[str, Any] = field(default_factory=dict)
    source: Source | None = field(default=None, repr=False, compare=False)
    nodata: tuple = ()

    @property
    def fields(self):
        """Which field of interlaced frames comes first, `fields.TOP` or `fields.BOTTOM`; None where frames show one
        moment.
        """
        return self.details.get("fields")

    @property
    def colour_shape(self):
        """Of the values of a frame without alpha, as `Media.colour` has it."""
        if self.mode == "LA":
            return tuple(self.shape[:2])
        return (*self.shape[:2], 3) if self.mode == "RGBA" else tuple(self.shape)

    def at_rate(self, rate):
        """The same frames, each shown equally long from 0 s on: `rate` of them a second, a Fraction."""
        return replace(self, rate=rate, times=tuple(k / rate for k in range(self.count)), end=self.count / rate)

    def frames(self, start=0, stop=None):
        """Iterate over frames, each a `Media`, decoded as it goes: never more than a few are held.

        Parameters
        ----------
        start : int
            The first one, from 0.
        stop : int or None
            Behind the last one; None: to the end.

        Raises
        ------
        InputError
            The file is not what it was when the clip was opened.
        """
        stop = self.count if stop is None else min(stop, self.count)
        assert self.source is not None
        if start < stop:
            yield from self.source.frames(start, stop)
