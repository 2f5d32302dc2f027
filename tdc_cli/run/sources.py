"""Where values come from: a picture and a tensor are read whole, a clip frame by frame, and all are gone through alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .. import media
from ..errors import ConfigError, InputError
from ..media import Media, stored, tensor
from ..media.video import read_clip
from ..names import CLIP, PICTURE, STANDARD
from .values import check_size


class Source(Protocol):
    """An input, or a reference.

    Attributes
    ----------
    path, sha256 : str
    count : int
        Frames.
    shape, colour_shape : tuple of int
        Of the values of a frame, with and without alpha; of a tensor its own.
    dtype : numpy.dtype
    mode, kind : str
        See `media.Pixels`.
    full_range : int or None
        Largest value of integers that are shades; None for others.
    has_alpha : bool
    notes : tuple of str
    nodata : tuple of float
        Numbers that the file itself declares to stand for what is missing.
    fields : str or None
        Which field of interlaced frames comes first.
    """

    path: str
    sha256: str
    count: int
    shape: tuple
    colour_shape: tuple
    dtype: np.dtype
    mode: str
    full_range: int | None
    has_alpha: bool
    kind: str
    notes: tuple
    nodata: tuple
    fields: str | None

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Media]:
        """Frames `start` to `stop` - 1, one after another."""


@dataclass(frozen=True)
class Still:
    """A picture or a tensor, held whole: a clip of one frame that knows nothing of time."""

    media: Media
    count = 1

    shape = property(lambda self: self.media.values.shape)
    colour_shape = property(lambda self: self.media.colour.shape)
    path = property(lambda self: self.media.path)
    sha256 = property(lambda self: self.media.sha256)
    dtype = property(lambda self: self.media.dtype)
    mode = property(lambda self: self.media.mode)
    full_range = property(lambda self: self.media.full_range)
    has_alpha = property(lambda self: self.media.has_alpha)
    kind = property(lambda self: self.media.kind)
    notes = property(lambda self: self.media.notes)
    nodata = property(lambda self: self.media.nodata)
    fields = None

    def frames(self, start=0, stop=None):
        """See `Source`."""
        if start == 0 and stop != 0:
            yield self.media


def read(request, divides=False):
    """The input of a request.

    Parameters
    ----------
    request : Request
    divides : bool
        Whether the method completes a picture region by region, so that it need not be held.

    Raises
    ------
    InputError, ConfigError
    """
    if request.kind == CLIP:
        return _at_rate(read_clip(request.input), request.frame_rate)
    if request.kind != PICTURE:
        return Still(tensor.read(request.input))
    stays = divides and _written_by_rows(request)
    pages = media.Pages(request.page, request.by_infrared, request.pages is not None)
    return Still((stays and stored.open_stored(request.input)) or media.read(request.input, pages))


def _written_by_rows(request):
    """Whether nothing that is asked for needs the whole of a picture at once."""
    whole = request.panel, request.html, request.save_incomplete, request.mask_color
    if any(option is not None for option in (*whole, request.page, request.pages)) or request.region == "whole":
        return False
    if request.add_noise or request.grain or request.by_transparency or request.by_infrared:
        return False
    written = [path for path in (request.output, request.uncertainty) if path is not None]
    return all(str(path) != STANDARD and stored.writable(path) for path in written)


def _at_rate(clip, rate):
    """The clip, at the rate that the user gives, if any; ConfigError where the clip has times of its own."""
    if rate is None:
        return clip
    if clip.times is not None:
        own = f"{clip.rate} frames a second" if clip.rate else "times for its frames"
        raise ConfigError(f"`frame_rate` is for inputs that hold no times; {clip.path} has {own}: leave it out")
    return clip.at_rate(rate)


def truth(request, source):
    """What the result is measured against: the reference, the input itself where holes or noise are simulated, or None.

    Returns
    -------
    truth : Source or None
        Of a tensor NaN where it is not known.
    reasons : list of str
        Why it is None where it was asked for.

    Raises
    ------
    InputError
        A reference that is not like the input.
    """
    if request.reference is None:
        found = source if request.simulated else None
    else:
        found = _reference(request, source)
    if found is source and (request.missing_value or source.nodata) and not request.keeps_nodata:
        return None, ["metrics are null: the input, which would be the truth, has entries that are missing"]
    if found is not None and request.kind == CLIP and request.keep is not None:
        return None, ["metrics are null: those of clips are over whole frames, and parts of these are kept as they are"]
    if found is None or request.kind == CLIP:
        return found, []
    values = found.media.colour
    if request.kind == PICTURE:
        rows = stored.row_slices(values.shape)
        if (
            found.full_range is None
            and request.keep is None
            and not all(np.isfinite(values[part]).all() for part in rows)
        ):
            return None, ["metrics are null: the truth has entries that are not finite"]
        return found, []
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise InputError(
            f"{found.path}: {np.isinf(values).sum()} values are infinite; NaN marks missing entries, infinity is "
            "refused"
        )
    return (found if values.dtype.kind != "f" or not np.isnan(values).all() else None), []


def _reference(request, source):
    kind, path = request.kind, request.reference
    if kind == CLIP:
        reference = read_clip(path)
        what, alike = "clip", ((reference.count, tuple(reference.shape), reference.dtype)
                               == (source.count, tuple(source.shape), source.dtype))  # fmt: skip
    else:
        reference = Still(media.read(path) if kind == PICTURE else tensor.read(path))
        what, alike = kind, reference.colour_shape == source.colour_shape
        same = (lambda s: s.dtype) if kind == PICTURE else (lambda s: s.full_range)
        alike = alike and same(reference) == same(source)
    if not alike:
        raise InputError(
            f"reference {path} is {size(reference)} but {what} {source.path} is {size(source)}; they must be alike"
        )
    if kind != CLIP:
        check_size(reference.media.colour, f"reference {path}", "scale input and reference down")
    return reference


def size(source):
    """How large a source is and of what type, in words."""
    if source.mode == "tensor":
        return f"{'x'.join(str(n) for n in source.shape)} {source.dtype}"
    frames = f"{source.count} frames of " if not isinstance(source, Still) else ""
    return f"{frames}{source.shape[1]}x{source.shape[0]} {source.mode} {source.dtype}"
