"""Formats that are not read, each with what turns its files into one that is, without a loss of depth; and those that
another command reads.
"""

from pathlib import Path

# Extensions -> what it is called, and the way out; ``{}`` stands for the path, ``{stem}`` for the same without its
# extension.
_RAW = ("a raw file of a camera", "develop it first: dcraw_emu -T -4 '{}'")
_RECIPE = "docs/python.md has the lines for it with {} and tdc_cli.complete"
_FORMATS = {
    (".dpx", ".cin"): (
        "a frame of scanned film",
        "convert it to TIFF of 16 bits: oiiotool '{}' -d uint16 -o '{stem}.tif'",
    ),
    (".heic", ".heif", ".avif"): ("HEIF", "convert it to PNG: heif-dec '{}' '{stem}.png'"),
    (".psd", ".psb"): ("Photoshop's own", "take its flattened picture: magick '{}[0]' '{stem}.tif'"),
    (".cr2", ".cr3", ".nef", ".arw", ".dng", ".raf", ".orf", ".rw2", ".pef"): _RAW,
    (".nii", ".nii.gz", ".img.gz", ".mgz"): ("NIfTI", _RECIPE.format("nibabel")),
    (".fits", ".fit", ".fts"): ("FITS", _RECIPE.format("astropy")),
    (".nc", ".nc4", ".cdf"): ("NetCDF", _RECIPE.format("xarray")),
    (".h5", ".hdf5", ".he5"): ("HDF5", _RECIPE.format("h5py")),
    (".csv", ".tsv", ".xlsx", ".parquet"): ("a table", _RECIPE.format("pandas")),
}


def way_out(path):
    """What to do with a file of a format that is known and not read, in words that follow its path; None for others."""
    name = Path(path).name.lower()
    for extensions, (what, way) in _FORMATS.items():
        found = next((extension for extension in extensions if name.endswith(extension)), None)
        if found:
            return f"is {what}, which is not read; {way.format(path, stem=str(path)[: -len(found)])}"
    return None


def command(path):
    """Which command completes what has the extension of `path`, in words that follow the path; None for none."""
    # Not before: neither pictures nor tensors need what reads clips.
    from . import formats, tensor
    from .video import clip_formats

    suffix = Path(path).suffix.lower()
    if suffix in formats.EXTENSIONS:
        return "is a picture; 'tdc complete-image' completes it"
    if suffix in clip_formats.EXTENSIONS:
        return "is a clip; 'tdc complete-video' completes it"
    if any(suffix in form.extensions for form in tensor.FORMATS.values()):
        return "holds arrays; 'tdc complete-tensor' completes them"
    return None
