"""The way of one tensor."""

import time

import numpy as np

from .. import holes as missing
from .. import methods, metrics
from ..errors import ConfigError, InputError
from ..media import STANDARD, Media, files, tensor
from ..media.files import write_text
from . import holes, options, outcome, outputs
from .picture import Plan
from .seeds import HOLES, NOISE, stream
from .values import check_size, holed, scaled

_SD = "sd"  # variable that holds the standard deviations
_MASK = "mask"


def prepare(job):
    """Check everything that can be checked before any work, and read the input.

    Parameters
    ----------
    job : TensorJob

    Returns
    -------
    Plan
        Its media have the mode ``tensor``, its arrays the shape of the tensor. The truth is NaN where it is not known.

    Raises
    ------
    ConfigError
        Options that contradict each other or that the method does not have.
    InputError, MaskError
        Files that cannot be read or that do not fit each other.
    OutputError
        Results that could not be written.
    """
    start = time.perf_counter()
    method = methods.get(job.method)
    options.check_missing(job)
    options.check_numbers(job, method)
    _configure(job, method, None)
    outputs.check_paths(job, replace=job.overwrite, standard=("tensor",))
    for path in (job.incomplete, job.uncertainty):
        if path is not None:
            tensor.named(path)
    form = tensor.named(job.output) if str(job.output) != STANDARD else None
    source = tensor.read(job.input)
    form = form or tensor.FORMATS[source.format]
    tensor.check(form, source, job.output)
    if job.incomplete is not None:
        tensor.check(tensor.named(job.incomplete), source, job.incomplete)
    observed, described, notes, warnings = _decide_missing(job, source)
    order = source.values.ndim
    options.check_order(method, order)
    config = _configure(job, method, source.full_range, order)
    truth = _truth(job, source)
    values = scaled(source.values, source.full_range, source.path, noise=job.add_noise, rng=stream(job.seed, NOISE))
    left = tensor.left_out(form, source)
    if left:
        warnings.append(f"{job.output}: without {', '.join(left)}, which {tensor.split(job.input)[0]} holds as well")
    return Plan(
        job,
        source,
        form,
        values,
        observed,
        truth,
        method,
        config,
        described,
        (*source.notes, *notes),
        tuple(warnings),
        time.perf_counter() - start,
    )


def execute(plan, monitor=methods.silent):
    """Complete, measure and write.

    Parameters
    ----------
    plan : Plan
    monitor : callable
        Called as ``monitor(done, total, label)`` while the method works.

    Returns
    -------
    Report

    Raises
    ------
    TdcError
        The method failed, gave values that are not finite, or a result could not be written; then none is.
    """
    with files.together():
        done = outcome.work(plan, metrics.compare_tensor, monitor)
        writing = time.perf_counter()
        _write(plan, done)
        report = outcome.report(plan, done, time.perf_counter() - writing)
        if plan.job.report is not None:
            write_text(plan.job.report, report.to_json(), replace=plan.job.overwrite)
    return report


def _configure(job, method, full_range, order=None):
    """Config of the method; `order` is None where the tensor is not known yet."""
    config = options.configure(job, method, full_range, ordered_modes=job.ordered_modes)
    options.check_ordered_modes(job, method, config, order)
    return config


def _decide_missing(job, source):
    """Observed entries of the input, their description for the report, lists of notes and warnings."""
    shape = source.values.shape
    described = {"source": "simulated", "pattern": None, "mask": None, "grey_levels": 0}
    nan = holes.find_nan(source.values, source.path)
    observed = np.ones(shape, dtype=bool)
    notes, warnings = [], []
    if job.mask is not None:
        read = missing.from_array(
            tensor.read_mask(job.mask), shape, name=str(job.mask), tensor=source.path, invert=job.invert_mask
        )
        observed, notes, warnings = read.observed, list(read.notes), list(read.warnings)
        described |= {"source": "mask", "mask": str(job.mask)}
    elif job.missing_ratio is not None:
        observed = missing.simulate_tensor(shape, job.missing_ratio, job.missing_pattern, stream(job.seed, HOLES))
        described |= {"pattern": job.missing_pattern}
    elif nan.any():
        described |= {"source": "nan"}
    elif not job.names_holes:
        raise ConfigError(
            f"{source.path}: nothing says what is missing; give --mask FILE (any number but 0 = missing), NaN in the tensor, "
            "or --missing-ratio 0.5 to hide half of a whole one"
        )
    observed, more = holes.without_nan(observed, nan, described["source"], source.path)
    for mode, count in missing.empty_slices(observed).items():
        more.append(
            f"nothing is known in {count} of {shape[mode]} slices of mode {mode}: low rank does not tell how these differ from the others"
        )
    count = int(observed.size - observed.sum())
    return observed, described | {"count": count, "pixels": count, "ratio": count / observed.size}, notes, warnings + more


def _truth(job, source):
    """What the result is measured against, NaN where it is not known, or None."""
    if job.reference is not None:
        reference = tensor.read(job.reference)
        if reference.values.shape != source.values.shape or reference.full_range != source.full_range:
            raise InputError(
                f"reference {job.reference} is {_size(reference)} but tensor {source.path} is {_size(source)}; they must be alike"
            )
        truth = reference.values
        check_size(truth, f"reference {job.reference}", "scale input and reference down")
    elif job.mask is None and (job.missing_ratio is not None or job.add_noise):
        truth = source.values
    else:
        return None
    holes.find_nan(truth, str(job.reference))
    return truth if not np.isnan(truth).all() else None


def _size(media):
    return f"{'x'.join(str(n) for n in media.values.shape)} {media.values.dtype}"


def _write(plan, done):
    """Write every output but the report; the tensor comes first: of files that are written together, the first one appears last."""
    job, source = plan.job, plan.media
    tensor.write(source.with_colour(done.values), job.output, form=plan.format, replace=job.overwrite)
    if job.incomplete is not None:
        tensor.write(source.with_colour(holed(done.incomplete, plan.observed)), job.incomplete, replace=job.overwrite)
        tensor.write(_array(source, (~plan.observed).astype(np.uint8), _MASK), job.outputs["mask"], replace=job.overwrite)
    if job.uncertainty is not None:
        tensor.write(_array(source, done.sd, _SD), job.uncertainty, replace=job.overwrite)


def _array(source, values, name):
    """An array that belongs to the tensor `source`, alone in its file."""
    kept = {key: value for key, value in source.metadata.items() if key == "axes"}
    return Media(values, "tensor", source.path, "", {"variable": name} | kept, source.format)
