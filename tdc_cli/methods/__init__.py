"""Every completion method by name, and the one contract that all of them keep.

A method is a module with a frozen dataclass ``Config``, its `parameters.Parameters`, all with defaults, and a function

    complete(values, observed, config, *, rng, monitor) -> Completion

which `solve.solve` calls. `values` is a (n_1, ..., n_K) array of float64 of ordinary size, NaN where `observed`, an
array of bool of the same shape, is False; at least one entry is observed, and all of these are finite. Neither is
changed. Random numbers come from `rng` alone, a numpy.random.Generator. `monitor` is called as `silent` says, at the
end with as many steps done as there are. The result is in the units of `values`; among its parameters are those alone
that differ from `config` or are found. What cannot be used is an InputError or a ConfigError, a computation that breaks
down a NumericalError.

A method whose work grows with what is to be filled may take the keyword `wanted`, an array of bool or None: the missing
entries whose estimates matter, where others are kept as they are. It leaves these others out, with any finite estimate.

A method that works locally has two more functions, so that a large picture can be completed region by region.
``margin(config)`` is how many pixels it must see on each side of what is used of a region, beside `DEEP` times the
depth of the holes there; None: the whole, with this config. ``share(samples, config, *, rng, monitor)``, which may be
left out, decides what is decided once for all regions: from a list of a few parts of the picture, (values, observed,
wanted) each, it makes any object that can be pickled, and `complete` gets a `Part` as a further keyword `part`.
``undivided(lost)``, which may be left out as well, says which of the pixels of a frame that are wanted and of which
nothing is known, (H, W) bool, are to be completed in one region with those around them, however large a region usually
is; `complete` then gets the rows and columns that are used of a region, slices of what it sees, as a keyword `used`.

To add a method, write the module and add a line to `REGISTRY`. It holds names only, so that listing methods imports
none of them, nor NumPy: a shell completes their names.
"""

from __future__ import annotations

import importlib.util
import inspect
import typing
from dataclasses import dataclass, field, fields

from ..errors import ConfigError
from ..listed import likely
from .parameters import convert, declaration

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
        Posterior standard deviation of the latent (noise-free) entry, same shape and units; None where the method has
        none.
    predictive_sd : ndarray or None
        Standard deviation of a noisy observation of the entry.
    interval_sd : ndarray or None
        Half-width of the central 90 % interval of a noisy observation of the entry, divided by 1.645.
    latent_interval_sd : ndarray or None
        The same for the latent entry.
    uncertainty : ndarray or None
        What `tdc_cli.complete` makes of those above, in the units of the input: the 90 % interval is ``mean`` plus and
        minus 1.645 times it. Without a noise level that of an observation, 0 where observed; with one that of the
        latent entry.
    rank : dict or None
        ``{"value": int, "posterior": {str: float}, "paper_count": int or None}``.
    mixture : dict or None
        ``{"weights": [...], "means": [...], "precisions": [...]}`` of the residual, by falling weight, in the units of
        the input.
    noise_std : float or None
        Standard deviation of the noise, given or learnt, in the units of the input.
    diagnostics : dict or None
        ``{"r_hat": {...}, "ess": {...}, "chains": int, "burn_in": int, "draws": int, ...}``.
    parameters : dict
        The parameters in force, after every automatic choice, ready for JSON.
    held_out : dict or None
        ``{"count": int, "coverage90": float or None}``: observed entries that were hidden to calibrate the standard
        deviations, and the share of them inside their 90 % interval, each half judged by the scale fitted to the other.
    traces : dict
        Name to list of lists (chain by draw): ``rank``, ``noise_std``, ``log_likelihood``, and ``probe_1`` and so on
        for a few missing entries, in the units of the input.
    low_rank : ndarray or None
        Estimate of the low-rank part alone, with the constant offset of the data left out.
    weights : list of float or None
        Absolute CP weights, largest first, of one draw: root mean square of every component, in the units of the input.
    invented : (H, W) ndarray of bool, or None
        Pixels that no estimate can know and that were filled with what looks right instead; (H, W, frames) of a clip.
        Their `sd` is the spread among equally good sources, and no interval is claimed. None: every entry is an
        estimate.
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
    invented: np.ndarray | None = None
    warnings: tuple = ()


