"""The page of a clip: a player that compares, a strip of frames, and every frame's figures."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from ...names import MEASURES
from ..display import units_of
from . import charts, pictures
from .reel import Reel
from .render import number, percent, render
from .run import Figure, answers, facts, label, measures, model_charts, split

INCOMPLETE = ("incomplete", "Incomplete", "What the method saw; holes are black.")
FURTHER = (
    ("truth", "Truth", "What the result is measured against."),
    ("mask", "Missing", "White where entries are missing."),
    ("uncertainty", "Uncertainty", "Standard deviation."),
    ("error", "Error", "Absolute difference from the truth."),
)
SIZES = ("uncertainty", "error")
# What a frame's figures are called in the report, and how charts call them.
FRAME_MEASURES = (("psnr", "PSNR, dB"), ("ssim", "SSIM"), ("missing_psnr", "PSNR of missing entries, dB"))


@dataclass(frozen=True)
class Film:
    """What a page shows of a clip.

    Attributes
    ----------
    reel : Reel
        To which every shot was given.
    shots : sequence of Shot
        The frames of the strip, with their uncertainty and errors where known; see `shots.Evenly`.
    shares : sequence of float
        Share of the entries that is missing, of every frame.
    shape : (H, W)
        Of a frame.
    full_range : int or None
        Largest value of the integer type, None for floats.
    transparent : bool
        Whether a checkerboard is seen behind some pixels.
    """

    reel: Reel
    shots: Sequence
    shares: Sequence
    shape: tuple
    full_range: int | None = None
    transparent: bool = False


@dataclass(frozen=True)
class Shown:
    """A frame of the strip: its head, and row to data URI."""

    when: str
    uris: dict


def clip(report, film):
    """Page of a clip.

    Parameters
    ----------
    report : Report
        With the figures of every frame in ``metrics["frames"]``, where there are any.
    film : Film

    Returns
    -------
    str
    """
    values = report.to_dict()
    written = next(iter(values["outputs"].values()), values["input"]["path"])
    reel = film.reel
    reel.finish()
    frames = reel.frames
    begin = next((i for i, frame in enumerate(frames) if frame.share), 0)
    each = {row["frame"]: row for row in (values["metrics"] or {}).get("frames") or []}
    unit = film.full_range or 1
    notes = _notes(values)
    return render(
        "clip.html",
        ("viewer.js", "player.js"),
        report=values,
        name=PurePath(written if written != "-" else values["input"]["path"]).name,
        count=len(film.shares),
        worked=sum(share > 0 for share in film.shares),
        facts=facts(values, units_of(film.full_range)),
        figures=_figures(frames[begin], reel, notes),
        frames=frames,
        begin=begin,
        split=split(np.any([shot.missing > 0 for shot in film.shots], axis=0)),
        cut=len(frames) < len(film.shares),
        lossless=reel.lossless,
        film={
            "frames": [
                {
                    "number": frame.number,
                    "time": frame.time,
                    "caption": _caption(frame, each.get(frame.number)),
                    "pictures": frame.pictures,
                }
                for frame in frames
            ],
            "images": reel.images,
        },
        **_strip(film.shots, reel.end, notes),
        over_frames=_over_frames(film, each),
        scale=pictures.scale(),
        units=units_of(film.full_range),
        original=film.shape,
        size=reel.size,
        factor=reel.factor,
        transparent=film.transparent,
        enlarged=pictures.enlargement(*reel.size),
        metrics=measures(values),
        measured=MEASURES,
        charts=model_charts(values, {}, unit),
        watched=[],
        label=label,
        unit=unit,
        command=shlex.join(["tdc", *values["command"]]),
    )


def _notes(report):
    """Name to title and note of every picture of a frame, in their order: several answers come before all else."""
    results = answers(len(report.get("variants") or [None]), report["seed"])
    before, behind = ([], [INCOMPLETE]) if results[1:] else ([INCOMPLETE], [])
    return {name: words for name, *words in (*before, *results, *behind, *FURTHER)}


def _figures(frame, reel, notes):
    """The pictures of the frame with which the player begins."""
    made = [
        Figure(name, *words, reel.images[frame.pictures[name]])
        for name, words in notes.items()
        if name in frame.pictures
    ]
    return [replace(figure, end=reel.end, beyond=reel.beyond) if figure.name in SIZES else figure for figure in made]


def _caption(frame, measured):
    """What the player says of a frame."""
    parts = [f"{percent(frame.share)} missing" if frame.share else "nothing missing"]
    for key, unit, digits in (("psnr", " dB", 2), ("ssim", "", 4)):
        if measured and measured[key] is not None:
            parts.append(f"{key.upper()} {number(measured[key], digits, unit)}")
    return ", ".join(parts)


def _strip(shots, end, notes):
    """Frames and rows of the strip, whose sizes have a colour scale up to `end`."""
    shown = []
    for shot in shots:
        uris = {name: pictures.photograph(picture, 0, 255, 1) for name, picture in shot.pictures.items()}
        uris |= {name: pictures.heat(size, end, 1) for name, size in shot.sizes.items()}
        when = f"frame {shot.number}" + ("" if shot.time is None else f", {shot.time:.2f} s")
        shown.append(Shown(when, {title: uris[name] for name, (title, _) in notes.items() if name in uris}))
    return {"shots": shown, "rows": list(shown[0].uris), "scaled": bool(shots[0].sizes)}


def _over_frames(film, each):
    """Charts of every frame's missing share and, where there is a truth, of its measures."""
    made = [charts.over_frames("Missing entries", film.shares, share=True)]
    if each:
        for key, title in FRAME_MEASURES:
            values = [each.get(number, {}).get(key) for number in range(len(film.shares))]
            made.append(charts.over_frames(title, values))
    return [chart for chart in made if chart is not None]
