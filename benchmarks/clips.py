"""Completion of clips by `patches`: quality, coverage, seconds and memory, beside the mean of the frames on both sides.

    TDC_BENCH_DATA=FOLDER python benchmarks/clips.py --what noise masks entries frames auto --out clips.json

FOLDER/videos/*.npy are (T, H, W, C) uint8, FOLDER/masks/*.png pictures of holes, white = missing. Every finished run is
kept in the --out file and not repeated.
"""

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

MASKS = {"suzie": "scribble_144x176", "foreman": "text_144x176"}
NOISE = 0.001**0.5
CASES = ("noise", "masks", "entries", "frames", "auto")


def folder():
    """The folder of clips and masks."""
    if "TDC_BENCH_DATA" not in os.environ:
        sys.exit("set TDC_BENCH_DATA to a folder with videos/*.npy and masks/*.png")
    return Path(os.environ["TDC_BENCH_DATA"])


def clip(name, count=None):
    """A clip in [0, 1], frames as last mode: (H, W, C, T)."""
    frames = np.load(folder() / "videos" / f"{name}.npy")[:count]
    return np.moveaxis(frames / 255.0, 0, 3)


def holes(name, shape, case, rng):
    """Observed entries of a case, True = observed."""
    from PIL import Image

    observed = np.ones(shape, bool)
    if case in ("noise", "masks", "auto"):
        mask = np.asarray(Image.open(folder() / "masks" / f"{MASKS[name]}.png").convert("L")) > 127
        observed[mask, :, ::2] = False
    elif case == "entries":
        observed = rng.random(shape) >= 0.6
    elif case == "frames":
        observed[..., 3::5] = False
    return observed


def peak(error):
    """PSNR, data range 1."""
    return float(-10 * np.log10(np.mean(error**2)))


def likeness(estimate, truth):
    """Mean SSIM of the frames."""
    from skimage.metrics import structural_similarity

    pairs = zip(np.moveaxis(estimate, 3, 0), np.moveaxis(truth, 3, 0))
    return float(np.mean([structural_similarity(t, e, channel_axis=2, data_range=1.0) for e, t in pairs]))


def beside(values, observed):
    """Mean of the same entry in the frames on both sides, where it is observed there; where in neither, the mean of
    all.
    """
    padded, shown = (np.pad(a, [(0, 0)] * 3 + [(1, 1)]) for a in (np.where(observed, values, 0.0), observed))
    count = shown[..., :-2].astype(float) + shown[..., 2:]
    mean = (padded[..., :-2] + padded[..., 2:]) / np.maximum(count, 1)
    return np.where(count > 0, mean, values[observed].mean())


def run(name, case, count, parameters):
    """Figures of one run."""
    from tdc_cli.methods import patches

    truth, rng = clip(name, count), np.random.default_rng(0)
    observed = holes(name, truth.shape, case, rng)
    noisy = case in ("noise", "auto")
    values = truth + NOISE * rng.standard_normal(truth.shape) if noisy else truth
    level = {"noise": NOISE, "auto": "auto"}.get(case, 0.0)
    patches.warm_up(truth.shape, patches.Config(frames=3), 0.5)
    begin, busy = time.perf_counter(), time.process_time()
    config = patches.Config(frames=3, noise_std=level, **parameters)
    found = patches.complete(np.where(observed, values, np.nan), observed, config, rng=np.random.default_rng(0))
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    error, missing = found.mean - truth, ~observed
    figures = {
        "psnr": peak(error),
        "ssim": likeness(found.mean, truth),
        "missing": peak(error[missing]),
        "beside": peak((beside(values, observed) - truth)[missing]),
        "seconds": seconds,
        "busy": busy,
        "load": os.getloadavg()[0],
        "noise_std": found.noise_std,
        "parameters": found.parameters,
        "held_out": found.held_out,
        "frames": [
            peak(e[m]) if m.any() else None for e, m in zip(np.moveaxis(error, 3, 0), np.moveaxis(missing, 3, 0))
        ],
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
    }
    if found.sd is not None:
        inside = np.abs(error) <= 1.645 * found.sd
        figures |= {"coverage": float(inside[missing].mean()), "coverage_all": float(inside[found.sd > 0].mean())}
    return figures


def line(name, case, f):
    """One row of the table."""
    inside = "/".join(f"{f[k]:.3f}" for k in ("coverage", "coverage_all") if k in f)
    return (
        f"{case:8} {name:8} {f['psnr']:6.2f} dB / {f['ssim']:.4f}, missing {f['missing']:6.2f} (beside "
        f"{f['beside']:.2f}), in 90 % {inside}, noise {f['noise_std'] or 0:.4f}, {f['seconds']:.0f} s, {f['busy']:.0f} "
        f"s of processors, load {f['load']:.1f}, {f['memory']:.0f} MB"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--clips", nargs="+", choices=MASKS, default=list(MASKS))
    parser.add_argument("--count", type=int, help="only the first frames")
    parser.add_argument("--param", nargs="+", default=[], metavar="KEY=VALUE", help="parameters of the method, as JSON")
    parser.add_argument("--out", default="clips.json")
    options = parser.parse_args()
    parameters = {key: json.loads(value) for key, value in (p.split("=", 1) for p in options.param)}
    path = Path(options.out)
    kept = json.loads(path.read_text()) if path.exists() else {}
    for case in options.what:
        for name in options.clips:
            key = f"{case} {name} {options.count} {json.dumps(parameters, sort_keys=True)}"
            if key not in kept:
                kept[key] = run(name, case, options.count, parameters)
                path.write_text(json.dumps(kept, indent=1))
            print(line(name, case, kept[key]), flush=True)


if __name__ == "__main__":
    main()
