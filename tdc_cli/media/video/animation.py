"""Animated GIF, APNG and WebP, and pages of TIFF with up to 8 bits a channel, by Pillow."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...errors import InputError
from .. import metadata
from ..files import digest
from ..limits import check_size
from ..pillow import in_known_mode, silent_decoder
from ..pixels import Media
from .clip import Clip

_NAMES = {"GIF": ("GIF",), "APNG": ("PNG",), "WebP": ("WEBP",), "TIFF": ("TIFF",)}
_LARGEST_DENOMINATOR = (
    65535 * 1000
)  # of a duration in seconds: APNG has two numbers of 16 bits, of which Pillow makes milliseconds


def read_animation(path, form):
    """Clip of an animation; see `read_clip`.

    Parameters
    ----------
    path : path-like
    form : ClipFormat
    """
    sha256 = digest(path)
    modes, durations, size, notes, loop = set(), [], None, (), None
    for picture in _pictures(path, form, 0):
        found, notes = in_known_mode(picture, path) if form.name == "TIFF" else (_named_colours(picture, form), ())
        modes.add(_least_mode(found))
        loop = picture.info.get("loop", loop)
        durations.append(Fraction(picture.info.get("duration", 0) / 1000).limit_denominator(_LARGEST_DENOMINATOR))
        size = size or picture.size
        if picture.size != size:
            raise InputError(
                f"{path}: page {len(durations) - 1} has {picture.width}x{picture.height} pixels, those before it "
                f"{size[0]}x{size[1]}; all frames of a clip must be alike"
            )
    mode = _common_mode(modes)
    channels = {"L": (), "LA": (2,), "RGB": (3,), "RGBA": (4,), "CMYK": (4,)}[mode]
    rate, times, end = _timing(durations) if any(durations) else (None, None, None)
    details = {"plays": _plays(form.name, loop), "durations": tuple(durations)} if times else {}
    return Clip(
        str(path),
        sha256,
        form.name,
        len(durations),
        (*size[::-1], *channels),
        np.dtype(np.uint8),
        mode,
        rate,
        times,
        tuple(notes),
        end,
        details=details,
        source=_Pictures(str(path), form, sha256, mode),
    )


def _plays(name, loop):
    """How often an animation is shown, 0 without end; a GIF counts repetitions, and is shown once where it says
    nothing.
    """
    if name == "GIF":
        return 1 if loop is None else loop + 1 if loop else 0
    return loop or 0


def _timing(durations):
    """Rate, where all frames last equally long, times and end."""
    ends = np.cumsum(durations).tolist()
    rate = 1 / durations[0] if len(set(durations)) == 1 else None
    return rate, (Fraction(0), *ends[:-1]), ends[-1]


def _named_colours(picture, form):
    """`picture` in one of the modes of `Media`; palettes as RGBA."""
    if picture.mode in ("I;16", "I"):
        raise InputError(
            f"{picture.filename}: an animation with 16 bits is not read; save its frames as pictures in a folder"
        )
    if form.name == "GIF" or picture.mode not in ("L", "LA", "RGB", "RGBA") or "transparency" in picture.info:
        return picture.convert("RGBA")
    return picture


def _least_mode(picture):
    """The mode of a picture, without alpha where all of it is opaque."""
    if picture.mode == "RGBA" and picture.getextrema()[3] == (255, 255):
        return "RGB"
    return picture.mode


def _common_mode(modes):
    """The mode that holds frames of all these modes."""
    if len(modes) == 1:
        return next(iter(modes))
    return "RGBA" if modes & {"LA", "RGBA"} else "RGB"


def _pictures(path, form, start) -> Iterator:
    """Iterate over frames as Pillow has them, from that number on."""
    from PIL import Image, UnidentifiedImageError

    number = start
    try:
        with warnings.catch_warnings(), silent_decoder():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=_NAMES[form.name]) as picture:
                check_size(picture.width, picture.height, path)
                # Of an APNG, for programs that know no animations.
                hidden = int(
                    getattr(picture, "default_image", False)
                )
                for number in range(start, getattr(picture, "n_frames", 1) - hidden):
                    picture.seek(number + hidden)
                    picture.load()
                    yield picture
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"{path}: too large ({error})") from error
    except UnidentifiedImageError as error:
        raise InputError(
            f"{path}: not a readable {form.name} file; damaged at its start, or of another kind"
        ) from error
    except metadata.DAMAGE as error:
        if isinstance(error, OSError) and error.errno:
            raise metadata.damaged(path, error) from error
        raise InputError(f"{path}: damaged or cut short at frame {number} ({error}); get the file again") from error


@dataclass(frozen=True)
class _Pictures:
    """The frames of an animation; see `clip.Source`."""

    path: str
    form: object
    sha256: str
    mode: str

    def frames(self, start, stop):
        """Iterate over frames."""
        for number, picture in enumerate(_pictures(self.path, self.form, start), start):
            if number == stop:
                return
            made = (
                in_known_mode(picture, self.path)[0] if self.form.name == "TIFF" else _named_colours(picture, self.form)
            )
            if made.mode != self.mode:
                made = made.convert("RGBA").convert(self.mode)
            yield Media(np.array(made), self.mode, self.path, self.sha256, format=self.form.name)
