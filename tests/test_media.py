import contextlib
import os
from dataclasses import replace

import numpy as np
import pytest
import tifffile
from conftest import pixels, smooth
from PIL import Image, ImageCms

from tdc_cli import media
from tdc_cli.errors import InputError, MaskError, OutputError
from tdc_cli.media import image
from tdc_cli.media.array import write_array
from tdc_cli.media.files import write_bytes

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


@pytest.mark.parametrize("extension", [".png", ".tif", ".TIFF", ".PNG"])
@pytest.mark.parametrize("channels, mode", [(None, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")])
def test_lossless_formats_keep_every_bit(folder, extension, channels, mode):
    values = smooth(9, 7, channels)
    Image.fromarray(values).save(f"x{extension}")
    read = media.read(f"x{extension}")
    assert read.mode == mode and read.full_range == 255 and len(read.sha256) == 64
    media.write(read, f"y{extension}")
    assert np.array_equal(pixels(f"y{extension}"), values)
    assert Image.open(f"y{extension}").mode == mode


@pytest.mark.parametrize("source", ["x.png", "x.jpg", "x.tif"])
@pytest.mark.parametrize("target", ["y.png", "y.jpg", "y.tif"])
def test_profile_resolution_and_exif_are_kept(folder, source, target):
    exif = Image.Exif()
    exif[271] = "Maker"
    Image.fromarray(smooth(9, 7)).save(source, icc_profile=PROFILE, dpi=(300, 300), exif=exif)
    media.write(media.read(source), target)
    written = Image.open(target)
    assert written.info["icc_profile"] == PROFILE
    assert written.info["dpi"] == pytest.approx((300, 300), abs=0.1)
    assert written.getexif()[271] == "Maker"


def test_camera_settings_go_into_a_tiff(folder):
    exif = Image.Exif()
    exif.get_ifd(0x8769)[33434] = 0.01
    Image.fromarray(smooth(9, 7)).save("x.jpg", exif=exif)
    media.write(media.read("x.jpg"), "y.tif")
    assert Image.open("y.tif").getexif().get_ifd(0x8769)[33434] == pytest.approx(0.01)


@pytest.mark.parametrize("extension", [".jpg", ".png", ".tif"])
def test_pictures_are_turned_upright_once(folder, extension):
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(smooth(9, 7)).save(f"x{extension}", exif=exif)
    read = media.read(f"x{extension}")
    assert read.values.shape == (7, 9, 3)
    media.write(read, f"y{extension}")
    assert media.read(f"y{extension}").values.shape == (7, 9, 3)


def test_colour_and_alpha_are_told_apart(folder):
    values = smooth(5, 4, 4)
    Image.fromarray(values).save("x.png")
    read = media.read("x.png")
    changed = read.with_colour(np.zeros_like(read.colour))
    assert np.array_equal(changed.values[..., 3], values[..., 3]) and not changed.colour.any()
    assert np.array_equal(read.values, values)
    Image.fromarray(values[..., :2]).save("x.png")
    assert media.read("x.png").colour.shape == (5, 4)


@pytest.mark.parametrize(
    "mode, words",
    [("P", "mode P is not supported.*convert it to RGB"), ("1", "mode 1"), ("CMYK", "mode CMYK"), ("I;16", "I;16 with 16 bits")],
)
def test_other_modes_are_refused_by_name(folder, mode, words):
    Image.new(mode, (5, 4)).save("x.tif")
    with pytest.raises(InputError, match=words):
        media.read("x.tif")


def test_sixteen_bits_are_not_cut_to_eight(folder):
    tifffile.imwrite("x.tif", np.full((4, 5, 3), 40_000, dtype=np.uint16), photometric="rgb")
    with pytest.raises(InputError, match="16 bits a channel"):
        media.read("x.tif")
    with open("x.png", "wb") as file:  # an RGB picture of 1x1 pixel and 16 bits, which Pillow reads as 8 bits
        file.write(_png(bits=16, colour=2, row=b"\0" + bytes(6)))
    with pytest.raises(InputError, match="16 bits a channel"):
        media.read("x.png")


def _png(bits, colour, row, size=(1, 1)):
    import struct
    import zlib

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", *size, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.tif"])
@pytest.mark.parametrize("keep", [0, 3, 0.3, 0.8])
def test_damaged_files_are_refused_in_one_line(folder, name, keep):
    noisy = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(noisy).save(name)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(keep if keep > 1 else keep * len(content))])
    with pytest.raises(InputError, match=f"^{name}: ") as caught:
        media.read(name)
    assert "\n" not in str(caught.value)


