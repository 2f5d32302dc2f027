"""What one looks at: some frames as a strip, all of them side by side, and a page."""

import numpy as np

from ... import shots
from .done import finished, holed


def take(plan, done):
    """`shots.Shot` of a frame."""
    clip, media = plan.clip, finished(plan, done)
    return shots.take(
        done.given.number,
        None if clip.times is None else clip.times[done.given.number],
        holed(plan, done),
        done.colour,
        done.given.observed,
        plan.survey.limits,
        sd=done.sd,
        truth=done.given.truth,
        alpha=media.values[..., -1] / (clip.full_range or 1) if clip.has_alpha else None,
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
    from ... import page

    clip = plan.clip
    shares = plan.survey.counts / np.prod(plan.given.shape)
    film = page.Film(reel, strip.chosen, shares.tolist(), clip.shape[:2], full_range=clip.full_range, transparent=clip.has_alpha)
    return page.clip(report, film)


def units_of(clip):
    """What sizes of errors are counted in, in words."""
    return f"of {clip.full_range}" if clip.full_range else "in data units"
