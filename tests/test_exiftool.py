"""What becomes of the tags of a camera, a scanner or an archive, written and read by exiftool."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import plain_codecs
import pytest
import tifffile
from conftest import smooth
from PIL import Image, ImageCms

EXIFTOOL = shutil.which("exiftool")
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
TAGS = [
    "-IFD0:Make=Maker", "-IFD0:Model=M 7", "-IFD0:Artist=Somebody", "-IFD0:Copyright=2026 Somebody",
    "-IFD0:ImageDescription=a wall", "-IFD0:ModifyDate=2026:01:02 03:04:05", "-IFD0:Software=scan 1.2",
    "-IFD0:XResolution=300", "-IFD0:YResolution=300",
    "-ExifIFD:DateTimeOriginal=2025:06:07 08:09:10", "-ExifIFD:ExposureTime=1/250", "-ExifIFD:FNumber=5.6",
    "-ExifIFD:ISO=400", "-ExifIFD:LensModel=50 mm", "-ExifIFD:UserComment=by hand", "-GPS:GPSLatitude=48.2",
    "-GPS:GPSLatitudeRef=N", "-GPS:GPSLongitude=16.4", "-GPS:GPSLongitudeRef=E", "-XMP-dc:Title=Wall 7",
    "-XMP-dc:Creator=Somebody", "-XMP-dc:Subject=wall", "-XMP-dc:Subject=dust", "-XMP-xmp:Rating=4",
    "-XMP-photoshop:City=Wien", "-XMP-xmpRights:Marked=true",
]  # fmt: skip
IPTC = ["-IPTC:Headline=Wall", "-IPTC:Keywords=wall", "-IPTC:Keywords=dust", "-CodedCharacterSet=utf8"]
# Every format has a place of its own for these, which test_round_trip.py looks into.
RESOLUTION = {"XResolution", "YResolution", "ResolutionUnit"}
SHARED = ("IFD0", "ExifIFD", "GPS", "IPTC", "XMP-")  # groups of what all of these formats can hold, but for IPTC
# That blocks of bytes are told to be bytes, and that deflate is none of the compressions of TIFF 6.0.
MINOR = r"^OK|Warning|Non-standard format|Missing required|Compression|not allowed in TIFF"
# Groups of what is not in the file, or of how its pixels lie.
NOT_TAGS = {"ExifTool", "System", "File", "Composite", "SourceFile"}
LAYOUT = {
    "IFD0": {
        "StripOffsets", "StripByteCounts", "RowsPerStrip", "Compression", "PlanarConfiguration", "SubfileType",
        "PhotometricInterpretation", "BitsPerSample", "SamplesPerPixel", "ImageWidth", "ImageHeight", "SampleFormat",
        "YCbCrPositioning", "Orientation", "ExifToolVersion", "Predictor",
    },
    "ExifIFD": {"ComponentsConfiguration", "ExifVersion", "FlashpixVersion", "ColorSpace"},
    "GPS": {"GPSVersionID"},
    "XMP-x": {"XMPToolkit"},
    "PNG": {"Compression", "Filter", "Interlace", "BitDepth", "ColorType", "ImageWidth", "ImageHeight", "Warning"},
    "RIFF": {"VP8Version", "HorizontalScale", "VerticalScale", "ImageWidth", "ImageHeight", "WebP_Flags"},
    "Photoshop": {"IPTCDigest"},
}  # fmt: skip
pytestmark = pytest.mark.skipif(EXIFTOOL is None, reason="no exiftool (Debian: libimage-exiftool-perl)")


def exiftool(*args):
    done = subprocess.run([EXIFTOOL, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tags_of(*paths):
    """Group and name to value of everything that exiftool finds in each file, but for `NOT_TAGS` and `LAYOUT`."""
    found = []
    for told in json.loads(exiftool("-j", "-G1", "-a", "-struct", "-n", *paths)):
        pairs = {tuple(name.split(":", 1)): value for name, value in told.items() if ":" in name}
        found.append(
            {
                (group, name): value
                for (group, name), value in pairs.items()
                if group not in NOT_TAGS and name not in LAYOUT.get(group, ())
            }
        )
    return found


def make(extension):
    """A picture with the tags above, in the current folder."""
    name, picture = f"a.{extension}", smooth(20, 24)
    if extension == "tif":
        tifffile.imwrite(name, picture, photometric="rgb", metadata=None, software=False, iccprofile=PROFILE)
    elif extension == "jp2":
        import imagecodecs

        stream = imagecodecs.jpeg2k_encode(picture, level=0, codecformat="j2k", reversible=True)
        Path(name).write_bytes(plain_codecs.jp2(stream, picture, profile=PROFILE, dpi=300))
    else:
        options = {"webp": {"lossless": True}, "jpg": {"quality": 100, "dpi": (300, 300)}, "png": {"dpi": (300, 300)}}
        Image.fromarray(picture).save(name, icc_profile=PROFILE, **options[extension])
    exiftool("-q", "-overwrite_original", *TAGS, *(IPTC if extension in ("jpg", "tif") else []), name)
    return name


FORMATS = ("jpg", "tif", "png", "webp", "jp2")


@pytest.mark.parametrize("source", FORMATS)
def test_every_tag_is_in_the_completed_file_or_told(tdc, source):
    name, told = make(source), {}
    for target in FORMATS:
        result = tdc("complete-image", name, "-o", f"b.{target}", "--mask", "m.png", "--method", "linear")
        assert result.exit_code == 0, result.stderr
        told[target] = result.stderr.partition("without ")[2]
    given, *made = tags_of(name, *(f"b.{target}" for target in FORMATS))
    assert {("IFD0", "Make"), ("ExifIFD", "LensModel"), ("GPS", "GPSLatitude"), ("XMP-dc", "Title")} <= given.keys()
    for target, tags in zip(FORMATS, made, strict=True):
        if target == source:
            assert {key: tags.get(key) for key in given} == given and not told[target]
        left = {key for key in given if key[0].startswith(SHARED) and tags.get(key) != given[key]}
        left = {(group, tag) for group, tag in left if group != "IFD0" or tag not in RESOLUTION}
        assert {group for group, _ in left} <= {"IPTC"}, left
        assert bool(left) == ("IPTC" in told[target]), (target, left)
    warned = exiftool("-validate", "-warning", "-a", "-s3", f"b.{source}").splitlines()
    assert not [line for line in warned if not re.search(MINOR, line)]
