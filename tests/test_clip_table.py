"""What comes back of every kind of clip in every format: the table of clips in docs/formats.md.

`make formats` writes the table anew.
"""

import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from clip_files import NTSC
from conftest import ROOT, put_between

from tdc_cli.errors import OutputError
from tdc_cli.media import Media
from tdc_cli.media.video import Clip, check_clip, read_clip, write_clip

PAGE = ROOT / "docs" / "formats.md"
BEGIN, END = "<!-- clips: begin -->\n", "<!-- clips: end -->\n"
COUNT, SIZE = 3, (16, 32)
CHANNELS = {"L": (), "LA": (2,), "RGB": (3,), "RGBA": (4,), "array": (3,)}
# Mode, dtype, bits of a channel.
SOURCES = [
    *((mode, "uint8", 8) for mode in ("L", "LA", "RGB", "RGBA")),
    *((mode, "uint16", bits) for bits in (10, 12, 16) for mode in ("L", "RGB", "RGBA")),
    ("array", "uint8", 8),
    ("array", "float32", 32),
]
TARGETS = {
    "MP4, MOV h264": ("a.mp4", "h264"),
    "h265": ("a.mp4", "h265"),
    "h264-lossless": ("a.mp4", "h264-lossless"),
    "MKV ffv1": ("a.mkv", "ffv1"),
    "AVI ffv1": ("a.avi", "ffv1"),
    "WebM vp9": ("a.webm", "vp9"),
    "GIF": ("a.gif", None),
    "APNG": ("a.png", None),
    "WebP": ("a.webp", None),
    "TIFF, folder": ("a.tif", None),
    "NPY": ("a.npy", None),
}


def frames_of(mode, dtype, bits):
    """Smooth frames with all levels of their depth, and the Clip that they make."""
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    channels = CHANNELS[mode][0] if CHANNELS[mode] else 1
    made = []
    for k in range(COUNT):
        share = np.stack(
            [0.5 + 0.45 * np.sin((columns + 2 * k) / 6 + c) * np.cos(rows / 7) for c in range(channels)], axis=-1
        )
        levels = (
            share
            if dtype == "float32"
            else np.rint(np.rint(share * ((1 << bits) - 1)) * (np.iinfo(dtype).max / ((1 << bits) - 1)))
        )
        made.append(levels.astype(dtype).reshape(*SIZE, *CHANNELS[mode]))
    times = tuple(k / NTSC for k in range(COUNT))
    depth = bits if bits in (10, 12) else None
    return made, Clip(
        "-", "", "folder", COUNT, made[0].shape, made[0].dtype, mode, NTSC, times, (), COUNT / NTSC, depth
    )


def cell(source, target, folder):
    """What comes back: bit for bit, with loss, or nothing; and of the times."""
    frames, clip = frames_of(*source)
    path = folder / target[0]
    try:
        notes = check_clip(path, clip, codec=target[1])
    except OutputError as error:
        assert "\n" not in str(error)
        return "refused"
    write_clip([Media(f, source[0], "-", "") for f in frames], path, clip, codec=target[1], replace=True)
    again = read_clip(path)
    found = [media.values for media in again.frames()]
    assert again.count == COUNT and again.shape == clip.shape and again.dtype == clip.dtype
    assert again.mode == clip.mode or target[0] == "a.npy" or clip.mode == "array"  # which TIFF has no name for
    same = all(np.array_equal(a, b) for a, b in zip(found, frames))
    lossy = any("compresses with loss" in note or "256 colours" in note for note in notes)
    assert same or lossy
    kept = again.times is not None and max(abs(a - b) for a, b in zip(again.times, clip.times)) * 1000
    return ", ".join(
        ["lossy" if lossy else "✓", *(["no times"] if again.times is None else [] if kept < 1 else ["times ± 5 ms"])]
    )


def title(source):
    mode, dtype, bits = source
    return f"{mode}, {'float' if dtype == 'float32' else f'{bits} bits'}"


def line(source):
    folder = Path(tempfile.mkdtemp())
    try:
        return f"| {' | '.join([title(source), *(cell(source, target, folder) for target in TARGETS.values())])} |"
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("source", SOURCES, ids=title)
def test_every_kind_of_clip_comes_back_as_the_table_says(source):
    assert line(source) in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_table_has_these_rows_and_no_others():
    measured = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert re.findall(r"^\| (.*?) \|", measured, re.M)[1:] == [title(source) for source in SOURCES]


def write_page():
    """Measure everything and put it into the page."""
    lines = [f"| values | {' | '.join(TARGETS)} |", "|---" * (len(TARGETS) + 1) + "|", *map(line, SOURCES)]
    put_between(PAGE, BEGIN, END, lines)


if __name__ == "__main__":
    write_page()
