"""Every completion method by name, and the one contract that all of them keep.

A method is a module with a frozen dataclass ``Config`` (its parameters, all with defaults) and a function
``complete(values, observed, config, *, rng, monitor) -> Completion``. To add one: write the module, add a line to `REGISTRY`.
The registry holds names only, so that listing methods imports none of them, nor NumPy: a shell completes their names.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import numbers
import re
import types
import typing
from dataclasses import MISSING, dataclass, field, fields

from .. import listed
from ..errors import ConfigError, NumericalError

if typing.TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Completion:
    """What a method returns.

    Attributes
    ----------
    mean : ndarray
        Estimate of every entry, in the units of the input. Observed entries are estimated too where the method does so;
        restoring them is the caller's choice.
    sd : ndarray or None
        Posterior standard deviation of the latent (noise-free) entry, same shape and units; None where the method has none.
    predictive_sd : ndarray or None
        Standard deviation of a noisy observation of the entry.
    interval_sd : ndarray or None
        Half-width of the central 90 % interval of a noisy observation of the entry, divided by 1.645.
    latent_interval_sd : ndarray or None
        The same for the latent entry.
    uncertainty : ndarray or None
        What the command line writes with ``--uncertainty``, in the units of the input: the 90 % interval is ``mean`` plus and minus 1.645
        times it. `tdc_cli.complete` fills it in from those above: without a noise level that of an observation, 0 where observed; with one
        that of the latent entry.
    rank : dict or None
        ``{"value": int, "posterior": {str: float}, "paper_count": int or None}``.
    mixture : dict or None
        ``{"weights": [...], "means": [...], "precisions": [...]}`` of the residual, by falling weight, in the units of the input.
    noise_std : float or None
        Standard deviation of the noise, given or learnt, in the units of the input.
    diagnostics : dict or None
        ``{"r_hat": {...}, "ess": {...}, "chains": int, "burn_in": int, "draws": int, ...}``.
    parameters : dict
        The parameters in force, after every automatic choice, JSON-ready.
    held_out : dict or None
        ``{"count": int, "coverage90": float or None}``: observed entries that were hidden to calibrate the standard deviations, and the
        share of them inside their 90 % interval, each half judged by the scale fitted to the other.
    traces : dict
        Name to list of lists (chain by draw): ``rank``, ``noise_std``, ``log_likelihood``, and ``probe_1`` and so on for a few missing
        entries, in the units of the input.
    low_rank : ndarray or None
        Estimate of the low-rank part alone, with the constant offset of the data left out.
    weights : list of float or None
        Absolute CP weights, largest first, of one draw: root mean square of every component, in the units of the input.
    warnings : tuple of str
    """

    mean: np.ndarray
    sd: np.ndarray | None = None
    predictive_sd: np.ndarray | None = None
    interval_sd: np.ndarray | None = None
    latent_interval_sd: np.ndarray | None = None
    uncertainty: np.ndarray | None = None
    rank: dict | None = None
    mixture: dict | None = None
    noise_std: float | None = None
    diagnostics: dict | None = None
    parameters: dict = field(default_factory=dict)
    held_out: dict | None = None
    traces: dict = field(default_factory=dict)
    low_rank: np.ndarray | None = None
    weights: list | None = None
    warnings: tuple = ()


# Noise beyond this many times the largest value leaves nothing to complete from.
LOUDEST = 1e6


def check_noise_std(noise_std):
    """Refuse a noise level that is neither a standard deviation nor ``"auto"``.

    Raises
    ------
    ConfigError
    """
    if isinstance(noise_std, str):
        if noise_std != "auto":
            raise ConfigError(f"noise_std '{noise_std}' is neither a number nor auto")
    elif not 0 <= noise_std < math.inf:
        raise ConfigError(f"noise_std is {noise_std:g}; it must be 0 or a finite standard deviation")


def check_loudness(noise_std, unit):
    """Refuse a noise level beyond `LOUDEST` times the largest size `unit` of the data.

    Raises
    ------
    ConfigError
    """
    if noise_std != "auto" and noise_std > LOUDEST * unit:
        raise ConfigError(f"a noise level of {noise_std:g} is out of proportion to the data, whose largest size is {unit:g}")


def silent(done, total, label):
    """Monitor that shows nothing: the default of every method.

    Parameters
    ----------
    done, total : int
        Steps done and steps in all; `total` may change between calls.
    label : str
        What is being done, a few words.
    """


@dataclass(frozen=True)
class Method:
    """A line of the registry.

    Attributes
    ----------
    name, summary : str
    module : str
        Module that holds ``Config`` and ``complete``.
    preset : dict
        Parameters that this name fixes: a variant of another method.
    uncertainty : bool
        Whether a standard deviation comes with the estimate.
    orders : tuple of int
        Smallest and largest tensor order accepted.
    needs : str or None
        Name by which a library is imported that only the extra `bench` installs.
    context : int
        Frames of a clip on each side that an estimate depends on; 0: every frame is completed by itself.
    chunk : int
        Frames of a clip that are worth completing at a time.
    """

    name: str
    summary: str
    module: str
    preset: dict = field(default_factory=dict)
    uncertainty: bool = False
    orders: tuple = (2, 6)
    needs: str | None = None
    context: int = 4
    chunk: int = 48

    def load(self):
        """Import and return the method's module."""
        return importlib.import_module(self.module)

    def configure(self, parameters):
        """Config of this method from keyword values; strings are converted to the type of the field.

        Parameters
        ----------
        parameters : mapping of str to object
            As given by ``--param KEY=VALUE`` or as keywords.

        Raises
        ------
        ConfigError
            The library that the method needs is not there; unknown key, a value that does not convert, or one the method refuses.
        """
        if self.needs is not None and importlib.util.find_spec(self.needs) is None:
            raise ConfigError(f"method {self.name} needs {self.needs}, which is not installed; try: pip install 'tdc-cli[bench]'")
        config = self.load().Config
        known = {f.name: f for f in fields(config)}
        values = dict(self.preset)
        for key, value in parameters.items():
            name = key.replace("-", "_")
            if name not in known:
                others = [m.name for m in _METHODS if name in {f.name for f in fields(m.load().Config)}]
                hint = f"; that is for --method {' or '.join(others)}" if others else ""
                raise ConfigError(f"method {self.name} has no parameter '{key}'{hint}; it has: {', '.join(sorted(known))}")
            kind = typing.get_type_hints(config)[name]
            values[name] = _convert(value, kind, key) if isinstance(value, str) else _checked(value, kind, key)
        return config(**values)

    def defaults(self):
        """Parameters with their defaults, the preset applied."""
        made = {f.name: f.default if f.default is not MISSING else f.default_factory() for f in fields(self.load().Config)}
        return made | self.preset


    def meanings(self):
        """Parameters with what they mean, as the docstring of the config says it; a parameter it does not name has no entry."""
        text = inspect.getdoc(self.load().Config) or ""
        _, _, section = text.partition("Attributes\n----------\n")
        made = {}
        # A line that is not indented names parameters and their type; the indented lines below it belong to them.
        for names, _, words in re.findall(r"^(\w[\w, ]*) : (.*)\n((?: +.*\n?)*)", section, re.M):
            made |= dict.fromkeys(names.split(", "), " ".join(words.split()))
        return made


