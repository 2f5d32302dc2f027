"""`patches` as it was and as it is: both versions in turn on the same machine, and the ratios of their processor
seconds.

    TDC_BENCH_DATA=FOLDER python benchmarks/speed.py --images lena house --cases entries:0.6 text clip:foreman:noise
    --out speed.json

FOLDER/images/*.png are pictures, FOLDER/masks/*_256x256.png and *_144x176.png holes, white = missing,
FOLDER/videos/*.npy clips (T, H, W, C) uint8; `clip:NAME:WHAT` is a row of clips.py. The version before is checked out
from git into a folder of its own, which is removed in the end. Every case is one process for each version: warm, its
compiling not counted. `scale:CASE` completes mosaics of the pictures of 256 to 2048 pixels a side; the version before
takes hours for them, and --alone leaves it out. Every finished run is kept in the --out file and not repeated.
"""

import argparse
import contextlib
import inspect
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import clips
import numpy as np

BEFORE = "b87db07"
CASES = ("entries:0.6", "entries:0.8", "entries:0.9", "pixels:0.8", "text", "scribble")
ROOT = Path(__file__).resolve().parent.parent


def data():
    """The folder of pictures, masks and clips."""
    if "TDC_BENCH_DATA" not in os.environ:
        sys.exit("set TDC_BENCH_DATA to a folder with images/*.png, masks/*.png and videos/*.npy")
    return Path(os.environ["TDC_BENCH_DATA"])


