"""Clips that are no containers: folders of frames, pages of TIFF, animations and arrays, judged by other readers than
those that wrote.
"""

import os
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import tifffile
from clip_files import NTSC, pictures
from PIL import Image

from tdc_cli.errors import InputError, OutputError
from tdc_cli.media import Media, journal
from tdc_cli.media.video import Clip, check_clip, read_clip, write_clip


def clip_of(frames, mode="RGB", times=None, end=None, rate=None, details=None, form="folder"):
    """A Clip that was read nowhere, for writing."""
    return Clip(
        "-", "", form, len(frames), frames[0].shape, frames[0].dtype, mode, rate, times, (), end, None, details or {}
    )


def written(frames, path, mode="RGB", **about):
    """Write arrays and read them back."""
    clip = clip_of(frames, mode, **about)
    check_clip(path, clip)
    write_clip([Media(f, mode, "-", "") for f in frames], path, clip)
    return read_clip(path)


def values(clip, *span):
    return [media.values for media in clip.frames(*span)]


def same(found, frames):
    return all(np.array_equal(a, b) for a, b in zip(found, frames, strict=True))


def test_frames_of_a_folder_come_in_natural_order(tmp_path):
    frames = pictures(12)
    for k, frame in enumerate(frames):
        Image.fromarray(frame).save(tmp_path / f"shot {k}.PNG")
    (tmp_path / "Thumbs.db").touch()
    (tmp_path / ".hidden.png").touch()
    clip = read_clip(tmp_path)
    assert clip.count == 12 and clip.times is None and clip.rate is None and clip.mode == "RGB"
    assert same(values(clip), frames) and same(values(clip, 9, 11), frames[9:11])
    write_clip(clip.frames(), tmp_path / "out", clip)
    assert sorted(p.name for p in (tmp_path / "out").glob("[!.]*")) == sorted(f"shot {k}.PNG" for k in range(12))
    assert same([np.asarray(Image.open(tmp_path / "out" / f"shot {k}.PNG")) for k in range(12)], frames)


def test_frames_of_a_folder_must_be_alike(tmp_path):
    Image.fromarray(pictures(1)[0]).save(tmp_path / "a1.png")
    Image.fromarray(pictures(1)[0][:-2]).save(tmp_path / "a2.png")
    with pytest.raises(InputError) as told:
        read_clip(tmp_path)
    assert str(told.value) == (
        f"{tmp_path}/a2.png: 64x46 in mode RGB with 8 bits, but {tmp_path}/a1.png is 64x48 in mode RGB with 8 bits; "
        "all frames of a clip must be alike"
    )
    (tmp_path / "a1.png").unlink()
    (tmp_path / "a2.png").unlink()
    with pytest.raises(
        InputError,
        match=r": no frames; files of .bmp, .exr, .j2c, .j2k, .jp2, .jpeg, .jpf, .jpg, .jpx, .jxl, .mpo, .npy, .png, "
        r".tif, .tiff, .webp in it are taken",
    ):
        read_clip(tmp_path)


@pytest.mark.parametrize("output", ["b.mkv", "b.tif", "b.npy", "b.png", "b"])
def test_what_the_frames_of_a_folder_hold_is_kept_or_told(tdc, output):
    exif = Image.Exif()
    exif[270] = "roll 7"
    Path("scan").mkdir()
    for k in range(2):
        Image.open("a.png").save(f"scan/{k}.png", exif=exif, dpi=(300, 300))
    result = tdc("complete-video", "scan", "-o", output, "--mask", "m.png", "--method", "linear")
    assert result.exit_code == 0, result.stderr
    told = result.stderr.partition("cannot hold all that the frames have: without ")[2].partition("\n")[0]
    if output == "b":
        assert not told and Image.open("b/0.png").getexif()[270] == "roll 7"
    elif output == "b.tif":
        assert told == "EXIF; write to a folder of frames to keep it"
        assert abs(float(Image.open("b.tif").tag_v2[282]) - 300) < 0.01
    else:
        assert told == "resolution, EXIF; write to a folder of frames to keep it"


def test_a_folder_with_other_files_is_not_replaced(tmp_path):
    frames = pictures(3)
    clip = clip_of(frames)
    media = [Media(f, "RGB", "-", "") for f in frames]
    write_clip(media, tmp_path / "out", clip)
    assert sorted(p.name for p in (tmp_path / "out").glob("[!.]*")) == [
        "frame_0000.png",
        "frame_0001.png",
        "frame_0002.png",
    ]
    with pytest.raises(OutputError, match=r"out: exists already; give `overwrite` to replace it"):
        write_clip(media, tmp_path / "out", clip)
    write_clip(media, tmp_path / "out", clip, replace=True)
    (tmp_path / "out" / "mine.txt").touch()
    with pytest.raises(
        OutputError,
        match=r"out: holds mine.txt, which no run of tdc has written as it is; "
        "give an empty folder or a new name, or remove what is there",
    ):
        write_clip(media, tmp_path / "out", clip, replace=True)
    (tmp_path / "empty").mkdir()
    write_clip(media, tmp_path / "empty", clip)
    assert same(values(read_clip(tmp_path / "empty")), frames)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "out"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "array"])
