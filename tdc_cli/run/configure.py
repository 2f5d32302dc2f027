"""The method of a request and its parameters."""

import sys
from dataclasses import fields

from .. import memory, methods
from ..errors import ConfigError
from ..names import CLIP, PICTURE, TENSOR


def check_method(request, method):
    """Find parameters that the method does not take, and results that it does not give, before the input is known.

    Raises
    ------
    ConfigError
    """
    if request.uncertainty is not None and not method.uncertainty:
        able = ", ".join(m.name for m in methods.REGISTRY.values() if m.uncertainty)
        raise ConfigError(f"method {method.name} gives no uncertainty; leave out `uncertainty` or use one of: {able}")
    if request.source is not None and not method.takes("source"):
        able = ", ".join(m.name for m in methods.REGISTRY.values() if m.needs is None and m.takes("source"))
        raise ConfigError(f"method {method.name} copies nothing; leave out `source` or use one of: {able}")
    config = _configured(request, method, None, _of_kind(request, None))
    if "numba" in sys.modules:  # which the method has loaded
        memory.check_room(memory.COMPILER)
    if request.kind == TENSOR:
        _check_ordered_modes(request, method, config)


def configure(request, method, source):
    """Config of the method, with what the input itself decides filled in where the user did not and where the method
    has it.

    Parameters
    ----------
    request : Request
    method : methods.Method
    source : Source

    Returns
    -------
    dataclass of the method

    Raises
    ------
    ConfigError
    """
    order = len(source.colour_shape) + (request.kind == CLIP)
    hints = {CLIP: f"; {'grey' if order == 3 else 'coloured'} frames one after the other have order {order}",
             PICTURE: "; a grey picture has order 2, one with colours 3" if order == 2 else ""}  # fmt: skip
    check_order(method, order, hints.get(request.kind, ""))
    config = _configured(request, method, source.full_range, _of_kind(request, order))
    if request.kind == TENSOR:
        _check_ordered_modes(request, method, config, order)
    return config


def _of_kind(request, order):
    """Parameters that the kind of the input decides."""
    if request.kind == TENSOR:
        return {"ordered_modes": request.ordered_modes}
    if request.kind == CLIP and order is not None:
        return {"ordered_modes": (0, 1, order - 1), "frames": order - 1}
    return {"ordered_modes": (0, 1)}


def _configured(request, method, full_range, of_kind):
    known = {f.name for f in fields(method.load().Config)}
    given = request.parameters
    if given and not known:
        raise ConfigError(f"method {method.name} has no parameters; leave out {', '.join(sorted(given))}")
    if request.noise_std is not None and "noise_std" in given:
        raise ConfigError("the noise level is given twice, by `noise_std` and by `param` noise_std")
    if request.noise_std and "noise_std" not in known:
        raise ConfigError(
            f"method {method.name} has no noise level; leave out `noise_std`, known entries then stay as they are"
        )
    step = 1 / full_range if full_range and not request.add_noise else None
    filled = {"noise_std": request.noise_std or 0.0, "resolution": step} | of_kind
    config = method.configure(
        given | {key: value for key, value in filled.items() if key in known and key not in given}
    )
    noise = getattr(config, "noise_std", 0.0)
    way = "param=noise_std" if "noise_std" in given else "noise_std"
    for name, level in ((way, noise if noise != "auto" else 0.0), ("add_noise", request.add_noise)):
        if full_range and level > 1:
            raise ConfigError(
                f"`{name}={level:g}` is {level:g} times the full range: integer pictures take a fraction of it; "
                f"{level:g} of {full_range} is {level / full_range:.2g}"
            )
    if request.uncertainty is not None and not getattr(config, "calibrate", True):
        raise ConfigError(
            f"method {method.name} gives no uncertainty with calibrate=false; leave out `uncertainty` or "
            "calibrate=false"
        )
    return config


def _check_ordered_modes(request, method, config, order=None):
    """Which ordered modes do not apply to this method, and which are lacking; `order` is None where the tensor is not
    known yet.

    Raises
    ------
    ConfigError
    """
    if request.ordered_modes and not hasattr(config, "ordered_modes"):
        able = [m.name for m in methods.REGISTRY.values() if "ordered_modes" in m.defaults()]
        raise ConfigError(
            f"method {method.name} has no ordered modes; leave out `ordered_modes` or use one of: {', '.join(able)}"
        )
    modes = getattr(config, "ordered_modes", ())
    spatial = getattr(config, "spatial", None)
    if spatial is False and request.ordered_modes:
        raise ConfigError(
            f"method {method.name} looks at `ordered_modes` only with `spatial`; add it, or leave them out"
        )
    if spatial and not modes:
        raise ConfigError("`spatial` needs `ordered_modes`, such as 0,1: the modes along which neighbours are alike")
    if len(set(modes)) < len(modes) or min(modes, default=0) < 0:
        raise ConfigError(f"`ordered_modes` {','.join(map(str, modes))} names a mode twice, or one below 0")
    if order is not None and max(modes, default=0) >= order:
        raise ConfigError(
            f"`ordered_modes` names mode {max(modes)}; a tensor of order {order} has modes 0 to {order - 1}"
        )


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
