"""Frames for the player of a page: scaled down, compressed as they come, and no more than a page has room for.

They are pictures, not an encoded clip: a reader steps to exactly the frame that was asked for and sees its pixels without what a codec of
clips makes of them, all pictures of a frame are shown together, and every browser can show them.
"""

import hashlib
import io
from collections import deque
from dataclasses import dataclass

import numpy as np
from PIL import Image

from ..shots import MOST_PIXELS, reduction
from .pictures import data_uri

# Pixels of all frames and pictures of a player: 86 frames of 640 x 360, incomplete and completed. In the page a film then takes 13 MB, and
# noise, the worst case, 48.
ROOM = 2 * 86 * MOST_PIXELS
# Up to so many pixels are compressed without loss, which takes three bytes for each at most.
ROOM_WITHOUT_LOSS = ROOM // 10
QUALITY = 85
# Of a clip that is too long, the frames from so many before the first with holes.
LEAD = 12


@dataclass(frozen=True)
class Frame:
    """A frame of the player.

    Attributes
    ----------
    number : int
        Of the frame in its clip, counted from 0.
    time : float or None
        Seconds from the beginning.
    share : float
        Of its entries that is missing.
    pictures : dict of str to str
        "incomplete", "completed", "truth" where known, and "mask": keys of `Reel.images`.
    """

    number: int
    time: float | None
    share: float
    pictures: dict


class Reel:
    """Takes the shots of a clip one after another and keeps what the player shows.

    Parameters
    ----------
    count : int
        Frames of the clip. A clip with more than there is room for is shown from shortly before its first hole.

    Attributes
    ----------
    images : dict of str to str
        Key to data URI; pictures that are alike are there once.
    size : tuple of int
        Height and width of the pictures.
    factor : int
        By which both sides of the clip's frames were divided.
    lossless : bool
    """

    def __init__(self, count):
        self.count = count
        self.images = {}
        self.size = None
        self.factor = 1
        self.lossless = True
        self._frames = []
        self._waiting = deque(maxlen=LEAD)
        self._most = None

    def add(self, shot):
        """Take notice of the next `shot` of the clip."""
        if self._most is None:
            self._open(shot)
        if self._frames or self.count <= self._most or shot.changed:
            for earlier in self._waiting:
                self._append(earlier)
            self._waiting.clear()
            self._append(shot.small())
        else:
            self._waiting.append(shot.small())

    @property
    def frames(self):
        """List of Frame, of consecutive numbers; empty before the first shot."""
        if not self._frames:
            # Nothing has changed in the whole clip.
            for shot in self._waiting:
                self._append(shot)
        return self._frames

    def _append(self, shot):
        if len(self._frames) == self._most:
            return
        kept = {name: self._keep(Image.fromarray(np.ascontiguousarray(picture))) for name, picture in shot.pictures.items()}
        opacity = np.rint(255 * shot.missing).astype(np.uint8)
        kept["mask"] = self._keep(Image.fromarray(np.stack([np.full_like(opacity, 255), opacity], axis=2)), lossless=True)
        self._frames.append(Frame(shot.number, shot.time, shot.share, kept))

    def _open(self, shot):
        height, width = shot.missing.shape
        self.factor = reduction(height, width)
        self.size = -(-height // self.factor), -(-width // self.factor)
        each = self.size[0] * self.size[1] * len(shot.pictures)
        self._most = max(1, ROOM // each)
        self.lossless = min(self.count, self._most) * each <= ROOM_WITHOUT_LOSS

    def _keep(self, picture, lossless=False):
        """Key of `picture` among `images`."""
        buffer = io.BytesIO()
        # What is transparent keeps its colours, else what masks say would depend on how they are shown.
        picture.save(buffer, "WEBP", lossless=lossless or self.lossless, quality=QUALITY, method=2, exact=True)
        content = buffer.getvalue()
        key = hashlib.sha256(content).hexdigest()[:16]
        self.images.setdefault(key, data_uri(content, "webp"))
        return key
