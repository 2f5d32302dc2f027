"""TIFF files with several pages, of any depth and number of channels, by tifffile."""

import math
from dataclasses import dataclass

from ...errors import InputError
from .. import silence_codecs, tiff
from ..files import digest
from ..formats import FORMATS
from ..pixels import Media
from .animation import read_animation
from .clip import Clip

_LARGE = 3_000_000_000  # bytes; above that the positions in the file may need more than 32 bits


def read_pages(path, form):
    """Clip of a TIFF file; see `read_clip`.

    Parameters
    ----------
    path : path-like
    form : ClipFormat
    """
    silence_codecs()
    with tiff.opened(path, path) as file:
        tiff.check_chain(file)
    if not tiff.suits(path):
        return read_animation(path, form)
    first = None
    with tiff.opened(path, path) as file:
        count = len(file.pages)
        for number, page in enumerate(file.pages):
            media = tiff.decode_page(file, page, path)
            first = first or media
            if (media.values.shape, media.kind) != (first.values.shape, first.kind):
                raise InputError(
                    f"{path}: page {number} has shape {media.values.shape} in {media.kind}, the first {first.values.shape} in "
                    f"{first.kind}; all frames of a clip must be alike"
                )
    if str(first.values.dtype) not in FORMATS["TIFF"].types:
        raise InputError(
            f"{path}: values of {first.values.dtype}; only uint8, uint16, float32 and float64 are taken: convert them to float32"
        )
    sha256 = digest(path)
    source = _Pages(str(path), sha256)
    return Clip(str(path), sha256, form.name, count, first.values.shape, first.values.dtype, first.mode, source=source)


@dataclass(frozen=True)
class _Pages:
    """The pages of a TIFF file; see `clip.Source`."""

    path: str
    sha256: str

    def frames(self, start, stop):
        """Iterate over frames."""
        with tiff.opened(self.path, self.path) as file:
            for number in range(start, stop):
                media = tiff.decode_page(file, file.pages[number], self.path)
                yield Media(media.values, media.mode, self.path, self.sha256, media.metadata, "TIFF")


def write(frames, file, clip):
    """Write frames into an open binary file, one a page."""
    tiff.write_pages(frames, file, large=clip.count * math.prod(clip.shape) * clip.dtype.itemsize > _LARGE)