def test_pages_of_tiff_come_back(tmp_path, dtype, mode):
    channels = {"L": (), "RGB": (3,), "RGBA": (4,), "array": (5,)}[mode]
    rng = np.random.default_rng(0)
    top = 1 if dtype.startswith("float") else np.iinfo(dtype).max
    frames = [(rng.random((12, 14, *channels)) * top).astype(dtype) for _ in range(3)]
    again = written(frames, tmp_path / "a.tif", mode)
    assert (again.mode, again.count, again.dtype, again.shape) == (mode, 3, np.dtype(dtype), (12, 14, *channels))
    assert same(values(again), frames) and same(values(again, 1, 2), frames[1:2])
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        assert same([page.asarray() for page in file.pages], frames)


def test_pages_that_others_wrote(tmp_path):
    frames = pictures(3)
    tifffile.imwrite(tmp_path / "a.tif", np.stack(frames)[..., 0].astype(np.uint16) * 200, photometric="minisblack")
    clip = read_clip(tmp_path / "a.tif")
    assert clip.mode == "L" and same(values(clip), [f[..., 0].astype(np.uint16) * 200 for f in frames])
    palettes = [Image.fromarray(f).quantize(16) for f in frames]
    palettes[0].save(tmp_path / "p.tif", save_all=True, append_images=palettes[1:])
    clip = read_clip(tmp_path / "p.tif")
    assert clip.mode == "RGB" and same(values(clip), [np.asarray(p.convert("RGB")) for p in palettes])
    assert "has a palette" in clip.notes[0]
    Image.fromarray(frames[0]).save(tmp_path / "u.tif", save_all=True, append_images=[Image.fromarray(frames[0][:10])])
    with pytest.raises(
        InputError, match=r"u.tif: page 1 has 64x10 pixels, those before it 64x48; all frames of a clip must be alike"
    ):
        read_clip(tmp_path / "u.tif")
    content = (tmp_path / "a.tif").read_bytes()
    (tmp_path / "a.tif").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"a.tif: damaged or cut short"):
        read_clip(tmp_path / "a.tif")


