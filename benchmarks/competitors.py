"""The methods of other papers beside the figures of their authors' own programs, on the same pictures, problems and
missing entries.

    TDC_BENCH_DATA=FOLDER python benchmarks/competitors.py --reference FOLDER --methods halrtc tsvd --out
    competitors.json

Pictures are read from TDC_BENCH_DATA/images. The folder `--reference` holds `baselines.json` (the figures),
`image_masks.npz` (arrays observed60 to observed90, `numpy.packbits` of 256x256x3, True = observed) and
`synthetic/zero_rank5_seed0.npz` and so on (arrays truth, noisy, observed70 to observed90). Results are kept in the
--out file: a run that is there is not repeated.

PSNR and SSIM are of the estimate clipped to 0..1 with the observed entries put back; RRE is of the estimate as the
method returns it. Seconds are those of the processor; the figures are seconds of the clock, of one thread on a machine
that was busy with other things.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np

from tdc_cli import methods, metrics
from tdc_cli.run import threads

# method -> its rows in baselines.json: for pictures and for synthetic problems; None where there is none.
FIGURES = {
    "falrtc": ("FaLRTC", None),
    "halrtc": ("HaLRTC", "HaLRTC"),
    "rptc-scad": (None, None),
    "tmac": ("TMacinc", "TMacinc"),
    "stdc": ("STDC", None),
    "tsvd": ("TNN", "TNN"),
    "spc-qv": ("SPCQV", None),
    "spc-tv": ("SPCTV", None),
    "fbcp": ("FBCPTC", "FBCP"),
    "fbcp-image": ("FBCPIC", None),
    "fbcp-mp": ("FBCPMP", None),
    "brtf": ("BRTFimg", "BRTF"),
    "datc": (
        None,
        "FBCP",
    ),  # the paper's model has no program of its authors; FBCP's is the best of the others on these problems
}
# Parameters in place of the defaults, where the authors' program was given others too: for single pictures and for
# synthetic problems.
SINGLE_SETTINGS = {("fbcp-mp", "facade"): {"smoothing": 0.1}}
SYNTHETIC_SETTINGS = {"tmac": {"tolerance": 1e-12}, "datc": {"noise_std": float(np.sqrt(0.001))}}


def pictures(reference, images, ratios):
    """(name, ratio, truth in 0..1, observed) of the pictures."""
    if "TDC_BENCH_DATA" not in os.environ:
        sys.exit("set TDC_BENCH_DATA to a folder with images/*.png")
    import imageio.v3 as iio

    masks = np.load(reference / "image_masks.npz")
    for path in sorted(Path(os.environ["TDC_BENCH_DATA"], "images").glob("*.png")):
        if images and path.stem not in images:
            continue
        truth = iio.imread(path)[..., :3] / 255.0
        for ratio in ratios:
            bits = masks[f"observed{100 * ratio:.0f}"]
            yield path.stem, ratio, truth, np.unpackbits(bits, count=truth.size).reshape(truth.shape).astype(bool)


def problems(reference, ratios):
    """(name, ratio, truth, noisy values, observed) of the synthetic problems."""
    for path in sorted((reference / "synthetic").glob("zero_rank5_seed*.npz")):
        drawn = np.load(path)
        for ratio in ratios:
            name = f"observed{100 * ratio:.0f}"
            if name in drawn:
                yield (
                    f"syn_s{path.stem.removeprefix('zero_rank5_seed')}",
                    ratio,
                    drawn["truth"],
                    drawn["noisy"],
                    drawn[name],
                )


def complete(name, values, observed, given, seed):
    """Completion by a method, and the processor seconds it took: what it would take of one thread that has a core to
    itself.
    """
    method = methods.get(name)
    module = method.load()
    known = {f.name for f in fields(module.Config)}
    config = method.configure({key: value for key, value in given.items() if key in known or key != "ordered_modes"})
    if hasattr(module, "warm_up"):
        module.warm_up(values.shape, config, 1 - observed.mean())
    begin = time.process_time()
    done = module.complete(
        np.where(observed, values, np.nan), observed, config, rng=np.random.default_rng(seed), monitor=methods.silent
    )
    return done, time.process_time() - begin


def on_picture(name, label, truth, observed, seed):
    """Figures of a method on a picture."""
    settings = {"ordered_modes": (0, 1)} | SINGLE_SETTINGS.get((name, label), {})
    done, seconds = complete(name, truth, observed, settings, seed)
    filled = np.where(observed, truth, np.clip(done.mean, 0, 1))
    return {
        "psnr": metrics.psnr(truth, filled, 1.0),
        "ssim": metrics.ssim(truth, filled, 1.0),
        "rre": metrics.rre(truth, filled),
        "seconds": seconds,
        "rank": done.rank and done.rank["value"],
    }


def on_problem(name, truth, noisy, observed, seed):
    """Figures of a method on a synthetic problem."""
    done, seconds = complete(name, noisy, observed, SYNTHETIC_SETTINGS.get(name, {}), seed)
    return {"rre": metrics.rre(truth, done.mean), "seconds": seconds, "rank": done.rank and done.rank["value"]}


def measure(args):
    """Fill the table of results, run by run: key ``method|input|ratio``."""
    kept = json.loads(args.out.read_text()) if args.out.exists() else {}

    def cell(name, label, ratio, work):
        key = f"{name}|{label}|{ratio:g}"
        if key not in kept:
            with threads.limited(args.threads):
                kept[key] = work()
            args.out.write_text(json.dumps(kept, indent=1))
            print(key, " ".join(f"{k} {v:.4f}" for k, v in kept[key].items() if v is not None), flush=True)

    for name in args.methods:
        if "images" in args.what:
            for label, ratio, truth, observed in pictures(args.reference, args.images, args.ratios):
                cell(name, label, ratio, lambda t=truth, o=observed, n=name, i=label: on_picture(n, i, t, o, args.seed))
        if "synthetic" in args.what:
            for label, ratio, truth, noisy, observed in problems(args.reference, args.ratios):
                cell(name, label, ratio, lambda t=truth, y=noisy, o=observed, n=name: on_problem(n, t, y, o, args.seed))
    return {key: value for key, value in kept.items() if wanted(key, args)}


def wanted(key, args):
    """Whether a kept result belongs to what was asked for."""
    name, label, ratio = key.split("|")
    synthetic = label.startswith("syn_")
    chosen = (
        "synthetic" in args.what if synthetic else "images" in args.what and (not args.images or label in args.images)
    )
    return name in args.methods and float(ratio) in args.ratios and chosen


def tables(kept, figures):
    """Every run and the means beside the figures of the authors' program, where there is one."""
    theirs = {(row["method"], row["image"], row["ratio"]): row for row in figures}
    groups = {}
    for key, ours in kept.items():
        name, label, ratio = key.split("|")
        synthetic = label.startswith("syn_")
        row = theirs.get((FIGURES.get(name, (None, None))[synthetic], label, float(ratio)))
        groups.setdefault((synthetic, name, float(ratio)), []).append((label, ours, row))
    for synthetic, show in ((False, picture_row), (True, problem_row)):
        chosen = {key: rows for key, rows in groups.items() if key[0] == synthetic}
        if not chosen:
            continue
        print(
            "\n| method | missing | input | "
            + ("RRE | figure | ratio" if synthetic else "PSNR | figure | difference | SSIM | figure")
            + " | seconds | figure | rank |\n|"
            + "---|" * (9 if synthetic else 11)
        )
        for (_, name, ratio), rows in sorted(chosen.items()):
            for label, ours, row in rows:
                print(f"| {name} | {ratio:.0%} | {label} | {show([ours], [row])} |")
            print(
                f"| **{name}** | {ratio:.0%} | mean of {len(rows)} | "
                f"{show(*zip(*[(ours, row) for _, ours, row in rows]))} |"
            )


