"""What each kind of clip can hold, and the codecs of the containers: the tables that reading, writing and the checks go by."""

from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError

FOLDER = "folder"  # name of the kind that is no file
_PICTURE = ("L", "LA", "RGB", "RGBA")
_ALL_TYPES = ("uint8", "uint16", "float32", "float64")


@dataclass(frozen=True)
class ClipFormat:
    """A kind of file that holds a clip.

    Attributes
    ----------
    name : str
    extensions : tuple of str
        Lower case, with the dot; the first is the usual one.
    demuxer, muxer : str or None
        FFmpeg's names where it is a container with streams.
    codecs : tuple of str
        Names in `CODECS` that it may hold; the first is the default.
    """

    name: str
    extensions: tuple
    demuxer: str | None = None
    muxer: str | None = None
    codecs: tuple = ()


CLIP_FORMATS = {
    f.name: f
    for f in (
        ClipFormat("MP4", (".mp4", ".m4v"), "mp4", "mp4", ("h264", "h265", "vp9", "h264-lossless")),
        ClipFormat("MKV", (".mkv",), "matroska", "matroska", ("h264", "h265", "vp9", "ffv1", "h264-lossless")),
        ClipFormat("MOV", (".mov",), "mov", "mov", ("h264", "h265", "ffv1", "h264-lossless")),
        ClipFormat("AVI", (".avi",), "avi", "avi", ("h264", "ffv1", "h264-lossless")),
        ClipFormat("WebM", (".webm",), "webm", "webm", ("vp9",)),
        ClipFormat("GIF", (".gif",)),
        ClipFormat("APNG", (".apng", ".png")),
        ClipFormat("WebP", (".webp",)),
        ClipFormat("TIFF", (".tif", ".tiff")),
        ClipFormat("NPY", (".npy",)),
        ClipFormat(FOLDER, ()),
    )
}
EXTENSIONS = {extension: f for f in CLIP_FORMATS.values() for extension in f.extensions}


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
    if suffix not in EXTENSIONS:
        known = ", ".join(sorted(EXTENSIONS))
        raise error(f"{path}: extension {suffix!r} is not known for clips; use one of {known}, or a folder of frames")
    return EXTENSIONS[suffix]
