"""The way of one picture: read, decide what is missing, complete, restore what is known, measure, write.

`prepare` finds everything that can be found before any work; `execute` does the work. `run` is both.
"""

import math
import os
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType

import numpy as np

from . import __version__, media, methods, metrics, missing, threads
from .errors import ConfigError, InputError, MaskError, NumericalError, OutputError, OutputExists
from .media import Media, files
from .media.files import write_bytes
from .media.formats import Format
from .media.masks import read_mask
from .report import Report

# Streams of random numbers: SeedSequence([seed, STREAM]) makes them independent, so that the holes do not depend on the method
# nor the noise on the holes.
HOLES, NOISE, DRAWS = 1, 2, 3

# Values beyond this size are refused: sums over all entries of a picture would not be finite. `float64` ends at 1.8e308.
LARGEST_VALUE = 1e290

# Arrays of a completion that `_uncertainty` chooses from.
SPREADS = ("sd", "predictive_sd", "interval_sd", "latent_interval_sd")
ALPHA = "alpha"  # in place of a mask's name
UNCERTAINTY_FORMATS = (".npy", ".tif", ".tiff", ".png")


@dataclass(frozen=True)
class Job:
    """One picture to complete, and how.

    Attributes
    ----------
    input, output : path-like
        ``-`` is standard input and output.
    method : str
        Name in `methods.REGISTRY`.
    mask : path-like or None
        Picture, white = missing; or the word `ALPHA`: what is transparent in the input.
    invert_mask : bool
    mask_threshold : float
        On levels 0..255.
    mask_dilate : int
        Pixels by which the holes grow.
    mask_color : str or None
        Colour that stands for holes, such as ``#ff00ff``.
    mask_tolerance : float
        Largest difference from it, in each channel, of 255.
    missing_ratio : float or None
        Share to hide from a whole picture, in [0, 1).
    missing_pattern : str
        One of `missing.PATTERNS`.
    add_noise : float
        Standard deviation of noise added to the input; a fraction of the full range for integers, data units for floats.
    reference : path-like or None
        Picture that holds the truth.
    parameters : mapping of str to object
        For the method; strings are converted.
    noise_std : float, "auto" or None
        Noise of the known entries, in the units of `add_noise`. None or 0: they come back bit for bit; else they are estimated.
    seed : int
        Not negative.
    threads : int or None
        None = all cores.
    report, html, uncertainty, panel, incomplete : path-like or None
        Further files to write; beside the last one also a picture of the mask.
    format : str or None
        Extension, without its dot, that says the format of the output; None: that of its name, of the input for standard output.
    quality : int or None
        Of JPEG, 1 to 100.
    overwrite : bool
    skip_existing : bool
        The job is one that `finished` has found to be undone: outputs of a run that did not come to its end are made anew, a picture
        that appears during the run stays.
    make_folders : bool
        Whether folders of outputs that are missing are made, when there is something to write into them.
    command : tuple of str
        For the report.
    """

    input: os.PathLike | str
    output: os.PathLike | str
    method: str
    mask: os.PathLike | str | None = None
    invert_mask: bool = False
    mask_threshold: float = 128
    mask_dilate: int = 0
    mask_color: str | None = None
    mask_tolerance: float = 0
    missing_ratio: float | None = None
    missing_pattern: str = "entries"
    add_noise: float = 0.0
    reference: os.PathLike | str | None = None
    parameters: Mapping = field(default_factory=dict)
    noise_std: float | str | None = None
    seed: int = 0
    threads: int | None = None
    report: os.PathLike | str | None = None
    html: os.PathLike | str | None = None
    uncertainty: os.PathLike | str | None = None
    panel: os.PathLike | str | None = None
    incomplete: os.PathLike | str | None = None
    format: str | None = None
    quality: int | None = None
    overwrite: bool = False
    skip_existing: bool = False
    make_folders: bool = False
    command: tuple = ()

    @property
    def outputs(self):
        """Name in the report to path, for every file that is to be written."""
        named = {
            "image": self.output,
            "incomplete": self.incomplete,
            "mask": self.incomplete and Path(self.incomplete).with_name(f"{Path(self.incomplete).stem}_mask.png"),
            "uncertainty": self.uncertainty,
            "panel": self.panel,
            "report": self.report,
            "html": self.html,
        }
        return {key: Path(path) for key, path in named.items() if path is not None}

    @property
    def names_holes(self):
        """Whether the options say what is missing; if not, only NaN in the input can."""
        given = self.mask, self.mask_color, self.missing_ratio
        return any(option is not None for option in given) or bool(self.add_noise or self.noise_std)

    @property
    def finished(self):
        """Whether every output is there: each appears whole, the picture last."""
        return all(path.exists() for path in self.outputs.values())


