"""What becomes of every item of a picture file in every format: kept, mended, told or refused. Run as a program, it
measures the table of docs/formats.md anew.
"""

import io
import os
import re
import struct
import tempfile
import zlib
from pathlib import Path

import imagecodecs
import numpy as np
import plain_codecs
import pytest
import tifffile
from click.testing import CliRunner
from conftest import ROOT, put_between, smooth
from PIL import Image, ImageCms

from tdc_cli.cli.main import main

PAGE = ROOT / "docs" / "formats.md"
BEGIN, END = "<!-- items: begin -->", "<!-- items: end -->"
TARGETS = {
    "png": "PNG", "jpg": "JPEG", "tif": "TIFF", "webp": "WebP", "jxl": "JPEG XL", "jp2": "JPEG 2000", "exr": "OpenEXR",
    "bmp": "BMP", "npy": "NPY",
}  # fmt: skip
EXTENSIONS = {"PNG": "png", "JPEG": "jpg", "TIFF": "tif", "WebP": "webp", "JPEG 2000": "jp2", "OpenEXR": "exr"}
PICTURE = smooth(20, 24)
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" '
    b'dc:source="roll 7">%s</rdf:Description>'
)
SMALL = b"<xmp:Thumbnails xmlns:xmp='http://ns.adobe.com/xap/1.0/'><image>AAAA</image></xmp:Thumbnails>"
GAINS = b'<C xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"/>'
UUID_XMP = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
UUID_IPTC = bytes.fromhex("33c7a4d2b81d4723a0baf1a3e097ad38")
UUID_PHOTOSHOP = bytes.fromhex("2c4c0100850440b9a03e562148d6dfeb")
UUID_GEO = bytes.fromhex("b14bf8bd083d4b43a5ae8cd7d5a6ce03")
IPTC = b"\x1c\x02\x78\x00\x06word 7"


def resource(number, data):
    """A block of Photoshop's resources."""
    return b"8BIM" + struct.pack(">HHL", number, 0, len(data)) + data + bytes(len(data) % 2)


def exif(**more):
    """EXIF with a description, ``description 7``, and as bytes."""
    made = Image.Exif()
    made[270] = "description 7"
    for code, value in more.items():
        made[int(code.removeprefix("tag"))] = value
    return made.tobytes()


def png(*chunks):
    return plain_codecs.png(PICTURE, chunks)


def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg(*segments, behind=b""):
    buffer = io.BytesIO()
    Image.fromarray(PICTURE).save(buffer, "JPEG", quality=95)
    content = buffer.getvalue()
    return content[:2] + b"".join(segments) + content[2:] + behind