def test_damaged_tiffs_leave_no_other_line(folder, capfd):
    noisy = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(noisy).save("x.tif", compression="tiff_lzw")
    content = bytearray((folder / "x.tif").read_bytes())
    content[500:600] = bytes(100)
    (folder / "x.tif").write_bytes(content)
    with contextlib.suppress(InputError):
        media.read("x.tif")
    assert capfd.readouterr().err == ""


def test_nonsense_beside_the_pixels_is_no_reason_to_fail(folder):
    Image.fromarray(smooth(9, 7)).save("x.tif", dpi=(0, 1e9))
    Image.fromarray(smooth(9, 7)).save("x.jpg", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x05garbage")
    for name in ("x.tif", "x.jpg"):
        media.write(media.read(name), "y.png", replace=True)
    assert "dpi" not in media.read("x.tif").metadata


def test_names_that_lie_and_other_files(folder):
    Image.fromarray(smooth(5, 4)).save("x.png")
    os.rename("x.png", "x.jpg")
    with pytest.raises(InputError, match=r"x.jpg: named like a JPEG file but its content is PNG; rename it"):
        media.read("x.jpg")
    (folder / "notes.png").write_text("no picture")
    with pytest.raises(InputError, match="not a picture"):
        media.read("notes.png")
    with pytest.raises(InputError, match="no such file"):
        media.read("none.png")
    with pytest.raises(InputError, match="is a folder"):
        media.read(".")
    (folder / "x.xyz").write_text("")
    with pytest.raises(InputError, match=r"extension '.xyz' is not known; use one of .jpeg, .jpg"):
        media.read("x.xyz")
    Image.new("L", (4, 4)).save("pages.tif", save_all=True, append_images=[Image.new("L", (4, 4))])
    with pytest.raises(InputError, match="holds 2 pages"):
        media.read("pages.tif")


@pytest.mark.parametrize("size", [(20_000, 10_000), (12_000, 10_000)])
def test_huge_pictures_are_refused_before_they_are_decoded(folder, size):
    (folder / "x.png").write_bytes(_png(bits=1, colour=0, row=b"", size=size))
    with pytest.raises(InputError, match="100 megapixels"):
        media.read("x.png")


def test_formats_refuse_what_they_cannot_hold(folder):
    rgba = media.Media(smooth(5, 4, 4), "RGBA", "x.png", "")
    with pytest.raises(OutputError, match=r"JPEG cannot hold mode RGBA \(transparency\)"):
        media.write(rgba, "y.jpg")
    floats = media.Media(np.zeros((5, 4)), "array", "x.npy", "")
    with pytest.raises(OutputError, match="8-bit values only"):
        media.write(floats, "y.png")
    with pytest.raises(OutputError, match="no extension"):
        media.write(floats, "y")
    assert sorted(os.listdir()) == ["a.png", "m.png"]


def test_arrays_keep_type_and_bits(folder):
    values = np.linspace(-1e3, 8e3, 24, dtype=np.float32).reshape(2, 3, 4)
    np.save("x.npy", values)
    media.write(media.read("x.npy"), "y.npy")
    assert np.load("y.npy").dtype == np.float32 and np.array_equal(np.load("y.npy"), values)
    write_array(values[..., :3], "y.tif")
    assert np.array_equal(tifffile.imread("y.tif"), values[..., :3])


@pytest.mark.parametrize("values", [np.zeros((2, 3), dtype=int), np.zeros(4), np.zeros((0, 3)), np.zeros((2, 2, 2, 2))])
def test_arrays_that_are_no_pictures_are_refused(folder, values):
    np.save("x.npy", values)
    with pytest.raises(InputError, match=r"^x.npy: array of"):
        media.read("x.npy")


def test_a_damaged_array_is_refused(folder):
    (folder / "x.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(InputError, match=r"not a readable \.npy"):
        media.read("x.npy")


def test_a_failed_write_leaves_the_old_file_and_no_other(folder, monkeypatch):
    (folder / "y.png").write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"y.png: cannot be written \(No space left on device\)"):
        write_bytes("y.png", b"new", replace=True)
    assert (folder / "y.png").read_text() == "old"
    assert sorted(os.listdir()) == ["a.png", "m.png", "y.png"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_is_there_is_replaced_only_when_asked(folder, monkeypatch, links):
    """Also where the file system has no hard links."""

    def refuse(*args):
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    write_bytes("y.png", b"first")
    with pytest.raises(OutputError, match=r"y\.png: exists already; give --overwrite to replace it"):
        write_bytes("y.png", b"second")
    assert (folder / "y.png").read_text() == "first"
    write_bytes("y.png", b"third", replace=True)
    assert (folder / "y.png").read_text() == "third"
    assert sorted(os.listdir()) == ["a.png", "m.png", "y.png"]


def test_pipes_are_refused_before_they_are_waited_for(folder):
    os.mkfifo("x.png")
    with pytest.raises(InputError, match=r"x\.png: not a regular file; write the data to a file first"):
        media.read("x.png")


@pytest.mark.parametrize("target", ["y.tif", "y.jpg"])
def test_a_transparent_colour_is_kept_or_refused(folder, target):
    Image.fromarray(smooth(9, 7)).save("x.png", transparency=(1, 2, 3))
    read = media.read("x.png")
    media.write(read, "y.png")
    assert Image.open("y.png").info["transparency"] == (1, 2, 3)
    with pytest.raises(OutputError, match="cannot hold a colour that stands for transparency"):
        media.write(read, target)


def test_links_are_followed_and_devices_written_to(folder):
    (folder / "real.png").write_text("old")
    os.symlink("real.png", "link.png")
    write_bytes("link.png", b"new", replace=True)
    assert os.path.islink("link.png") and (folder / "real.png").read_text() == "new"
    write_bytes(os.devnull, b"new")
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16", "I", "CMYK"])
def test_masks_of_every_mode_are_read(folder, mode):
    hole = np.zeros((6, 8), dtype=bool)
    hole[1:3, 2:5] = True
    grey = Image.fromarray(np.where(hole, 255, 0).astype(np.uint8))
    if mode == "P":
        picture = Image.fromarray(hole.astype(np.uint8), mode="P")  # indices 0 and 1, black and white in the palette
        picture.putpalette([0, 0, 0, 255, 255, 255])
    elif mode in ("I;16", "I"):
        picture = Image.fromarray(np.where(hole, 65535, 0).astype(np.uint16 if mode == "I;16" else np.int32))
    else:
        picture = grey.convert(mode)
    name = "mask.tif" if mode in ("CMYK", "I") else "mask.png"
    picture.save(name)
    levels, alpha = image.read_mask(name)
    assert levels.shape == (6, 8)
    assert np.array_equal(levels > levels.max() / 2, hole)
    assert (alpha is not None) == (mode in ("RGBA", "LA", "P"))


def test_a_mask_that_is_no_picture(folder):
    with pytest.raises(MaskError, match=r"mask none.png: no such file"):
        image.read_mask("none.png")
    (folder / "x.png").write_text("no picture")
    with pytest.raises(MaskError, match=r"mask x.png: not a picture"):
        image.read_mask("x.png")


def test_media_is_a_value(folder):
    read = media.read("a.png")
    assert replace(read, path="other").sha256 == read.sha256
