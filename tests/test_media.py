import contextlib
import io
import math
import os
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import cv2
import imagecodecs
import numpy as np
import plain_codecs
import pytest
import tifffile
from conftest import pixels, smooth
from PIL import Image, ImageCms, ImageOps, PngImagePlugin

from tdc_cli import media
from tdc_cli.errors import InputError, MaskError, OutputError
from tdc_cli.media import masks, metadata
from tdc_cli.media.files import write_bytes
from tdc_cli.names import FORMATS

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


@pytest.mark.parametrize("source", ["x.png", "x.jpg", "x.tif", "x.webp"])
@pytest.mark.parametrize("target", ["y.png", "y.jpg", "y.tif", "y.webp"])
def test_profile_resolution_and_exif_are_kept(folder, source, target):
    exif = Image.Exif()
    exif[271] = "Maker"
    if source == "x.webp":  # which has no other place for it
        exif[282] = exif[283] = 300
    Image.fromarray(smooth(9, 7)).save(source, icc_profile=PROFILE, dpi=(300, 300), exif=exif)
    media.write(media.read(source), target)
    written = Image.open(target)
    assert written.info["icc_profile"] == PROFILE
    dpi = written.info["dpi"] if target != "y.webp" else [written.getexif()[tag] for tag in (282, 283)]
    assert dpi == pytest.approx((300, 300), abs=0.1)
    assert written.getexif()[271] == "Maker"


def test_camera_settings_go_into_a_tiff(folder):
    exif = Image.Exif()
    exif.get_ifd(0x8769)[33434] = 0.01
    Image.fromarray(smooth(9, 7)).save("x.jpg", exif=exif)
    media.write(media.read("x.jpg"), "y.tif")
    assert Image.open("y.tif").getexif().get_ifd(0x8769)[33434] == pytest.approx(0.01)


@pytest.mark.parametrize("extension", [".jpg", ".png", ".tif", ".webp"])
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


@pytest.mark.parametrize("orientation", range(1, 9))
def test_arrays_are_turned_as_pictures_are(orientation):
    picture = Image.fromarray(smooth(4, 6))
    picture.getexif()[274] = orientation
    assert np.array_equal(metadata.upright(smooth(4, 6), orientation), np.asarray(ImageOps.exif_transpose(picture)))


@pytest.mark.parametrize(
    "mode, words", [("LAB", "mode LAB is not supported, only L, LA, RGB, RGBA, CMYK; convert it to RGB")]
)
def test_other_modes_are_refused_by_name(folder, mode, words):
    Image.new(mode, (5, 4)).save("x.tif")
    with pytest.raises(InputError, match=words):
        media.read("x.tif")


@pytest.mark.parametrize("transparent", [False, True])
def test_palettes_become_exactly_their_colours(folder, transparent):
    picture = Image.fromarray(np.arange(20, dtype=np.uint8).reshape(4, 5), mode="P")
    picture.putpalette([level for i in range(20) for level in (i, 200 - i, 7 * i)])
    picture.save("x.png", **({"transparency": 3} if transparent else {}))
    read = media.read("x.png")
    assert read.mode == ("RGBA" if transparent else "RGB") and "has a palette" in read.notes[0]
    index = np.arange(20).reshape(4, 5)
    assert np.array_equal(read.values[..., :3], np.stack([index, 200 - index, 7 * index], axis=2))
    if transparent:
        assert np.array_equal(read.values[..., 3] == 0, index == 3)


def test_single_bits_become_grey(folder):
    Image.fromarray(smooth(4, 5, None) > 128).save("x.png")
    read = media.read("x.png")
    assert (
        read.mode == "L"
        and np.array_equal(read.values, np.where(smooth(4, 5, None) > 128, 255, 0))
        and "1 bit" in read.notes[0]
    )