@dataclass(frozen=True)
class Plan:
    """A job that has passed every check, with its data read.

    Attributes
    ----------
    job : Job
    media : Media
        The input as read.
    format : media.formats.Format
        Of the completed picture.
    values : ndarray of float64, (H, W) or (H, W, C)
        Colours with the added noise, in 0..1 for integer pictures.
    observed : ndarray of bool, the same shape
        True = observed.
    truth : ndarray or None
        Colours of the reference, or of the input where holes or noise are simulated; dtype of the input.
    method : methods.Method
    module : module
    config : dataclass of the method
    missing : dict
        As in the report.
    notes, warnings : tuple of str
    seconds : float
        Spent so far.
    unfinished : bool
        Whether the picture is there but not all that belongs to it, so that it is made anew.
    """

    job: Job
    media: Media
    format: Format
    values: np.ndarray
    observed: np.ndarray
    truth: np.ndarray | None
    method: methods.Method
    module: ModuleType
    config: object
    missing: dict
    notes: tuple
    warnings: tuple
    seconds: float
    unfinished: bool = False

    @property
    def estimates_known(self):
        """Whether the known entries are estimated too, because they are noisy, rather than restored."""
        return getattr(self.config, "noise_std", 0.0) != 0

    @property
    def replaces_picture(self):
        """Whether the picture replaces one of its name: another run with `skip_existing` may have been quicker."""
        return self.unfinished if self.job.skip_existing else self.job.overwrite

    @property
    def scale(self):
        """Factor from the method's units to those of the file."""
        return self.media.full_range or 1.0


def stream(seed, purpose):
    """Generator of the stream `purpose` (`HOLES`, `NOISE` or `DRAWS`) of `seed`."""
    return np.random.default_rng(np.random.SeedSequence([seed, purpose]))


def run(job, monitor=methods.silent):
    """Complete one picture.

    Parameters
    ----------
    job : Job
    monitor : callable
        Called as ``monitor(done, total, label)`` while the method works.

    Returns
    -------
    Report

    Raises
    ------
    TdcError
        See `prepare` and `execute`.
    """
    return execute(prepare(job), monitor)


def sweep(jobs):
    """Remove what killed runs have left in the folders that `jobs` write into."""
    for folder in {path.parent for job in jobs for path in job.outputs.values()}:
        files.sweep(folder)


def check_options(job):
    """Find mistakes in the options by themselves, which no file is needed for.

    Raises
    ------
    ConfigError
    """
    method = methods.get(job.method)
    _check_options(job, method)
    _configure(job, method, None)


