"""TIFF files of any number of pages as tensors, in the order of axes that tifffile gives."""

import io
import warnings

import numpy as np

from ...errors import InputError
from .. import metadata, tiff_tags
from ..metadata import Damage, damaged
from ..tiff import DAMAGE, check_chain, check_parts, described, holding, main_pages, nodata_notes

_PALETTE = 3  # photometric interpretation


def decode(content, path):
    """Values, names of the axes, numbers that stand for what is missing, and notes, of the bytes of a TIFF file."""
    import tifffile

    try:
        with warnings.catch_warnings(), tifffile.TiffFile(io.BytesIO(content)) as file:
            warnings.simplefilter("ignore")
            if not file.series:
                raise Damage("it has no pages")
            main = [series for series in file.series if not series.keyframe.is_reduced] or file.series[:1]
            if len(main) != 1:
                raise InputError(f"{path}: holds {len(main)} series of pages that differ; save the one that is meant by itself")
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
            left = described(file, beyond or len(series.levels) > 1)
            axes = series.axes
    except DAMAGE as error:
        raise damaged(path, error) from error
    notes = [f"{path}: axes {axes}, shape {'x'.join(str(n) for n in values.shape)}"] if values.ndim > 2 else []
    return values, axes, nodata, (*notes, *metadata.left_out(path, left), *nodata_notes(path, nodata))


def encode(media):
    """Bytes of a TIFF file whose first series has the shape of the tensor, compressed without loss."""
    import tifffile

    values = np.ascontiguousarray(media.values)
    colours = values.shape[-1] == 3 and str(media.metadata.get("axes", "")).endswith("YXS")
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values, photometric="rgb" if colours else "minisblack", compression="zlib", byteorder="<", software=False)
    return buffer.getvalue()
