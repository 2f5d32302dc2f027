"""Writing of animated GIF, APNG and WebP: each frame is encoded as a picture, of which the animation is put together;
none is held.

Pillow writes animations too, but holds all frames, rounds the durations of APNG, and blends frames with alpha.
"""

import struct
import zlib
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate

import numpy as np

from .. import encode
from ..formats import FORMATS
from ..metadata import png_chunks
from .clip import DEFAULT_RATE

_UNITS = {"GIF": Fraction(1, 100), "WebP": Fraction(1, 1000)}  # of durations, in seconds
_LONGEST = {"GIF": 65_535, "WebP": (1 << 24) - 1}  # in units
_COLOURS = 256  # in a palette of GIF
_PNG_SIGNATURE = 8  # bytes
_NO_BLENDING = 2  # flag of a frame of WebP


def durations(clip, name):
    """How long each frame is shown, in seconds, as the format of that name can hold it; a list of Fraction, and whether
    that is exact.
    """
    if clip.times is None:
        return [1 / DEFAULT_RATE] * clip.count, True
    end = clip.end if clip.end is not None else clip.times[-1] + 1 / DEFAULT_RATE
    exact = list(clip.details.get("durations", ())) or [
        after - before for before, after in zip(clip.times, (*clip.times[1:], end))
    ]
    if name == "APNG":
        held = [_two_numbers(duration) for duration in exact]
    else:  # the times are rounded, not each duration: the errors must not add up
        unit = _UNITS[name]
        ticks = np.diff([0, *(round(time / unit) for time in accumulate(exact))]).tolist()
        held = [min(tick, _LONGEST[name]) * unit for tick in ticks]
    return held, held == exact


def _two_numbers(duration):
    """The nearest quotient of two numbers of 16 bits."""
    return min(duration, Fraction(65_535)).limit_denominator(max(1, min(65_535, int(65_535 / max(duration, 1)))))


def write(frames, file, clip, name):
    """Write an animation into an open binary file.

    Parameters
    ----------
    frames : iterable of Media
    file : binary file
    clip : Clip
        Where the frames come from.
    name : str
        ``GIF``, ``APNG`` or ``WebP``.
    """
    {"GIF": _write_gif, "APNG": _write_apng, "WebP": _write_webp}[name](frames, file, clip, durations(clip, name)[0])


def _write_gif(frames, file, clip, shown):
    from PIL import GifImagePlugin

    plays = clip.details.get("plays", 0)
    for number, (media, duration) in enumerate(zip(frames, shown)):
        picture, transparent = _with_palette(media)
        if not number:  # repetitions are counted, and a file that says nothing is shown once
            info = {} if plays == 1 else {"loop": max(plays - 1, 0)}
            file.writelines(GifImagePlugin.getheader(picture, info=info | {"duration": 10})[0])
        options = {"transparency": transparent, "disposal": 2} if clip.has_alpha else {}
        milliseconds = int(duration * 1000)
        file.writelines(GifImagePlugin.getdata(picture, duration=milliseconds, include_color_table=True, **options))
    file.write(b";")


def _with_palette(media):
    """`media` as a picture with a palette, exactly where its colours fit into one; and which of them is transparent, or
    None.
    """
    from PIL import Image

    rgb = media.colour.astype(np.uint32)
    hidden = media.values[..., 3] < 128 if media.has_alpha else np.zeros(rgb.shape[:2], dtype=bool)
    room = _COLOURS - bool(media.has_alpha)
    packed = np.where(hidden, 0, rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2])
    colours, index = np.unique(packed, return_inverse=True)
    if len(colours) <= room:
        palette = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.uint8).tobytes()
        index = index.reshape(packed.shape).astype(np.uint8)
    else:
        shown = np.where(hidden[..., None], 0, media.colour)
        picture = Image.fromarray(np.ascontiguousarray(shown)).quantize(room)
        palette, index = bytes(picture.getpalette()), np.array(picture)
    transparent = len(palette) // 3 if media.has_alpha else None
    if media.has_alpha:
        palette += bytes(3)
        index = np.where(hidden, np.uint8(transparent), index)
    made = Image.fromarray(index, mode="P")
    made.putpalette(palette)
    return made, transparent


def _write_apng(frames, file, clip, shown):
    number = 0  # of the chunks of the animation, in their order
    for count, (media, duration) in enumerate(zip(frames, shown)):
        content = encode(media, FORMATS["PNG"])
        control = _chunk(
            b"fcTL",
            struct.pack(
                ">5I2H2B",
                number,
                media.values.shape[1],
                media.values.shape[0],
                0,
                0,
                duration.numerator,
                duration.denominator,
                0,
                0,
            ),
        )
        number += 1
        if not count:
            file.write(content[:_PNG_SIGNATURE])
        started = False
        for name, chunk in png_chunks(content):
            if name == b"IDAT" and not started:
                started = True
                if not count:
                    file.write(_chunk(b"acTL", struct.pack(">2I", clip.count, clip.details.get("plays", 0))))
                file.write(control)
            if name == b"IDAT" and count:
                file.write(_chunk(b"fdAT", struct.pack(">I", number) + chunk[8:-4]))
                number += 1
            elif name != b"IEND" and not count:
                file.write(chunk)
    file.write(_chunk(b"IEND", b""))


def _chunk(name, content):
    """A chunk of a PNG file."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _write_webp(frames, file, clip, shown):
    height, width = clip.shape[:2]
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    file.write(b"RIFF\0\0\0\0WEBP")
    file.write(_riff(b"VP8X", struct.pack("<I", 0x02 | (0x10 if clip.has_alpha else 0)) + size))
    file.write(_riff(b"ANIM", struct.pack("<IH", 0, clip.details.get("plays", 0))))
    for media, duration in zip(frames, shown):
        plain = encode(replace(media, metadata={}), FORMATS["WebP"])
        pixels = b"".join(
            _riff(name, content) for name, content in _riff_chunks(plain) if name in (b"ALPH", b"VP8 ", b"VP8L")
        )
        length = struct.pack("<I", int(duration * 1000))[:3]
        file.write(_riff(b"ANMF", bytes(6) + size + length + bytes([_NO_BLENDING]) + pixels))
    end = file.tell()
    file.seek(4)
    file.write(struct.pack("<I", end - 8))


def _riff(name, content):
    """A chunk of a RIFF file."""
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


def _riff_chunks(content):
    """Iterate over the chunks of a RIFF file: name and content."""
    start = 12
    while start < len(content):
        length = int.from_bytes(content[start + 4 : start + 8], "little")
        yield content[start : start + 4], content[start + 8 : start + 8 + length]
        start += 8 + length + length % 2