def prepare(job):
    """Check everything that can be checked before any work, and read the input.

    Returns
    -------
    Plan

    Raises
    ------
    ConfigError
        Options that contradict each other or that the method does not have.
    InputError, MaskError
        Files that cannot be read or that do not fit each other.
    OutputExists
        With `skip_existing`, the job is done already.
    OutputError
        Results that could not be written.
    """
    start = time.perf_counter()
    method = methods.get(job.method)
    _check_options(job, method)
    _check_outputs(job)
    unfinished = job.skip_existing and Path(job.output).exists()
    if job.skip_existing:
        if job.finished:  # by another run, since the last look; after `unfinished`, so that a picture that comes in between is not replaced
            raise OutputExists(f"{job.output}: exists already")
        job = replace(job, overwrite=True)
    source = media.read(job.input)
    form = _format(job, source)
    _check_formats(job, source, form)
    observed, described, notes, warnings = _decide_missing(job, source)
    module, config = _configure(job, method, source.full_range)
    order = source.colour.ndim
    least, most = method.orders
    if not least <= order <= most:
        taken = f"{least} to {most}" if least < most else least
        hint = "; a grey picture has order 2, one with colours 3" if order == 2 else ""
        raise ConfigError(f"method {method.name} takes tensors of order {taken}, not {order}{hint}")
    truth, more = _truth(job, source)
    values = _values(job, source)
    return Plan(
        job,
        source,
        form,
        values,
        observed,
        truth,
        method,
        module,
        config,
        described,
        (*source.notes, *notes),
        tuple(warnings + _losses(job, source, form) + more),
        time.perf_counter() - start,
        unfinished,
    )


def _check_options(job, method):
    if job.mask is not None and job.missing_ratio is not None:
        raise ConfigError("--mask and --missing-ratio exclude each other: holes are either given or simulated")
    if job.mask_color is not None:
        missing.parse_color(job.mask_color)
        if job.mask is not None or job.missing_ratio is not None:
            other = "--mask" if job.mask is not None else "--missing-ratio"
            raise ConfigError(f"--mask-color and {other} exclude each other: holes are said in one way")
    elif job.mask_tolerance:
        raise ConfigError("--mask-tolerance needs a --mask-color")
    if job.invert_mask and job.mask is not None and str(job.mask) == ALPHA:
        raise ConfigError("--invert-mask needs a mask picture; --mask alpha always takes what is transparent as missing")
    if job.mask is None and (job.invert_mask or (job.mask_color is None and job.mask_dilate)):
        raise ConfigError("--invert-mask and --mask-dilate need a --mask")
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


def _check_outputs(job):
    """Refuse to clobber, to write nowhere, and to write two things into one file; nothing has been read yet."""
    sources = {"input": job.input, "mask": job.mask, "reference": job.reference}
    seen = {}
    for name, path in job.outputs.items():
        if str(path) == media.STANDARD:
            if name != "image":
                raise OutputError(f"{path}: only the completed picture goes to standard output; name a file for the {name}")
            if sys.stdout is None or sys.stdout.isatty():
                raise OutputError(f"{path}: standard output is a terminal or closed; send the picture on, as in 'tdc ... -o - > b.png'")
            continue
        real = os.path.realpath(path)
        for role, source in sources.items():
            # The reference may well be the input itself, but no result may replace something that is read.
            if source is not None and (real == os.path.realpath(source) or (path.exists() and _same_file(path, source))):
                raise OutputError(f"{path}: is the {role} itself; name another file")
        if real in seen:
            raise OutputError(f"{path}: named twice, as {seen[real]} and as {name}; give each result a file of its own")
        seen[real] = name
        if path.is_dir():
            raise OutputError(f"{path}: is a folder; name a file in it")
        if path.is_socket() or path.is_block_device() or os.path.islink(real):
            raise OutputError(f"{path}: is a socket, a disk, or a link to itself; name a file")
        if not path.parent.is_dir() and not job.make_folders:
            raise OutputError(f"{path}: folder {path.parent} does not exist; create it first")
        if path.is_file() and not (job.overwrite or job.skip_existing):
            raise OutputError(f"{path}: exists already; give --overwrite to replace it")
        there = next(parent for parent in path.absolute().parents if parent.exists())
        if not os.access(there, os.W_OK):
            raise OutputError(f"{path}: folder {path.parent} is not writable")
    if job.uncertainty is not None and Path(job.uncertainty).suffix.lower() not in UNCERTAINTY_FORMATS:
        raise OutputError(f"{job.uncertainty}: uncertainty is written to {', '.join(UNCERTAINTY_FORMATS)}")
    if job.panel is not None and Path(job.panel).suffix.lower() != ".png":
        raise OutputError(f"{job.panel}: a panel is written to .png")
    if job.html is not None and Path(job.html).suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"{job.html}: a page is written to .html")


