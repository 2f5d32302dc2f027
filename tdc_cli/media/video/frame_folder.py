"""Folders of frames, one picture a file, in natural order: frame 2 comes before frame 10."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from .. import elsewhere, encode, read
from ..files import natural
from ..formats import EXTENSIONS, FORMATS, named
from ..formats import check as check_media
from ..parts import check_own
from .clip import Clip


def read_folder(path, form):
    """Clip of a folder; see `read_clip`.

    Parameters
    ----------
    path : path-like
    form : ClipFormat
    """
    names = frame_names(path)
    if not names:
        for file in sorted(Path(path).iterdir()):
            if way := elsewhere.way_out(file):
                raise InputError(f"{file}: {way}")
        raise InputError(
            f"{path}: no frames; files of {', '.join(sorted(EXTENSIONS))} in it are taken, those in folders within are "
            "not"
        )
    hashed = hashlib.sha256()
    first, notes, nodata, beside = None, {}, {}, {}
    for name in names:
        media = read(Path(path) / name)
        first = first or media
        _check_alike(media, first)
        hashed.update(f"{media.sha256}  {name}\n".encode("utf-8", "surrogateescape"))
        notes |= dict.fromkeys(media.notes if not notes else ())  # all frames are alike
        nodata |= dict.fromkeys(media.nodata)
        beside |= dict.fromkeys(FORMATS["NPY"].lost(media))
    sha256 = hashed.hexdigest()
    return Clip(
        str(path),
        sha256,
        form.name,
        len(names),
        first.values.shape,
        first.values.dtype,
        first.mode,
        notes=tuple(notes),
        details={"names": tuple(names), "beside": tuple(beside)},
        source=_Files(str(path), tuple(names), first.values.shape),
        nodata=tuple(nodata),
        bits=first.bits,
    )


def frame_names(path):
    """Names of the files in a folder that can be frames, in natural order."""
    names = (f.name for f in Path(path).iterdir() if f.suffix.lower() in EXTENSIONS and not f.name.startswith("."))
    return sorted(names, key=lambda name: (natural(name), name))


def _check_alike(media, first):
    if (media.values.shape, media.kind) != (first.values.shape, first.kind):
        raise InputError(
            f"{media.path}: {_in_words(media)}, but {first.path} is {_in_words(first)}; all frames of a clip must be "
            "alike"
        )


def _in_words(media):
    height, width = media.values.shape[:2]
    return f"{width}x{height} in {media.kind}"


@dataclass(frozen=True)
class _Files:
    """The frames of a folder; see `clip.Source`."""

    path: str
    names: tuple
    shape: tuple

    def frames(self, start, stop):
        """Iterate over frames."""
        for name in self.names[start:stop]:
            media = read(Path(self.path) / name)
            if media.values.shape != self.shape:
                raise InputError(f"{media.path}: is no longer the frame it was")
            yield media


def _new_names(clip):
    """Names for the files of a clip: those that it was read from, else numbers from 0."""
    if "names" in clip.details:
        return clip.details["names"]
    extension = ".png" if clip.mode in FORMATS["PNG"].modes and clip.dtype.name in FORMATS["PNG"].types else ".tif"
    digits = max(4, len(str(clip.count - 1)))
    return tuple(f"frame_{number:0{digits}}{extension}" for number in range(clip.count))


def check(path, clip):
    """Raise OutputError if there is anything at `path` that no run has written; see `check_clip`."""
    if Path(path).is_dir():
        check_own(path)
    names = _new_names(clip)
    lossy = [name for name in names if not named(name).lossless]
    return (
        ["JPEG compresses with loss: known pixels change a little in the files; write to .npy or .tif to keep them"]
        if lossy
        else []
    )


def write(frames, folder, clip, quality):
    """Write frames into a folder, one a file; see `write_clip`."""
    for media, name in zip(frames, _new_names(clip), strict=True):
        form = named(name)
        check_media(form, media, name)
        (folder / name).write_bytes(encode(media, form, quality))