def _kinds(kind):
    """The types of a union, or the one type that it is."""
    return typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)


def _checked(value, kind, key):
    """`value`, found to be of one of the types of `kind` (a type or a union); a list may stand for a tuple."""
    if not any(_fits(value, one) for one in _kinds(kind)):
        raise ConfigError(f"parameter {key}={value!r} is not understood; expected {getattr(kind, '__name__', kind)}")
    return tuple(value) if isinstance(value, list) else value


def _fits(value, one):
    """Whether a value that is no text is of a type; NumPy's numbers are numbers."""
    if one is tuple or typing.get_origin(one) is tuple:
        inner = (typing.get_args(one) or (int,))[0]
        return isinstance(value, (tuple, list)) and all(_fits(each, inner) for each in value)
    if isinstance(value, bool):
        return one is bool
    return isinstance(value, {int: numbers.Integral, float: numbers.Real}.get(one, one))


def _convert(text, kind, key):
    """`text` as the first type of `kind` (a type or a union) that takes it."""
    for one in _kinds(kind):
        if one is type(None) and text.lower() in ("none", ""):
            return None
        if one is bool and text.lower() in ("true", "false", "yes", "no", "1", "0"):
            return text.lower() in ("true", "yes", "1")
        if one is str:
            return text
        if one is tuple or typing.get_origin(one) is tuple:
            inner = (typing.get_args(one) or (int,))[0]
            try:
                return tuple(map(inner, listed.parts(text))) if text else ()
            except ValueError:
                continue
        if one in (int, float):
            try:
                return one(text)
            except ValueError:
                continue
    raise ConfigError(f"parameter {key}={text!r} is not understood; expected {getattr(kind, '__name__', kind)}")


