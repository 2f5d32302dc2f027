"""TIFF files of any number of pages as tensors, in the order of axes that tifffile gives."""

import io
import warnings

import numpy as np

from ...errors import InputError
from .. import metadata, tiff_tags
from ..metadata import Damage, damaged
from ..tiff import DAMAGE, LARGE, check_chain, check_parts, encode_stack, holding, main_pages, nodata_notes, stack

_PALETTE = 3  # photometric interpretation
_WRITABLE = (1, 2)  # those of grey levels and of red, green and blue


def decode(content, path):
    """Values, metadata, numbers that stand for what is missing, and notes, of the bytes of a TIFF file.

    The metadata are ``axes``, their names, and where the file can be written again page by page, ``stack``: the
    `tiff.Stack`, the shape of a page, and the place of each page of the file among the values.
    """
    import tifffile

    try:
        with warnings.catch_warnings(), tifffile.TiffFile(io.BytesIO(content)) as file:
            warnings.simplefilter("ignore")
            if not file.series:
                raise Damage("it has no pages")
            main = [series for series in file.series if not series.keyframe.is_reduced] or file.series[:1]
            if len(main) != 1:
                raise InputError(
                    f"{path}: holds {len(main)} series of pages that differ; save the one that is meant by itself"
                )
            series = main[0]
            if series.keyframe.photometric == _PALETTE:
                raise InputError(f"{path}: values are places in a palette, no numbers; convert it to grey or RGB")
            check_chain(file)
            if None in series.pages:
                raise Damage("pages are missing")
            for page in series.pages:
                check_parts(page, len(content))
            values = series.asarray(squeeze=False).reshape(series.shape)
            nodata = tiff_tags.nodata(tiff_tags.read(series.keyframe, ())[0], values.dtype)
            nodata = nodata if holding(values, nodata).any() else ()
            beyond = len(file.pages) > len(series.pages) and main_pages(file)[1]
            found, left = {"axes": series.axes}, []
            kept, left = stack(
                file, list(file.pages) if not beyond else list(series.pages), beyond or len(series.levels) > 1
            )
            if _as_it_was(file, series, values):
                found["stack"] = (
                    kept,
                    series.keyframe.shape,
                    tuple(np.argsort([page.index for page in series.pages]).tolist()),
                )
            else:
                left = list(dict.fromkeys((*left, *kept.words)))
    except DAMAGE as error:
        raise damaged(path, error) from error
    notes = [f"{path}: axes {found['axes']}, shape {'x'.join(str(n) for n in values.shape)}"] if values.ndim > 2 else []
    return values, found, nodata, (*notes, *metadata.left_out(path, left), *nodata_notes(path, nodata))


def _as_it_was(file, series, values):
    """Whether completed values of an only series can be written as the pages that they were read from."""
    pages = len(series.pages)
    return (
        len(file.pages) == pages
        and sorted(page.index for page in series.pages) == list(range(pages))
        and int(series.keyframe.photometric) in _WRITABLE
        and values.size == pages * np.prod(series.keyframe.shape)
    )


def encode(media):
    """Bytes of a TIFF file, compressed without loss: with the pages that the tensor was read from and all that they
    say, or a series of its shape.
    """
    import tifffile

    values = np.ascontiguousarray(media.values)
    if "stack" in media.metadata:
        kept, shape, places = media.metadata["stack"]
        return encode_stack(values.reshape(-1, *shape)[list(places)], kept, values.nbytes > LARGE)
    colours = values.shape[-1] == 3 and str(media.metadata.get("axes", "")).endswith("YXS")
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        values,
        photometric="rgb" if colours else "minisblack",
        compression="zlib",
        byteorder="<",
        software=False,
    )
    return buffer.getvalue()