@pytest.mark.parametrize("channels, mode", [(None, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")])
def test_sixteen_bits_are_read_and_written_as_such(folder, channels, mode):
    """OpenCV, which has no part in reading and writing here, makes and reads the PNG; it knows no grey with alpha."""
    values = np.random.default_rng(0).integers(0, 65536, (9, 7, channels) if channels else (9, 7), dtype=np.uint16)
    media.write(media.Media(values, mode, "x.png", ""), "x.png")
    found = cv2.imread("x.png", cv2.IMREAD_UNCHANGED)
    swapped = values[..., {2: [0, 0, 0, 1], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[channels]] if channels else values
    assert np.array_equal(found, swapped)
    if channels != 2:
        cv2.imwrite("z.png", swapped)
        assert np.array_equal(media.read("z.png").values, values)
    for name in ("x.png", "y.tif"):
        media.write(media.Media(values, mode, "x.png", ""), name, replace=True)
        read = media.read(name)
        assert read.mode == mode and read.full_range == 65535 and np.array_equal(read.values, values)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "lzw"},
        {"compression": "zlib", "predictor": True},
        {"byteorder": ">"},
        {"tile": (16, 16)},
        {"planarconfig": "separate"},
        {"bigtiff": True},
    ],
)
@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_tiffs_of_every_layout_are_read(folder, options, dtype):
    values = (np.random.default_rng(0).random((20, 18, 3)) * 60_000).astype(dtype)
    stored = np.moveaxis(values, -1, 0) if "planarconfig" in options else values
    tifffile.imwrite("x.tif", stored, photometric="rgb", **options)
    read = media.read("x.tif")
    assert read.mode == "RGB" and read.values.dtype == dtype and np.array_equal(read.values, values)


def test_a_grey_tiff_whose_zero_is_white(folder):
    tifffile.imwrite("x.tif", np.full((4, 5), 10, dtype=np.uint16), photometric="miniswhite")
    assert (media.read("x.tif").values == 65525).all()


def test_premultiplied_alpha_stays_so_or_is_refused(folder):
    values = smooth(9, 7, 4)
    tifffile.imwrite("x.tif", values, photometric="rgb", extrasamples=["assocalpha"])
    read = media.read("x.tif")
    assert np.array_equal(read.values, values)
    media.write(read, "y.tif")
    with tifffile.TiffFile("y.tif") as file:
        assert file.pages[0].extrasamples == (1,) and np.array_equal(file.asarray(), values)
    with pytest.raises(
        OutputError, match=r"y\.png: PNG cannot hold colours that are multiplied by their alpha, .*; write to \.tif"
    ):
        media.write(read, "y.png")


@pytest.mark.parametrize(
    ("mode", "kind", "shape", "colour"), [("RGB", 2, (1, 2, 3), (1, 0x203, 0x405)), ("L", 0, (1, 2), 0x203)]
)
def test_a_transparent_colour_of_sixteen_bits_is_kept(folder, mode, kind, shape, colour):
    row, meant = b"\0" + bytes(range(2 * math.prod(shape))), np.array(colour, dtype=">u2").tobytes()
    (folder / "x.png").write_bytes(_png(16, kind, row, size=(2, 1), more=((b"tRNS", meant),)))
    read = media.read("x.png")
    assert read.mode == mode and read.values.shape == shape
    assert np.array_equal(read.values.reshape(-1), np.frombuffer(row[1:], dtype=">u2"))
    media.write(read, "y.png")
    assert Image.open("y.png").info["transparency"] == colour


def test_texts_of_a_png_stay(folder):
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "Somebody")
    info.add_itxt("Title", "Déjà vu 你好", "fr", "Titre")
    for values in (smooth(9, 7), smooth(9, 7).astype(np.uint16) * 257):
        Image.fromarray(smooth(9, 7)).save("x.png", pnginfo=info)
        read = media.read("x.png")
        media.write(replace(read, values=values), "y.png", replace=True)
        text = Image.open("y.png").text
        assert text == {"Author": "Somebody", "Title": "Déjà vu 你好"} and (text["Title"].lang, text["Title"].tkey) == (
            "fr",
            "Titre",
        )


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_profiles_and_texts_beyond_a_megabyte_are_healthy(tdc, dtype):
    profile = PROFILE[:128] + np.random.default_rng(0).bytes(2_000_000)
    text = PngImagePlugin.iTXt("long " * 500_000, "en", "Comment")
    chunks = plain_codecs.png_metadata(profile, 72, Image.Exif().tobytes())
    told = b"Comment\0\1\0en\0Comment\0" + zlib.compress(text.encode())
    Path("x.png").write_bytes(plain_codecs.png(smooth(20, 24).astype(dtype), (chunks[0], (b"iTXt", told))))
    result = tdc("complete-image", "x.png", "-o", "y.png", "--mask", "m.png", "--method", "biharmonic")
    assert result.exit_code == 0, result.stderr
    read = media.read("y.png")
    assert read.metadata["icc_profile"] == profile and read.metadata["text"]["Comment"] == text
    assert tdc("complete-image", "y.png", "-o", "z.png", "--mask", "m.png", "--method", "biharmonic").exit_code == 0