def holes(case, shape):
    """Observed entries of a case, True = observed: a mask picture, repeated as often as it takes, or a simulated
    pattern.
    """
    from PIL import Image

    from tdc_cli.holes import simulate

    pattern, _, ratio = case.partition(":")
    if ratio:
        return simulate(shape, float(ratio), pattern, np.random.default_rng(np.random.SeedSequence([0, 1])))
    size = "144x176" if shape[:2] == (144, 176) else "256x256"
    mask = np.asarray(Image.open(data() / "masks" / f"{pattern}_{size}.png").convert("L")) > 127
    tiled = np.tile(mask, [-(-n // m) for n, m in zip(shape, mask.shape)])[: shape[0], : shape[1]]
    return np.repeat(~tiled[..., None], shape[2], axis=2)


def picture(name, side=256):
    """A picture in [0, 1], (H, W, 3); of more than 256 pixels a side a mosaic of it and its mirror images."""
    from PIL import Image

    values = np.asarray(Image.open(data() / "images" / f"{name}.png").convert("RGB"), float) / 255
    return np.pad(values, [(0, side - 256), (0, side - 256), (0, 0)], mode="symmetric")


def clip(name, what):
    """A clip in [0, 1], frames as last mode, what is observed of it, what is seen there, and the parameters that go
    with it.
    """
    truth, rng = clips.clip(name), np.random.default_rng(0)
    observed = clips.holes(name, truth.shape, what, rng)
    if what != "noise":
        return truth, observed, truth, {}
    return truth, observed, truth + clips.NOISE * rng.standard_normal(truth.shape), {"noise_std": clips.NOISE}


def problems(options):
    """Name, truth, observed entries, what is seen there and parameters of every case."""
    for case in options.cases:
        if case.startswith("clip:"):
            yield case, *clip(*case.split(":")[1:])
        elif case.startswith("scale:"):
            for side in (256, 512, 1024, 2048):
                truth = picture(options.images[0], side)
                yield f"{case} {side}", truth, holes(case[6:], truth.shape), truth, {}
        else:
            for name in options.images:
                truth = picture(name)
                yield f"{case} {name}", truth, holes(case, truth.shape), truth, {}


def complete(path, parameters):
    """In a process of its own, with the package that PYTHONPATH names: complete the problem in `path`, and leave the
    result beside it.
    """
    from tdc_cli.methods import patches

    problem = np.load(path)
    values, observed = problem["values"], problem["observed"]
    config = patches.Config(**({"frames": 3} if values.ndim == 4 else {}), **parameters)
    given = inspect.signature(patches.warm_up).parameters  # the version before takes two, and the number of modes
    words = values.shape if "shape" in given else values.ndim, config, 1 - observed.mean()
    patches.warm_up(*words[: len(given)])
    busy, begin = time.process_time(), time.perf_counter()
    found = patches.complete(np.where(observed, values, np.nan), observed, config, rng=np.random.default_rng(0))
    figures = {"busy": time.process_time() - busy, "seconds": time.perf_counter() - begin,
               "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10}  # fmt: skip
    np.savez(path.with_name("result.npz"), mean=found.mean, **({} if found.sd is None else {"sd": found.sd}))
    print(json.dumps(figures))


def measured(tree, truth, observed, seen, parameters, threads):
    """Figures of one run of the version in `tree`."""
    from skimage.metrics import structural_similarity

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "problem.npz")
        np.savez(path, values=np.where(observed, seen, 0.0), observed=observed)
        limits = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(threads))
        command = [
            sys.executable,
            __file__,
            "--complete",
            str(path),
            "--param",
            *(f"{k}={json.dumps(v)}" for k, v in parameters.items()),
        ]
        done = subprocess.run(
            command, env=os.environ | limits | {"PYTHONPATH": str(tree)}, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{tree}: {done.stderr.strip()[-500:]}")
        result = dict(np.load(path.with_name("result.npz")))
    written = np.clip(np.round(result["mean"] * 255), 0, 255) / 255
    frames = [(truth, written)] if truth.ndim == 3 else list(zip(np.moveaxis(truth, 3, 0), np.moveaxis(written, 3, 0)))
    ssim = np.mean([structural_similarity(t, w, channel_axis=2, data_range=1.0) for t, w in frames])
    figures = json.loads(done.stdout) | {
        "psnr": float(-10 * np.log10(np.mean((written - truth) ** 2))),
        "ssim": float(ssim),
    }
    if "sd" in result:
        figures["coverage"] = float(np.mean((np.abs(result["mean"] - truth) <= 1.645 * result["sd"])[~observed]))
    return figures


@contextlib.contextmanager
def checked_out(commit):
    """A folder with the tree of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        subprocess.run(
            ["git", "-C", ROOT, "worktree", "add", "--detach", tree, commit], check=True, capture_output=True
        )
        try:
            yield tree
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)


def line(name, missing, new, old):
    """One row of the table, beside the version before if that was run."""
    said = (
        f"{name:24} {new['busy']:7.1f} s, {1e6 * new['busy'] / missing:5.0f} us a missing entry, "
        f"{new['memory']:.0f} MB; PSNR {new['psnr']:6.2f}, SSIM {new['ssim']:.4f}, "
        f"in 90 % {new.get('coverage', np.nan):.3f}"
    )
    if old is None:
        return said
    return (
        f"{said}; before {old['busy']:.1f} s: {old['busy'] / new['busy']:.1f} times; PSNR "
        f"{new['psnr'] - old['psnr']:+.3f}, SSIM {new['ssim'] - old['ssim']:+.4f} to it, in 90 % "
        f"{old.get('coverage', np.nan):.3f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cases", nargs="+", default=CASES, metavar="CASE", help="PATTERN:RATIO, a mask, clip:NAME:WHAT or scale:CASE"
    )
    parser.add_argument("--images", nargs="+", default=["lena", "barbara", "house"])
    parser.add_argument("--before", default=BEFORE, help="commit to compare with")
    parser.add_argument("--alone", action="store_true", help="without the version before")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--param", nargs="*", default=[], metavar="KEY=VALUE", help="parameters of the method, as JSON")
    parser.add_argument("--out", default="speed.json")
    parser.add_argument("--complete", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    parameters = {key: json.loads(value) for key, value in (p.split("=", 1) for p in options.param)}
    if options.complete:
        return complete(options.complete, parameters)
    path = Path(options.out)
    kept = json.loads(path.read_text()) if path.exists() else {}
    with contextlib.nullcontext() if options.alone else checked_out(options.before) as before:
        for name, truth, observed, seen, own in problems(options):
            figures, given = {}, parameters | own
            for version, tree in (("now", ROOT),) if options.alone else ((options.before, before), ("now", ROOT)):
                key = f"{version} {name} {options.threads} {json.dumps(given, sort_keys=True)}"
                if key not in kept:
                    kept[key] = measured(tree, truth, observed, seen, given, options.threads)
                    path.write_text(json.dumps(kept, indent=1))
                figures[version] = kept[key]
            print(line(name, np.sum(~observed), figures["now"], figures.get(options.before)), flush=True)


if __name__ == "__main__":
    main()
