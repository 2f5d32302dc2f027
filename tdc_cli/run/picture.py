"""The way of one picture."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .. import media, methods, metrics
from ..errors import InputError, OutputExists
from ..media import Media, files
from ..media.files import write_text
from ..media.formats import Format
from . import holes, options, outcome, outputs, picture_files
from .job import Job
from .seeds import NOISE, stream
from .values import check_size, scaled


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
    config: object
    missing: dict
    notes: tuple
    warnings: tuple
    seconds: float
    unfinished: bool = False

    @property
    def replaces_picture(self):
        """Whether the picture replaces one of its name: another run with `skip_existing` may have been quicker."""
        return self.unfinished if self.job.skip_existing else self.job.overwrite

    @property
    def scale(self):
        """Factor from the method's units to those of the file."""
        return self.media.full_range or 1.0


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
    outputs.check_paths(job, replace=job.overwrite or job.skip_existing, make_folders=job.make_folders, standard=("image",))
    outputs.check_extensions(job)
    unfinished = job.skip_existing and Path(job.output).exists()
    if job.skip_existing:
        if job.finished:  # by another run, since the last look; after `unfinished`, so that a picture that comes in between is not replaced
            raise OutputExists(f"{job.output}: exists already")
        job = replace(job, overwrite=True)
    source = media.read(job.input)
    form = picture_files.output_format(job, source)
    picture_files.check_formats(job, source, form)
    observed, described, notes, warnings = holes.decide(job, source)
    config = _configure(job, method, source.full_range)
    order = source.colour.ndim
    options.check_order(method, order, "; a grey picture has order 2, one with colours 3" if order == 2 else "")
    truth, more = _truth(job, source)
    values = scaled(source.colour, source.full_range, source.path, noise=job.add_noise, rng=stream(job.seed, NOISE))
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
        tuple(warnings + picture_files.losses(source, form) + more),
        time.perf_counter() - start,
        unfinished,
    )


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


def _check_options(job, method):
    options.check_masks(job)
    options.check_numbers(job, method)


def _configure(job, method, full_range):
    return options.configure(job, method, full_range, ordered_modes=(0, 1))


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
        check_size(truth, f"reference {job.reference}", "scale input and reference down")
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


def _execute(plan, monitor):
    job = plan.job
    done = outcome.work(plan, metrics.compare, monitor)
    writing = time.perf_counter()
    picture_files.write(plan, done.values, done.incomplete, done.sd)
    report = outcome.report(plan, done, time.perf_counter() - writing)
    if job.report is not None:
        write_text(job.report, report.to_json(), replace=job.overwrite)
    if job.html is not None:
        text = picture_files.page_of(plan, report, done.values, done.incomplete, done.sd, done.completion.traces)
        write_text(job.html, text, replace=job.overwrite)
    return report
