"""EXIF keeps its bytes: only orientation, size, thumbnail and a resolution that has no other place are changed."""

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
from test_inventory import jpeg, segment

NOTE, COMMENT, SMALL = b"Maker\0\0see offset 38", b"ASCII\0\0\0by hand", b"\xff\xd8 a tiny picture \xff\xd9"
UNDEFINED, LONG, SHORT, TEXT = 7, 4, 3, 2
CAMERA, WIDTH, HEIGHT = 0x8769, 0xA002, 0xA003


def block(turn=6, width=24, height=20):
    """EXIF as cameras write it, in big-endian order: two directories, one of the camera within the first, a thumbnail
    in the second, its data last.
    """

    def entry(code, kind, count, value):
        return struct.pack(">HHL", code, kind, count) + struct.pack(">HH" if kind == SHORT else ">L", *value)

    def directory(*entries, following=0):
        return struct.pack(">H", len(entries)) + b"".join(entries) + struct.pack(">L", following)

    camera = 8 + 2 + 4 * 12 + 4
    behind = camera + 2 + 4 * 12 + 4
    second = behind + len(NOTE) + len(COMMENT) + 1
    small = second + 2 + 2 * 12 + 4
    made = b"MM\0*\0\0\0\x08" + directory(
        entry(271, TEXT, 4, (int.from_bytes(b"Abc\0", "big"),)), entry(274, SHORT, 1, (turn, 0)),
        entry(CAMERA, LONG, 1, (camera,)), entry(0x9C9B, 1, 4, (0x41004200,)), following=second,
    )  # fmt: skip
    made += directory(
        entry(0x927C, UNDEFINED, len(NOTE), (behind,)),
        entry(0x9286, UNDEFINED, len(COMMENT), (behind + len(NOTE),)),
        entry(WIDTH, SHORT, 1, (width, 0)), entry(HEIGHT, LONG, 1, (height,)),
    ) + NOTE + COMMENT + b"\0"  # fmt: skip
    made += directory(entry(513, LONG, 1, (small,)), entry(514, LONG, 1, (len(SMALL),)))
    return made + SMALL


def write(name, exif):
    buffer = io.BytesIO()
    kind = Path(name).suffix
    if kind == ".jpg":
        buffer.write(jpeg(segment(0xE1, b"Exif\0\0" + exif)))
    elif kind == ".png":
        buffer.write(plain_codecs.png(smooth(20, 24), ((b"eXIf", exif),)))
    elif kind == ".webp":
        Image.fromarray(smooth(20, 24)).save(buffer, "WebP", lossless=True, exif=exif)
    elif kind == ".jp2":
        stream = imagecodecs.jpeg2k_encode(smooth(20, 24), level=0, codecformat="j2k", reversible=True)
        buffer.write(plain_codecs.jp2(stream, smooth(20, 24), exif=exif))
    else:
        buffer.write(imagecodecs.jpegxl_encode(smooth(20, 24), lossless=True, usecontainer=True))
        buffer.write(plain_codecs.box(b"Exif", bytes(4) + exif))
    Path(name).write_bytes(buffer.getvalue())


def completed(tdc, name, output):
    """Bytes of the completed file, of its EXIF if it is a block, and what was told."""
    result = tdc("complete-image", name, "-o", output, "--mask-box", "3,3,4,4", "--method", "linear", "--overwrite")
    assert result.exit_code == 0, result.stderr
    content = Path(output).read_bytes()
    return content[max(content.find(b"MM\0*"), 0) :], result.stderr


@pytest.mark.parametrize("target", ["jpg", "png", "webp", "jxl", "jp2"])
@pytest.mark.parametrize("source", ["jpg", "png", "webp", "jxl", "jp2"])
def test_notes_of_makers_and_types_stay_where_they_are(tdc, source, target):
    given = block()
    write(f"a.{source}", given)
    found, told = completed(tdc, f"a.{source}", f"b.{target}")
    assert "EXIF" not in told
    # The first directory without its orientation and what follows it; the sides in the place of each other.
    turned = 1 if source == "jxl" else 6  # JPEG XL turns its pixels by its own header, and not by EXIF
    kept = given
    sides = kept.index(struct.pack(">HH", WIDTH, SHORT))
    first, second = (kept[at + 2 : at + 12] for at in (sides, sides + 12))
    if turned > 4:
        kept = kept[: sides + 2] + second + kept[sides + 12 : sides + 14] + first + kept[sides + 24 :]
    entries = kept[10:22] + kept[34:58]
    expected = kept[:8] + b"\0\3" + entries + bytes(16) + kept[62 : kept.index(SMALL)]
    assert found.startswith(expected) and SMALL[:8] not in found


