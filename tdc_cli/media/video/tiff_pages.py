"""TIFF files with several pages, of any depth and number of channels, by tifffile."""

import math
from dataclasses import dataclass, replace

from ...errors import InputError
from .. import metadata, silence_codecs, tiff, tiff_tags
from ..files import digest
from ..limits import check_type
from ..pixels import Media
from .animation import read_animation
from .clip import Clip


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
        pages, copies = tiff.main_pages(file)
        nodata = tiff_tags.nodata(tiff_tags.read(pages[0], ())[0], pages[0].dtype)
        stack, left = tiff.stack(file, pages, copies)
        notes = [*metadata.left_out(path, left), *tiff.nodata_notes(path, nodata)]
        by_pillow = not copies and not tiff.suits(pages[0])
        numbers = tuple(page.index for page in pages)
    clip = read_animation(path, form) if by_pillow else _read(path, form, numbers)
    return replace(clip, nodata=nodata, notes=(*clip.notes, *notes), details=clip.details | {"stack": stack})


def _read(path, form, numbers):
    """Clip of the pages of these numbers, by tifffile."""
    first = None
    with tiff.opened(path, path) as file:
        for number in numbers:
            media = tiff.decode_page(file, file.pages[number], path)
            first = first or media
            if (media.values.shape, media.kind) != (first.values.shape, first.kind):
                raise InputError(
                    f"{path}: page {number} has shape {media.values.shape} in {media.kind}, the first "
                    f"{first.values.shape} in {first.kind}; all frames of a clip must be alike"
                )
    check_type(first.values.dtype, path)
    sha256 = digest(path)
    source = _Pages(str(path), sha256, numbers)
    return Clip(
        str(path), sha256, form.name, len(numbers), first.values.shape, first.values.dtype, first.mode, source=source
    )


@dataclass(frozen=True)
class _Pages:
    """The pages of a TIFF file; see `clip.Source`."""

    path: str
    sha256: str
    numbers: tuple

    def frames(self, start, stop):
        """Iterate over frames."""
        with tiff.opened(self.path, self.path) as file:
            for number in self.numbers[start:stop]:
                media = tiff.decode_page(file, file.pages[number], self.path)
                yield Media(media.values, media.mode, self.path, self.sha256, media.metadata, "TIFF")


def write(frames, file, clip):
    """Write frames into an open binary file, one a page."""
    large = clip.count * math.prod(clip.shape) * clip.dtype.itemsize > tiff.LARGE
    tiff.write_pages(frames, file, large=large, stack=clip.details.get("stack"))
