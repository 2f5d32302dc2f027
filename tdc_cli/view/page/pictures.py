"""Arrays as PNG and JPEG inside a page, scaled down to a bound."""

import base64
import io

import numpy as np
from PIL import Image

from ..display import colours, limits, over_checkerboard, reduced, to_bytes

# What a page shows of a picture at most, so that it stays one that a phone can open: full HD, and sides that every
# browser can draw.
MOST_PIXELS = 1920 * 1080
LONGEST_SIDE = 8192
# Small pictures are shown enlarged by a whole number, up to this width and height.
ROOM = (1016, 800)
THUMBNAIL = 112
THUMBNAIL_QUALITY = 80


def enlargement(height, width):
    """Whole number by which a picture of this size is shown enlarged, 1 for large ones."""
    return max(1, min(ROOM[0] // width, ROOM[1] // height))


def photograph(picture, low, high, factor, inks=False, alpha=None, premultiplied=False, icc_profile=None):
    """Data URI of a PNG of `picture`, (H, W) or (H, W, C); see `display.to_bytes` and `display.over_checkerboard` for
    the others.
    """
    shown = reduced(over_checkerboard(to_bytes(picture, low, high, inks), alpha, premultiplied), factor)
    # A colour profile belongs to the channels of the file; those that were averaged have none.
    if icc_profile and shown.shape[2:] == picture.shape[2:]:
        return _png(Image.fromarray(np.ascontiguousarray(shown)), icc_profile=icc_profile)
    return _plain(shown)


def heat(values, end, factor):
    """Data URI of a PNG of (H, W) `values` on the colour scale from 0 to `end`."""
    levels = np.rint(255 * np.clip(reduced(values / end, factor), 0, 1)).astype(np.uint8)
    picture = Image.fromarray(levels)
    picture.putpalette(colours().tobytes())
    return _png(picture)


def scale():
    """Data URI of a PNG, 256 x 1 pixels, of the colour scale."""
    return _plain(colours()[None])


def holes(missing, factor):
    """Data URI of a PNG, white and as opaque as the share of channels that are missing, of (H, W[, C]) bool `missing`.
    """
    share = missing if missing.ndim == 2 else missing.mean(axis=2, dtype=np.float32)
    opacity = reduced(np.rint(255 * share).astype(np.uint8), factor)
    return _plain(np.stack([np.full_like(opacity, 255), opacity], axis=2))


def thumbnail(colour, full_range, inks=False):
    """Small JPEG of a picture, at most `THUMBNAIL` pixels wide and high.

    Parameters
    ----------
    colour : (H, W) or (H, W, C) ndarray
    full_range : int or None
        See `display.limits`.
    inks : bool
        See `display.to_bytes`.

    Returns
    -------
    bytes
    """
    picture = Image.fromarray(np.ascontiguousarray(to_bytes(colour, *limits(full_range, colour), inks)))
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    return _encoded(picture, "JPEG", quality=THUMBNAIL_QUALITY)


def data_uri(content, kind):
    """`content` as a data URI of the media type ``image/kind``."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _plain(values):
    return _png(Image.fromarray(np.ascontiguousarray(values)))


def _png(picture, **options):
    return data_uri(_encoded(picture, "PNG", **options), "png")


def _encoded(picture, name, **options):
    buffer = io.BytesIO()
    picture.save(buffer, name, **options)
    return buffer.getvalue()
