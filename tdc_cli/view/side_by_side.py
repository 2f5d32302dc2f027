"""Frames of a clip next to each other, each beneath its caption: what is written by `--side-by-side`.

Letters are drawn with Pillow; no file is opened or written here.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from PIL import Image, ImageDraw, ImageFont

GAP = 4
# Letters grow with the frames, within what can be read and what does not shout.
LETTERS = (10, 28)
FRAMES_TO_LETTERS = 20
BEHIND, INK = 24, 235


@dataclass(frozen=True)
class Layout:
    """Where frames and captions lie in the joined frames, whose sides are even, as many codecs ask for.

    Attributes
    ----------
    height, width : int
        Of a frame.
    names : tuple of str
        Which pictures of a `shots.Shot`, from left to right; also the captions.
    """

    height: int
    width: int
    names: tuple = ("incomplete", "completed")

    @property
    def shape(self):
        """(H, W, 3) of the joined frames."""
        height, width = self._bar + self.height, len(self.names) * (self.width + GAP) - GAP
        return height + height % 2, width + width % 2, 3

    def draw(self, shot):
        """Joined frame of `shot`, (H, W, 3) ndarray of uint8."""
        made = self._empty.copy()
        for i, name in enumerate(self.names):
            picture = shot.pictures[name]
            left = i * (self.width + GAP)
            made[self._bar : self._bar + self.height, left : left + self.width] = (
                picture if picture.ndim == 3 else picture[..., None]
            )
        return made

    @property
    def _letters(self):
        return min(max(self.height // FRAMES_TO_LETTERS, LETTERS[0]), LETTERS[1])

    @property
    def _bar(self):
        """Height of the captions."""
        return 2 * round(0.8 * self._letters)

    @cached_property
    def _empty(self):
        """What all frames have in common."""
        height, width, _ = self.shape
        image = Image.new("L", (width, height), BEHIND)
        for i, name in enumerate(self.names):
            # Captions of narrow frames are cut rather than drawn into each other.
            caption = Image.new("L", (self.width, self._bar), BEHIND)
            ImageDraw.Draw(caption).text((3, self._bar // 2), name, INK, ImageFont.load_default(self._letters), "lm")
            image.paste(caption, (i * (self.width + GAP), 0))
        return np.repeat(np.asarray(image)[..., None], 3, axis=2)
