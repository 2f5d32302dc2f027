"""Frames for the player of a page: scaled down, compressed as they come, and no more than a page has room for.

They are pictures, not an encoded clip: a reader steps to exactly the frame that was asked for and sees its pixels
without what a codec of clips makes of them, all pictures of a frame are shown together, and every browser can show
them.
"""

import hashlib
import io
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from ..display import reduction, top
from ..shots import MOST_PIXELS
from .pictures import data_uri, heat

# Pixels of all frames and pictures of a player: 86 frames of 640 x 360, incomplete and completed. In the page a film
# then takes 13 MB, and noise, the worst case, 48.
ROOM = 2 * 86 * MOST_PIXELS
# However small they are: each takes half a kilobyte of names and figures in the page, and milliseconds to compress.
MOST_FRAMES = 1000
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
        Names of `shots.Shot` and "mask", and those of `Reel.join`, to keys of `Reel.images`.
    sizes : dict of str to (H, W) ndarray of float32
        What has no picture yet.
    """

    number: int
    time: float | None
    share: float
    pictures: dict
    sizes: dict = field(default_factory=dict, repr=False)


class Reel:
    """Takes the shots of a clip one after another and keeps what the player shows; `finish` makes the rest.

    Parameters
    ----------
    count : int
        Frames of the clip. A clip with more than there is room for is shown from shortly before its first hole.
    answers : int
        Completed pictures of each frame that there must be room for: that of `add`, and those of `join`.

    Attributes
    ----------
    frames : list of Frame
        Of consecutive numbers.
    images : dict of str to str
        Key to data URI; pictures that are alike are there once.
    end : float
        Upper end of the colour scale of uncertainty and error, once finished.
    beyond : bool
        Whether some values lie above it.
    size : tuple of int
        Height and width of the pictures.
    factor : int
        By which both sides of the clip's frames were divided.
    lossless : bool
    """

    def __init__(self, count, answers=1):
        self.count = count
        self.answers = answers
        self.frames = []
        self.images = {}
        self.end, self.beyond = 1.0, False
        self.size = None
        self.factor = 1
        self.lossless = True
        self._waiting = deque(maxlen=LEAD + 1)
        self._most = None

    def add(self, shot):
        """Take notice of the next `shot` of the clip."""
        if self._most is None:
            self._open(shot)
        if len(self.frames) == self._most:
            return
        self._waiting.append(shot.small())
        if self.frames or self.count <= self._most or shot.changed:
            self._append_waiting()

    def join(self, shot, name):
        """Give the frame of a shot, if the player has it, the completed picture of this one too, under this name; all
        shots were added before.
        """
        place = shot.number - self.frames[0].number if self.frames else -1
        if 0 <= place < len(self.frames):
            picture = shot.small_picture("completed")
            self.frames[place].pictures[name] = self._keep(self._compressed(Image.fromarray(picture)))

    def finish(self):
        """Make pictures of uncertainty and error, whose colour scale all frames share; nothing if that was done
        already.
        """
        if not self.frames:
            # Nothing has changed in the whole clip.
            self._append_waiting()
        sizes = [size for frame in self.frames for size in frame.sizes.values()]
        if sizes:
            self.end, self.beyond = top(*sizes)
        for frame in self.frames:
            while frame.sizes:
                name, size = frame.sizes.popitem()
                frame.pictures[name] = self._keep(heat(size, self.end, 1))

    def _append_waiting(self):
        while self._waiting:
            shot = self._waiting.popleft()
            if len(self.frames) < self._most:
                self._append(shot)

    def _append(self, shot):
        kept = {name: self._keep(self._compressed(Image.fromarray(picture))) for name, picture in shot.pictures.items()}
        opacity = np.rint(255 * shot.missing).astype(np.uint8)
        mask = Image.fromarray(np.stack([np.full_like(opacity, 255), opacity], axis=2))
        kept["mask"] = self._keep(self._compressed(mask, lossless=True))
        self.frames.append(Frame(shot.number, shot.time, shot.share, kept, dict(shot.sizes)))

    def _open(self, shot):
        height, width = shot.missing.shape
        self.factor = reduction(height, width, MOST_PIXELS)
        self.size = -(-height // self.factor), -(-width // self.factor)
        each = self.size[0] * self.size[1] * (len(shot.pictures) + len(shot.sizes) + self.answers - 1)
        self._most = max(1, min(MOST_FRAMES, ROOM // each))
        self.lossless = min(self.count, self._most) * each <= ROOM_WITHOUT_LOSS

    def _compressed(self, picture, lossless=False):
        """Data URI of a WebP."""
        buffer = io.BytesIO()
        # What is transparent keeps its colours, else what masks say would depend on how they are shown.
        picture.save(buffer, "WEBP", lossless=lossless or self.lossless, quality=QUALITY, method=2, exact=True)
        return data_uri(buffer.getvalue(), "webp")

    def _keep(self, uri):
        """Key of a picture among `images`."""
        key = hashlib.sha256(uri.encode()).hexdigest()[:16]
        self.images.setdefault(key, uri)
        return key
