"""Standard input and output in place of files, and how the format of an output is said."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import plain_codecs
import pytest
from conftest import pixels, report_of, smooth
from PIL import Image

from tdc_cli import media
from tdc_cli.names import FORMATS

SCRIPT = str(Path(sys.executable).with_name("tdc"))
QUICK = ["--mask", "m.png", "--method", "biharmonic"]


def check_refused(result, line):
    assert (result.exit_code, result.stderr, result.stdout) == (2, f"tdc: {line}\n", "")


def piped(*args, data=b"", **more):
    """Run the installed program with `data` on standard input; bytes come back."""
    return subprocess.run([SCRIPT, *args], input=data, capture_output=True, timeout=120, **more)


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.tif", "x.webp", "x.bmp", "x.npy", "deep.png"])
def test_a_pipe_gives_the_same_bytes_as_files(tdc, name):
    if name == "deep.png":
        Path(name).write_bytes(plain_codecs.png(smooth(20, 24).astype(np.uint16) * 257))
    else:
        media.write(media.Media(smooth(20, 24), "array" if name == "x.npy" else "RGB", "", ""), name)
    assert tdc("complete-image", name, "-o", f"y_{name}", *QUICK).exit_code == 0
    result = tdc("complete-image", "-", "-o", "-", *QUICK, input=Path(name).read_bytes())
    assert result.exit_code == 0, result.stderr
    assert result.stdout_bytes == Path(f"y_{name}").read_bytes()
    assert "16 of 480 pixels missing" in result.stderr


@pytest.mark.parametrize("extension", [f for f in FORMATS if f not in ("npy", "exr")])
def test_the_format_on_standard_output_can_be_chosen(tdc, extension):
    result = tdc("complete-image", "a.png", "-o", "-", "--format", extension, *QUICK)
    assert result.exit_code == 0, result.stderr
    if extension == "jxl":  # which Pillow does not read
        assert result.stdout_bytes.startswith(b"\0\0\0\x0cJXL ")
    elif extension in ("jp2", "j2k"):
        assert Image.open(io.BytesIO(result.stdout_bytes)).format == "JPEG2000"
    else:
        assert Image.open(io.BytesIO(result.stdout_bytes)).format.lower() == {"jpg": "jpeg", "tif": "tiff"}.get(
            extension, extension
        )


def test_the_report_names_what_was_piped(tdc):
    result = tdc("complete-image", "-", "-o", "b.png", *QUICK, "--json", input=Path("a.png").read_bytes())
    report = report_of(result)
    assert report["input"]["path"] == "-" and report["outputs"] == {"image": "b.png"}
    assert tdc("complete-image", "a.png", "-o", "-", "--report", "r.json", *QUICK).exit_code == 0
    assert report_of(tdc("complete-image", "a.png", "-o", "c.png", *QUICK, "--json"))["missing"] == report["missing"]


def test_the_installed_program_in_a_pipe(folder):
    done = piped("complete-image", "-", "-o", "-", *QUICK, "--progress", data=Path("a.png").read_bytes())
    assert done.returncode == 0, done.stderr
    known = pixels("m.png") == 0
    assert np.array_equal(pixels(io.BytesIO(done.stdout))[known], pixels("a.png")[known])
    assert b"tdc: " not in done.stdout and done.stderr.startswith(b"standard output: 16 of 480 pixels missing")


def test_a_reader_that_has_gone_is_exit_141(folder):
    words = [SCRIPT, "complete-image", "a.png", "-o", "-", *QUICK, "-q"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_standard_output_is_a_failure_of_the_work(folder):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SCRIPT, "complete-image", "a.png", "-o", "-", *QUICK], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "tdc: standard output: No space left on device\n")


@pytest.mark.parametrize("data", [b"", b"no picture", b"\x89PNG\r\n\x1a\n", b"\x93NUMPY", b"II*\0"])
def test_what_is_no_picture_is_refused_in_one_line(tdc, data):
    result = tdc("complete-image", "-", "-o", "b.png", *QUICK, input=data)
    assert result.exit_code == 2 and result.stderr.startswith("tdc: -: ") and result.stderr.count("\n") == 1


def test_closed_streams_are_one_line(folder):
    shell = f"{SCRIPT} complete-image - -o b.png --mask m.png <&-; {SCRIPT} complete-image a.png -o - --mask m.png >&-"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=120)
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("tdc: -: standard input is no data") and lines[1].startswith(
        "tdc: -: standard output is "
    )


@pytest.mark.parametrize(
    "args, line",
    [
        (
            ["a.png", "-o", "-", "--json"],
            "--json and -o - both want standard output; write the report with --report FILE; see 'tdc complete-image "
            "--help'",
        ),
        (
            ["a.png", "-o", "-", "--report", "-"],
            "-: only the completed input goes to standard output; name a file for the report",
        ),
        (
            ["-", "-o", "."],
            "-o . is a folder, and standard input has no name; name a file in it; see 'tdc complete-image --help'",
        ),
        (["a.png", "-o", "b.png", "--format", "jpg"], "b.png: its extension says .png but --format jpg; leave one out"),
        (
            ["a.png", "-o", "b"],
            "b: no extension; use one of .bmp, .exr, .j2c, .j2k, .jp2, .jpeg, .jpg, .jxl, .npy, .png, .tif, .tiff, "
            ".webp",
        ),
        (
            ["a.png", "-o", "-", "--quality", "90"],
            "--quality is of JPEG, and - is written as PNG, without loss; leave it out",
        ),
        (
            ["a.png", "-o", "b.jpg", "--quality", "0"],
            "Invalid value for '--quality': 0 is not in the range 1<=x<=100; see 'tdc complete-image --help'",
        ),
    ],
)
def test_what_cannot_be_is_refused(tdc, args, line):
    check_refused(tdc("complete-image", *args, *QUICK, input=b""), line)
    assert sorted(os.listdir()) == ["a.png", "m.png"]


def test_a_format_may_stand_for_a_missing_extension(tdc):
    assert tdc("complete-image", "a.png", "-o", "b", "--format", "TIF", *QUICK).exit_code == 0
    assert Image.open("b").format == "TIFF"


@pytest.mark.parametrize(
    "words, line",
    [
        (
            ["complete-image", "a.png", "-o", "b.png", "--mask", "p.png"],
            "mask p.png: not a regular file; write it to a file first",
        ),
        (
            ["complete-image", "a.png", "-o", "p.png", *QUICK],
            "p.png: is a pipe, a socket, a disk, or a link to itself; name a file, or - for standard output",
        ),
        (
            ["complete-image", "a.png", "-o", "b.png", *QUICK, "--report", "p.json"],
            "p.json: is a pipe, a socket, a disk, or a link to itself; name a file, or - for standard output",
        ),
        (
            ["complete-image", "a.png", "-o", "b.png", "--config", "p.toml", *QUICK],
            "p.toml: not a regular file; name a file of TOML",
        ),
        *(
            (
                ["complete-video", "c.npy", "-o", "d.npy", "--mask", f"p{extension}"],
                f"mask p{extension}: not a regular file; write it to a file first",
            )
            for extension in (".npy", ".png", ".gif", ".mkv", ".tif")
        ),
        *(
            (
                ["complete-video", f"p{extension}", "-o", "d.npy"],
                f"p{extension}: not a regular file; write it to a file first",
            )
            for extension in (".npy", ".gif", ".mkv", ".tif")
        ),
        (
            ["complete-tensor", "p.npz", "-o", "d.npy"],
            "p.npz: not a regular file; give - as the input and pipe the data in, or write it to a file first",
        ),
        (
            ["complete-tensor", "c.npy", "-o", "d.npy", "--mask", "p.npy"],
            "mask p.npy: not a regular file; write it to a file first",
        ),
        (
            ["complete-tensor", "c.npy", "-o", "p.npy"],
            "p.npy: is a pipe, a socket, a disk, or a link to itself; name a file, or - for standard output",
        ),
    ],
)
def test_pipes_with_names_are_refused_before_they_are_opened(tdc, words, line):
    def give_up(number, frame):
        raise AssertionError("it waits for the other end of the pipe")

    np.save("c.npy", np.zeros((3, 8, 9)))
    for name in {word for word in words if word.startswith("p.")}:
        os.mkfifo(name)
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        check_refused(tdc(*words), line)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_named_pipe_is_refused_with_the_way_to_do_it(tdc):
    os.mkfifo("pipe.png")
    check_refused(
        tdc("complete-image", "pipe.png", "-o", "b.png", *QUICK),
        "pipe.png: not a regular file; give - as the input and pipe the data in, or write it to a file first",
    )
