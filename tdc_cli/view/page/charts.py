"""Where the lines and bars of small charts lie; the templates draw them as SVG."""

import math
from dataclasses import dataclass

# Size of a chart in units of its viewBox, and the room for the labels of its axes.
WIDTH, HEIGHT = 240, 130
WIDE = 480
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 8, 20
# Bounds of what one chart holds, however long the chains are.
MOST_POINTS = 240
MOST_CHAINS = 8
MOST_BARS = 40
MOST_DOTS = 60


@dataclass(frozen=True)
class Chart:
    """Geometry of a chart in units of its viewBox, ``0 0 WIDTH HEIGHT``.

    Attributes
    ----------
    title : str
    text : str
        What the chart shows, in words.
    across, up : tuple of (position, label)
        Ticks of the two axes.
    lines : tuple of str
        Points of polylines.
    dots : tuple of (x, y)
    bars : tuple of (x, y, width, height, text)
    frames : (first, last) or None
        Where the axis counts frames of a clip, those at its ends.
    """

    title: str
    text: str
    across: tuple = ()
    up: tuple = ()
    lines: tuple = ()
    dots: tuple = ()
    bars: tuple = ()
    frames: tuple | None = None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM


def trace(title, chains):
    """Chart of a quantity over the kept sweeps, a line for each chain; long ones are thinned, further chains left out.

    Parameters
    ----------
    title : str
    chains : sequence of sequences of float
        All of the same length.

    Returns
    -------
    Chart or None
        None where there is nothing to draw, or a value is not finite.
    """
    if not (len(chains) and len(chains[0])) or not all(math.isfinite(value) for chain in chains for value in chain):
        return None
    length = len(chains[0])
    low, high = min(map(min, chains)), max(map(max, chains))
    margin = 0.05 * (high - low) or abs(high) * 0.01 or 1.0
    low, high = low - margin, high + margin
    step = -(-length // MOST_POINTS)
    lines = tuple(
        " ".join(
            f"{_across(i, 0, max(length - 1, 1)):.1f},{_up(chain[i], low, high):.1f}" for i in range(0, length, step)
        )
        for chain in chains[:MOST_CHAINS]
    )
    means = ", ".join(f"{sum(chain) / length:.4g}" for chain in chains[:MOST_CHAINS])
    marks = ticks(low, high)
    return Chart(
        title,
        f"{title} over {length} sweeps of {len(chains)} chain{'s' if len(chains) > 1 else ''}; means {means}",
        across=tuple((_across(i, 0, max(length - 1, 1)), str(i + 1)) for i in sorted({0, length // 2, length - 1})),
        up=tuple((_up(mark, low, high), f"{mark:.6g}") for mark in marks),
        lines=lines,
    )


def posterior(title, shares):
    """Chart of a distribution over whole numbers; only the `MOST_BARS` around the likeliest are drawn.

    Parameters
    ----------
    title : str
    shares : mapping of str to float
        Number to its probability; not empty.

    Returns
    -------
    Chart
    """
    known = {int(key): share for key, share in shares.items()}
    best = max(known, key=known.get)
    first = max(min(known), best - MOST_BARS // 2)
    last = min(max(known), first + MOST_BARS - 1)
    top = max(known.values())
    slot = min(28.0, (WIDTH - LEFT - RIGHT) / (last - first + 1))
    start = LEFT + (WIDTH - LEFT - RIGHT - slot * (last - first + 1)) / 2

    def middle(value):
        return start + slot * (value - first + 0.5)

    bars = tuple(
        (
            middle(value) - 0.4 * slot,
            _up(share, 0, top),
            0.8 * slot,
            _up(0, 0, top) - _up(share, 0, top),
            f"{value}: {share:.1%}",
        )
        for value, share in sorted(known.items())
        if first <= value <= last
    )
    labelled = range(first, last + 1, max(1, math.ceil((last - first + 1) / 6)))
    return Chart(
        title,
        f"{title}: " + ", ".join(text for *_, text in bars),
        across=tuple((middle(value), str(value)) for value in labelled),
        up=tuple((_up(mark, 0, top), f"{mark:.0%}") for mark in ticks(0, top)),
        bars=bars,
    )


def over_frames(title, values, first=0, *, share=False):
    """Chart of a figure over the frames of a clip, a line through all frames where it is known.

    Of a long clip neighbouring frames are drawn as one, by the worst of them: the largest share of missing entries,
    else the smallest value.

    Parameters
    ----------
    title : str
    values : sequence of float or None
        A value for each frame, None where it is not known.
    first : int
        Number of the first frame.
    share : bool
        Whether the values are shares, drawn from 0 and as percentages.

    Returns
    -------
    Chart or None
        None where no value is known.
    """
    known = [(first + i, float(value)) for i, value in enumerate(values) if value is not None and math.isfinite(value)]
    if not known:
        return None
    last = first + len(values) - 1
    low, high = (0.0 if share else min(value for _, value in known)), max(value for _, value in known)
    margin = 0.05 * (high - low) or abs(high) * 0.01 or 1.0
    low, high = (0.0 if share else low - margin), high + margin
    step = -(-len(values) // MOST_POINTS)
    groups = {}
    for frame, value in known:
        groups.setdefault((frame - first) // step, []).append((frame, value))
    worst = [(max if share else min)(group, key=lambda drawn: drawn[1]) for group in groups.values()]
    right = WIDE - RIGHT

    def across(frame):
        return _across(frame, first, max(last, first + 1), right)

    points = tuple((across(frame), _up(value, low, high)) for frame, value in worst)
    style = ".1%" if share else ".4g"
    mean = sum(value for _, value in known) / len(known)
    at, extreme = (max if share else min)(known, key=lambda drawn: drawn[1])
    called = "largest" if share else "smallest"
    return Chart(
        title,
        f"{title} of {len(known)} frames; mean {mean:{style}}, {called} {extreme:{style}} in frame {at}",
        across=tuple((across(frame), str(frame)) for frame in sorted({first, (first + last) // 2, last})),
        up=tuple(
            (_up(mark, low, high), f"{mark:.6g}" if not share else f"{100 * mark:.6g} %") for mark in ticks(low, high)
        ),
        lines=(" ".join(f"{x:.1f},{y:.1f}" for x, y in points),),
        dots=points if len(points) <= MOST_DOTS else (),
        frames=(first, last),
        width=WIDE,
        right=right,
    )


def ticks(low, high):
    """Two to six round numbers within [low, high], which are ``low < high``."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step *= next(factor for factor in (5, 2, 1) if factor * step <= (high - low) / 2)
    return [
        round(i * step, 12 - math.floor(math.log10(step)))
        for i in range(math.ceil(low / step), math.floor(high / step) + 1)
    ]


def _across(value, low, high, right=WIDTH - RIGHT):
    return LEFT + (right - LEFT) * (value - low) / (high - low)


def _up(value, low, high):
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)