def mpo():
    buffer = io.BytesIO()
    frames = [Image.fromarray(np.roll(PICTURE, 4 * k, axis=1)) for k in range(2)]
    frames[0].save(buffer, "MPO", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


def tiff(*tags, further=()):
    buffer = io.BytesIO()
    with tifffile.TiffWriter(buffer) as file:
        file.write(
            PICTURE,
            photometric="rgb",
            metadata=None,
            software=False,
            extratags=list(tags),
            subifds=int("sub" in further),
        )
        if further:
            file.write(PICTURE[::4, ::4], photometric="rgb", metadata=None, subfiletype=1)
    return buffer.getvalue()


def webp(**options):
    buffer = io.BytesIO()
    Image.fromarray(PICTURE).save(buffer, "WebP", lossless=True, **options)
    return buffer.getvalue()


def with_chunk(content, name, data):
    content += name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
    return content[:4] + struct.pack("<I", len(content) - 8) + content[8:]


def jp2(more=b"", header=b"", profile=None, comment=None, exif=None):
    stream = imagecodecs.jpeg2k_encode(PICTURE, level=0, codecformat="j2k", reversible=True)
    if comment:
        at = stream.index(b"\xff\x90")
        stream = stream[:at] + b"\xff\x64" + struct.pack(">HH", 4 + len(comment), 1) + comment + stream[at:]
    return plain_codecs.jp2(stream, PICTURE, header=header, more=more, profile=profile, exif=exif)


def jp2_box(kind, data):
    return {"content": jp2(plain_codecs.box(kind, data)), "mark": data}


def exr(*attributes, **more):
    planes = {name: (PICTURE[..., k] / 64).astype(np.float16) for k, name in enumerate("RGB")}
    return plain_codecs.exr(planes | more.pop("planes", {}), attributes, **more)


def exr_attribute(name, kind, data):
    return {"content": exr((name, kind, data)), "mark": data, "words": f"attribute {name}"}


def chunk(name, content):
    return {"content": png((name, content)), "mark": name + content}


RESOURCES = resource(1060, b"block 7") + resource(1036, b"tiny")
GDAL = (
    '<GDALMetadata><Item name="SENSOR">made up 7</Item><Item name="STATISTICS_MEAN" sample="0">5</Item></GDALMetadata>'
)
# Title -> the bytes of a file that has the item, what its bytes hold of it, what of it completing makes false, and the
# words that tell of it.
ITEMS = {
    "PNG: colour profile": {
        "content": png((b"iCCP", b"p\0\0" + zlib.compress(PROFILE))),
        "mark": PROFILE[36:],
        "words": "colour profile",
    },
    "PNG: EXIF": {"content": png((b"eXIf", exif()[6:])), "mark": b"description 7", "words": "EXIF"},
    "PNG: XMP": {
        "content": png((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP % SMALL)),
        "mark": b"roll 7",
        "false": b"Thumbnails",
        "words": "XMP",
    },
    "PNG: texts": {"content": png((b"tEXt", b"Author\0somebody 7")), "mark": b"somebody 7", "words": "texts"},
    "PNG: gamma": chunk(b"gAMA", struct.pack(">I", 45455)) | {"words": "gamma"},
    "PNG: primaries": chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))
    | {"words": "primaries"},
    "PNG: rendering intent": chunk(b"sRGB", b"\0") | {"words": "rendering intent"},
    "PNG: coding of the colours": chunk(b"cICP", bytes([9, 16, 0, 1])) | {"words": "coding of the colours"},
    "PNG: mastering display": chunk(b"mDCV", bytes(24)) | {"words": "mastering display"},
    "PNG: light levels": chunk(b"cLLI", bytes(8)) | {"words": "light levels"},
    "PNG: significant bits": chunk(b"sBIT", bytes([8, 8, 8])) | {"words": "significant bits"},
    "PNG: background colour": chunk(b"bKGD", bytes([0, 9, 0, 9, 0, 9])) | {"words": "background colour"},
    "PNG: suggested palette": chunk(b"sPLT", b"p\0\x08" + bytes([1, 2, 3, 4, 0, 5])) | {"words": "suggested palette"},
    "PNG: physical scale": chunk(b"sCAL", b"\x011\x001") | {"words": "physical scale"},
    "PNG: calibration of the values": chunk(b"pCAL", b"c\0" + bytes(8) + b"\0\2m\x000\x001")
    | {"words": "calibration of the values"},
    "PNG: stereo layout": chunk(b"sTER", b"\0") | {"words": "stereo layout"},
    "PNG: offset": chunk(b"oFFs", struct.pack(">iiB", 3, 4, 0)) | {"words": "offset"},
    "PNG: other chunks, safe to copy": chunk(b"abCd", b"own 7") | {"words": "chunk abCd"},
    "PNG: other chunks": chunk(b"abCD", b"own 7") | {"words": "chunk abCD"},
    "PNG: time of the last change": chunk(b"tIME", struct.pack(">H5B", 2020, 1, 2, 3, 4, 5))
    | {"words": "time of the last change"},
    "PNG: content credentials": chunk(b"caBX", b"signed") | {"words": "content credentials"},
    "JPEG: colour profile": {
        "content": jpeg(segment(0xE2, b"ICC_PROFILE\0\1\1" + PROFILE)),
        "mark": PROFILE[36:],
        "words": "colour profile",
    },
    "JPEG: EXIF": {"content": jpeg(segment(0xE1, exif())), "mark": b"description 7", "words": "EXIF"},
    "JPEG: XMP": {
        "content": jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP % SMALL)),
        "mark": b"roll 7",
        "false": b"Thumbnails",
        "words": "XMP",
    },
    "JPEG: XMP beyond a segment": {
        "content": jpeg(segment(0xE1, b"http://ns.adobe.com/xmp/extension/\0" + bytes(40))),
        "mark": b"xmp/extension",
        "words": "extended XMP",
    },
    "JPEG: comment": {"content": jpeg(segment(0xFE, b"a comment 7")), "mark": b"a comment 7", "words": "comment"},
    "JPEG: IPTC in Photoshop's resources": {
        "content": jpeg(segment(0xED, b"Photoshop 3.0\0" + resource(1028, IPTC) + resource(1036, b"tiny"))),
        "mark": IPTC,
        "false": b"tiny",
        "words": "Photoshop resources with their IPTC",
    },
    "JPEG: thumbnail (JFXX)": {
        "content": jpeg(segment(0xE0, b"JFXX\0\x10small")),
        "mark": b"JFXX",
        "words": "thumbnail",
    },
    "JPEG: FlashPix data": {"content": jpeg(segment(0xE2, b"FPXR\0\1")), "mark": b"FPXR", "words": "FlashPix data"},
    "JPEG: content credentials": {
        "content": jpeg(segment(0xEB, b"JP\0\1")),
        "mark": b"JP\0\1",
        "words": "content credentials",
    },
    "JPEG: other segments": {"content": jpeg(segment(0xE4, b"mine 7")), "mark": b"mine 7", "words": "segment APP4"},
    "JPEG: data behind the picture": {
        "content": jpeg(behind=b"a film 7"),
        "mark": b"a film 7",
        "words": "data behind the picture",
    },
    "JPEG: gain map": {
        "content": jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP % GAINS), behind=jpeg()),
        "words": "gain map",
    },
    "JPEG: further pictures (MPO)": {"content": mpo(), "words": "further pictures"},
    "TIFF: colour profile": {
        "content": tiff((34675, 7, None, PROFILE, True)),
        "mark": PROFILE[36:],
        "words": "colour profile",
    },
    "TIFF: description and other texts": {
        "content": tiff((270, "s", 0, "description 7", True)),
        "mark": b"description 7",
        "words": "EXIF",
    },
    "TIFF: XMP": {
        "content": tiff((700, 1, None, XMP % SMALL, True)),
        "mark": b"roll 7",
        "false": b"Thumbnails",
        "words": "XMP",
    },
    "TIFF: IPTC": {"content": tiff((33723, 1, None, IPTC, True)), "mark": IPTC, "words": "IPTC"},
    "TIFF: Photoshop's resources": {
        "content": tiff((34377, 1, None, RESOURCES, True)),
        "mark": b"block 7",
        "false": b"tiny",
        "words": "Photoshop resources with their IPTC",
    },
    "TIFF: georeference": {
        "content": tiff((33550, "d", 3, (30.0, 31.0, 0.0), True)),
        "mark": struct.pack("<3d", 30, 31, 0),
        "words": "georeference",
    },
    "TIFF: nodata value": {
        "content": tiff((42113, "s", 0, "-9997", True)),
        "mark": b"-9997\0",
        "words": "nodata value",
    },
    "TIFF: GDAL metadata": {
        "content": tiff((42112, "s", 0, GDAL, True)),
        "mark": b"made up 7",
        "false": b"STATISTICS",
        "words": "GDAL metadata",
    },
    "TIFF: names of document and page": {
        "content": tiff((269, "s", 0, "map number 7", True)),
        "mark": b"map number 7",
        "words": "name of the document",
    },
    "TIFF: other tags": {
        "content": tiff((65001, "s", 0, "own tag 7", True)),
        "mark": b"own tag 7",
        "words": "tag 65001",
    },
    "TIFF: smallest and largest value": {
        "content": tiff((281, "H", 3, (201, 202, 203), True)),
        "mark": struct.pack("<3H", 201, 202, 203),
        "words": "smallest and largest value",
    },
    "TIFF: layers": {
        "content": tiff((37724, 7, None, b"Adobe Photoshop Document Data Block\0 7", True)),
        "mark": b"Data Block\0 7",
        "words": "layers",
    },
    "TIFF: reduced copies (SubIFDs)": {"content": tiff(further=("sub",)), "words": "reduced copies"},
    "TIFF: reduced copies on further pages": {
        "content": tiff(further=("page",)),
        "words": "reduced copies or masks on further pages",
    },
    "WebP: colour profile": {"content": webp(icc_profile=PROFILE), "mark": PROFILE[36:], "words": "colour profile"},
    "WebP: EXIF": {"content": webp(exif=exif()), "mark": b"description 7", "words": "EXIF"},
    "WebP: XMP": {"content": webp(xmp=XMP % SMALL), "mark": b"roll 7", "false": b"Thumbnails", "words": "XMP"},
    "WebP: other chunks": {
        "content": with_chunk(webp(icc_profile=PROFILE), b"abcd", b"own 7"),
        "mark": b"own 7",
        "words": "chunk abcd",
    },
    "JPEG 2000: colour profile": {"content": jp2(profile=PROFILE), "mark": PROFILE[36:], "words": "colour profile"},
    "JPEG 2000: EXIF": {"content": jp2(exif=exif()), "mark": b"description 7", "words": "EXIF"},
    "JPEG 2000: XMP": {
        "content": jp2(plain_codecs.box(b"uuid", UUID_XMP + XMP % SMALL)),
        "mark": b"roll 7",
        "false": b"Thumbnails",
        "words": "XMP",
    },
    "JPEG 2000: comment": {"content": jp2(comment=b"a comment 7"), "mark": b"a comment 7", "words": "comment"},
    "JPEG 2000: IPTC": {
        "content": jp2(plain_codecs.box(b"uuid", UUID_IPTC + IPTC)),
        "mark": IPTC,
        "words": "IPTC",
    },
    "JPEG 2000: Photoshop's resources": {
        "content": jp2(plain_codecs.box(b"uuid", UUID_PHOTOSHOP + RESOURCES)),
        "mark": b"block 7",
        "false": b"tiny",
        "words": "Photoshop resources with their IPTC",
    },
    "JPEG 2000: georeference": jp2_box(b"uuid", UUID_GEO + b"II*\0\x08\0\0\0\0\0\0\0\0\0") | {"words": "georeference"},
    "JPEG 2000: georeference in GML": jp2_box(b"asoc", plain_codecs.box(b"lbl ", b"gml.data"))
    | {"words": "georeference (GMLJP2)"},
    "JPEG 2000: XML": jp2_box(b"xml ", b"<own>7</own>") | {"words": "XML"},
    "JPEG 2000: references to registries": jp2_box(b"uinf", plain_codecs.box(b"url ", b"\0\0\0\0http://x.y\0"))
    | {"words": "references to registries"},
    "JPEG 2000: rights": jp2_box(b"jp2i", b"mine 7") | {"words": "rights"},
    "JPEG 2000: boxes of programs": jp2_box(b"uuid", bytes(range(16)) + b"own 7") | {"words": "box of a program"},
    "JPEG 2000: content credentials": jp2_box(b"jumb", b"signed 7") | {"words": "content credentials (JUMBF)"},
    "JPEG 2000: layers of JPX": jp2_box(b"jplh", plain_codecs.box(b"lbl ", b"sky 7"))
    | {"words": "description of layers"},
    "JPEG 2000: other boxes": jp2_box(b"own7", b"own 7") | {"words": "box own7"},
    "JPEG 2000: other boxes of the header": {
        "content": jp2(header=plain_codecs.box(b"own8", b"own 8")),
        "mark": b"own 8",
        "words": "box own8",
    },
    "OpenEXR: primaries": exr_attribute("chromaticities", "chromaticities", struct.pack("<8f", *range(1, 9))),
    "OpenEXR: timecode": exr_attribute("timeCode", "timecode", struct.pack("<2I", 0x01020304, 7)),
    "OpenEXR: frames a second": exr_attribute("framesPerSecond", "rational", struct.pack("<iI", 24000, 1001)),
    "OpenEXR: attributes of programs": exr_attribute("own", "kind of its own", b"\1\2\3 7"),
    "OpenEXR: what is shown of it": {
        "content": exr(shown=(-3, -2, 30, 27)),
        "mark": struct.pack("<4i", -3, -2, 30, 27),
        "words": "display window",
    },
    "OpenEXR: other channels": {
        "content": exr(planes={"Z": np.full(PICTURE.shape[:2], 77.25, np.float32)}),
        "mark": struct.pack("<f", 77.25) * PICTURE.shape[1],
        "words": "channel Z",
    },
    "OpenEXR: thumbnail": {
        "content": exr(("preview", "preview", struct.pack("<2I", 1, 1) + b"\7\7\7\7")),
        "mark": b"\7\7\7\7",
        "words": "thumbnail",
    },
}


