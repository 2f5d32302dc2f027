"""What is missing in a picture: by a mask, transparency, a colour, NaN, or simulated."""

import numpy as np

from .. import holes
from ..errors import ConfigError, InputError, MaskError
from ..media.masks import read_mask
from .seeds import HOLES, stream

ALPHA = "alpha"  # in place of a mask's name


def decide(job, source):
    """Decide which entries of a picture are missing.

    Parameters
    ----------
    job : Job
    source : media.Media

    Returns
    -------
    observed : ndarray of bool, of the shape of the colours
    described : dict
        As in the report.
    notes, warnings : list of str

    Raises
    ------
    ConfigError
        Nothing says what is missing, or not in a way that fits the picture.
    InputError, MaskError
    """
    colour = source.colour
    described = {"source": "simulated", "pattern": None, "mask": None, "grey_levels": 0}
    nan = find_nan(colour, source.path)
    read = _read(job, source)
    observed = np.ones(colour.shape, dtype=bool)
    if read is not None:
        observed = read.over(colour.shape).copy()
        kind = "color" if job.mask_color is not None else "alpha" if str(job.mask) == ALPHA else "mask"
        described |= {"source": kind, "mask": str(job.mask) if kind == "mask" else None, "grey_levels": read.grey_levels}
    elif job.missing_ratio is not None:
        observed = holes.simulate(colour.shape, job.missing_ratio, job.missing_pattern, stream(job.seed, HOLES))
        described |= {"pattern": job.missing_pattern}
    elif nan.any():
        described |= {"source": "nan"}
    elif not job.names_holes:
        transparent = " (or --mask alpha: what is transparent)" if source.has_alpha else ""
        raise ConfigError(
            f"{source.path}: nothing says what is missing; give --mask FILE (white = missing){transparent}, "
            "or --missing-ratio 0.5 to hide half of a whole picture"
        )
    notes, warnings = (list(read.notes), list(read.warnings)) if read is not None else ([], [])
    observed, more = without_nan(observed, nan, described["source"], source.path)
    absent = ~observed
    count = int(absent.sum())
    described |= {
        "count": count,
        "pixels": int(holes.in_any_channel(absent).sum()),
        "ratio": count / absent.size,
    }
    return observed, described, notes, warnings + more


def find_nan(values, path):
    """Where `values` are NaN, a bool array of their shape; InputError if any is infinite."""
    if values.dtype.kind != "f":
        return np.zeros(values.shape, dtype=bool)
    if np.isinf(values).any():
        raise InputError(f"{path}: {np.isinf(values).sum()} values are infinite; NaN marks missing entries, infinity is refused")
    return np.isnan(values)


def without_nan(observed, nan, source, path):
    """`observed` without what is NaN, and a list of warnings.

    Parameters
    ----------
    observed, nan : ndarray of bool, of equal shape
    source : str
        What says which entries are missing, as in the report.
    path : str
        For messages.

    Raises
    ------
    MaskError
        Nothing is left.
    """
    if not nan.any():
        return observed, []
    left = observed & ~nan
    if not left.any():
        raise MaskError(f"{path}: every entry is missing: nothing is left to complete from")
    more = np.sum(nan & observed)
    return left, [f"{path}: {more} further entries are NaN and count as missing"] if source != "nan" else []


def from_picture(job, source):
    """`holes.Mask` by the transparency of a picture or by the colour that stands for holes; None if the job names neither.

    Parameters
    ----------
    job : PixelJob
    source : media.Media

    Raises
    ------
    ConfigError, MaskError
    """
    if job.mask_color is not None:
        if source.full_range is None or source.mode == "CMYK" or (source.colour.ndim == 3 and source.colour.shape[2] != 3):
            raise ConfigError(f"{source.path}: --mask-color is for grey and RGB pictures with 8 or 16 bits, not for {source.kind}")
        return holes.from_color(
            source.colour, job.mask_color, picture=source.path, tolerance=job.mask_tolerance, dilate=job.mask_dilate
        )
    if job.mask is not None and str(job.mask) == ALPHA:
        if not source.has_alpha:
            raise ConfigError(f"{source.path}: --mask alpha needs a picture with transparency, and this one is {source.kind}")
        return holes.from_alpha(
            source.values[..., -1], source.full_range or 1, picture=source.path, dilate=job.mask_dilate
        )
    return None


def _read(job, source):
    """`holes.Mask` of the mask picture, of the input's transparency or of the colour that stands for holes; None without any."""
    if job.mask is None or str(job.mask) == ALPHA:
        return from_picture(job, source)
    return holes.from_image(
        *read_mask(job.mask),
        source.values.shape[:2],
        name=str(job.mask),
        picture=source.path,
        threshold=job.mask_threshold,
        invert=job.invert_mask,
        dilate=job.mask_dilate,
    )