@pytest.mark.parametrize("shape", [(4, 6, 8), (4, 6, 8, 3), (1, 6, 8, 5)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", ">f8"])
def test_arrays_come_back_and_are_not_read_whole(tmp_path, shape, dtype):
    array = (np.random.default_rng(0).random(shape) * 200).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    clip = read_clip(tmp_path / "a.npy")
    assert (clip.count, clip.shape, clip.mode, clip.dtype) == (
        shape[0],
        shape[1:],
        "array",
        np.dtype(dtype).newbyteorder("="),
    )
    assert same(values(clip), array)
    write_clip(clip.frames(), tmp_path / "b.npy", clip)
    assert np.array_equal(np.load(tmp_path / "b.npy"), array)


@pytest.mark.parametrize("shape", [(6,), (6, 7), (2, 3, 4, 5, 6), (0, 4, 4)])
def test_arrays_that_are_no_clips(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    with pytest.raises(InputError, match=r"a.npy: array of shape .*; a clip has shape \(frames, height, width\) or "):
        read_clip(tmp_path / "a.npy")


DURATIONS = [40, 70, 100, 20, 500]  # milliseconds


@pytest.mark.parametrize(
    ("name", "plays"),
    [("a.gif", 0), ("a.gif", 1), ("a.gif", 4), ("a.png", 0), ("a.png", 3), ("a.webp", 0), ("a.webp", 2)],
)
def test_animations_keep_durations_and_repetitions(tmp_path, name, plays):
    frames = [np.asarray(Image.fromarray(f).quantize(64).convert("RGB")) for f in pictures(5)]
    loop = {"a.gif": {0: {"loop": 0}, 1: {}, 4: {"loop": 3}}}.get(name, {}).get(plays, {"loop": plays})
    first, *rest = [Image.fromarray(f) for f in frames]
    first.save(
        tmp_path / name,
        save_all=True,
        append_images=rest,
        duration=DURATIONS,
        **loop,
        **({"lossless": True} if "webp" in name else {}),
    )
    clip = read_clip(tmp_path / name)
    assert clip.details["durations"] == tuple(Fraction(d, 1000) for d in DURATIONS)
    assert clip.times == (0, Fraction(40, 1000), Fraction(110, 1000), Fraction(210, 1000), Fraction(230, 1000))
    assert clip.end == Fraction(730, 1000) and clip.rate is None and clip.mode == "RGB"
    assert same(values(clip), frames) and same(values(clip, 2, 4), frames[2:4])
    write_clip(clip.frames(), tmp_path / f"b{name}", clip)
    with Image.open(tmp_path / f"b{name}") as picture:
        assert picture.n_frames == 5 and picture.info.get("loop") == loop.get("loop")
        for k in range(5):
            picture.seek(k)
            picture.load()
            assert picture.info["duration"] == DURATIONS[k]
            assert np.array_equal(np.asarray(picture.convert("RGB")), frames[k])
    again = read_clip(tmp_path / f"b{name}")
    assert (again.times, again.end, again.details) == (clip.times, clip.end, clip.details)


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp"])
def test_alpha_of_animations(tmp_path, name):
    rng = np.random.default_rng(0)
    frames = [
        np.concatenate([f // 64 * 64, rng.choice(np.array([0, 255], np.uint8), (48, 64, 1))], axis=-1)
        for f in pictures(4)
    ]
    again = written(frames, tmp_path / name, "RGBA", form="GIF")  # whose alpha is 0 or 255
    assert again.mode == "RGBA" and again.count == 4
    for found, frame in zip(values(again), frames):
        assert np.array_equal(found[..., 3], frame[..., 3])
        shown = frame[..., 3] == 255
        assert np.array_equal(found[shown], frame[shown]) and (name == "a.gif" or np.array_equal(found, frame))


def test_half_transparent_colours_are_no_gif(tmp_path):
    frames = [np.full((8, 8, 4), 100, dtype=np.uint8)] * 2
    with pytest.raises(OutputError, match=r"a.gif: GIF cannot hold mode RGBA with 8 bits; write to "):
        check_clip(tmp_path / "a.gif", clip_of(frames, "RGBA"))


def test_apng_holds_any_rate(tmp_path):
    frames = pictures(3)
    times = tuple(k / NTSC for k in range(3))
    clip = clip_of(frames, times=times, end=3 / NTSC, rate=NTSC)
    assert check_clip(tmp_path / "a.png", clip) == []
    assert check_clip(tmp_path / "a.webp", clip) == [
        "WebP cannot hold the times of the frames exactly; they are rounded"
    ]
    again = written(frames, tmp_path / "a.png", times=times, end=3 / NTSC, rate=NTSC)
    assert again.rate == NTSC and again.times == times
    content = (tmp_path / "a.png").read_bytes()
    assert struct.unpack(">2H", content[content.index(b"fcTL") + 24 :][:4]) == (1001, 30000)
    rounded = written(frames, tmp_path / "a.webp", times=times, end=3 / NTSC, rate=NTSC)
    assert all(abs(a - b) <= Fraction(1, 2000) for a, b in zip(rounded.times, times))


def test_a_picture_for_programs_without_animations_is_no_frame(tmp_path):
    frames = [Image.fromarray(f) for f in pictures(4)]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:], duration=50, default_image=True)
    assert same(values(read_clip(tmp_path / "a.png")), pictures(4)[1:])


def test_more_colours_than_a_gif_holds(tmp_path):
    frames = pictures(3)
    assert check_clip(tmp_path / "a.gif", clip_of(frames))[1].startswith("GIF holds 256 colours a frame")
    again = written(frames, tmp_path / "a.gif")
    assert all(np.abs(a.astype(int) - b).mean() < 8 for a, b in zip(values(again), frames))


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp", "a.tif", "a.npy"])
def test_damaged_files_are_told_in_one_line(tmp_path, name):
    frames = pictures(4, 16, 16)
    written(frames, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    rng = np.random.default_rng(0)
    for trial in range(30):
        damaged = bytearray(content)
        if trial % 2:
            start = int(rng.integers(0, len(content) - 4))
            damaged[start : start + 4] = rng.bytes(4)
        else:
            damaged = damaged[: int(rng.integers(0, len(content)))]
        (tmp_path / name).write_bytes(damaged)
        try:
            clip = read_clip(tmp_path / name)
            assert len(values(clip)) == clip.count
        except InputError as error:
            assert "\n" not in str(error) and str(error).startswith(f"{tmp_path / name}: ")


def test_a_killed_run_leaves_only_what_the_next_one_removes(tmp_path):
    """A writer of a folder that ends without a word, while another one lives."""
    clip = clip_of(pictures(3))
    media = [Media(f, "RGB", "-", "") for f in pictures(3)]
    child = os.fork()
    if not child:

        def dies():
            yield media[0]
            os._exit(9)

        try:
            write_clip(dies(), tmp_path / "out", clip)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".tdc-") and [p.name for p in left.iterdir()] == ["frame_0000.png"]
    seen = []

    def looks():
        yield media[0]
        journal.sweep(tmp_path)
        seen.extend(p.name for p in tmp_path.iterdir())
        yield from media[1:]

    write_clip(looks(), tmp_path / "out", clip)
    assert len(seen) == 1 and Path(seen[0]).name != left.name
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
