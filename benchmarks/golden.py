"""Golden bytes: all that a table of runs writes, to be compared after a change that is to change nothing.

    python benchmarks/golden.py record golden.json
    python benchmarks/golden.py check golden.json --tdc 'env PYTHONPATH=/other/tree python -m tdc_cli'

`record` keeps, for every run of golden.txt and for every method, the exit code, both standard streams, and all files
that it wrote: text as it is, reports without times and versions, everything else as SHA-256; with `--only` it adds to
what the file holds. `check` runs the same again, prints every difference and exits with 1 if there is any. Inputs are
drawn from formulas; every run has a folder with a copy of them.
"""

import argparse
import difflib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

TABLE = Path(__file__).with_suffix(".txt")
TDC = f"env PYTHONPATH={TABLE.resolve().parent.parent} {sys.executable} -m tdc_cli"
HEIGHT, WIDTH, FRAMES = 20, 24, 6
COMMANDS = ("COMPLETE_IMAGE", "COMPLETE_VIDEO", "COMPLETE_TENSOR", "SYNTH")  # as environment variables name them
VARYING = ("timing", "environment", "version", "versions", "seconds", "peak_memory", "machine")  # keys of JSON

# Seconds in text: of runs, of a table's last column, of a summary.csv; the note on compiling, which a later run lacks;
# and seconds of an index.
TIMES = (
    (r"\b\d[\d.,]*\s?s\b", "# s"),
    (r"^(\S+ .*) \d+\.\d$", r"\1 #"),
    (r"^(\S+,(?:done|skipped),.*,)[\d.]+,$", r"\1#,"),
    (r"^tdc: note: # s went into compiling.*\n", ""),
    (r'<td class="number"( data-value="[\d.]+")?>\d+\.\d</td>', "<td>#</td>"),
)

# Options that keep a method short.
METHODS = {"patches": "--param passes=2", "cp-masked": "--rank 2"}
METHODS |= dict.fromkeys(("datc", "datc-sc", "datc-ne", "datc-nx"), "--burn-in 4 --samples 4 --chains 1")