def _same_file(one, other):
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _format(job, source):
    """Format of the completed picture."""
    wanted = media.EXTENSIONS[f".{job.format}"] if job.format else None
    if str(job.output) == media.STANDARD:
        return wanted or media.FORMATS[source.format]
    if wanted is None:
        return media.named(job.output, OutputError)
    suffix = Path(job.output).suffix.lower()
    if media.EXTENSIONS.get(suffix, wanted) is not wanted:
        raise ConfigError(f"{job.output}: its extension says {suffix} but --format {job.format}; leave one out")
    return wanted


def _check_formats(job, source, form):
    media.check(form, source, job.output)
    if job.quality is not None and form.lossless:
        raise ConfigError(f"--quality is of JPEG, and {job.output} is written as {form.name}, without loss; leave it out")
    if job.incomplete is not None:
        media.check(media.named(job.incomplete, OutputError), source, job.incomplete)


def _losses(job, source, form):
    """Warnings of what the format of the output cannot keep."""
    told = []
    if not form.lossless:
        told.append(
            f"{form.name} compresses with loss: known pixels change a little in the file; write to .png to keep them bit for bit"
        )
    lost = form.lost(source)
    if lost:
        told.append(f"{form.name} cannot hold all that the input has: without {', '.join(lost)}; write to .png or .tif to keep it")
    return told


def _decide_missing(job, source):
    """Observed entries of the input, their description for the report, notes and warnings."""
    colour = source.colour
    described = {"source": "simulated", "pattern": None, "mask": None, "grey_levels": 0}
    nan = np.isnan(colour) if source.full_range is None else np.zeros(colour.shape, dtype=bool)
    if source.full_range is None and np.isinf(colour).any():
        raise InputError(
            f"{source.path}: {np.isinf(colour).sum()} values are infinite; NaN marks missing entries, infinity is refused"
        )
    read = _read_holes(job, source)
    observed = np.ones(colour.shape, dtype=bool)
    if read is not None:
        observed = np.broadcast_to(read.observed.reshape(read.observed.shape + (1,) * (colour.ndim - 2)), colour.shape).copy()
        kind = "color" if job.mask_color is not None else "alpha" if str(job.mask) == ALPHA else "mask"
        described |= {"source": kind, "mask": str(job.mask) if kind == "mask" else None, "grey_levels": read.grey_levels}
    elif job.missing_ratio is not None:
        observed = missing.simulate(colour.shape, job.missing_ratio, job.missing_pattern, stream(job.seed, HOLES))
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
    if nan.any():
        if described["source"] != "nan":
            warnings.append(f"{source.path}: {np.sum(nan & observed)} further entries are NaN and count as missing")
        observed &= ~nan
        if not observed.any():
            raise MaskError(f"{source.path}: every entry is missing: nothing is left to complete from")
    absent = ~observed
    count = int(absent.sum())
    described |= {
        "count": count,
        "pixels": int(absent.reshape(*colour.shape[:2], -1).any(axis=2).sum()),
        "ratio": count / absent.size,
    }
    return observed, described, notes, warnings


def _read_holes(job, source):
    """`missing.Mask` of the mask picture, of the input's transparency or of the colour that stands for holes; None without any."""
    if job.mask_color is not None:
        if source.full_range is None or source.mode == "CMYK" or (source.colour.ndim == 3 and source.colour.shape[2] != 3):
            raise ConfigError(f"{source.path}: --mask-color is for grey and RGB pictures with 8 or 16 bits, not for {source.kind}")
        return missing.from_color(
            source.colour, job.mask_color, picture=source.path, tolerance=job.mask_tolerance, dilate=job.mask_dilate
        )
    if job.mask is None:
        return None
    if str(job.mask) == ALPHA:
        if not source.has_alpha:
            raise ConfigError(f"{source.path}: --mask alpha needs a picture with transparency, and this one is {source.kind}")
        return missing.from_alpha(
            source.values[..., -1], source.full_range or 1, picture=source.path, dilate=job.mask_dilate
        )
    return missing.from_image(
        *read_mask(job.mask),
        source.values.shape[:2],
        name=str(job.mask),
        picture=source.path,
        threshold=job.mask_threshold,
        invert=job.invert_mask,
        dilate=job.mask_dilate,
    )


