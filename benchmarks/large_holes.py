"""Large holes: how plausible `exemplar` and `auto` look beside G'MIC, OpenCV's shift maps, patches and biharmonic, on
one page of pictures.

    python benchmarks/large_holes.py --out large_holes

Writes large_holes.html and large_holes.json. The photographs come with scikit-image and matplotlib; three more and
their hole (large_holes/*.png, mask.png) are read from the folder that TDC_BENCH_DATA names, if it is set. Programs that
are not there are left out: G'MIC is `gmic` on the PATH, shift maps need opencv-contrib-python-headless.
"""

import argparse
import base64
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import binary_dilation, binary_erosion

SIDE = 256  # of the crop around a hole
SAMPLES = {"grace_hopper.jpg": "matplotlib"}  # from elsewhere than scikit-image
# name: file, middle of an elliptic hole in it (row, column), its half axes
CASES = {
    "wood": ("coffee.png", (330, 62), (30, 40)),
    "saucer": ("coffee.png", (300, 150), (30, 40)),
    "lawn": ("camera.png", (420, 430), (40, 45)),
    "coat and horizon": ("camera.png", (195, 60), (30, 45)),
    "sky": ("camera.png", (80, 420), (40, 40)),
    "tripod": ("camera.png", (390, 310), (30, 30)),
    "suit": ("astronaut.png", (330, 150), (35, 45)),
    "flag": ("astronaut.png", (130, 35), (30, 28)),
    "face": ("astronaut.png", (100, 222), (28, 30)),
    "gravel": ("gravel.png", (256, 256), (60, 60)),
    "brick": ("brick.png", (256, 256), (40, 55)),
    "writing": ("text.png", (90, 220), (22, 40)),
    "galaxies": ("hubble_deep_field.jpg", (400, 500), (45, 45)),
    "page": ("page.png", (85, 200), (30, 45)),
    "moon": ("moon.png", (300, 100), (40, 45)),
    "grass": ("grass.png", (256, 256), (50, 50)),
    "mast": ("rocket.jpg", (270, 196), (30, 35)),
    "dusk": ("rocket.jpg", (100, 450), (45, 60)),
    "forehead": ("chelsea.png", (60, 190), (30, 40)),
    "fur": ("chelsea.png", (235, 80), (30, 35)),
    "coin": ("coins.png", (120, 160), (24, 24)),
    "floor": ("motorcycle_left.png", (440, 160), (35, 55)),
    "shelf": ("motorcycle_left.png", (60, 150), (35, 40)),
    "tissue": ("ihc.png", (250, 300), (45, 45)),
    "retina": ("retina.jpg", (420, 700), (50, 50)),
    "paper": ("grace_hopper.jpg", (150, 440), (50, 50)),
    "collar": ("grace_hopper.jpg", (400, 250), (35, 35)),
    "stars": ("grace_hopper.jpg", (100, 60), (40, 30)),
}
GIVEN = ("wall", "houses", "river")  # in the folder of TDC_BENCH_DATA
OURS, PEERS = ("exemplar", "auto", "patches", "biharmonic"), ("G'MIC", "shift maps")
PATCH, DIRECTIONS = 7, 128


@dataclass(frozen=True)
class Case:
    """A photograph, (H, W, 3) uint8, and where its hole is, (H, W) bool."""

    name: str
    truth: np.ndarray
    hole: np.ndarray