@pytest.mark.parametrize("depth", [8, 16])
def test_the_meaning_of_the_colours_of_a_png_stays(folder, depth):
    chunks = ((b"gAMA", (100_000).to_bytes(4, "big")), (b"cHRM", bytes(range(32))))
    (folder / "x.png").write_bytes(plain_codecs.png(smooth(9, 7).astype(f"uint{depth}"), chunks))
    media.write(media.read("x.png"), "y.png")
    found = plain_codecs.png_chunks((folder / "y.png").read_bytes())
    assert {name: found[name] for name, _ in chunks} == dict(chunks)


def test_the_comment_of_a_jpeg_stays_in_a_jpeg(folder):
    Image.fromarray(smooth(9, 7)).save("x.jpg", comment=b"no. 7")
    read = media.read("x.jpg")
    media.write(read, "y.jpg")
    assert Image.open("y.jpg").info["comment"] == b"no. 7"
    assert media.FORMATS["PNG"].lost(read) == ["comment"]


def test_metadata_too_long_for_a_jpeg_is_lost_with_words(folder):
    packet = b"<x:xmpmeta>" + b" " * 70_000 + b"</x:xmpmeta>"
    exif = Image.Exif()
    exif[270] = "long " * 14_000
    Image.fromarray(smooth(9, 7)).save("x.webp", xmp=packet, exif=exif.tobytes(), lossless=True)
    read = media.read("x.webp")
    assert media.FORMATS["JPEG"].lost(read) == ["EXIF", "XMP"]
    media.write(read, "y.jpg")
    media.write(read, "y.tif")
    assert Image.open("y.tif").info["xmp"] == packet and Image.open("y.tif").getexif()[270] == exif[270]


@pytest.mark.parametrize("name", ["x.png", "x.webp", "x.tif"])
def test_several_frames_are_refused_with_the_way_out(folder, name):
    frames = [Image.fromarray(np.roll(smooth(9, 7), 3 * i, axis=0)) for i in range(3)]
    frames[0].save(name, save_all=True, append_images=frames[1:])
    with pytest.raises(
        InputError, match=f"^{name}: holds 3 pages or frames; save the one to complete as a file of its own"
    ):
        media.read(name)


def test_several_deep_pages_are_refused_too(folder):
    tifffile.imwrite("x.tif", np.zeros((2, 9, 7, 3), dtype=np.uint16), photometric="rgb")
    with pytest.raises(InputError, match="holds 2 pages or frames"):
        media.read("x.tif")


def test_other_formats_are_named(folder):
    Image.fromarray(smooth(9, 7, None)).save("x.gif")
    os.rename("x.gif", "x.png")
    with pytest.raises(InputError, match=r"x\.png: GIF is not read; convert it to PNG, JPEG or TIFF"):
        media.read("x.png")


@pytest.mark.parametrize("target", ["y.png", "y.jpg", "y.tif", "y.webp"])
def test_an_orientation_in_xmp_is_not_applied_twice(folder, target):
    packet = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="6" dc:title="a"/></x:xmpmeta>'
    Image.fromarray(smooth(9, 7)).save("x.jpg", xmp=packet)
    read = media.read("x.jpg")
    assert read.values.shape == (7, 9, 3)
    media.write(read, target)
    kept = Image.open(target).info["xmp"]
    assert b'dc:title="a"' in kept and b'Orientation="6"' not in kept
    assert media.read(target).values.shape == (7, 9, 3)


def _png(bits, colour, row, size=(1, 1), more=()):
    import struct
    import zlib

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", *size, bits, colour, 0, 0, 0)
    chunks = ((b"IHDR", header), *more, (b"IDAT", zlib.compress(row)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*pair) for pair in chunks)


