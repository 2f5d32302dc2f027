"""What the suites on pictures and clips share: the protocol of a run, and the tables of RRE, PSNR and SSIM."""

import numpy as np

from .. import holes, metrics
from ..view.display import to_bytes
from . import gallery, media
from .completing import complete
from .tables import comparison, standing

METRICS = {"rre": ("RRE", False, 4), "psnr": ("PSNR, dB", True, 2), "ssim": ("SSIM", True, 4)}
OURS = "patches"
# Other methods of this program, no competitors.
OWN = ("datc", "datc-sc", "datc-ne", "field")
HOLES_STREAM, NOISE_STREAM = 0, 1
# Clips: noise on what is observed, masks on every second frame, and which kind of mask where it is not text.
NOISE_STD = float(np.sqrt(0.001))
KINDS = {"suzie": "scribble", "astronaut-pan": "scribble"}
# The frame that is shown: the paper's nineteenth, or the last that a mask lies on.
SHOWN_FRAME = 18


def photograph(cell, data, shown):
    """Outcome of a photograph with entries missing at random: what was observed put back, clipped; with arrays if
    `shown`.
    """
    truth, step = media.photograph(data, cell.data)
    observed = holes.simulate(truth.shape, cell.ratio, "entries", np.random.default_rng([cell.seed, HOLES_STREAM]))
    done = complete(cell, truth, observed, ordered_modes=(0, 1), resolution=step)
    mean, hidden = done.completion.mean, ~observed
    filled = np.where(observed, truth, np.clip(mean, 0, 1))
    found = {
        "rre": metrics.rre(truth, filled),
        "psnr": metrics.psnr(truth, filled, 1.0),
        "ssim": metrics.ssim(truth, filled, 1.0),
        "coverage": _coverage(truth, done.completion, hidden),
    }
    return done.outcome(found, arrays=_arrays(truth, np.where(observed, truth, 0), filled) if shown else {})


def clip(cell, data, shown):
    """Outcome of a clip with noise and a mask on frames 0, 2, 4 ...: the estimate of all entries, clipped; with arrays
    if `shown`.

    PSNR is of the squared error pooled over all entries, SSIM the mean of the frames'.
    """
    truth, step = media.clip(data, cell.data)
    observed = np.ones(truth.shape, dtype=bool)
    open_pixels = media.mask(data, KINDS.get(cell.data, "text"), truth.shape[:2])
    observed[..., ::2] = open_pixels.reshape(*open_pixels.shape, *[1] * (truth.ndim - 2))
    rng = np.random.default_rng([cell.seed, NOISE_STREAM])
    noisy = truth + NOISE_STD * rng.standard_normal(truth.shape)
    frames = truth.ndim - 1
    done = complete(
        cell, noisy, observed, ordered_modes=(0, 1, frames), frames=frames, noise_std=NOISE_STD, resolution=step
    )
    estimate = np.clip(done.completion.mean, 0, 1)
    ssims = [metrics.ssim(truth[..., t], estimate[..., t], 1.0) for t in range(truth.shape[-1])]
    found = {
        "rre": metrics.rre(truth, estimate),
        "psnr": metrics.psnr(truth, estimate, 1.0),
        "ssim": None if None in ssims else float(np.mean(ssims)),
        "coverage": _coverage(noisy, done.completion, ~observed),
    }
    t = min(SHOWN_FRAME, (truth.shape[-1] - 1) // 2 * 2)
    incomplete = np.where(observed, np.clip(noisy, 0, 1), 0)
    return done.outcome(found, arrays=_arrays(truth[..., t], incomplete[..., t], estimate[..., t]) if shown else {})


def _coverage(values, completion, hidden):
    sd = completion.interval_sd if completion.interval_sd is not None else completion.predictive_sd
    return None if sd is None else metrics.coverage(values[hidden], completion.mean[hidden], sd[hidden])


def _arrays(truth, incomplete, estimate):
    return {
        "truth": to_bytes(truth, 0, 1),
        "incomplete": to_bytes(incomplete, 0, 1),
        "estimate": to_bytes(estimate, 0, 1),
    }


def tables(name, words, records, columns, figure_of_the_paper, ours=OURS):
    """A table and one of the standing for each measure, and one of the seconds.

    Parameters
    ----------
    name, words : str
        Of the suite, for files and for titles.
    records : sequence of dict
    columns : sequence of tables.Column
    figure_of_the_paper : callable or None
        ``figure_of_the_paper(record, column)``: RRE, PSNR and SSIM, or None.
    ours : str
    """
    beside = [each for each in OWN if each != ours]
    made = []
    for i, (metric, (label, higher, digits)) in enumerate(METRICS.items()):
        def paper(record, column, i=i):
            found = figure_of_the_paper(record, column)
            return found and found[i]

        made += [
            comparison(
                f"{name}-{metric}",
                f"{label}, {words}",
                records,
                metric,
                columns,
                paper=figure_of_the_paper and paper,
                higher=higher,
                digits=digits,
            ),
            standing(
                f"standing-{metric}",
                f"{label} of ours beside the best competitor",
                records,
                metric,
                columns,
                ours,
                beside=beside,
                higher=higher,
                digits=digits,
            ),
        ]
    return [*made, comparison("seconds", "Seconds of one run", records, "seconds", columns, digits=1)]


def galleries(records, words):
    """(key, title, PNG) of each group of records that keep pictures of the same data: truth, incomplete, and every
    method with a detail.
    """
    shown = [each for each in records if each["arrays"]]
    made = []
    for data, ratio in dict.fromkeys((each["data"], each["ratio"]) for each in shown):
        own = [each for each in shown if (each["data"], each["ratio"]) == (data, ratio)]
        truth = gallery.load(own[0], "truth")
        pictures = {"truth": truth, "incomplete": gallery.load(own[0], "incomplete")}
        pictures |= {each["method"]: gallery.load(each, "estimate") for each in own}
        missing_share = "" if ratio is None else f", {ratio:.0%} missing"
        made.append((data, f"{data}{missing_share}: {words}", gallery.draw(pictures, gallery.busiest(truth))))
    return made
