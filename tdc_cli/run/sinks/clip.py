"""A completed clip, written frame by frame, and what is written beside it."""

from dataclasses import replace

import numpy as np

from ...media import Media
from ...media.files import write_bytes
from ...media.video import check_clip, write_clip
from ...view import shots
from ...view.display import units_of
from ...view.side_by_side import Layout
from .. import outputs
from ..completed import completed

UNCERTAINTY_FORMATS = (".npy", ".tif", ".tiff")


class Sink:
    """See the package."""

    def __init__(self, request):
        outputs.check_extensions(request, UNCERTAINTY_FORMATS)
        self._answers = len(request.answers)

    def fit(self, request, source):
        """See the package."""
        lost, *_ = [
            check_clip(answer.output, source, codec=request.codec, quality=request.quality)
            for answer in request.answers
        ]
        if request.save_incomplete is not None:
            check_clip(request.save_incomplete, source)
        if request.uncertainty is not None:
            check_clip(request.uncertainty, _deviations(source))
        if request.side_by_side is not None:
            check_clip(request.side_by_side, _joined(source, _layout(source, False)))
        return lost

    def write(self, plan, measures, monitor, shown):
        """See the package. The clip comes first: of files that are written together, the first one appears last."""
        request, clip, first = plan.request, plan.source, plan.answer == 1
        keepers = shown or ()
        if first:
            strip = shots.Evenly() if request.panel is not None or request.html is not None else None
            reel = _reel(clip, self._answers) if request.html is not None else None
            keepers = [keeper for keeper in (reel, strip) if keeper is not None]

        def frames():
            for done in completed(plan, truth=measures is not None, sd=first):
                if measures is not None and done.given.inside:
                    measures.add(done.given.number, done.given.truth, done.estimate, ~done.given.absent)
                shot = _shot(plan, done) if keepers else None
                for keeper in keepers:
                    if first:
                        keeper.add(shot)
                    else:
                        keeper.join(shot, f"variant_{plan.answer}")
                yield done.media
                monitor(done.given.number + 1, clip.count, "write")

        write_clip(
            frames(), request.output, clip, codec=request.codec, quality=request.quality, replace=request.overwrite
        )
        if request.save_incomplete is not None:
            shown = (done.given.media.with_colour(done.holed) for done in completed(plan))
            write_clip(shown, request.save_incomplete, clip, replace=request.overwrite)
        if request.uncertainty is not None:
            sds = (Media(done.sd, "array", clip.path, clip.sha256) for done in completed(plan))
            write_clip(sds, request.uncertainty, _deviations(clip), replace=request.overwrite)
        if request.side_by_side is not None:
            truth = measures is not None
            layout = _layout(clip, truth)
            drawn = (layout.draw(_shot(plan, done)) for done in completed(plan, truth=truth))
            medias = (Media(values, "RGB", clip.path, clip.sha256) for values in drawn)
            write_clip(medias, request.side_by_side, _joined(clip, layout), replace=request.overwrite)
        if request.panel is not None:
            from ...view.panel import draw_filmstrip

            write_bytes(
                request.panel, draw_filmstrip(strip.chosen, units_of(clip.full_range)), replace=request.overwrite
            )
        return keepers if request.html is not None else None

    def page(self, plan, report, shown):
        """Page of a run, as text.

        Parameters
        ----------
        plan : Plan
        report : Report
        shown : (page.Reel, shots.Evenly)
            What `Sink.write` gave, with every answer.
        """
        from ...view import page

        clip, (reel, strip) = plan.source, shown
        shares = plan.survey.counts / plan.incomplete.entries
        film = page.Film(
            reel, strip.chosen, shares.tolist(), clip.shape[:2], full_range=clip.full_range, transparent=clip.has_alpha
        )
        return page.clip(report, film)


def _deviations(clip):
    """The clip that standard deviations make: an array of floats as long as `clip`, with times as that has."""
    dtype = np.dtype(np.float64 if clip.dtype == np.float64 else np.float32)
    return replace(clip, shape=clip.colour_shape, dtype=dtype, mode="array", bits=None, details={}, source=None)


def _layout(clip, truth):
    """How frames lie side by side, with the truth or without."""
    height, width = clip.shape[:2]
    return Layout(height, width, ("incomplete", "completed", *(["truth"] if truth else [])))


def _joined(clip, layout):
    """The clip that joined frames make, as long as `clip`, with its times and its sound."""
    return replace(clip, shape=layout.shape, dtype=np.dtype(np.uint8), mode="RGB", bits=None, details={})


def _reel(clip, answers):
    from ...view.page import Reel

    return Reel(clip.count, answers)


def _shot(plan, done):
    """`shots.Shot` of a frame."""
    clip, media = plan.source, done.media
    return shots.take(
        done.given.number,
        None if clip.times is None else clip.times[done.given.number],
        done.shown(done.holed),
        done.shown(done.colour),
        ~done.given.absent,
        plan.survey.limits,
        sd=done.sd,
        truth=done.given.truth,
        alpha=media.alpha,
        premultiplied="premultiplied" in media.metadata,
    )