def mean(rows, field, digits):
    """Mean of a field as text; a dash where a row is lacking."""
    values = [row and row.get(field) for row in rows]
    return "-" if None in values else f"{np.mean(values):.{digits}f}"


def gap(ours, theirs, digits, divide=False):
    """Difference or ratio of two means as text."""
    if "-" in (ours, theirs):
        return "-"
    return f"{float(ours) / float(theirs):.2f}" if divide else f"{float(ours) - float(theirs):+.{digits}f}"


def picture_row(ours, theirs):
    """Fields of a line: one picture or the mean of several."""
    psnr, ssim, seconds = ([mean(rows, field, digits) for rows in (ours, theirs)]
                           for field, digits in (("psnr", 2), ("ssim", 4), ("seconds", 1)))  # fmt: skip
    return " | ".join([*psnr, gap(*psnr, 2), *ssim, *seconds, mean(ours, "rank", 0)])


def problem_row(ours, theirs):
    """The same of a synthetic problem."""
    rre, seconds = (
        [mean(rows, field, digits) for rows in (ours, theirs)] for field, digits in (("rre", 4), ("seconds", 1))
    )
    return " | ".join([*rre, gap(*rre, 4, divide=True), *seconds, mean(ours, "rank", 0)])


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--reference", type=Path, required=True, help="folder with baselines.json, image_masks.npz and synthetic/"
    )
    known = [name for name in FIGURES if name in methods.REGISTRY]
    parser.add_argument("--methods", nargs="+", choices=list(methods.REGISTRY), default=known)
    parser.add_argument("--what", nargs="+", choices=("images", "synthetic"), default=["images", "synthetic"])
    parser.add_argument("--ratios", nargs="+", type=float, default=[0.6, 0.7, 0.8, 0.9], help="missing ratios")
    parser.add_argument("--images", nargs="*", help="names of pictures; all without it")
    parser.add_argument("--seed", type=int, default=0, help="of methods with a random start")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("competitors.json"))
    args = parser.parse_args()
    tables(measure(args), json.loads((args.reference / "baselines.json").read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
