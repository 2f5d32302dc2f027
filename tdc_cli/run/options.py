"""Mistakes in the options by themselves, and the method's config."""

import math
from dataclasses import fields

from .. import holes, methods
from ..errors import ConfigError
from .holes import ALPHA


def check_masks(job):
    """Find what contradicts itself in how a `PixelJob` says which pixels are missing.

    Raises
    ------
    ConfigError
    """
    if job.mask is not None and job.missing_ratio is not None:
        raise ConfigError("--mask and --missing-ratio exclude each other: holes are either given or simulated")
    if job.mask_color is not None:
        holes.parse_color(job.mask_color)
        if job.mask is not None or job.missing_ratio is not None:
            other = "--mask" if job.mask is not None else "--missing-ratio"
            raise ConfigError(f"--mask-color and {other} exclude each other: holes are said in one way")
    elif job.mask_tolerance:
        raise ConfigError("--mask-tolerance needs a --mask-color")
    if job.invert_mask and job.mask is not None and str(job.mask) == ALPHA:
        raise ConfigError("--invert-mask needs a mask picture; --mask alpha always takes what is transparent as missing")
    if job.mask is None and (job.invert_mask or (job.mask_color is None and job.mask_dilate)):
        raise ConfigError("--invert-mask and --mask-dilate need a --mask")


def check_missing(job):
    """Find what contradicts itself in how a `TensorJob` says which entries are missing.

    Raises
    ------
    ConfigError
    """
    if job.mask is not None and job.missing_ratio is not None:
        raise ConfigError("--mask and --missing-ratio exclude each other: holes are either given or simulated")
    if job.invert_mask and job.mask is None:
        raise ConfigError("--invert-mask needs a --mask")
    holes.tensor_axes(job.missing_pattern)


def check_numbers(job, method):
    """Find numbers of a `BaseJob` that are out of their bounds, and results that the method does not give.

    Raises
    ------
    ConfigError
    """
    if job.missing_ratio is not None and not 0 <= job.missing_ratio < 1:
        raise ConfigError(f"--missing-ratio {job.missing_ratio:g} is not in [0, 1): 0.9 hides 90 percent")
    if not (math.isfinite(job.add_noise) and job.add_noise >= 0):
        raise ConfigError(f"--add-noise {job.add_noise:g} is negative or not finite; give a standard deviation, such as 0.1")
    if (
        not isinstance(job.noise_std, str)
        and job.noise_std is not None
        and not (math.isfinite(job.noise_std) and job.noise_std >= 0)
    ):
        raise ConfigError(
            f"--noise-std {job.noise_std:g} is negative or not finite; give a standard deviation, such as 0.1, or auto"
        )
    if job.seed < 0:
        raise ConfigError(f"--seed {job.seed} is negative; give 0 or more")
    if job.threads is not None and job.threads < 1:
        raise ConfigError(f"--threads {job.threads} is less than 1")
    if job.uncertainty is not None and not method.uncertainty:
        able = ", ".join(m.name for m in methods.REGISTRY.values() if m.uncertainty)
        raise ConfigError(f"method {method.name} gives no uncertainty; leave out --uncertainty or use one of: {able}")


def configure(job, method, full_range, **from_input):
    """Config of the method, with what the input itself decides filled in where the user did not and where the method has it.

    Parameters
    ----------
    job : BaseJob
    method : methods.Method
    full_range : int or None
        Of integer inputs; None for floats, and where the input is not known yet.
    **from_input
        Parameters that the kind of the input decides, such as ``ordered_modes=(0, 1)`` of a picture.

    Returns
    -------
    dataclass of the method

    Raises
    ------
    ConfigError
    """
    known = {f.name for f in fields(method.load().Config)}
    given = {key.replace("-", "_") for key in job.parameters}
    if given and not known:
        raise ConfigError(f"method {method.name} has no parameters; leave out {', '.join(sorted(given))}")
    if job.noise_std is not None and "noise_std" in given:
        raise ConfigError("the noise level is given twice, by --noise-std and by --param noise_std")
    if job.noise_std and "noise_std" not in known:
        raise ConfigError(f"method {method.name} has no noise level; leave out --noise-std, known entries then stay as they are")
    step = 1 / full_range if full_range and not job.add_noise else None
    filled = {"noise_std": job.noise_std or 0.0, "resolution": step} | from_input
    extra = {key: value for key, value in filled.items() if key in known and key not in given}
    config = method.configure({**job.parameters, **extra})
    noise = getattr(config, "noise_std", 0.0)
    for name, level in (("--noise-std", noise if noise != "auto" else 0.0), ("--add-noise", job.add_noise)):
        if full_range and level > 1:
            raise ConfigError(
                f"{name} {level:g} is {level:g} times the full range: integer pictures take a fraction of it; "
                f"{level:g} of {full_range} is {level / full_range:.2g}"
            )
    if job.uncertainty is not None and not getattr(config, "calibrate", True):
        raise ConfigError(f"method {method.name} gives no uncertainty with calibrate=false; leave out --uncertainty or calibrate=false")
    return config


def check_ordered_modes(job, method, config, order=None):
    """Find modes that a `TensorJob` names in vain, and those that are lacking.

    Parameters
    ----------
    job : TensorJob
    method : methods.Method
    config : dataclass of the method
    order : int or None
        Of the tensor; None where it is not known yet.

    Raises
    ------
    ConfigError
    """
    if job.ordered_modes and not hasattr(config, "ordered_modes"):
        able = [m.name for m in methods.REGISTRY.values() if "ordered_modes" in m.defaults()]
        raise ConfigError(f"method {method.name} has no ordered modes; leave out --ordered-modes or use one of: {', '.join(able)}")
    modes = getattr(config, "ordered_modes", ())
    spatial = getattr(config, "spatial", None)
    if spatial is False and job.ordered_modes:
        raise ConfigError(f"method {method.name} looks at --ordered-modes only with --spatial; add it, or leave them out")
    if spatial and not modes:
        raise ConfigError("--spatial needs --ordered-modes, such as 0,1: the modes along which neighbours are alike")
    if len(set(modes)) < len(modes) or min(modes, default=0) < 0:
        raise ConfigError(f"--ordered-modes {','.join(map(str, modes))} names a mode twice, or one below 0")
    if order is not None and max(modes, default=0) >= order:
        raise ConfigError(f"--ordered-modes names mode {max(modes)}; a tensor of order {order} has modes 0 to {order - 1}")


def check_order(method, order, hint=""):
    """Refuse an input with more or fewer modes than the method takes.

    Raises
    ------
    ConfigError
    """
    least, most = method.orders
    if not least <= order <= most:
        taken = f"{least} to {most}" if least < most else least
        raise ConfigError(f"method {method.name} takes tensors of order {taken}, not {order}{hint}")