KINDS = [(name, np.uint8) for name in ("x.png", "x.jpg", "x.tif", "x.webp", "x.jxl", "x.bmp", "x.npy")]
KINDS += [("x.png", np.uint16), ("x.jxl", np.uint16), ("x.jxl", np.float32)]
KINDS += [("x.tif", np.uint16), ("x.tif", np.float32), ("x.npy", np.float32)]


def _box(kind, data):
    return (8 + len(data)).to_bytes(4, "big") + kind + data


def test_of_jpeg_xl_what_is_not_read_is_told(folder):
    buffer = io.BytesIO()
    Image.fromarray(smooth(16, 24)).save(buffer, "JPEG", icc_profile=PROFILE)
    exif = Image.Exif()
    exif[271] = "Maker"
    packed = imagecodecs.brotli_encode(bytes(4) + exif.tobytes().removeprefix(b"Exif\0\0"))
    boxes = _box(b"xml ", b'<x:xmpmeta tiff:Orientation="6"/>') + _box(b"brob", b"Exif" + packed) + _box(b"jhgm", b"")
    (folder / "x.jxl").write_bytes(imagecodecs.jpegxl_encode_jpeg(buffer.getvalue()) + boxes)
    read = media.read("x.jxl")
    assert read.notes == ("x.jxl: is read without its gain map, colour profile",)
    assert read.values.shape == (16, 24, 3) and read.metadata["xmp"] == b'<x:xmpmeta tiff:Orientation="1"/>'
    media.write(read, "y.jxl")
    again = media.read("y.jxl")
    assert again.metadata == read.metadata and b"Maker" in again.metadata["exif"] and again.notes == ()


def test_what_is_no_picture_of_jpeg_xl_is_refused(folder):
    (folder / "x.jxl").write_bytes(imagecodecs.jpegxl_encode(np.zeros((3, 8, 8, 3), dtype=np.uint8), lossless=True))
    with pytest.raises(InputError, match="holds an animation"):
        media.read("x.jxl")
    # A header of 65536 x 65536 pixels: `small` 0, height in 18 bits, ratio 1:1.
    bits = "0" + "01" + format(65535, "018b")[::-1] + "100"
    (folder / "y.jxl").write_bytes(b"\xff\x0a" + int(bits[::-1], 2).to_bytes(4, "little") + bytes(90))
    with pytest.raises(
        InputError, match=r"65536x65536 pixels in a file of \d+ bytes, .*; up to 100 megapixels are read"
    ):
        media.read("y.jxl")


@pytest.mark.parametrize("name, depth", KINDS)
@pytest.mark.parametrize("keep", [0, 3, 0.3, 0.8])
def test_damaged_files_are_refused_in_one_line(folder, name, keep, depth, capfd):
    noisy = np.random.default_rng(0).integers(0, 256, (40, 50, 3)).astype(depth)
    media.write(media.Media(noisy, "RGB", "", ""), name)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(keep if keep > 1 else keep * len(content))])
    with pytest.raises(InputError, match=f"^{name}: ") as caught:
        media.read(name)
    assert "\n" not in str(caught.value) and capfd.readouterr().err == ""


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
    with pytest.raises(InputError, match=r"extension '.xyz' is not known; use one of .bmp, .exr, .j2c, .j2k, .jp2"):
        media.read("x.xyz")
    Image.new("L", (4, 4)).save("pages.tif", save_all=True, append_images=[Image.new("L", (4, 4))])
    with pytest.raises(InputError, match=r"holds 2 pages or frames; save the one .*magick 'pages\.tif\[0\]' page\.png"):
        media.read("pages.tif")


@pytest.mark.parametrize("size", [(20_000, 10_000), (12_000, 10_000)])
def test_huge_pictures_are_refused_before_they_are_decoded(folder, size):
    (folder / "x.png").write_bytes(_png(bits=1, colour=0, row=b"", size=size))
    with pytest.raises(InputError, match="100 megapixels"):
        media.read("x.png")