@dataclass(frozen=True)
class Part:
    """Which region of a larger picture is completed.

    Attributes
    ----------
    origin : (int, int)
        Row and column where it begins.
    shared : object
        What the method's ``share`` has decided for all regions.
    """

    origin: tuple
    shared: object


# Pixels that a region sees beyond what is used of it, for every pixel of depth of the holes there: what a hole's far
# side says has fallen to a hundredth after one and a half of its widths.
DEEP = 3


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
    by_channel : bool
        Whether every channel is completed by itself, so that it must be observed in every region.
    copies : bool
        Whether it only copies pixels that are observed in all channels, so that every frame with holes needs one.
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
    by_channel: bool = False
    copies: bool = False

    def load(self):
        """Import and return the method's module."""
        return importlib.import_module(self.module)

    def takes(self, keyword):
        """Whether the method has a keyword beyond those of all methods."""
        return keyword in inspect.signature(self.load().complete).parameters

    def margin(self, config):
        """Pixels that it sees around what is used of a region, beside `DEEP` times the depth of holes; None: it needs
        the whole.
        """
        module = self.load()
        return module.margin(config) if hasattr(module, "margin") else None

    @property
    def undivided(self):
        """Function that says which pixels are to be completed in one region, see the package; None: regions may lie
        anyhow.
        """
        return getattr(self.load(), "undivided", None)

    @property
    def parameters(self):
        """Fields of the method's config by name; `parameters.declaration` has what each of them means and may be."""
        return {each.name: each for each in fields(self.load().Config)}

    def configure(self, parameters):
        """Config of this method from keyword values.

        Parameters
        ----------
        parameters : mapping of str to object
            As keywords, or as text, which is read as what the parameter holds; ``burn-in`` is ``burn_in``.

        Raises
        ------
        ConfigError
            The library that the method needs is not there; unknown key, a value that does not convert, or one the
            method refuses.
        """
        if self.needs is not None and importlib.util.find_spec(self.needs) is None:
            raise ConfigError(
                f"method {self.name} needs {self.needs}, which is not installed; try: pip install 'tdc-cli[bench]'"
            )
        known, values = self.parameters, dict(self.preset)
        for key, value in parameters.items():
            name = key.replace("-", "_")
            if name not in known:
                others = [m.name for m in REGISTRY.values() if name in m.parameters]
                hint = f"; that is for method {' or '.join(others)}" if others else ""
                text = f"method {self.name} has no parameter '{key}'{hint}; it has: {', '.join(sorted(known))}"
                raise ConfigError(text, fields=(name,))
            values[name] = convert(self.load().Config, name, value)
        return self.load().Config(**values)

    def defaults(self):
        """Parameters with their defaults, the preset applied."""
        return {name: each.default for name, each in self.parameters.items()} | self.preset

    def meanings(self):
        """Parameters with what they mean."""
        return {name: declaration(each).help for name, each in self.parameters.items()}


