"""What each kind of clip can hold, and the codecs of the containers: the tables that reading, writing and the checks go
by.
"""

from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InputError, OutputError
from .. import elsewhere
from ..formats import ALL_TYPES

FOLDER = "folder"  # name of the kind that is no file
_PICTURE = ("L", "LA", "RGB", "RGBA")
_EVERY_MODE = (*_PICTURE, "CMYK", "array")


@dataclass(frozen=True)
class ClipFormat:
    """A kind of file that holds a clip.

    Attributes
    ----------
    name : str
    extensions : tuple of str
        Lower case, with the dot; the first is the usual one.
    demuxer, muxer : str or None
        FFmpeg's names where it is a container with streams; without a muxer it is read only.
    indexed : bool
        Whether one can go to a key frame in it: streams for broadcasting have no index, and seeking ends anywhere.
    codecs : tuple of str
        Names in `CODECS` that it may hold; the first is the default.
    modes, types : tuple of str
        What can be written without a change; of a container the codecs say it.
    """

    name: str
    extensions: tuple
    demuxer: str | None = None
    muxer: str | None = None
    codecs: tuple = ()
    modes: tuple = ()
    types: tuple = ()
    indexed: bool = True

    @property
    def is_written(self):
        """Whether clips can be written to it."""
        return self.demuxer is None or self.muxer is not None

    def codec(self, clip, name=None):
        """The `Codec` of that name, or the first that holds `clip` if any does; None where there is none to choose."""
        if name or not self.codecs:
            return CODECS[name] if name else None
        return CODECS[next((c for c in self.codecs if self.holds(clip, CODECS[c])), self.codecs[0])]

    def holds(self, clip, codec=None):
        """Whether the values of `clip` can be written without a change of mode or depth, by `codec` or any other."""
        if self.codecs:
            if clip.has_alpha and self.muxer in ("mp4", "mov"):
                return False
            return any(c.format_of(clip) for c in ([codec] if codec else [CODECS[name] for name in self.codecs]))
        if clip.fields and self.name in ("GIF", "APNG", "WebP"):
            return False
        if self.name == "GIF" and clip.has_alpha and clip.format != "GIF":  # it knows opaque and transparent only
            return False
        return clip.mode in self.modes and clip.dtype.name in self.types


QUALITY = 67  # of codecs with loss, of 100: CRF 17 of H.264 and H.265, 21 of VP9


def _exact(depths, **formats):
    """Pixel formats by mode and bits: ``{}`` in the name of each stands for the depth."""
    return {(mode, bits): form.format(bits) for mode, form in formats.items() for bits in depths}


@dataclass(frozen=True)
class Codec:
    """How the frames of a container are compressed.

    Attributes
    ----------
    name : str
        What the user calls it.
    title : str
        In messages.
    encoders : dict
        Mode to FFmpeg's name of the encoder; ``""``: of all other modes.
    pixels : dict
        Mode and bits of a channel to FFmpeg's name of the pixel format; what is not here cannot be held.
    lossless : bool
        Whether values come back bit for bit.
    even : bool
        Whether halved chroma needs even sides.
    worst : int
        CRF at quality 0, where the codec has a quality.
    more : dict
        Further options of the encoder.
    tag : str or None
        What MP4 and MOV call it, where FFmpeg's own choice is not played everywhere.
    interlaced : dict or None
        Further options of the encoder for interlaced frames; None where it cannot hold them.
    """

    name: str
    title: str
    encoders: dict
    pixels: dict
    lossless: bool = False
    even: bool = True
    worst: int = 0
    more: dict = field(default_factory=dict)
    tag: str | None = None
    interlaced: dict | None = None

    def encoder(self, mode):
        """FFmpeg's name of the encoder for frames of that mode."""
        return self.encoders.get(mode, self.encoders[""])

    def format_of(self, clip):
        """FFmpeg's name of the pixel format in which the codec holds the clip, or None if there is none."""
        bits = clip.bits or 8 * clip.dtype.itemsize
        if clip.dtype.kind != "u" or (clip.mode, bits) not in self.pixels or (clip.fields and self.interlaced is None):
            return None
        name = self.pixels[clip.mode, bits]
        odd = clip.shape[0] % (4 if clip.fields else 2) or clip.shape[1] % 2
        return name.replace("420p", "444p") if odd and self.even else name

    def options(self, quality):
        """Options of the encoder at a quality of 1 to 100, a dict."""
        return ({} if self.lossless else {"crf": str(round(self.worst * (1 - quality / 100)))}) | self.more


