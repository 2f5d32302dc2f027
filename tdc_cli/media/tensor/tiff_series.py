"""TIFF files of any number of pages as tensors, in the order of axes that tifffile gives."""

import io
import warnings

import numpy as np

from ...errors import InputError
from ..metadata import Damage, damaged
from ..tiff import DAMAGE, check_chain, check_parts

_PALETTE = 3  # photometric interpretation


def decode(content, path):
    """Values, names of the axes and notes of the bytes of a TIFF file."""
    import tifffile

    try:
        with warnings.catch_warnings(), tifffile.TiffFile(io.BytesIO(content)) as file:
            warnings.simplefilter("ignore")
            if not file.series:
                raise Damage("it has no pages")
            if len(file.series) != 1:
                raise InputError(f"{path}: holds {len(file.series)} series of pages that differ; save the one that is meant by itself")
            series = file.series[0]
            if series.keyframe.photometric == _PALETTE:
                raise InputError(f"{path}: values are places in a palette, no numbers; convert it to grey or RGB")
            check_chain(file)
            if None in series.pages:
                raise Damage("pages are missing")
            for page in series.pages:
                check_parts(page, len(content))
            values = series.asarray(squeeze=False).reshape(series.shape)
            described = next((name for name, there in (("ImageJ", file.is_imagej), ("OME", file.is_ome)) if there), None)
            axes = series.axes
    except DAMAGE as error:
        raise damaged(path, error) from error
    notes = [f"{path}: axes {axes}, shape {'x'.join(str(n) for n in values.shape)}"] if values.ndim > 2 else []
    if described:
        notes.append(f"{path}: its {described} description is not kept")
    return values, axes, tuple(notes)


def encode(media):
    """Bytes of a TIFF file whose first series has the shape of the tensor, compressed without loss."""
    import tifffile

    values = np.ascontiguousarray(media.values)
    colours = values.shape[-1] == 3 and str(media.metadata.get("axes", "")).endswith("YXS")
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values, photometric="rgb" if colours else "minisblack", compression="zlib", byteorder="<", software=False)
    return buffer.getvalue()