_METHODS = (
    Method(
        "auto",
        "patches, and exemplar inside of holes too deep to be predicted",
        "tdc_cli.methods.auto",
        uncertainty=True,
    ),
    Method(
        "patches", "groups of similar patches, each a low-rank Gaussian", "tdc_cli.methods.patches", uncertainty=True
    ),
    Method(
        "field",
        "coloured Gaussian field: a smooth picture with correlated channels",
        "tdc_cli.methods.field",
        uncertainty=True,
    ),
    Method(
        "datc",
        "the paper's model: Bayesian CP with automatic rank plus a mixture of Gaussians",
        "tdc_cli.methods.datc",
        uncertainty=True,
    ),
    Method(
        "datc-sc",
        "datc with spatial coherence along rows and columns",
        "tdc_cli.methods.datc",
        preset={"spatial": True},
        uncertainty=True,
    ),
    Method(
        "datc-ne",
        "datc without the non-low-rank part: CP and Gaussian noise of learnt precision",
        "tdc_cli.methods.datc",
        preset={"residual": "none"},
        uncertainty=True,
    ),
    Method(
        "datc-nx",
        "datc without the low-rank part: the mixture alone",
        "tdc_cli.methods.datc",
        preset={"low_rank": False, "residual": "mixture"},
        uncertainty=True,
    ),
    Method(
        "exemplar",
        "large holes filled with what looks right: copies from elsewhere, patch by patch",
        "tdc_cli.methods.exemplar",
        uncertainty=True,
        context=8,
        chunk=96,
        copies=True,
    ),
    Method(
        "biharmonic",
        "scikit-image's biharmonic inpainting, channel by channel",
        "tdc_cli.methods.biharmonic",
        context=0,
        by_channel=True,
    ),
    # What to compare with.
    Method("falrtc", "FaLRTC: nuclear norms of all unfoldings, smoothed, by Nesterov's method", "tdc_cli.peers.falrtc"),
    Method("halrtc", "HaLRTC: nuclear norms of all unfoldings, by ADMM", "tdc_cli.peers.halrtc"),
    Method(
        "rptc-scad", "RPTC_scad: product of the ranks of all unfoldings, by SCAD penalties", "tdc_cli.peers.rptc_scad"
    ),
    Method("tmac", "TMac: a product of thin matrices for every unfolding, of growing rank", "tdc_cli.peers.tmac"),
    Method("stdc", "STDC: low-rank factors, neighbouring rows alike", "tdc_cli.peers.stdc"),
    Method(
        "tsvd",
        "t-SVD: nuclear norms of the slices in the Fourier domain of the last mode",
        "tdc_cli.peers.tsvd",
        orders=(3, 3),
    ),
    Method(
        "spc-qv",
        "SPC: smooth rank-one terms in growing number, quadratic variation",
        "tdc_cli.peers.spc",
        preset={"penalty": "quadratic", "strength": 0.5},
    ),
    Method(
        "spc-tv",
        "SPC: the same with total variation",
        "tdc_cli.peers.spc",
        preset={"penalty": "variation", "strength": 0.01},
    ),
    Method(
        "fbcp",
        "fully Bayesian CP, its rank found by automatic relevance determination",
        "tdc_cli.peers.fbcp",
        uncertainty=True,
    ),
    Method("fbcp-image", "fbcp as its authors run it on photographs", "tdc_cli.peers.fbcp_image", uncertainty=True),
    Method(
        "fbcp-mp",
        "fbcp-image with a mixture prior that wants neighbouring rows and columns alike",
        "tdc_cli.peers.fbcp_image",
        preset={"smoothing": 1.0, "iterations": 30},
        uncertainty=True,
    ),
    Method("brtf", "Bayesian robust CP: finds its rank and sets outliers aside", "tdc_cli.peers.brtf"),
    Method(
        "telea",
        "OpenCV's inpainting by fast marching, channel by channel",
        "tdc_cli.methods.opencv",
        preset={"algorithm": "telea"},
        needs="cv2",
        context=0,
        by_channel=True,
    ),
    Method(
        "navier-stokes",
        "OpenCV's inpainting by the Navier-Stokes equation, channel by channel",
        "tdc_cli.methods.opencv",
        preset={"algorithm": "navier-stokes"},
        needs="cv2",
        context=0,
        by_channel=True,
    ),
    Method(
        "linear",
        "linear interpolation between the nearest observed pixels, channel by channel",
        "tdc_cli.methods.linear",
        context=0,
        by_channel=True,
    ),
    Method(
        "nearest",
        "the nearest observed pixel, channel by channel",
        "tdc_cli.methods.nearest",
        context=0,
        by_channel=True,
    ),
    Method(
        "cp-masked",
        "tensorly's CP decomposition with a mask, of a rank that must be given",
        "tdc_cli.peers.cp_masked",
        needs="tensorly",
    ),
)

REGISTRY = {m.name: m for m in _METHODS}


def get(name):
    """The method called `name`.

    Raises
    ------
    ConfigError
        No such method; the text names those that may be meant.
    """
    if name not in REGISTRY:
        raise ConfigError(f"no method '{name}'; {likely(name, REGISTRY, 'tdc methods')}")
    return REGISTRY[name]
