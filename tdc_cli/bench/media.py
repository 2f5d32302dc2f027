"""Pictures, clips, masks and sets of faces: from a folder of the user's, or made from sample photographs for who has
none.

    images/NAME.png      photographs, grey or in colours, in any format that `tdc complete-image` reads
    videos/NAME.npy      clips, in any format that `tdc complete-video` reads
    masks/KIND_HxW.png   white = missing; KIND is scribble or text, the size that of the clips
    faces/NAME.npy       persons x poses x lights x pixels, integers; the pixels row by row of squares

What is not there is asked for by name; masks that are not there are drawn.
"""

from pathlib import Path

import numpy as np

from .. import holes
from ..errors import InputError
from ..media import masks, read
from ..media.video import read_clip
from . import samples

# Kind of mask -> pattern and share of the pixels, where the folder has no such mask.
DRAWN = {"scribble": ("scratches", 0.1), "text": ("text", 0.15)}
MASK_STREAM = 3


def names(data, kind, sample):
    """Names of what the folder `data` has of a `kind`, ``images`` for example, in alphabetical order; `sample` where it
    is None.

    Raises
    ------
    InputError
        The folder has none.
    """
    if data is None:
        return tuple(sample)
    found = sorted(
        {path.stem for path in Path(data, kind).glob("*") if path.is_file() and not path.name.startswith(".")}
    )
    if not found:
        raise InputError(f"{data}: has nothing in {kind}/; docs/bench.md says how the folder is laid out")
    return tuple(found)


def _file(data, kind, name):
    found = sorted(path for path in Path(data, kind).glob("*") if path.stem == name)
    if not found:
        raise InputError(f"{Path(data, kind)}: has no {name} any more")
    return found[0]


def photograph(data, name):
    """A photograph, (H, W) or (H, W, C) ndarray in [0, 1], and the step between its values."""
    if data is None:
        return samples.photograph(name, samples.SIDE) / 255, 1 / 255
    media = read(_file(data, "images", name))
    return media.colour / media.full_range, 1 / media.full_range


def clip(data, name):
    """A clip, (H, W, C, T) or (H, W, T) ndarray in [0, 1], and the step between its values."""
    if data is None:
        return samples.clip(name) / 255, 1 / 255
    found = read_clip(_file(data, "videos", name))
    frames = [frame.colour for frame in found.frames()]
    return np.stack(frames, axis=-1) / found.full_range, 1 / found.full_range


def mask(data, kind, size):
    """A mask of this kind and size, (H, W) ndarray of bool, True = observed: the folder's, or one that is drawn."""
    path = None if data is None else Path(data, "masks", f"{kind}_{size[0]}x{size[1]}.png")
    if path is None or not path.exists():
        pattern, share = DRAWN[kind]
        return holes.simulate(tuple(size), share, pattern, np.random.default_rng(MASK_STREAM))
    levels, alpha = masks.read_mask(path)
    return holes.from_image(levels, alpha, tuple(size), name=str(path), picture=f"{size[1]}x{size[0]}").observed


def faces(data, name, persons):
    """The first `persons` of a set of faces, (persons, poses, lights, pixels) ndarray in [0, 1].

    Raises
    ------
    InputError
        Not an array of that kind.
    """
    if data is None:
        return samples.faces() / 255
    path = _file(data, "faces", name)
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not readable as an array ({error})") from error
    if found.ndim != 4 or found.dtype.kind != "u" or round(found.shape[3] ** 0.5) ** 2 != found.shape[3]:
        raise InputError(
            f"{path}: has shape {found.shape} and type {found.dtype}; faces are unsigned integers, persons x poses x "
            "lights x pixels, the pixels of a square"
        )
    return found[:persons] / np.iinfo(found.dtype).max