def test_formats_refuse_what_they_cannot_hold(folder):
    rgba = media.Media(smooth(5, 4, 4), "RGBA", "x.png", "")
    line = r"^y\.jpg: JPEG cannot hold mode RGBA with 8 bits; write to \.png or \.tif or \.webp or \.jxl or \.npy$"
    with pytest.raises(OutputError, match=line):
        media.write(rgba, "y.jpg")
    floats = media.Media(np.zeros((5, 4)), "array", "x.npy", "")
    with pytest.raises(OutputError, match=r"^y\.png: PNG cannot hold an array of float64; write to \.tif or \.npy$"):
        media.write(floats, "y.png")
    bytes_ = media.Media(smooth(5, 4), "array", "x.npy", "")  # PNG holds 8 bits, but of named channels
    line = r"^y\.png: PNG cannot hold an array, of which nothing says that it is grey, RGB or another mode; write to"
    with pytest.raises(OutputError, match=line):
        media.write(bytes_, "y.png")
    with pytest.raises(OutputError, match="no extension"):
        media.write(floats, "y")
    assert sorted(os.listdir()) == ["a.png", "m.png"]


def test_arrays_keep_type_and_bits(folder):
    values = np.linspace(-1e3, 8e3, 24, dtype=np.float32).reshape(2, 3, 4)
    np.save("x.npy", values)
    media.write(media.read("x.npy"), "y.npy")
    assert np.load("y.npy").dtype == np.float32 and np.array_equal(np.load("y.npy"), values)
    media.write_array(values[..., :3], "y.tif")
    assert np.array_equal(tifffile.imread("y.tif"), values[..., :3])


@pytest.mark.parametrize("values", [np.zeros(4), np.zeros((0, 3)), np.zeros((2, 2, 2, 2))])
def test_arrays_that_are_no_pictures_are_refused(folder, values):
    np.save("x.npy", values)
    with pytest.raises(InputError, match=r"^x.npy: array of"):
        media.read("x.npy")


@pytest.mark.parametrize("dtype", [int, bool, complex, np.float16, np.uint64])
def test_arrays_of_other_types_are_refused(folder, dtype):
    np.save("x.npy", np.zeros((2, 3), dtype=dtype))
    taken = "only integers of 8, 16 and 32 bits, float32 and float64 are taken"
    with pytest.raises(InputError, match=f"^x.npy: values of {np.dtype(dtype)}; {taken}"):
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
    with pytest.raises(OutputError, match=r"y\.png: exists already; give `overwrite` to replace it"):
        write_bytes("y.png", b"second")
    assert (folder / "y.png").read_text() == "first"
    write_bytes("y.png", b"third", replace=True)
    assert (folder / "y.png").read_text() == "third"
    assert sorted(os.listdir()) == ["a.png", "m.png", "y.png"]


def test_pipes_are_refused_before_they_are_waited_for(folder):
    os.mkfifo("x.png")
    with pytest.raises(InputError, match=r"x\.png: not a regular file; give - as the input and pipe the data in"):
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
    levels, alpha = masks.read_mask(name)
    assert levels.shape == (6, 8)
    assert np.array_equal(levels > levels.max() / 2, hole)
    assert (alpha is not None) == (mode in ("RGBA", "LA"))


def test_a_mask_that_is_no_picture(folder):
    with pytest.raises(MaskError, match=r"mask none.png: no such file"):
        masks.read_mask("none.png")
    (folder / "x.png").write_text("no picture")
    with pytest.raises(MaskError, match=r"mask x.png: not a picture"):
        masks.read_mask("x.png")


def test_a_field_is_an_option_on_the_command_line_and_a_keyword_in_python(tdc):
    Image.fromarray(np.full((20, 24), 90, dtype=np.uint8)).save("dark.png")
    result = tdc("complete-image", "a.png", "-o", "b.png", "--mask", "dark.png")
    assert result.exit_code == 2 and result.stderr.endswith(
        "white = missing; give a lower --mask-threshold or repaint the mask\n"
    )
    with pytest.raises(OutputError, match="give `overwrite` to replace it"):
        media.write(media.read("a.png"), "a.png")


def test_reading_a_picture_loads_no_video_library(folder):
    code = (
        "import sys; from tdc_cli import media; from tdc_cli.media.masks import read_mask; media.read('a.png'); "
        "read_mask('m.png');print(*sorted(m for m in sys.modules if m == 'av' or 'video' in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("\n", 0), done.stderr


def test_the_command_line_names_all_formats():
    assert [media.EXTENSIONS[f".{name}"].extensions[0] for name in FORMATS] == [
        f.extensions[0] for f in media.FORMATS.values()
    ]


def test_media_is_a_value(folder):
    read = media.read("a.png")
    assert replace(read, path="other").sha256 == read.sha256
