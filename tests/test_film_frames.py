"""Frames of film scans: OpenEXR with values beyond 0 and 1, JPEG 2000 with 8 to 16 bits, alone and in folders."""

import io
import struct
from pathlib import Path

import imagecodecs
import numpy as np
import plain_codecs
import pytest
import tifffile
from conftest import smooth
from PIL import Image

from tdc_cli.media import formats

QUICK = ("--mask", "m.png", "--method", "linear")
KNOWN = np.ones((20, 24), dtype=bool)
KNOWN[5:9, 10:14] = False
TIME = struct.Struct("<2I")


def scene(frame=0, dtype=np.float16):
    """(20, 24, 3) light of a scene: mostly within 0 and 1, a lamp far above, noise below 0."""
    values = smooth(20, 24).astype(float) / 255 - 0.2 + 0.01 * frame
    values[0, :4] = np.array([60000, 1234.5, -3.25, 1e-7])[:, None]
    return values.astype(dtype)


def planes(values):
    return dict(zip("RGB", np.moveaxis(values, 2, 0)))


def exr_of(path):
    library = pytest.importorskip("OpenEXR")
    with library.File(str(path), separate_channels=True) as file:
        return dict(file.header()), {name: channel.pixels.copy() for name, channel in file.channels().items()}


def jp2(values, bits=None, **more):
    stream = imagecodecs.jpeg2k_encode(values, level=0, codecformat="j2k", reversible=True, bitspersample=bits)
    return plain_codecs.jp2(stream, values, bits, **more)