def test_a_resolution_without_another_place_is_noted_behind_all_else(tdc):
    given = block(turn=1)
    head = b"JFIF\0\1\1\1" + struct.pack(">HH", 300, 150) + b"\0\0"
    Path("a.jpg").write_bytes(jpeg(segment(0xE1, b"Exif\0\0" + given)).replace(b"JFIF\0\1\1\0\0\1\0\1\0\0", head))
    found, _ = completed(tdc, "a.jpg", "b.webp")
    place = given.index(NOTE)
    assert found[place : place + len(NOTE + COMMENT)] == NOTE + COMMENT
    noted = Image.open("b.webp").getexif()
    assert (noted[282], noted[283], noted[296], noted[271]) == (300, 150, 2, "Abc")
    assert noted.get_ifd(CAMERA)[0x927C] == NOTE and SMALL not in found
    again, _ = completed(tdc, "b.webp", "c.webp")
    assert again[: len(found)] == found  # what says it already is left alone


def test_a_tiff_gets_every_tag_of_it_in_its_own_type(tdc):
    write("a.jpg", block())
    completed(tdc, "a.jpg", "b.tif")
    found, _ = completed(tdc, "b.tif", "c.jpg")
    noted = Image.open("c.jpg").getexif()
    camera = noted.get_ifd(CAMERA)
    assert noted[271] == "Abc" and plain_codecs.tiff_tags(Path("b.tif").read_bytes())[0x9C9B] == b"A\0B\0"
    assert (camera[0x927C], camera[0x9286], camera[WIDTH], camera[HEIGHT]) == (NOTE, COMMENT, 20, 24)
    assert struct.pack("<HHL", 0x9286, UNDEFINED, len(COMMENT)) in found


def test_sides_of_a_tiff_that_was_turned_change_places(tdc):
    write("a.jpg", block(turn=1))
    completed(tdc, "a.jpg", "b.tif")
    with tifffile.TiffFile("b.tif") as file:
        camera, place = file.pages[0].tags[CAMERA].value, file.pages[0].tags[278].offset
    assert camera["PixelXDimension"] == 24
    content = bytearray(Path("b.tif").read_bytes())
    content[place : place + 12] = struct.pack("<HHLL", 274, SHORT, 1, 6)  # for the rows of a strip: there is but one
    Path("c.tif").write_bytes(content)
    completed(tdc, "c.tif", "d.tif")
    with tifffile.TiffFile("d.tif") as file:
        camera = file.pages[0].tags[CAMERA].value
        assert file.asarray().shape == (24, 20, 3)
    assert (camera["PixelXDimension"], camera["PixelYDimension"]) == (20, 24)


@pytest.mark.parametrize("cut", [0, 6, 9, 30])
@pytest.mark.parametrize("source", ["jpg", "jxl", "jp2"])
def test_damaged_exif_is_told(tdc, source, cut):
    write(f"a.{source}", block(turn=1)[:cut] or b"?")
    result = tdc("complete-image", f"a.{source}", "-o", "b.png", "--mask", "m.png", "--method", "linear")
    assert result.exit_code == 0 and f"a.{source}: is read without its EXIF, which is damaged" in result.stderr
    assert np.asarray(Image.open("b.png")).shape == (20, 24, 3)


@pytest.mark.parametrize("exif", [b"?", b"MM\0*", b"XX*\0" + bytes(20)])
@pytest.mark.parametrize("source", ["jpg", "png", "webp"])
def test_exif_that_no_reader_opens_is_told_too(tdc, folder, source, exif):
    write(f"a.{source}", exif)
    _, said = completed(tdc, f"a.{source}", "b.png")
    assert f"a.{source}: is read without its EXIF, which is damaged" in said


def small(*entries, behind=b""):
    """A block of one directory of (code, kind, count, value), in little-endian order."""
    made = b"II*\0" + struct.pack("<LH", 8, len(entries)) + b"".join(struct.pack("<HHLL", *e) for e in entries)
    return made + bytes(4) + behind


def test_entries_that_stand_twice_are_damage(tdc, folder):
    write("a.jpg", small((271, TEXT, 2, 65), (271, TEXT, 2, 66), (315, TEXT, 2, 67)))
    made, said = completed(tdc, "a.jpg", "b.png")
    assert "is read without its EXIF, which is damaged" in said and b"eXIf" not in made


@pytest.mark.parametrize("target", ["tif", "jxl"])
def test_directories_that_lead_to_themselves_end(tdc, folder, target):
    write("a.png", small(*[(code, LONG, 1, 8) for code in (0x8769, 0x8825) * 500]))
    _, said = completed(tdc, "a.png", f"b.{target}")
    assert "is read without its EXIF, which is damaged" in said
