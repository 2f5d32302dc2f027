"""What one looks at: some frames as a strip, all of them side by side, and a page."""

import numpy as np

from ...view import shots
from .done import finished


def take(plan, done):
    """`shots.Shot` of a frame."""
    clip, media = plan.clip, finished(plan, done)
    return shots.take(
        done.given.number,
        None if clip.times is None else clip.times[done.given.number],
        done.holed,
        done.colour,
        done.given.observed,
        plan.survey.limits,
        sd=done.sd,
        truth=done.given.truth,
        alpha=media.alpha,
        premultiplied="premultiplied" in media.metadata,
    )


def page_of(plan, report, reel, strip):
    """Page of a run, as text.

    Parameters
    ----------
    plan : Plan
    report : Report
    reel : page.Reel
    strip : shots.Evenly
    """
    from ...view import page

    clip = plan.clip
    shares = plan.survey.counts / np.prod(plan.given.shape)
    film = page.Film(reel, strip.chosen, shares.tolist(), clip.shape[:2], full_range=clip.full_range, transparent=clip.has_alpha)
    return page.clip(report, film)