def holds(content, mark):
    """Whether a file's bytes hold a mark, packed parts of a PNG unpacked."""
    if mark in content:
        return True
    if not content.startswith(b"\x89PNG"):
        return False
    packed = [
        data.split(b"\0", 1)[1][1:]
        for name, data in plain_codecs.png_chunks(content).items()
        if name in (b"iCCP", b"zTXt")
    ]
    return any(mark in zlib.decompress(data) for data in packed)


def fates(title):
    """What becomes of an item in each format, in the current folder; AssertionError where it is gone without a word."""
    item, found = ITEMS[title], []
    if title.startswith("OpenEXR"):
        pytest.importorskip("OpenEXR")
    name = f"x.{EXTENSIONS[title.split(':')[0]]}"
    Path(name).write_bytes(item["content"])
    for extension in TARGETS:
        result = CliRunner().invoke(
            main, ["complete-image", name, "-o", f"y.{extension}", "--mask-box", "10,5,4,4", "--method", "linear"]
        )
        if result.exit_code == 2:
            found.append("refused")
            continue
        assert result.exit_code == 0, result.stderr
        content = Path(f"y.{extension}").read_bytes()
        told = re.search(rf"without (?:its )?(?:.*, )?{re.escape(item['words'])}[,;\n]", result.stderr) is not None
        kept = "mark" in item and holds(content, item["mark"])
        assert kept != told, (title, extension, kept, result.stderr)
        mended = kept and "false" in item
        assert not mended or not holds(content, item["false"])
        found.append("told" if told else "mended" if mended else "kept")
    return found


def line(title, found):
    return f"| {' | '.join([title, *found])} |"


@pytest.mark.parametrize("title", ITEMS)
def test_each_item_of_a_file_is_kept_mended_or_told_as_the_table_says(folder, title):
    assert line(title, fates(title)) in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_table_has_these_rows_and_no_others():
    measured = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert re.findall(r"^\| (.*?) \|", measured, re.M)[1:] == list(ITEMS)


def write_page():
    """Measure everything and put it into the page."""
    lines = [f"| item | {' | '.join(TARGETS.values())} |", "|---" * (len(TARGETS) + 1) + "|"]
    for title in ITEMS:
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as made:
            os.chdir(made)
            try:
                lines.append(line(title, fates(title)))
            finally:
                os.chdir(before)
    put_between(PAGE, BEGIN, END, lines)


if __name__ == "__main__":
    write_page()