def _configure(job, method, full_range):
    """Module of the method and its config, with what the picture itself decides filled in where the user did not."""
    module = method.load()
    known = {f.name for f in fields(module.Config)}
    given = {key.replace("-", "_") for key in job.parameters}
    if given and not known:
        raise ConfigError(f"method {method.name} has no parameters; leave out {', '.join(sorted(given))}")
    if job.noise_std is not None and "noise_std" in given:
        raise ConfigError("the noise level is given twice, by --noise-std and by --param noise_std")
    if job.noise_std and "noise_std" not in known:
        raise ConfigError(f"method {method.name} has no noise level; leave out --noise-std, known entries then stay as they are")
    step = 1 / full_range if full_range and not job.add_noise else None
    filled = {"noise_std": job.noise_std or 0.0, "ordered_modes": (0, 1), "resolution": step}
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
    return module, config


def _truth(job, source):
    """Colours that the result is measured against, or None; and warnings."""
    if job.reference is not None:
        reference = media.read(job.reference)
        if reference.colour.shape != source.colour.shape or reference.values.dtype != source.values.dtype:
            raise InputError(
                f"reference {job.reference} is {_size(reference)} but picture {source.path} is {_size(source)}; "
                "they must be alike"
            )
        truth = reference.colour
        _check_size(truth, f"reference {job.reference}", "scale input and reference down")
    elif job.mask is None and (job.missing_ratio is not None or job.add_noise):
        truth = source.colour
    else:
        return None, []
    if source.full_range is None and not np.isfinite(truth).all():
        return None, ["metrics are null: the truth has entries that are not finite"]
    return truth, []


def _size(picture):
    height, width = picture.values.shape[:2]
    return f"{width}x{height} {picture.mode} {picture.values.dtype}"


def _values(job, source):
    """Colours as the method gets them: float64, 0..1 for integers, with the noise that was asked for."""
    values = source.colour / source.full_range if source.full_range else source.colour.astype(float)
    _check_size(values, source.path, "scale the input down")
    if job.add_noise:
        with np.errstate(over="ignore"):
            values = values + job.add_noise * stream(job.seed, NOISE).standard_normal(values.shape)
        _check_size(values, f"{source.path} with noise of {job.add_noise:g}", "give a smaller --add-noise")
    return values


def _check_size(values, name, advice):
    """Refuse finite values that no longer can be added up."""
    largest = np.nanmax(np.abs(values), initial=0.0)
    if largest > LARGEST_VALUE:
        raise InputError(f"{name}: values up to {largest:.3g} are too large to compute with, the limit is {LARGEST_VALUE:g}; {advice}")


def execute(plan, monitor=methods.silent):
    """Complete, measure and write.

    Parameters
    ----------
    plan : Plan
    monitor : callable
        See `run`.

    Returns
    -------
    Report

    Raises
    ------
    TdcError
        The method failed, gave values that are not finite, or a result could not be written; then none is.
    """
    with files.together():
        return _execute(plan, monitor)


