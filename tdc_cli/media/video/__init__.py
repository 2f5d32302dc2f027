"""Clips in and out: `read_clip` finds the right module by what a file is; `formats` says what each kind can hold."""

from ...errors import InputError
from ..files import absence
from .clip import Clip
from .formats import CLIP_FORMATS, FOLDER, named

__all__ = ["CLIP_FORMATS", "Clip", "named", "read_clip"]


def read_clip(path):
    """Open a clip: a file, or a folder of frames.

    Every frame is decoded once, so that the number of frames and their times are sure and damage is found before any work.

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
    from . import animation, container, folder, pages, stack

    nothing = absence(path)
    if nothing:
        raise InputError(f"{path}: {nothing}")
    form = named(path)
    if form.demuxer:
        return container.read(path, form)
    readers = {"NPY": stack.read_array, "TIFF": pages.read_pages, FOLDER: folder.read_folder}
    return readers.get(form.name, animation.read_animation)(path, form)