def draw(folder):
    """Write the inputs of the runs into `folder`."""
    import av
    import imagecodecs
    import scipy.io
    import tifffile
    from PIL import Image

    def save(name, pixels, **more):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / name, **more)

    def picture(shift):
        waves = [128 + 60 * np.sin((rows + shift) / 5 + c) + 40 * np.cos(columns / 4 - c) for c in range(3)]
        return np.stack(waves, axis=2).round().astype(np.uint8)

    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    a, clip = picture(0), np.stack([picture(frame) for frame in range(FRAMES)])
    deep = a.astype(np.uint16) * 201
    hole = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
    hole[5:9, 10:14] = 255
    for name in ("a.png", "r.png", "-a.png", "a.bmp"):
        save(name, a)
    save("a.jpg", a, quality=95)
    save("a.webp", a, lossless=True)
    save("grey.png", a[..., 0])
    save("g16.png", deep[..., 0])
    (folder / "rgb16.png").write_bytes(imagecodecs.png_encode(deep))
    Image.fromarray(a).quantize(16).save(folder / "pal.png")
    Image.fromarray(a).convert("1").save(folder / "bit.png")
    Image.fromarray(a).convert("CMYK").save(folder / "cmyk.jpg", quality=95)
    save("alpha.png", np.dstack([a, 255 - hole]))
    dots = np.array([245, 0, 245]) + np.where(columns % 2, 10, 0)[..., None]
    save("dots.png", np.where(hole[..., None] > 0, dots, a).astype(np.uint8))
    tifffile.imwrite(folder / "a.tif", a, software=False)
    tifffile.imwrite(folder / "a16.tif", deep, software=False)
    tifffile.imwrite(folder / "f.tif", np.where(hole, np.nan, a[..., 0]).astype(np.float32), software=False)
    np.save(folder / "a.npy", a)
    np.save(folder / "nan.npy", np.where(hole[..., None], np.nan, a / 255))

    save("m.png", hole)
    save("m.jpg", hole, quality=90)
    save("m01.png", hole // 255)
    save("m16.png", hole.astype(np.uint16) * 257)
    Image.fromarray(hole > 0).save(folder / "m1.png")
    Image.fromarray(hole).convert("P").save(folder / "mp.png")
    save("ma.png", np.dstack([np.zeros_like(a), 255 - hole]))
    save("mc.png", np.dstack([hole, hole, hole // 5 * 4]))
    save("mi.png", 255 - hole)
    save("ms.png", np.clip(255 - 40 * (abs(rows - 9) + abs(columns - 12)), 0, 255).astype(np.uint8))
    np.save(folder / "m.npy", hole > 0)
    save("black.png", hole * 0)
    save("dark.png", hole // 3)
    save("white.png", hole * 0 + 255)
    save("small.png", hole[:10])

    for i, name in enumerate(("p1.png", "p2.png", "p10.png", "sub/p3.png")):
        save(f"in/{name}", picture(3 * i))
        save(f"masks/{name}", np.roll(hole, i, axis=1))
    for name in ("both/q.png", "bad/ok.png", "bad/last.png"):
        save(name, picture(20))
    save("both/q_mask.png", hole)
    content = (folder / "a.png").read_bytes()
    (folder / "bad/cut.png").write_bytes(content[:200])
    (folder / "cut.png").write_bytes(content[:-200])
    (folder / "liar.png").write_bytes((folder / "a.jpg").read_bytes())
    for name in ("note.txt", "in/note.txt"):
        (folder / name).write_text("no picture\n")
    (folder / "empty").touch()
    (folder / "good.toml").write_text('[complete-image]\nmethod = "nearest"\nmissing-ratio = 0.25\n')
    (folder / "bad.toml").write_text('[complete-image]\nmetod = "nearest"\n')

    holes = np.stack([np.roll(hole, frame, axis=1) for frame in range(FRAMES)])
    np.save(folder / "c.npy", clip)
    np.save(folder / "cm.npy", holes)
    np.save(folder / "cm3.npy", holes[:3])
    with_nan = clip / 255
    with_nan[1::2, hole > 0] = np.nan
    np.save(folder / "cf.npy", with_nan)
    for frame in range(FRAMES):
        save(f"frames/f{frame}.png", clip[frame])
        save(f"cm/m{frame}.png", holes[frame])
    tifffile.imwrite(folder / "c.tif", clip, photometric="rgb", software=False)
    pages = [Image.fromarray(frame) for frame in clip]
    pages[0].save(folder / "c.gif", save_all=True, append_images=pages[1:], duration=80, loop=0)
    with av.open(str(folder / "c.mkv"), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("ffv1", rate=25, width=WIDTH, height=HEIGHT, pix_fmt="bgr0")
        for frame in clip:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="bgr0")))
        container.mux(stream.encode())

    rng = np.random.default_rng(0)
    tensor = np.einsum("ir,jr,kr->ijk", *(rng.normal(size=(n, 2)) for n in (10, 9, 8)))
    lost = rng.random(tensor.shape) < 0.4
    np.save(folder / "t.npy", tensor)
    np.save(folder / "tn.npy", np.where(lost, np.nan, tensor))
    np.save(folder / "ti.npy", np.round(100 * tensor).astype(np.int16))
    np.save(folder / "inf.npy", np.where(lost, np.inf, tensor))
    np.save(folder / "t5.npy", np.zeros((2, 3, 4, 5, 6)))
    np.save(folder / "small.npy", lost[:4])
    np.savez(folder / "t.npz", flow=tensor, mask=lost)
    held = io.BytesIO()
    scipy.io.savemat(held, {"flow": tensor})
    (folder / "t.mat").write_bytes(b"MATLAB 5.0 MAT-file".ljust(116) + held.getvalue()[116:])  # without the date


def table(tdc):
    """Command lines by the name of their run: those of golden.txt, and every method on a picture and a tensor."""
    lines = re.sub(r"^#.*\n|\n(?= )", "", TABLE.read_text(), flags=re.MULTILINE).splitlines()
    runs = dict(line.split(": ", 1) for line in lines if line)
    listed = subprocess.run([*tdc, "methods", "--json"], capture_output=True, check=True, env=environment({}))
    for method in (each["name"] for each in json.loads(listed.stdout)):
        how = f"--method {method} {METHODS.get(method, '')} --json"
        runs[f"picture-{method}"] = f"complete-image a.png -o b.png --missing-ratio 0.3 {how}"
        runs[f"tensor-{method}"] = f"complete-tensor tn.npy -o b.npy {how}"
    return runs


def environment(more):
    """That of a run: one thread, no progress, lines of 100 columns, no options from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TDC_")}
    own = {
        f"TDC_{name}_{option}": value for name in COMMANDS for option, value in (("THREADS", "1"), ("PROGRESS", "0"))
    }
    return kept | own | {"COLUMNS": "100", "LC_ALL": "C.UTF-8"} | more


def killed(words, folder, env):
    """Kill a run once the folder of its finished chunks holds one."""
    process = subprocess.Popen(words, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(folder.glob(".*.tdc-work/*.npz")):
        if process.poll() is not None:
            raise SystemExit(f"ended before it could be killed: {shlex.join(words)}")
        time.sleep(0.005)
    process.kill()
    process.wait()


def run(tdc, commands, inputs):
    """What the `commands` of a run write, texts by name: code and streams of each, and all files that are new or
    changed.
    """
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        shutil.copytree(inputs, folder)
        for number, command in enumerate(commands.split("&&"), start=1):
            words, env, source = shlex.split(command), {}, os.devnull
            while "=" in words[0]:
                env.update([words.pop(0).split("=", 1)])
            if "<" in words:
                words, source = words[:-2], folder / words[-1]
            if words[0] == "kill":
                killed([*tdc, *words[1:]], folder, environment(env))
                continue
            with open(source, "rb") as stdin:
                done = subprocess.run(
                    [*tdc, *words], cwd=folder, env=environment(env), stdin=stdin, capture_output=True, check=False
                )
            found[f"code {number}"] = str(done.returncode)
            found[f"stdout {number}"] = shown(done.stdout, place)
            found[f"stderr {number}"] = shown(done.stderr, place)
        for path in sorted(folder.rglob("*")):
            given, name = inputs / path.relative_to(folder), str(path.relative_to(folder))
            if path.is_dir():
                if not given.exists():
                    found[name] = "a folder"
            elif not (given.is_file() and given.read_bytes() == path.read_bytes()):
                found[name] = shown(path.read_bytes(), place)
    return found


def packets(content):
    """What a Matroska file holds, without its head, which has a random number."""
    import av

    with av.open(io.BytesIO(content)) as container:
        return b"".join(bytes(packet) for packet in container.demux() if packet.size)


def shown(content, place):
    """`content` as it is kept: JSON and text without what varies, pages and what is no text as their SHA-256."""
    if content.startswith(b"\x1aE\xdf\xa3"):
        content = packets(content)
    try:
        text = content.decode().replace(place, "PLACE")
    except UnicodeDecodeError:
        return hashlib.sha256(content).hexdigest()
    if text.startswith(("{", "[")):
        return json.dumps(steady(json.loads(text)), indent=1)
    for pattern, instead in TIMES:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return hashlib.sha256(text.encode()).hexdigest() if text.startswith("<!DOCTYPE") else text


def steady(value):
    """JSON without the keys whose values vary from run to run."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in VARYING}
    return [steady(item) for item in value] if isinstance(value, list) else value


def differences(before, after):
    """Lines that tell how one record differs from another."""
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            yield f"{name}: only {'before' if name in before else 'after'}"
            continue
        for part in sorted(before[name].keys() | after[name].keys()):
            texts = [record[name].get(part, "(nothing)").splitlines() for record in (before, after)]
            if texts[0] != texts[1]:
                yield f"{name}: {part}"
                changed = list(difflib.unified_diff(*texts, lineterm="", n=0))[2:22]
                yield from (f"    {line}" for line in changed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--tdc", default=TDC, help="command that starts the program [default: that of this tree]")
    parser.add_argument("--only", default="", help="regular expression: only runs whose name it matches")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    chosen = parser.parse_args()
    tdc = shlex.split(chosen.tdc)
    runs = {name: commands for name, commands in table(tdc).items() if re.search(chosen.only, name)}
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(chosen.jobs) as pool:
        draw(inputs := Path(place))
        found = dict(zip(runs, pool.map(lambda commands: run(tdc, commands, inputs), runs.values()), strict=True))
    if chosen.what == "record":
        others = json.loads(chosen.file.read_text()) if chosen.only and chosen.file.exists() else {}
        chosen.file.write_text(json.dumps(others | found, indent=1))
        print(f"{len(found)} runs")
        return
    before = {name: kept for name, kept in json.loads(chosen.file.read_text()).items() if re.search(chosen.only, name)}
    lines = list(differences(before, found))
    print("\n".join(lines) if lines else f"{len(found)} runs, no difference")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
