"""Large holes of clips with known truth: how near `exemplar` and `auto` come to what motion alone can know, and whether
what no frame shows flickers.

    python benchmarks/large_holes_clips.py --out large_holes_clips

The clips are made from photographs that come with scikit-image, windows of 96 x 128 pixels that stand still or move
over them by whole pixels or parts of one, with a noise of 1.5 levels of every frame's own. Printed, and written to
large_holes_clips.json:

- a box of 28 pixels that moves through the clip: PSNR of what it hides, beside that of the nearest frame that shows
  each pixel, moved by the motion that the clip was made with;
- a hole of 40 x 60 pixels that stands still while a texture moves behind it, and over a still one: the change from
  frame to frame inside over that in the ring of 8 pixels around it, beside that of the truth, and the sharpness,
  relative to the truth.

With --frames FOLDER the frames are written, truth above result.
"""

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from large_holes import steepness
from PIL import Image
from scipy.ndimage import binary_dilation, binary_erosion, shift

HEIGHT, WIDTH, COUNT = 96, 128, 7
NOISE = 1.5  # levels
RING = 8  # pixels around a hole that it is compared with
# name: photograph, where its window begins (row, column), and how far that moves from frame to frame
BOXES = {
    "box, still": ("coffee.png", (40, 300), (0.0, 0.0)),
    "box, panning": ("coffee.png", (40, 300), (1.0, 3.0)),
    "box, panning by parts": ("coffee.png", (40, 300), (0.6, 1.7)),
    "box, still lawn": ("camera.png", (380, 330), (0.0, 0.0)),
    "box, panning lawn": ("camera.png", (380, 330), (0.0, 2.0)),
}
HOLES = {
    "hole, moving gravel": ("gravel.png", (100, 100), (1.0, 2.0)),
    "hole, moving grass": ("grass.png", (100, 100), (0.5, 1.5)),
    "hole, moving bricks": ("brick.png", (100, 100), (0.0, 3.0)),
    "hole, still gravel": ("gravel.png", (300, 300), (0.0, 0.0)),
}


@dataclass(frozen=True)
class Clip:
    """A clip of known truth.

    Attributes
    ----------
    truth : (T, H, W, 3) uint8 ndarray
    hole : (T, H, W) bool ndarray
    step : (float, float)
        Rows and columns by which the window moves from frame to frame.
    """

    truth: np.ndarray
    hole: np.ndarray
    step: tuple


def clip(photograph, begin, step, box):
    """The clip of a window, with a box that moves through it or a hole that stands still."""
    import skimage

    whole = np.asarray(Image.open(Path(skimage.__file__).parent / "data" / photograph).convert("RGB")).astype(float)
    rng, frames = np.random.default_rng(0), []
    hole = np.zeros((COUNT, HEIGHT, WIDTH), bool)
    for t in range(COUNT):
        place = [b + s * t for b, s in zip(begin, step, strict=True)]
        whole_, part = [int(p) for p in place], [p % 1 for p in place]
        seen = whole[whole_[0] - 4 : whole_[0] + HEIGHT + 4, whole_[1] - 4 : whole_[1] + WIDTH + 4]
        if any(part):
            seen = shift(seen, (-part[0], -part[1], 0), order=3, mode="nearest")
        frames.append(seen[4:-4, 4:-4] + rng.normal(0, NOISE, (HEIGHT, WIDTH, 3)))
        if box:
            hole[t, 30:58, 6 + 14 * t : 34 + 14 * t] = True
        else:
            hole[t, 28:68, 34:94] = True
    return Clip(np.clip(np.rint(frames), 0, 255).astype(np.uint8), hole, step)


def known_by_motion(one):
    """The nearest frame that shows each pixel of a hole, moved by the true motion: (T, H, W, 3) levels, NaN where none
    does.
    """
    made = np.full(one.truth.shape, np.nan)
    for t in range(COUNT):
        for s in sorted(range(COUNT), key=lambda s, t=t: (abs(s - t), s))[1:]:
            apart = [step * (s - t) for step in one.step]
            moved = shift(one.truth[s].astype(float), (*apart, 0), order=3, cval=np.nan, mode="constant")
            lost = shift(one.hole[s].astype(float), apart, order=1, cval=1.0, mode="constant") > 1e-6
            # Splines between pixels look at neighbours too.
            lost = binary_dilation(lost, iterations=2) if any(step % 1 for step in apart) else lost
            able = one.hole[t] & ~lost & np.isnan(made[t]).all(axis=2)
            made[t][able] = moved[able]
    return made


def filled(one, name):
    import tdc_cli

    stacked = np.moveaxis(one.truth, 0, 2)
    observed = np.broadcast_to(~np.moveaxis(one.hole, 0, 2)[..., None], stacked.shape)
    done = tdc_cli.complete(stacked / 255, observed=observed, method=name, rng=0, frames=2)
    return np.moveaxis(np.clip(np.rint(255 * np.asarray(done.mean, float)), 0, 255).astype(np.uint8), 2, 0)


def psnr(made, truth, where):
    return float(-10 * np.log10(np.mean((made[where].astype(float) - truth[where]) ** 2) / 255**2))


def box_figures(one, made):
    best = known_by_motion(one)
    shown = np.isfinite(best).all(axis=3)
    return {
        "psnr": psnr(made, one.truth, shown),
        "motion alone": psnr(best, one.truth, shown),
        "share that motion knows": float(shown.sum() / one.hole.sum()),
    }


def hole_figures(one, made):
    hole = one.hole[0]
    ring, inner = binary_dilation(hole, iterations=RING) & ~hole, binary_erosion(hole, iterations=2)
    changes = [np.abs(np.diff(frames.astype(float), axis=0)).mean(axis=(0, 3)) for frames in (made, one.truth)]
    flicker = [change[inner].mean() / change[ring].mean() for change in changes]
    sharp = [
        np.mean([steepness(frame)[inner].mean() for frame in frames.astype(float)]) for frames in (made, one.truth)
    ]
    return {
        "flicker": float(flicker[0]),
        "flicker of the truth": float(flicker[1]),
        "sharpness": float(sharp[0] / sharp[1]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", default="large_holes_clips", help="name of the file, without its ending")
    parser.add_argument("--methods", nargs="*", default=["exemplar", "auto"])
    parser.add_argument("--clips", nargs="*", help="only these")
    parser.add_argument("--frames", help="folder for the frames, truth above result")
    asked = parser.parse_args()
    records = []
    for name, made_of in (BOXES | HOLES).items():
        if asked.clips is not None and name not in asked.clips:
            continue
        one = clip(*made_of, box=name in BOXES)
        for method in asked.methods:
            begin = os.times()
            made = filled(one, method)
            seconds = sum(os.times()[:4]) - sum(begin[:4])
            record = (box_figures if name in BOXES else hole_figures)(one, made)
            records.append({"clip": name, "method": method, "seconds": seconds} | record)
            print(f"{name:22} {method:9}", *(f"{key} {value:.2f}" for key, value in record.items()), f"{seconds:.1f} s",
                  flush=True)  # fmt: skip
            Path(f"{asked.out}.json").write_text(json.dumps(records, indent=1), encoding="utf-8")
            if asked.frames:
                Path(asked.frames).mkdir(parents=True, exist_ok=True)
                for t, pair in enumerate(zip(one.truth, made, strict=True)):
                    words = f"{name}_{method}_{t}.png".replace(", ", "_").replace(" ", "_")
                    Image.fromarray(np.concatenate(pair)).save(Path(asked.frames) / words)
    if not records:
        sys.exit(f"none of these clips: {' '.join(asked.clips)}")


if __name__ == "__main__":
    main()
