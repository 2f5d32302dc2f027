"""Completion of photographs: quality, coverage, time and memory of the methods, beside what else fills pictures without
training.

    python benchmarks/photographs.py --what entries masks noise time --out photographs.json

Pictures and masks are read from the folder that TDC_BENCH_DATA names (images/*.png and masks/*.png; white = missing).
Every run is one of `tdc complete-image`, in this process; seconds are those of the processor. Results are kept in the
--out file: a run that is there is not repeated. Telea and Navier-Stokes need opencv-python-headless, the wavelet
denoiser needs PyWavelets: `pip install '.[bench]'`.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RATIOS = (0.6, 0.7, 0.8, 0.9)
# name -> options of the run
HOLES = {f"entries {r:.0%}": {"missing_ratio": r, "missing_pattern": "entries"} for r in RATIOS}
HOLES["pixels 80%"] = {"missing_ratio": 0.8, "missing_pattern": "pixels"}
MASKS = ("text_256x256", "scribble_256x256", "blocks_256x256")
NOISE, NOISE_RATIO = 0.03, 0.5
SIDES = (128, 256, 512, 1024)


def folder():
    """The folder of pictures and masks."""
    if "TDC_BENCH_DATA" not in os.environ:
        sys.exit("set TDC_BENCH_DATA to a folder with images/*.png and masks/*.png")
    return Path(os.environ["TDC_BENCH_DATA"])


def picture(path):
    import imageio.v3 as iio

    return iio.imread(path)[..., :3]


def peak(error, chosen=slice(None)):
    """PSNR of an error array, data range 1."""
    return float(-10 * np.log10(np.mean(error[chosen] ** 2)))


def completed(path, output, method, threads, **options):
    """Report of `tdc complete-image`, and its processor seconds in all."""
    from tdc_cli.run.execute import run as complete
    from tdc_cli.run.request import Request

    begin = time.process_time()
    report = complete(Request(input=path, output=output, method=method, threads=threads, seed=0, **options))
    return report, time.process_time() - begin - report.timing["compile"]


def run(path, method, options, threads):
    """One run of the program: its figures and the completed picture."""
    with tempfile.TemporaryDirectory() as place:
        report, seconds = completed(path, f"{place}/out.png", method, threads, **options)
        filled = picture(f"{place}/out.png")
    measures, sure = report.metrics, report.uncertainty
    return {"psnr": measures["all"]["psnr"], "ssim": measures["all"]["ssim"], "missing": measures["missing"]["psnr"],
            "coverage": sure and sure["coverage90"], "seconds": seconds,
            "parameters": report.method["parameters"]}, filled  # fmt: skip


def fill_and_denoise(path, threads):
    """PSNR of noisy, incomplete pictures filled as if clean and denoised afterwards, each denoiser at its best over its
    strength.
    """
    from skimage.restoration import denoise_nl_means, denoise_tv_chambolle, denoise_wavelet

    truth = picture(path) / 255
    options = {"missing_ratio": NOISE_RATIO, "missing_pattern": "entries", "add_noise": NOISE}
    best = {}
    for fill in ("biharmonic", "patches"):
        _, filled = run(path, fill, options, threads)
        filled = filled / 255
        tried = {
            "non-local means": [
                denoise_nl_means(filled, patch_size=5, patch_distance=6, h=h * NOISE, sigma=NOISE, channel_axis=2)
                for h in (0.4, 0.6, 0.8, 1.0, 1.3)
            ],
            "TV": [denoise_tv_chambolle(filled, weight=w, channel_axis=2) for w in (0.01, 0.02, 0.03, 0.05, 0.08)],
            "wavelet": [
                denoise_wavelet(filled, sigma=s * NOISE, channel_axis=2, convert2ycbcr=True)
                for s in (0.5, 0.75, 1.0, 1.3)
            ],
        }
        for name, results in tried.items():
            best[f"{fill}, {name}"] = {"psnr": max(peak(r - truth) for r in results)}
    return best


def cells(what, images, masks):
    """(kind of hole, picture, options of the run) for everything that is asked for."""
    for path in images:
        for kind, options in HOLES.items():
            if ("entries" in what and kind.startswith("entries")) or ("masks" in what and kind.startswith("pixels")):
                yield kind, path, options
        if "masks" in what:
            for mask in masks:
                yield mask.stem, path, {"mask": mask, "reference": path}


def measure(args):
    """Fill the table of results, cell by cell."""
    kept = json.loads(args.out.read_text()) if args.out.exists() else {}

    def cell(kind, path, name, work):
        nonlocal kept
        key = f"{kind}|{path.stem}|{name}"
        if key not in kept:
            found = work()
            if name is None:  # several results at once; the key itself says that they are there
                kept |= {f"{kind}|{path.stem}|{more}": value for more, value in found.items()} | {key: True}
            else:
                kept[key] = found
            args.out.write_text(json.dumps(kept, indent=1))
            print(key, flush=True)

    images = [p for p in sorted((folder() / "images").glob("*.png")) if not args.images or p.stem in args.images]
    masks = [folder() / "masks" / f"{name}.png" for name in MASKS]
    for kind, path, options in cells(args.what, images, masks):
        for method in args.methods:
            cell(
                kind,
                path,
                method,
                lambda path=path, method=method, options=options: run(path, method, options, args.threads)[0],
            )
    if "noise" in args.what:
        options = {"missing_ratio": NOISE_RATIO, "missing_pattern": "entries", "add_noise": NOISE, "noise_std": NOISE}
        for path in images:
            cell("noise", path, "patches", lambda path=path: run(path, "patches", options, args.threads)[0])
            cell("noise", path, None, lambda path=path: fill_and_denoise(path, args.threads))
    return kept


def tables(kept):
    """Means over the pictures, one line for every kind of hole and method."""
    groups = {}
    for key, value in kept.items():
        kind, image, name = key.split("|")
        if isinstance(value, dict):
            groups.setdefault((kind, name), {})[image] = value
    print(
        "| holes | method | pictures | PSNR | SSIM | PSNR, missing | coverage of 90 % (smallest, largest) | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (kind, name), rows in sorted(groups.items()):
        covered = column(rows, "coverage")
        cover = f"{np.mean(covered):.3f} ({min(covered):.3f}, {max(covered):.3f})" if covered else "-"
        figures = [mean(column(rows, field), digits) for field, digits in (("psnr", 2), ("ssim", 4), ("missing", 2))]
        print(
            f"| {kind} | {name} | {len(rows)} | {' | '.join(figures)} | {cover} | {mean(column(rows, 'seconds'), 1)} |"
        )


def column(rows, field):
    """The figures of one kind that are there."""
    return [row[field] for row in rows.values() if row.get(field) is not None]


def mean(figures, digits):
    return f"{np.mean(figures):.{digits}f}" if figures else "-"


def times(threads):
    """Seconds and peak memory over the idle interpreter of one picture of each size, each in a process of its own,
    warm.
    """
    print("| picture | method | seconds | us per missing pixel | peak memory over idle | bytes per entry |")
    print("|---|---|---|---|---|---|")
    for method in ("field", "patches", "biharmonic"):
        for side in SIDES if method != "biharmonic" else SIDES[:2]:
            code = f"import benchmarks.photographs as b; b.one_time({side}, {method!r}, {threads})"
            print(
                subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip(),
                flush=True,
            )


def one_time(side, method, threads):
    """A line of `times`: a picture of the sample data, mirrored to the size, 80 % of its pixels missing."""
    import imageio.v3 as iio

    sample = iio.imread(Path(__file__).parent.parent / "sample_data" / "astronaut.png")[..., :3]
    image = np.pad(sample, ((0, max(0, side - 256)),) * 2 + ((0, 0),), mode="symmetric")[:side, :side]
    with tempfile.TemporaryDirectory() as place:

        def work(name, values):
            iio.imwrite(f"{place}/{name}.png", values)
            hidden = {"missing_ratio": 0.8, "missing_pattern": "pixels"}
            return completed(f"{place}/{name}.png", f"{place}/{name}_out.png", method, threads, **hidden)[1]

        work("warm", sample[:64, :64])
        idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = work("picture", image)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - idle) * 1024
    print(
        f"| {side}x{side} | {method} | {seconds:.1f} | {1e6 * seconds / (0.8 * side**2):.0f} | {used / 2**20:.0f} MiB "
        f"| {used / image.size:.0f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--what",
        nargs="+",
        choices=("entries", "masks", "noise", "time"),
        default=["entries", "masks", "noise", "time"],
    )
    parser.add_argument("--methods", nargs="+", default=["patches", "field", "biharmonic", "telea", "navier-stokes"])
    parser.add_argument("--images", nargs="*")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("photographs.json"))
    args = parser.parse_args()
    if set(args.what) - {"time"}:
        tables(measure(args))
    if "time" in args.what:
        times(args.threads)


if __name__ == "__main__":
    main()