_X264 = {"x264-params": "interlaced=1"}
_GREY_AND_COLOUR = {("L", 8): "yuv420p", ("RGB", 8): "yuv420p"}
CODECS = {
    c.name: c
    for c in (
        Codec("h264", "H.264", {"": "libx264"}, _GREY_AND_COLOUR, worst=51, interlaced=_X264),
        Codec(
            "h265",
            "H.265",
            {"": "libx265"},
            _GREY_AND_COLOUR | _exact((10, 12), L="yuv420p{}le", RGB="yuv420p{}le"),
            worst=51,
            more={"x265-params": "log-level=none:pools=none:frame-threads=1"},
            tag="hvc1",
        ),
        Codec(
            "vp9",
            "VP9",
            {"": "libvpx-vp9"},
            _GREY_AND_COLOUR | {("LA", 8): "yuva420p", ("RGBA", 8): "yuva420p"},
            even=False,
            worst=63,
            more={"b": "0", "deadline": "good", "cpu-used": "2", "auto-alt-ref": "0"},
        ),
        Codec(
            "ffv1",
            "FFV1",
            {"": "ffv1"},
            {("L", 8): "gray", ("LA", 8): "ya8", ("RGB", 8): "bgr0", ("RGBA", 8): "bgra"}
            | _exact((10, 12, 14, 16), L="gray{}le", RGB="gbrp{}le", RGBA="gbrap{}le"),
            lossless=True,
            more={"level": "3", "slicecrc": "1"},
            interlaced={},
        ),
        Codec(
            "h264-lossless",
            "lossless H.264",
            {"L": "libx264", "": "libx264rgb"},
            {("L", 8): "gray", ("RGB", 8): "rgb24"},
            lossless=True,
            more={"qp": "0"},
            interlaced=_X264,
        ),
    )
}

CLIP_FORMATS = {
    f.name: f
    for f in (
        ClipFormat("MP4", (".mp4", ".m4v"), "mp4", "mp4", ("h264", "h265", "vp9", "h264-lossless")),
        ClipFormat("MKV", (".mkv",), "matroska", "matroska", ("h264", "h265", "vp9", "ffv1", "h264-lossless")),
        ClipFormat("MOV", (".mov",), "mov", "mov", ("h264", "h265", "h264-lossless")),
        ClipFormat("AVI", (".avi",), "avi", "avi", ("ffv1",)),
        ClipFormat("WebM", (".webm",), "webm", "webm", ("vp9",)),
        ClipFormat("MPEG-TS", (".ts", ".m2ts", ".mts"), "mpegts", indexed=False),
        ClipFormat("MPEG-PS", (".mpg", ".mpeg", ".vob", ".m2p"), "mpeg", indexed=False),
        ClipFormat("WMV", (".wmv", ".asf"), "asf", indexed=False),
        ClipFormat("FLV", (".flv",), "flv", indexed=False),
        ClipFormat("MXF", (".mxf",), "mxf", indexed=False),
        ClipFormat("DV", (".dv",), "dv", indexed=False),
        ClipFormat("GIF", (".gif",), modes=("RGB", "RGBA"), types=("uint8",)),
        ClipFormat("APNG", (".png", ".apng"), modes=_PICTURE, types=("uint8",)),
        ClipFormat("WebP", (".webp",), modes=("RGB", "RGBA"), types=("uint8",)),
        ClipFormat("TIFF", (".tif", ".tiff"), modes=_EVERY_MODE, types=ALL_TYPES),
        ClipFormat("NPY", (".npy",), modes=_EVERY_MODE, types=ALL_TYPES),
        ClipFormat(FOLDER, (), modes=_EVERY_MODE, types=ALL_TYPES),
    )
}
EXTENSIONS = {extension: f for f in CLIP_FORMATS.values() for extension in f.extensions}


def extensions(*, written=False):
    """Every extension of a clip, sorted; or those alone that can be written."""
    return sorted(extension for extension, form in EXTENSIONS.items() if form.is_written or not written)


def named(path, error=InputError):
    """The `ClipFormat` that `path` names: by its extension, or a folder where it has none or is one.

    Parameters
    ----------
    path : path-like
    error : type
        Exception for an extension that is not known.
    """
    suffix = Path(path).suffix.lower()
    if Path(path).is_dir() or not suffix:
        return CLIP_FORMATS[FOLDER]
    read = error is InputError and suffix not in EXTENSIONS
    if read and (way := elsewhere.way_out(path) or elsewhere.command(path)):
        raise InputError(f"{path}: {way}")
    if suffix not in EXTENSIONS:
        known = ", ".join(extensions(written=error is OutputError))
        raise error(f"{path}: extension {suffix!r} is not known for clips; use one of {known}, or a folder of frames")
    return EXTENSIONS[suffix]
