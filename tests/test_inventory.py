"""What a picture file holds beside the pixels: every item of its standard is kept, mended, or named where it is left
out.
"""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import plain_codecs
import pytest
from conftest import smooth
from PIL import Image, PngImagePlugin

from tdc_cli import media

QUICK = ["--mask", "m.png", "--method", "biharmonic"]
RESOURCE = b"8BIM" + struct.pack(">HHL", 1028, 0, 9) + b"\x1c\x02\x78\x00\x04word" + b"\0"
THUMBNAIL = b"8BIM" + struct.pack(">HHL", 1036, 0, 4) + b"tiny"
XMP = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description
 xmlns:hdrgm='http://ns.adobe.com/hdr-gain-map/1.0/' hdrgm:Version="1.0"
 xmlns:C="http://ns.google.com/photos/1.0/container/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:CreatorTool="own">
<C:Directory><C:Item a:Semantic="GainMap"/></C:Directory>
<xmp:Thumbnails><image>AAAA</image></xmp:Thumbnails></rdf:Description>"""
# Chunk of a PNG -> what becomes of it: kept, or the words that tell of it.
CHUNKS = {
    b"gAMA": (struct.pack(">I", 45455), "kept"),
    b"cHRM": (struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000), "kept"),
    b"sRGB": (b"\0", "kept"),
    b"cICP": (bytes([9, 16, 0, 1]), "kept"),
    b"mDCV": (bytes(24), "kept"),
    b"cLLI": (bytes(8), "kept"),
    b"sBIT": (bytes([8, 8, 8]), "kept"),
    b"bKGD": (bytes([0, 9, 0, 9, 0, 9]), "kept"),
    b"sPLT": (b"p\0\x08" + bytes([1, 2, 3, 4, 0, 5]), "kept"),
    b"sCAL": (b"\x011\x001", "kept"),
    b"pCAL": (b"c\0" + bytes(8) + b"\0\2m\x000\x001", "kept"),
    b"sTER": (b"\0", "kept"),
    b"oFFs": (struct.pack(">iiB", 3, 4, 0), "kept"),
    b"abCd": (b"safe to copy", "kept"),
    b"abCD": (b"not safe to copy", "chunk abCD"),
    b"tIME": (struct.pack(">H5B", 2020, 1, 2, 3, 4, 5), "time of the last change"),
    b"caBX": (b"signed", "content credentials"),
}


def complete(tdc, source, target):
    """Standard error of a run that completes `source` into `target`."""
    result = tdc("complete-image", source, "-o", target, *QUICK)
    assert result.exit_code == 0, result.stderr
    return result.stderr


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("name", CHUNKS, ids=lambda name: name.decode())
def test_each_chunk_of_a_png_is_kept_or_told(tdc, name, dtype):
    content, fate = CHUNKS[name]
    Path("x.png").write_bytes(plain_codecs.png(smooth(20, 24).astype(dtype), ((name, content),)))
    told = complete(tdc, "x.png", "y.png")
    held = plain_codecs.png_chunks(Path("y.png").read_bytes())
    if fate == "kept":
        assert held[name] == content and told == ""
        assert "cannot hold all that the input has: without" in complete(tdc, "x.png", "y.jxl")
    else:
        assert name not in held and told == f"tdc: note: x.png: is read without its {fate}\n"


def test_of_a_palette_histogram_and_background_mean_nothing_afterwards(tdc):
    picture = Image.fromarray(smooth(20, 24)).quantize(8)
    more = PngImagePlugin.PngInfo()
    more.add(b"bKGD", b"\1")
    more.add(b"hIST", bytes(16))
    picture.save("x.png", pnginfo=more)
    assert "x.png: is read without its background colour, histogram\n" in complete(tdc, "x.png", "y.png")


def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg(*segments, behind=b""):
    buffer = io.BytesIO()
    Image.fromarray(smooth(20, 24)).save(buffer, "JPEG", quality=95)
    content = buffer.getvalue()
    return content[:2] + b"".join(segments) + content[2:] + behind


@pytest.mark.parametrize("marker, data, fate", [
    (0xE0, b"JFXX\0\x10small", "thumbnail"),
    (0xE1, b"http://ns.adobe.com/xmp/extension/\0" + bytes(40), "extended XMP"),
    (0xE2, b"FPXR\0\1", "FlashPix data"),
    (0xEB, b"JP\0\1", "content credentials"),
    (0xE4, b"mine", "segment APP4"),
    (0xED, b"something else", "segment APP13"),
    (0xED, b"Photoshop 3.0\x008BIMdamaged", "Photoshop resources"),
])  # fmt: skip
def test_segments_of_a_jpeg_that_are_not_kept_are_told(tdc, marker, data, fate):
    Path("x.jpg").write_bytes(jpeg(segment(marker, data)))
    assert f"tdc: note: x.jpg: is read without its {fate}\n" in complete(tdc, "x.jpg", "y.jpg")


@pytest.mark.parametrize("target", ["y.jpg", "y.tif"])
def test_iptc_and_resources_go_from_jpeg_to_tiff_and_back(tdc, target):
    Path("x.jpg").write_bytes(jpeg(segment(0xED, b"Photoshop 3.0\0" + RESOURCE + THUMBNAIL)))
    assert "is read without" not in complete(tdc, "x.jpg", target)
    assert media.read(target).metadata["photoshop"] == RESOURCE
    complete(tdc, target, "z.jpg")
    assert segment(0xED, b"Photoshop 3.0\0" + RESOURCE) in Path("z.jpg").read_bytes()
    assert "without Photoshop resources with their IPTC; write to .tif to keep it" in complete(tdc, "x.jpg", "y.png")


def test_resources_longer_than_a_segment_are_divided(tdc):
    rest = b"8BIM" + struct.pack(">HHL", 1060, 0, 150_000) + np.random.default_rng(0).bytes(150_000)
    read = media.Media(smooth(20, 24), "RGB", "", "", {"photoshop": rest, "iptc": RESOURCE[12:21]}, "TIFF")
    media.write(read, "y.jpg")
    assert media.read("y.jpg").metadata["photoshop"] == rest + RESOURCE
    assert np.abs(media.read("y.jpg").values.astype(int) - smooth(20, 24)).mean() < 4


@pytest.mark.parametrize("target", ["y.jpg", "y.png", "y.tif", "y.webp"])
def test_a_gain_map_is_told_and_no_longer_announced(tdc, target):
    behind = jpeg()
    Path("x.jpg").write_bytes(jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP), behind=behind))
    assert "x.jpg: is read without its gain map\n" in complete(tdc, "x.jpg", target)
    xmp = media.read(target).metadata["xmp"]
    assert b"CreatorTool" in xmp
    assert not any(word in xmp for word in (b"hdrgm:Version", b"Thumbnails", b"GainMap", b"Directory"))


def test_what_stands_behind_a_picture_is_told(tdc):
    Path("x.jpg").write_bytes(jpeg(behind=b"a film"))
    assert "x.jpg: is read without its data behind the picture\n" in complete(tdc, "x.jpg", "y.jpg")
    frames = [Image.fromarray(np.roll(smooth(20, 24), 4 * k, axis=1)) for k in range(2)]
    frames[0].save("z.jpg", "MPO", save_all=True, append_images=frames[1:])
    assert "z.jpg: is read without its further pictures\n" in complete(tdc, "z.jpg", "y2.jpg")


def test_chunks_of_a_webp_are_told(tdc):
    Image.fromarray(smooth(20, 24)).save(
        "x.webp", lossless=True, exif=Image.Exif().tobytes() + b"", icc_profile=b"profile"
    )
    content = Path("x.webp").read_bytes() + b"abcd" + struct.pack("<I", 3) + b"xyz\0"
    Path("x.webp").write_bytes(content[:4] + struct.pack("<I", len(content) - 8) + content[8:])
    assert "x.webp: is read without its chunk abcd\n" in complete(tdc, "x.webp", "y.webp")


def test_advice_names_only_formats_that_take_the_picture(tdc):
    Image.new("CMYK", (24, 20), (10, 20, 30, 40)).save("x.jpg")
    assert "write to .tif to keep them bit for bit" in complete(tdc, "x.jpg", "y.jpg")
    assert tdc("complete-image", "x.jpg", "-o", "y.tif", *QUICK).exit_code == 0
    chunks = ((b"gAMA", struct.pack(">I", 45455)), (b"iCCP", b"p\0\0" + zlib.compress(b"x")))
    Path("z.png").write_bytes(plain_codecs.png(smooth(20, 24), chunks))
    assert complete(tdc, "z.png", "z.webp").endswith("without gamma; write to .png to keep it\n")