def _execute(plan, monitor):
    job = plan.job
    begin = time.perf_counter()
    with threads.limited(job.threads):
        completion, compile_seconds, complete_seconds = _complete(plan, monitor)
    known = None if job.add_noise else plan.media.colour
    incomplete = _stored(plan, plan.values, known)
    colour = _stored(plan, completion.mean, None)
    if not plan.estimates_known:
        colour = np.where(plan.observed, incomplete, colour)
    sd = _uncertainty(plan, completion)
    uncertainty = _describe_uncertainty(plan, completion, sd)
    # The measures want memory of their own; all that is still to come of the estimates is in `colour` and `sd`.
    completion = replace(completion, mean=None, **dict.fromkeys(SPREADS))
    measured, reasons = None, []
    if plan.truth is not None:
        data_range = plan.media.full_range or float(np.ptp(plan.truth))
        measured, reasons = metrics.compare(plan.truth, colour, plan.observed, data_range)
        measured |= {"low_rank": None, "oracle_floor": None, "frames": None}
    writing = time.perf_counter()
    _write(plan, colour, incomplete, sd)
    end = time.perf_counter()
    report = Report(
        tool={"name": "tdc", "version": __version__},
        command=list(job.command),
        seed=job.seed,
        input={
            "path": plan.media.path,
            "sha256": plan.media.sha256,
            "shape": list(plan.media.values.shape),
            "dtype": str(plan.media.values.dtype),
            "mode": plan.media.mode,
        },
        missing=plan.missing,
        method={"name": plan.method.name, "parameters": completion.parameters},
        rank=completion.rank,
        mixture=completion.mixture,
        noise_std=completion.noise_std,
        diagnostics=completion.diagnostics,
        uncertainty=uncertainty,
        metrics=measured,
        timing={
            "read": plan.seconds,
            "compile": compile_seconds,
            "complete": complete_seconds,
            "write": end - writing,
            "total": plan.seconds + end - begin,
        },
        environment={"python": platform.python_version(), "threads": job.threads or threads.available()},
        outputs={key: str(path) for key, path in job.outputs.items()},
        warnings=[*plan.notes, *plan.warnings, *completion.warnings, *reasons],
    )
    if job.report is not None:
        write_bytes(job.report, report.to_json().encode(errors="backslashreplace"), replace=job.overwrite)
    if job.html is not None:
        text = _page(plan, report, colour, incomplete, sd, completion.traces)
        write_bytes(job.html, text.encode(errors="backslashreplace"), replace=job.overwrite)
    return report


def _page(plan, report, colour, incomplete, sd, traces):
    """Page of the run."""
    from . import page

    shown = page.Pictures(
        _holed(plan, incomplete),
        colour,
        plan.observed,
        given=plan.media.colour if plan.missing["source"] in ("mask", "alpha", "color") else None,
        sd=sd,
        truth=plan.truth,
        full_range=plan.media.full_range,
        inks=plan.media.mode == "CMYK",
        alpha=_alpha(_done(plan, colour)),
        given_alpha=_alpha(plan.media),
        premultiplied="premultiplied" in plan.media.metadata,
        icc_profile=plan.media.metadata.get("icc_profile"),
    )
    return page.run(report, shown, traces)


def _complete(plan, monitor):
    """Completion, seconds spent compiling, seconds spent completing."""
    if plan.observed.all() and not plan.estimates_known:
        zero = np.zeros(plan.values.shape) if plan.method.uncertainty else None
        return methods.Completion(mean=plan.values, interval_sd=zero, parameters=asdict(plan.config)), 0.0, 0.0
    start = time.perf_counter()
    notes = ()
    if hasattr(plan.module, "warm_up"):
        from .kernels import CACHE, NOT_KEPT

        monitor(0, 1, "compile")
        plan.module.warm_up(plan.values.ndim, plan.config)
        monitor(1, 1, "compile")
        notes = () if CACHE else (NOT_KEPT,)
    warm = time.perf_counter()
    # NaN under the mask: a method that reads what it must not see is found out at once.
    completion = plan.module.complete(
        np.where(plan.observed, plan.values, np.nan),
        plan.observed,
        plan.config,
        rng=stream(plan.job.seed, DRAWS),
        monitor=monitor,
    )
    done = time.perf_counter()
    bad = np.count_nonzero(~np.isfinite(completion.mean))
    if bad:
        raise NumericalError(
            f"{plan.media.path}: method {plan.method.name} gave {bad} values that are not finite; try another method"
        )
    return replace(completion, warnings=(*completion.warnings, *notes)), warm - start, done - warm


