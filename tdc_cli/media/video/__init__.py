"""Clips in and out: `read_clip` and `write_clip` find the right module by what a file is; `clip_formats` says what each
kind can hold.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import ConfigError, OutputError
from ..files import check_file, write_file, write_folder
from ..formats import EXTENSIONS as PICTURES
from .clip import DEFAULT_RATE, Clip
from .clip_formats import CLIP_FORMATS, CODECS, FOLDER, QUALITY, extensions, named

__all__ = ["CLIP_FORMATS", "CODECS", "QUALITY", "Clip", "check_clip", "extensions", "named", "read_clip", "write_clip"]


# What pictures hold beside their pixels, in the words of `formats.METADATA`, that the pages of a TIFF keep.
_KEPT_BY_PAGES = ("colour profile", "resolution")


def read_clip(path):
    """Open a clip: a file, or a folder of frames.

    Every frame is decoded once, so that the number of frames and their times are sure and damage is found before any
    work.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Clip

    Raises
    ------
    InputError
        No such file, unknown or unsupported type, no frames, frames that differ in size or mode, or damaged content.
    """
    from . import animation, container, frame_folder, npy_frames, tiff_pages

    check_file(path, folder=True)
    form = named(path)
    if form.demuxer:
        return container.read(path, form)
    readers = {"NPY": npy_frames.read_array, "TIFF": tiff_pages.read_pages, FOLDER: frame_folder.read_folder}
    clip = readers.get(form.name, animation.read_animation)(path, form)
    if clip.count == 1 and form.name != "NPY" and Path(path).suffix.lower() in PICTURES:
        return replace(clip, notes=(*clip.notes, f"{path}: holds one picture; 'tdc complete-image' is for these"))
    return clip


def check_clip(path, clip, *, codec=None, quality=None):
    """Find out before any work whether `clip` can be written to `path`.

    Parameters
    ----------
    path : path-like
        A file, or a folder where it has no extension.
    clip : Clip
        What is to be written: its frames may have other values, not another shape or dtype.
    codec : str or None
        Name in `CODECS`, of a container; None: the first one that it can hold.
    quality : int or None
        1 to 100, of a codec with loss or of JPEG frames; None: `QUALITY`, and of JPEG its own.

    Returns
    -------
    list of str
        What cannot be kept, for the user.

    Raises
    ------
    OutputError
        Unknown extension, a mode, depth, sound or times that the format cannot hold, or a folder with other files in
        it.
    ConfigError
        A codec or quality where there is none to choose.
    """
    from . import animate, encode, frame_folder

    form = named(path, OutputError)
    if Path(path).exists() and not (Path(path).is_dir() if form.name == FOLDER else Path(path).is_file()):
        kind = (
            "no folder; give the name of one, or a file with an extension"
            if form.name == FOLDER
            else "not a regular file"
        )
        raise OutputError(f"{path}: is {kind}")
    if not form.is_written:
        way = "write to .mkv with `codec=ffv1`, which keeps every frame without loss"
        raise OutputError(f"{path}: {form.name} is read and not written; {way}")
    chosen = _codec(path, form, clip, codec)
    if quality is not None and not 1 <= quality <= 100:
        raise ConfigError(f"quality {quality}: must be 1 to 100")
    if quality is not None and (chosen.lossless if chosen else form.name != FOLDER):
        raise ConfigError(
            f"{path}: {chosen.title if chosen else form.name} has no quality to choose; leave `quality` out"
        )
    if not form.holds(clip, chosen):
        what = f"{clip.kind}, interlaced" if clip.fields else clip.kind
        raise OutputError(f"{path}: {chosen.title if chosen else form.name} cannot hold {what}; write to {_able(clip)}")
    if clip.fields and not chosen:
        told = "nothing in them" if form.name == FOLDER else f"nothing in {form.name}"
        notes = [
            f"{told} says that frames are interlaced, {clip.fields} field first; write to .mkv with `codec=ffv1` to "
            "keep it"
        ]
    else:
        notes = []
    animation = form.name in ("GIF", "APNG", "WebP")
    described = clip.details["stack"].words if "stack" in clip.details and form.name != "TIFF" else ()
    if described:
        name = "a folder of frames" if form.name == FOLDER else form.name
        notes.append(
            f"{name} cannot hold all that the input has: without {', '.join(described)}; write to .tif to keep it"
        )
    kept = _KEPT_BY_PAGES if form.name == "TIFF" else ()
    beside = [words for words in clip.details.get("beside", ()) if words not in kept]
    if beside and form.name != FOLDER:
        notes.append(
            f"{form.name} cannot hold all that the frames have: without {', '.join(beside)}; write to a folder of "
            "frames to keep it"
        )
    if clip.times is None and (chosen or animation):
        notes.append(
            f"nothing is known of the input's frame rate; {path} shows {DEFAULT_RATE} frames a second; give it by "
            "`frame_rate`"
        )
    if chosen:
        return notes + encode.check(path, clip, form, chosen)
    if form.name == FOLDER:
        notes += frame_folder.check(path, clip)
    if animation:
        if form.name == "GIF":
            notes.append(
                "GIF holds 256 colours a frame: where there are more, known pixels change a little; write to .webp to "
                "keep them"
            )
        if not animate.durations(clip, form.name)[1]:
            notes.append(f"{form.name} cannot hold the times of the frames exactly; they are rounded")
    elif clip.times is not None:
        notes.append(
            f"{'a folder of frames' if form.name == FOLDER else form.name} holds no times: the frame rate is not kept"
        )
    return notes + encode.lost_companions(clip, form)


def _codec(path, form, clip, name):
    """The `Codec` of that name, None where `form` has none; OutputError where it has others."""
    if name and name not in form.codecs:
        choice = f"use one of {', '.join(form.codecs)}" if form.codecs else "leave `codec` out"
        raise OutputError(f"{path}: {form.name} takes no codec {name}; {choice}")
    return form.codec(clip, name)


def _able(clip):
    """Words for what can hold a clip: formats, with the codec where it is not the default."""
    able = []
    for form in (form for form in CLIP_FORMATS.values() if form.is_written):
        codecs = [name for name in form.codecs if form.holds(clip, CODECS[name])]
        if form.extensions and form.holds(clip):
            able.append(form.extensions[0] + (f" with `codec={codecs[0]}`" if codecs else ""))
    return " or ".join(able) or "a folder of frames"


def write_clip(frames, path, clip, *, codec=None, quality=None, replace=False):
    """Write a clip; it appears whole or not at all, and takes part in `files.together`.

    Sound, subtitles, attachments, chapters and tags of the file that `clip` was read from go along packet by packet
    where the format has a place for them, and the times of the frames as they were.

    Parameters
    ----------
    frames : iterable of Media
        As many as the clip has, of its shape and dtype; taken one by one.
    path : path-like
    clip : Clip
    codec, quality
        See `check_clip`.
    replace : bool
        Whether a file or a folder that exists is replaced.

    Raises
    ------
    OutputError
        As `check_clip` does, and for failures to write.
    ValueError
        More or fewer frames than the clip has, or of another shape or dtype.
    """
    from . import animate, encode, frame_folder, npy_frames, tiff_pages

    check_clip(path, clip, codec=codec, quality=quality)
    form = named(path, OutputError)
    frames = _checked(frames, clip)
    if form.codecs:
        chosen = _codec(path, form, clip, codec)
        write_file(
            path, lambda file: encode.write(frames, file, clip, form, chosen, quality or QUALITY), replace=replace
        )
    elif form.name == FOLDER:
        write_folder(path, lambda made: frame_folder.write(frames, made, clip, quality), replace=replace)
    elif form.name == "NPY":
        write_file(path, lambda file: npy_frames.write(frames, file, clip), replace=replace)
    elif form.name == "TIFF":
        write_file(path, lambda file: tiff_pages.write(frames, file, clip), replace=replace)
    else:
        write_file(path, lambda file: animate.write(frames, file, clip, form.name), replace=replace)


def _checked(frames, clip):
    """Iterate over `frames`; ValueError where they are not as many, or not as large, as the clip says."""
    count = 0
    for count, media in enumerate(frames, 1):
        if count > clip.count or media.values.shape != clip.shape or np.dtype(media.values.dtype) != clip.dtype:
            raise ValueError(
                f"frame {count - 1} has shape {media.values.shape} and type {media.values.dtype}; the clip has {clip}"
            )
        yield media
    if count != clip.count:
        raise ValueError(f"{count} frames for a clip of {clip.count}")
