"""The work on one clip: complete, measure, write."""

import contextlib
import time

from ... import methods
from ...media import Media, files
from ...media.files import write_bytes, write_text
from ...media.video import write_clip
from ...view import shots
from .. import threads
from ..values import units_of
from .done import completed, finished
from .plan import deviations, joined, layout_of
from .report import measures_for, report_of
from .views import page_of, take
from .work import complete_chunks


def execute(plan, monitor=methods.silent):
    """Complete, measure and write.

    Parameters
    ----------
    plan : Plan
    monitor : callable
        Called as ``monitor(done, total, label)``.

    Returns
    -------
    Report

    Raises
    ------
    TdcError
        The method failed, or a result could not be written; then none is, but finished chunks stay in the store.
    """
    begin = time.perf_counter()
    plan.store.open(plan.job.resume, plan.job.output)
    with contextlib.closing(plan.store):
        with threads.limited(plan.job.threads):
            compiling, notes = complete_chunks(plan, monitor)
        with files.together():
            report = _write(plan, compiling, notes, begin, monitor)
        plan.store.remove()
    return report


def _write(plan, compiling, notes, begin, monitor):
    """Every output; a `Report`."""
    job, clip = plan.job, plan.clip
    start = time.perf_counter()
    measures = measures_for(plan)

    strip = shots.Evenly() if job.panel is not None or job.html is not None else None
    reel = _reel(clip) if job.html is not None else None

    def frames():
        for done in completed(plan, truth=measures is not None):
            if measures is not None and done.given.inside:
                measures.add(done.given.number, done.given.truth, done.colour, done.given.observed)
            shot = None if strip is None else take(plan, done)
            for keeper in (strip, reel):
                if keeper is not None:
                    keeper.add(shot)
            yield finished(plan, done)
            monitor(done.given.number + 1, clip.count, "write")

    # The clip comes first: of files that are written together, the first one appears last.
    write_clip(frames(), job.output, clip, codec=job.codec, quality=job.quality, replace=job.overwrite)
    if job.incomplete is not None:
        shown = (done.given.media.with_colour(done.holed) for done in completed(plan))
        write_clip(shown, job.incomplete, clip, replace=job.overwrite)
    if job.uncertainty is not None:
        sds = (Media(done.sd, "array", clip.path, clip.sha256) for done in completed(plan))
        write_clip(sds, job.uncertainty, deviations(clip), replace=job.overwrite)
    if job.side_by_side is not None:
        _write_side_by_side(plan, measures is not None)
    if job.panel is not None:
        from ...view.panel import draw_filmstrip

        write_bytes(job.panel, draw_filmstrip(strip.chosen, units_of(clip.full_range)), replace=job.overwrite)
    end = time.perf_counter()
    report = report_of(plan, measures, compiling, notes, {"write": end - start, "total": plan.spent + end - begin})
    if job.report is not None:
        write_text(job.report, report.to_json(), replace=job.overwrite)
    if job.html is not None:
        write_text(job.html, page_of(plan, report, reel, strip), replace=job.overwrite)
    return report


def _write_side_by_side(plan, truth):
    clip, layout = plan.clip, layout_of(plan.clip, truth)
    frames = (layout.draw(take(plan, done)) for done in completed(plan, truth=truth))
    medias = (Media(values, "RGB", clip.path, clip.sha256) for values in frames)
    write_clip(medias, plan.job.side_by_side, joined(clip, layout), replace=plan.job.overwrite)


def _reel(clip):
    from ...view.page import Reel

    return Reel(clip.count)