def refused(tdc, name, content):
    """What the one line says of a file that is refused, with nothing written."""
    Path(name).write_bytes(content)
    result = tdc("complete-image", name, "-o", "b.tif", *QUICK)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and not Path("b.tif").exists(), result.stderr
    assert result.stdout == ""
    return result.stderr.partition(f"{name}: ")[2].strip()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_light_beyond_0_and_1_stays_bit_for_bit(tdc, dtype):
    given = scene(dtype=dtype)
    depth = np.linspace(1, 9, 480, dtype=np.float32).reshape(20, 24)
    depth[3, 3], depth[4, 4] = np.nan, np.inf
    number = np.arange(480, dtype=np.uint32).reshape(20, 24) + 4_000_000_000
    Path("a.exr").write_bytes(
        plain_codecs.exr(
            planes(given) | {"Z": depth, "id": number},
            [("timeCode", "timecode", TIME.pack(0x01020304, 5)), ("lens", "string", b"50 mm")],
            corner=(4, -5),
            shown=(0, 0, 39, 29),
        )
    )
    result = tdc("complete-image", "a.exr", "-o", "b.exr", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "a.exr: holds 24x20 pixels from 4,-5 on of the 40x30 that are shown" in result.stderr
    (before, given_channels), (after, found) = exr_of("a.exr"), exr_of("b.exr")
    assert str(before) == str(after)
    for name, channel in given_channels.items():
        assert found[name].dtype == channel.dtype
        same = KNOWN if name in "RGB" else np.ones_like(KNOWN)
        assert found[name][same].tobytes() == channel[same].tobytes()
    assert all(np.isfinite(found[name]).all() for name in "RGB")
    told = tdc("complete-image", "a.exr", "-o", "b.tif", *QUICK).stderr
    lost = "attribute timeCode, attribute lens, display window, channel Z, channel id"
    assert set(lost.split(", ")) <= set(told.partition("without ")[2].partition(";")[0].split(", "))
    assert "; write to .exr to keep it" in told


def test_what_is_filled_in_fits_into_halfs(tdc):
    given = np.full((20, 24, 3), 65000, dtype=np.float16)
    given[4:10, 9:15] = 65504
    given[:, 0] = 1
    Path("a.exr").write_bytes(plain_codecs.exr(planes(given)))
    assert tdc("complete-image", "a.exr", "-o", "b.exr", "--mask", "m.png", "--method", "biharmonic").exit_code == 0
    found = exr_of("b.exr")[1]
    assert all(np.isfinite(found[name]).all() and found[name].dtype == np.float16 for name in "RGB")


def test_compression_and_tiles_of_openexr(tdc):
    library = pytest.importorskip("OpenEXR")
    ways = [("PIZ", "PIZ"), ("ZIPS", "ZIPS"), ("NO", "NO"), ("DWAA", "ZIP"), ("B44", "ZIP")]
    for way, written in ways:
        header = {"compression": getattr(library, f"{way}_COMPRESSION"), "type": library.scanlineimage}
        with library.File(header, {c: p.copy() for c, p in planes(scene()).items()}) as file:
            file.write("a.exr")
        assert tdc("complete-image", "a.exr", "-o", "b.exr", "--overwrite", *QUICK).exit_code == 0
        (_, given), (header, found) = exr_of("a.exr"), exr_of("b.exr")
        assert header["compression"] == getattr(library, f"{written}_COMPRESSION")
        assert all(np.array_equal(found[c][KNOWN], given[c][KNOWN]) for c in "RGB")
    tiles = library.TileDescription()
    tiles.xSize, tiles.ySize = 8, 16
    with library.File({"type": library.tiledimage, "tiles": tiles}, {"Y": scene()[..., 0].copy()}) as file:
        file.write("a.exr")
    assert tdc("complete-image", "a.exr", "-o", "b.exr", "--overwrite", *QUICK).exit_code == 0
    header, found = exr_of("b.exr")
    assert header["type"] == library.tiledimage and (header["tiles"].xSize, header["tiles"].ySize) == (8, 16)
    assert np.array_equal(found["Y"][KNOWN], scene()[..., 0][KNOWN])


def test_nan_in_openexr_is_missing_and_one_channel_is_grey(tdc):
    pytest.importorskip("OpenEXR")
    depth = scene(dtype=np.float32)[..., 0]
    depth[5:9, 10:14] = np.nan
    Path("a.exr").write_bytes(plain_codecs.exr({"Z": depth}))
    result = tdc("complete-image", "a.exr", "-o", "b.exr", "--method", "linear")
    assert result.exit_code == 0 and "16 of 480 pixels missing" in result.stdout
    found = exr_of("b.exr")[1]["Z"]
    assert np.array_equal(found[KNOWN], depth[KNOWN]) and np.isfinite(found).all()


def test_reduced_copies_of_openexr_are_told(tdc):
    Path("a.exr").write_bytes(plain_codecs.exr(planes(scene()), copies=True))
    result = tdc("complete-image", "a.exr", "-o", "b.exr", *QUICK)
    assert (result.exit_code, result.stderr) == (0, "tdc: note: a.exr: is read without its reduced copies\n")
    found = exr_of("b.exr")[1]
    assert all(np.array_equal(found[c][KNOWN], plane[KNOWN]) for c, plane in planes(scene()).items())


def test_what_openexr_can_hold_beside_that_is_refused(tdc):
    library = pytest.importorskip("OpenEXR")
    for kind, more in (("scanlineimage", {}), ("tiledimage", {"tiles": library.TileDescription()})):
        made, header = io.BytesIO(), {"type": getattr(library, kind)} | more
        library.File([library.Part(dict(header), {"Y": scene()[..., 0].copy()}, name) for name in "ab"]).write(made)
        assert refused(tdc, "a.exr", made.getvalue()) == (
            "holds several parts; save the one to complete as a file of its own: oiiotool 'a.exr' --subimage 0 -o "
            "part.exr"
        )
    plain = plain_codecs.exr(planes(scene()))
    deep = plain[:4] + struct.pack("<I", 2 | 0x800) + plain[8:]
    assert refused(tdc, "a.exr", deep) == (
        "holds several depths a pixel; flatten it: oiiotool 'a.exr' --flatten -o flat.exr"
    )
    normals = plain_codecs.exr({f"N.{c}": scene()[..., 0] for c in "XYZ"})
    assert refused(tdc, "a.exr", normals) == (
        "has the channels N.X,N.Y,N.Z, and neither R, G and B nor Y alone; save those to complete as TIFF: oiiotool "
        "'a.exr' --ch N.X,N.Y,N.Z -o 'a.exr.tif'"
    )
    whole = plain_codecs.exr({"id": np.zeros((20, 24), np.uint32)})
    assert refused(tdc, "a.exr", whole) == "its channel id holds whole numbers; save it as TIFF or a .npy array"
    halved = plain.replace(b"B\0" + struct.pack("<4i", 1, 0, 1, 1), b"B\0" + struct.pack("<4i", 1, 0, 2, 2))
    assert refused(tdc, "a.exr", halved) == (
        "its channel B has fewer pixels than the picture; convert it: oiiotool 'a.exr' -o 'a.exr.tif'"
    )
    for end in (6, 60, len(plain) - 900, len(plain) - 1):
        assert refused(tdc, "a.exr", plain[:end]).startswith("damaged or cut short")


def test_openexr_without_its_library_names_what_to_install(tdc, monkeypatch):
    monkeypatch.setattr(formats, "find_spec", lambda name: None)
    needs = "OpenEXR needs OpenEXR, which is not installed; try pip install 'tdc-cli[exr]'"
    assert refused(tdc, "a.exr", plain_codecs.exr(planes(scene()))) == needs
    Path("a.exr").rename("a.bin")
    piped = tdc("complete-image", "-", "-o", "b.tif", *QUICK, input=Path("a.bin").read_bytes())
    assert (piped.exit_code, piped.stderr) == (2, f"tdc: -: {needs}\n")
    out = tdc("complete-image", "a.png", "-o", "b.exr", *QUICK)
    assert (out.exit_code, out.stderr) == (2, f"tdc: b.exr: {needs}\n")
    Path("scan").mkdir()
    Path("scan/0001.exr").write_bytes(b"v/1\1")
    clip = tdc("complete-video", "scan", "-o", "b", *QUICK)
    assert (clip.exit_code, clip.stderr) == (2, f"tdc: scan/0001.exr: {needs}\n")


def test_a_folder_of_openexr_frames_keeps_values_and_timecodes(tdc):
    pytest.importorskip("OpenEXR")
    Path("scan").mkdir()
    for k in range(3):
        told = [("timeCode", "timecode", TIME.pack(0x01000000 + k, 0))]
        Path(f"scan/r1.{k:04}.exr").write_bytes(plain_codecs.exr(planes(scene(k)), told))
    result = tdc("complete-video", "scan", "-o", "mended", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert sorted(p.name for p in Path("mended").glob("*.exr")) == [f"r1.{k:04}.exr" for k in range(3)]
    for k in range(3):
        (before, given), (after, found) = exr_of(f"scan/r1.{k:04}.exr"), exr_of(f"mended/r1.{k:04}.exr")
        assert str(before) == str(after)
        assert all(found[c].dtype == np.float16 and np.array_equal(found[c][KNOWN], given[c][KNOWN]) for c in "RGB")


@pytest.mark.parametrize(("bits", "extension"), [(8, "jp2"), (10, "jp2"), (12, "j2k"), (16, "jpx")])
def test_a_folder_of_jpeg_2000_frames_keeps_every_level(tdc, bits, extension):
    rng = np.random.default_rng(bits)
    Path("scan").mkdir()
    given = []
    for k in range(2):
        levels = rng.integers(0, 1 << bits, (20, 24, 3)).astype(np.uint8 if bits == 8 else np.uint16)
        content = jp2(levels, bits)
        stream = content[content.index(b"\xff\x4f\xff\x51") :]
        Path(f"scan/{k:03}.{extension}").write_bytes(stream if extension == "j2k" else content)
        given.append(levels)
    result = tdc("complete-video", "scan", "-o", "mended", *QUICK)
    assert result.exit_code == 0, result.stderr
    for k, levels in enumerate(given):
        content = Path(f"mended/{k:03}.{extension}").read_bytes()
        found = imagecodecs.jpeg2k_decode(content)
        assert content[content.index(b"\xff\x51") + 40] == bits - 1
        assert np.array_equal(found[KNOWN], levels[KNOWN]) and not np.array_equal(found, levels)
        assert content.startswith(b"\xff\x4f") == (extension == "j2k")


def test_frames_of_jpeg_2000_with_12_bits_become_a_film_of_12_bits(tdc):
    levels = np.random.default_rng(0).integers(0, 4096, (2, 20, 24, 3)).astype(np.uint16)
    Path("scan").mkdir()
    for k in range(2):
        Path(f"scan/{k}.jp2").write_bytes(jp2(levels[k], 12))
    assert tdc("complete-video", "scan", "-o", "b.mkv", "--codec", "ffv1", "--frame-rate", "24", *QUICK).exit_code == 0
    assert tdc("complete-video", "b.mkv", "-o", "again", "--mask-box", "10,5,4,4", "--method", "linear").exit_code == 0
    for k in range(2):
        wide = imagecodecs.png_decode(Path(f"again/frame_{k:04}.png").read_bytes())
        assert np.array_equal(np.rint(wide[KNOWN] * (4095 / 65535)), levels[k][KNOWN])


def test_a_palette_in_jpeg_2000_becomes_its_colours(tdc):
    index = np.random.default_rng(0).integers(0, 4, (20, 24)).astype(np.uint8)
    colours = np.array([[0, 0, 0], [255, 255, 255], [9, 80, 200], [200, 30, 7]], dtype=np.uint8)
    palette = plain_codecs.box(b"pclr", struct.pack(">HB3B", 4, 3, 7, 7, 7) + colours.tobytes())
    palette += plain_codecs.box(b"cmap", b"".join(struct.pack(">HBB", 0, 1, k) for k in range(3)))
    content = jp2(index, header=palette).replace(struct.pack(">3BI", 1, 0, 0, 17), struct.pack(">3BI", 1, 0, 0, 16))
    turned = content.replace(struct.pack(">6B", 0, 0, 1, 0, 0, 0), struct.pack(">6B", 0, 0, 1, 2, 0, 0), 1)
    for other in (content.replace(b"cmap", b"free"), turned):
        assert other != content
        assert refused(tdc, "a.jp2", other).startswith("has an unusual palette; convert it")
    Path("a.jp2").write_bytes(content)
    result = tdc("complete-image", "a.jp2", "-o", "b.png", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "a.jp2: has a palette; it is completed and written as RGB" in result.stderr
    assert np.array_equal(np.asarray(Image.open("b.png"))[KNOWN], colours[index][KNOWN])


def test_channels_of_jpeg_2000_are_the_colours_that_the_file_says(tdc, monkeypatch):
    def described(*colours):
        entries = b"".join(struct.pack(">3H", channel, 0, colour) for channel, colour in enumerate(colours))
        return jp2(smooth(20, 24), header=plain_codecs.box(b"cdef", struct.pack(">H", 3) + entries))

    Path("a.jp2").write_bytes(described(3, 2, 1))
    assert tdc("complete-image", "a.jp2", "-o", "b.jp2", *QUICK).exit_code == 0
    found = imagecodecs.jpeg2k_decode(Path("b.jp2").read_bytes())
    assert np.array_equal(found[KNOWN], smooth(20, 24)[..., ::-1][KNOWN])
    monkeypatch.setattr(imagecodecs, "jpeg2k_decode", None)  # nothing is decoded before
    assert refused(tdc, "a.jp2", described(1, 1, 1)).startswith("says of its channels no order that is one; convert it")


def test_a_header_of_jpeg_2000_that_tells_another_size_is_told(tdc):
    Path("a.jp2").write_bytes(jp2(smooth(20, 24)).replace(struct.pack(">2I", 20, 24), struct.pack(">2I", 24, 30), 1))
    result = tdc("complete-image", "a.jp2", "-o", "b.jp2", *QUICK)
    note = "tdc: note: a.jp2: its header tells 30x24 pixels, its picture has 24x20\n"
    assert (result.exit_code, result.stderr) == (0, note)
    assert np.array_equal(imagecodecs.jpeg2k_decode(Path("b.jp2").read_bytes())[KNOWN], smooth(20, 24)[KNOWN])


def test_an_orientation_in_the_exif_of_jpeg_2000_is_applied(tdc):
    exif = Image.Exif()
    exif[274], exif[270] = 6, "a shot"
    Path("a.jp2").write_bytes(jp2(smooth(24, 20), exif=exif.tobytes()))
    assert tdc("complete-image", "a.jp2", "-o", "b.jp2", *QUICK).exit_code == 0
    found = imagecodecs.jpeg2k_decode(Path("b.jp2").read_bytes())
    assert np.array_equal(found[KNOWN], np.rot90(smooth(24, 20), -1)[KNOWN])


def test_what_jpeg_2000_can_hold_beside_that_is_refused(tdc):
    way = "convert it to TIFF, which keeps its depth: gdal_translate 'a.jp2' 'a.jp2.tif'"
    rgb = jp2(smooth(20, 24))
    enumerated = struct.pack(">3BI", 1, 0, 0, 16)
    assert refused(tdc, "a.jp2", rgb.replace(enumerated, struct.pack(">3BI", 1, 0, 0, 18))) == (
        f"its colours are neither grey nor red, green and blue; {way}"
    )
    unnamed = jp2(smooth(20, 24, 4)).replace(b"cdef", b"free")
    assert refused(tdc, "a.jp2", unnamed) == (f"has 4 channels, not all of them colours or alpha; {way}")
    deep = imagecodecs.jpeg2k_encode(
        np.arange(480, dtype=np.uint32).reshape(20, 24), level=0, codecformat="j2k", reversible=True, bitspersample=20
    )
    assert refused(tdc, "a.j2k", deep).startswith("has 20 bits a channel without sign; convert it to TIFF")
    stream = rgb[rgb.index(b"jp2c") - 4 :]
    assert refused(tdc, "a.jp2", rgb + stream) == ("holds 2 pictures; save the one to complete as a file of its own")
    mixed = bytearray(rgb)
    mixed[rgb.index(b"\xff\x51") + 43] = 9
    assert refused(tdc, "a.jp2", bytes(mixed)) == f"its channels differ in size or depth; {way}"
    for end in (50, 90, len(rgb) - 200, len(rgb) - 1):
        assert refused(tdc, "a.jp2", rgb[:end]).startswith("damaged or cut short")
    bare = rgb[rgb.index(b"\xff\x4f\xff\x51") :]
    for end in (30, 60, len(bare) - 1):
        assert refused(tdc, "a.j2k", bare[:end]).startswith("damaged or cut short")


def test_a_resolution_next_to_nothing_is_written(tdc, folder):
    tifffile.imwrite("a.tif", smooth(20, 24), photometric="rgb", resolution=((1, 100000), (1, 100000)))
    result = tdc("complete-image", "a.tif", "-o", "b.jp2", "--mask", "m.png", "--method", "nearest")
    assert result.exit_code == 0, result.stderr