def cases():
    """All cases whose pictures are there."""
    import matplotlib
    import skimage

    found = []
    if "TDC_BENCH_DATA" in os.environ:
        folder = Path(os.environ["TDC_BENCH_DATA"]) / "large_holes"
        hole = np.asarray(Image.open(folder / "mask.png").convert("L")) > 127
        found += [Case(name, np.asarray(Image.open(folder / f"{name}.png").convert("RGB")), hole) for name in GIVEN]
    places = {
        "matplotlib": Path(matplotlib.get_data_path()) / "sample_data",
        "skimage": Path(skimage.__file__).parent / "data",
    }
    for name, (file, middle, axes) in CASES.items():
        whole = np.asarray(Image.open(places[SAMPLES.get(file, "skimage")] / file).convert("RGB"))
        # Off the middle of the crop, so that no method gains from symmetry.
        begin = [
            min(max(0, m - SIDE // 2 + o), max(0, n - SIDE))
            for m, o, n in zip(middle, (-7, 9), whole.shape[:2], strict=True)
        ]
        truth = whole[begin[0] : begin[0] + SIDE, begin[1] : begin[1] + SIDE]
        rows, columns = np.indices(truth.shape[:2])
        hole = ((rows - middle[0] + begin[0]) / axes[0]) ** 2 + ((columns - middle[1] + begin[1]) / axes[1]) ** 2 <= 1
        found.append(Case(name, truth, hole))
    return found


def methods():
    """Name of every method that can be run -> function of a Case that gives the filled picture."""
    from tdc_cli.methods import REGISTRY

    able = {name: lambda case, name=name: ours(case, name) for name in OURS if name in REGISTRY}
    if shutil.which("gmic"):
        able["G'MIC"] = gmic
    try:
        import cv2

        cv2.xphoto  # noqa: B018 - only the wheel with the contributed modules has it
        able["shift maps"] = shift_maps
    except (ImportError, AttributeError):
        pass
    return able


def ours(case, name, seed=0):
    import tdc_cli

    observed = np.broadcast_to(~case.hole[..., None], case.truth.shape)
    done = tdc_cli.complete(case.truth, observed=observed, method=name, rng=seed)
    return np.clip(np.rint(np.asarray(done.mean, float)), 0, 255).astype(np.uint8)


def gmic(case):
    with tempfile.TemporaryDirectory() as place:
        Image.fromarray(np.where(case.hole[..., None], 0, case.truth).astype(np.uint8)).save(f"{place}/a.png")
        Image.fromarray(case.hole.astype(np.uint8) * 255).save(f"{place}/m.png")
        words = f"gmic {place}/a.png {place}/m.png inpaint_matchpatch[0] [1] keep[0] output {place}/b.png"
        subprocess.run(words.split(), check=True, capture_output=True)
        return np.asarray(Image.open(f"{place}/b.png").convert("RGB"))


def shift_maps(case):
    import cv2

    lab = cv2.cvtColor(np.where(case.hole[..., None], 0, case.truth).astype(np.uint8), cv2.COLOR_RGB2Lab)
    made = np.zeros_like(lab)
    cv2.xphoto.inpaint(lab, np.where(case.hole, 0, 255).astype(np.uint8), made, cv2.xphoto.INPAINT_SHIFTMAP)
    return cv2.cvtColor(made, cv2.COLOR_Lab2RGB)


def figures(case, filled):
    """Sharpness, texture distance, seam and PSNR of a filled hole; `explained` says what each is."""
    truth, made, hole = case.truth.astype(float), filled.astype(float), case.hole
    inner, rim = binary_erosion(hole, iterations=2), binary_dilation(hole) & ~hole
    outside = binary_dilation(hole, iterations=2) & ~hole & ~rim
    return {"sharpness": steepness(made)[inner].mean() / steepness(truth)[inner].mean(),
            "texture": texture_distance(truth, made, hole),
            "seam": jump(made, hole, rim) / jump(truth, rim, outside),
            "psnr": float(-10 * np.log10(np.mean((made - truth)[hole] ** 2) / 255**2))}  # fmt: skip


def steepness(picture):
    """Mean over channels of the length of the gradient, by forward differences, (H, W)."""
    steps = [np.diff(picture, axis=axis, append=picture.take([-1], axis)) for axis in (0, 1)]
    return np.hypot(*steps).mean(axis=2)


def jump(picture, one, other):
    """Mean absolute difference of neighbours of which one lies in `one` and the other in `other`."""
    found = []
    for axis in (0, 1):
        step = np.abs(np.diff(picture, axis=axis)).mean(axis=2)
        a, b = (np.moveaxis(mask, axis, 0) for mask in (one, other))
        across = (a[1:] & b[:-1]) | (b[1:] & a[:-1])
        found.append(np.moveaxis(step, axis, 0)[across])
    return float(np.concatenate(found).mean())


def texture_distance(truth, made, hole):
    """Sliced Wasserstein distance of the patches inside the hole, mean over the scales 1, 1/2 and 1/4, in levels."""
    found = []
    for _ in range(3):
        if hole.sum() < 4 * PATCH**2:
            break
        inside = binary_erosion(hole, np.ones((PATCH, PATCH)))
        inside = inside if inside.any() else hole
        one, other = (patches_of(picture, inside) for picture in (truth, made))
        directions = np.random.default_rng(0).standard_normal((one.shape[1], DIRECTIONS))
        directions /= np.linalg.norm(directions, axis=0)
        found.append(float(np.mean(np.abs(np.sort(one @ directions, axis=0) - np.sort(other @ directions, axis=0)))))
        truth, made, hole = halved(truth), halved(made), halved(hole.astype(float)) > 0.99
    return float(np.mean(found))


def halved(plane):
    """Means over squares of 2 x 2 pixels."""
    height, width = (n // 2 * 2 for n in plane.shape[:2])
    return plane[:height, :width].reshape(height // 2, 2, width // 2, 2, *plane.shape[2:]).mean(axis=(1, 3))


def patches_of(picture, middles):
    """Patches around the pixels `middles`, (n, D)."""
    half = PATCH // 2
    padded = np.pad(picture, ((half, half), (half, half), (0, 0)), "reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (PATCH, PATCH), axis=(0, 1))
    return windows[middles].reshape(int(middles.sum()), -1)


EXPLAINED = """Over the hole alone. <b>Sharpness</b>: mean gradient over that of the truth; 1 is right.
<b>Texture</b>: sliced Wasserstein
distance of its 7 x 7 patches from those of the truth, in levels; patches need not lie where they lay, only look alike;
0 is right.
<b>Seam</b>: mean jump across the rim over that one pixel outside of it; 1 is right. <b>PSNR</b> for the record: a
smear has a good one.
<b>Seconds</b> of the processor, own and of programs that were started."""


def summary(records, names):
    """Lines of text: for every method the mean texture distance and the shares of cases in bounds; ours beside the
    peers'.
    """
    by = {n: {r["case"]: r for r in records if r["method"] == n} for n in names}
    lines = []
    for name in names:
        figure = {
            key: np.array([r[key] for r in by[name].values()]) for key in ("texture", "sharpness", "seam", "seconds")
        }
        words = (f"{name}: texture {figure['texture'].mean():.2f}, sharpness .8 to 1.25 in "
                 f"{np.mean((figure['sharpness'] >= 0.8) & (figure['sharpness'] <= 1.25)):.0%}, "
                 f"seam .6 to 1.2 in {np.mean((figure['seam'] >= 0.6) & (figure['seam'] <= 1.2)):.0%}, "
                 f"{np.median(figure['seconds']):.1f} s")  # fmt: skip
        for peer in set(PEERS) & set(names) - {name}:
            lower = np.mean([r["texture"] < by[peer][case]["texture"] for case, r in by[name].items()])
            words += f", texture below {peer} in {lower:.0%}"
        lines.append(words)
    return lines


def page(rows, lines):
    """HTML of one row of pictures for every case."""

    def cell(picture, words):
        data = io.BytesIO()
        Image.fromarray(picture).save(data, "PNG")
        return f"<td><img src='data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}'><br>{words}</td>"

    body = "\n".join("<tr>" + "".join(cell(*each) for each in row) + "</tr>" for row in rows)
    head = "".join(f"<li>{line}</li>" for line in lines)
    return f"<!doctype html><meta charset=utf-8><title>Large holes</title><style>td{{font:12px sans-serif}}</style>\n" \
           f"<p>{EXPLAINED}</p><ul>{head}</ul><table>\n{body}\n</table>\n"  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", default="large_holes", help="name of the two files, without their endings")
    parser.add_argument("--cases", nargs="*", help="only these")
    parser.add_argument("--methods", nargs="*", help="only these")
    asked = parser.parse_args()
    able = {name: run for name, run in methods().items() if asked.methods is None or name in asked.methods}
    if not able:
        sys.exit("none of these methods can be run here")
    chosen = [case for case in cases() if asked.cases is None or case.name in asked.cases]
    for name, run in able.items():  # compilation is not counted
        if name in OURS:
            run(chosen[0])
    records, rows = [], []
    for case in chosen:
        shown = np.where(case.hole[..., None], np.array([255, 0, 255]), case.truth).astype(np.uint8)
        row = [(case.truth, case.name), (shown, "hole")]
        for name, run in able.items():
            begin = os.times()
            filled = run(case)
            seconds = sum(os.times()[:4]) - sum(begin[:4])
            record = figures(case, filled) | {"case": case.name, "method": name, "seconds": seconds}
            records.append(record)
            words = " ".join(f"{key} {record[key]:.2f}" for key in ("sharpness", "texture", "seam", "psnr"))
            row.append((filled, f"{name}, {seconds:.1f} s<br>{words}"))
            print(f"{case.name:18} {name:12} {words} {seconds:.1f} s", flush=True)
        rows.append(row)
        lines = summary(records, list(able))
        Path(f"{asked.out}.json").write_text(json.dumps(records, indent=1), encoding="utf-8")
        Path(f"{asked.out}.html").write_text(page(rows, lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