_METHODS = (
    Method("patches", "groups of similar patches, each a low-rank Gaussian", "tdc_cli.methods.patches",
           uncertainty=True),
    Method("field", "coloured Gaussian field: a smooth picture with correlated channels", "tdc_cli.methods.field", uncertainty=True),
    Method("datc", "the paper's model: Bayesian CP with automatic rank plus a mixture of Gaussians", "tdc_cli.methods.datc",
           uncertainty=True),
    Method("datc-sc", "datc with spatial coherence along rows and columns", "tdc_cli.methods.datc",
           preset={"spatial": True}, uncertainty=True),
    Method("datc-ne", "datc without the non-low-rank part: CP and Gaussian noise of learnt precision", "tdc_cli.methods.datc",
           preset={"residual": "none"}, uncertainty=True),
    Method("datc-nx", "datc without the low-rank part: the mixture alone", "tdc_cli.methods.datc",
           preset={"low_rank": False, "residual": "mixture"}, uncertainty=True),
    Method("biharmonic", "scikit-image's biharmonic inpainting, channel by channel", "tdc_cli.methods.biharmonic",
           context=0),
    # What to compare with.
    Method("falrtc", "FaLRTC: nuclear norms of all unfoldings, smoothed, by Nesterov's method", "tdc_cli.peers.falrtc"),
    Method("halrtc", "HaLRTC: nuclear norms of all unfoldings, by ADMM", "tdc_cli.peers.halrtc"),
    Method("rptc-scad", "RPTC_scad: product of the ranks of all unfoldings, by SCAD penalties", "tdc_cli.peers.rptc_scad"),
    Method("tmac", "TMac: a product of thin matrices for every unfolding, of growing rank", "tdc_cli.peers.tmac"),
    Method("stdc", "STDC: low-rank factors, neighbouring rows alike", "tdc_cli.peers.stdc"),
    Method("tsvd", "t-SVD: nuclear norms of the slices in the Fourier domain of the last mode", "tdc_cli.peers.tsvd", orders=(3, 3)),
    Method("spc-qv", "SPC: smooth rank-one terms in growing number, quadratic variation", "tdc_cli.peers.spc",
           preset={"penalty": "quadratic", "strength": 0.5}),
    Method("spc-tv", "SPC: the same with total variation", "tdc_cli.peers.spc", preset={"penalty": "variation", "strength": 0.01}),
    Method("fbcp", "fully Bayesian CP, its rank found by automatic relevance determination", "tdc_cli.peers.fbcp", uncertainty=True),
    Method("fbcp-image", "fbcp as its authors run it on photographs", "tdc_cli.peers.fbcp_image", uncertainty=True),
    Method("fbcp-mp", "fbcp-image with a mixture prior that wants neighbouring rows and columns alike", "tdc_cli.peers.fbcp_image",
           preset={"smoothing": 1.0, "iterations": 30}, uncertainty=True),
    Method("brtf", "Bayesian robust CP: finds its rank and sets outliers aside", "tdc_cli.peers.brtf"),
    Method("telea", "OpenCV's inpainting by fast marching, channel by channel", "tdc_cli.methods.opencv",
           preset={"algorithm": "telea"}, needs="cv2", context=0),
    Method("navier-stokes", "OpenCV's inpainting by the Navier-Stokes equation, channel by channel", "tdc_cli.methods.opencv",
           preset={"algorithm": "navier-stokes"}, needs="cv2", context=0),
    Method("linear", "linear interpolation between the nearest observed pixels, channel by channel", "tdc_cli.methods.linear", context=0),
    Method("nearest", "the nearest observed pixel, channel by channel", "tdc_cli.methods.nearest", context=0),
    Method("cp-masked", "tensorly's CP decomposition with a mask, of a rank that must be given", "tdc_cli.peers.cp_masked",
           needs="tensorly"),
)

REGISTRY = {m.name: m for m in _METHODS}


def get(name):
    """The method called `name`.

    Raises
    ------
    ConfigError
        No such method; the text names the ones there are.
    """
    if name not in REGISTRY:
        raise ConfigError(f"no method '{name}'; there are: {', '.join(REGISTRY)}")
    return REGISTRY[name]


def solve(method, config, values, observed, *, rng, path, monitor=silent, **further):
    """Completion by a method, whose estimate is found to be finite.

    Parameters
    ----------
    method : Method
    config : dataclass of the method
    values : ndarray of float64
    observed : ndarray of bool, of the same shape
    rng : numpy.random.Generator
    path : str
        For messages.
    monitor : callable
    **further
        Keywords that this method takes beyond those of all methods.

    Raises
    ------
    NumericalError
        The method gave values that are not finite.
    """
    import numpy as np

    # NaN under the mask: a method that reads what it must not see is found out at once.
    completion = method.load().complete(np.where(observed, values, np.nan), observed, config, rng=rng, monitor=monitor, **further)
    bad = np.count_nonzero(~np.isfinite(completion.mean))
    if bad:
        raise NumericalError(f"{path}: method {method.name} gave {bad} values that are not finite; try another method")
    return completion