def _stored(plan, values, known):
    """`values` in the units and dtype of the file, rounded and clipped; `known` in their place where given."""
    if known is not None:
        return known
    dtype = plan.media.values.dtype
    if plan.media.full_range:
        return np.clip(np.rint(values * plan.scale), 0, plan.scale).astype(dtype)
    with np.errstate(over="ignore"):
        stored = values.astype(dtype)
    if np.isinf(stored).any():
        raise NumericalError(f"{plan.media.path}: {np.isinf(stored).sum()} values are too large for {dtype}; give the input as float64")
    return stored


def _uncertainty(plan, completion):
    """Standard deviation of every entry in the units of the file, 0 where known exactly; None if there is none."""
    if plan.estimates_known:
        sd = completion.sd if completion.latent_interval_sd is None else completion.latent_interval_sd
    else:
        sd = completion.predictive_sd if completion.interval_sd is None else completion.interval_sd
        sd = completion.sd if sd is None else sd
    if sd is None:
        return None
    if not plan.estimates_known:
        sd = np.where(plan.observed, 0.0, sd)
    # Double precision where the data have it: single precision ends at 3e38.
    return (sd * plan.scale).astype(np.float64 if plan.media.values.dtype == np.float64 else np.float32)


def _describe_uncertainty(plan, completion, sd):
    if sd is None:
        return None
    estimated = np.ones_like(plan.observed) if plan.estimates_known else ~plan.observed
    inside = None
    if plan.truth is not None:
        absent = ~plan.observed
        inside = metrics.coverage(plan.truth[absent], completion.mean[absent] * plan.scale, sd[absent])
    return {"mean_sd": float(sd[estimated].mean(dtype=float)) if estimated.any() else 0.0, "coverage90": inside,
            "held_out": completion.held_out}


def _holed(plan, incomplete):
    """The input with its holes as 0, as NaN in floats."""
    hole = 0 if plan.media.full_range else np.nan
    return np.where(plan.observed, incomplete, hole).astype(plan.media.values.dtype)


def _done(plan, colour):
    """The input with the completed colours; holes that were transparent are opaque."""
    return plan.media.with_colour(colour, opaque=_holes(plan) if plan.missing["source"] == "alpha" else None)


def _holes(plan):
    """(H, W) bool, where any channel is missing."""
    return (~plan.observed).reshape(*plan.observed.shape[:2], -1).any(axis=2)


def _alpha(media):
    """(H, W) alpha from 0 to 1 of a `Media`, None without any."""
    return media.values[..., -1] / (media.full_range or 1) if media.has_alpha else None


def _write(plan, colour, incomplete, sd):
    """Every output but the report and the page, which need what is only known at the end.

    The picture comes first: of files that are written together, the first one appears last.
    """
    job, source = plan.job, plan.media
    if job.make_folders:
        for path in job.outputs.values():
            files.make_folder(path.parent)
    holed = _holed(plan, incomplete)
    done = _done(plan, colour)
    media.write(done, job.output, form=plan.format, quality=job.quality, replace=plan.replaces_picture)
    if job.incomplete is not None:
        media.write(source.with_colour(holed), job.incomplete, quality=job.quality, replace=job.overwrite)
        mask = Media(np.where(_holes(plan), 255, 0).astype(np.uint8), "L", source.path, "")
        media.write(mask, job.outputs["mask"], replace=job.overwrite)
    units = f"of {source.full_range}" if source.full_range else "in data units"
    if job.uncertainty is not None:
        if Path(job.uncertainty).suffix.lower() == ".png":
            from .panel import draw_uncertainty

            write_bytes(job.uncertainty, draw_uncertainty(sd, units), replace=job.overwrite)
        else:
            from .media.array import write_array

            write_array(sd, job.uncertainty, replace=job.overwrite)
    if job.panel is not None:
        from .panel import draw_panel

        transparency = {"alpha": _alpha(done), "premultiplied": "premultiplied" in source.metadata}
        panel = draw_panel(holed, colour, sd, plan.truth, source.full_range, units, source.mode == "CMYK", **transparency)
        write_bytes(job.panel, panel, replace=job.overwrite)
