"""Makes the files of this folder from photographs that scikit-image brings along; run again only to change them.

python sample_data/make.py
"""

from pathlib import Path

import numpy as np
import skimage.data
from PIL import Image

from tdc_cli import missing

FOLDER = Path(__file__).parent


def photograph(name, box, size):
    """Crop the photograph to `box` (left, top, right, bottom), scale it to `size` (width, height)."""
    picture = Image.fromarray(getattr(skimage.data, name)())
    picture.crop(box).resize(size, Image.Resampling.LANCZOS).save(FOLDER / f"{name}.png", optimize=True)


def mask(name, absent):
    """White = missing."""
    Image.fromarray(np.where(absent, 255, 0).astype(np.uint8)).convert("1").save(FOLDER / f"mask_{name}.png", optimize=True)


def dots(size, count, radius, rng):
    """(H, W) bool, True in `count` discs."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    absent = np.zeros(size, dtype=bool)
    for top, left in rng.uniform(0, size, (count, 2)):
        absent |= (rows - top) ** 2 + (columns - left) ** 2 <= radius**2
    return absent


if __name__ == "__main__":
    photograph("astronaut", (0, 0, 512, 512), (256, 256))
    photograph("chelsea", (0, 0, 450, 300), (300, 200))
    photograph("camera", (0, 0, 512, 512), (256, 256))
    mask("text", ~missing.simulate((256, 256), 0.15, "text", np.random.default_rng(1)))
    mask("scratches", ~missing.simulate((256, 256), 0.05, "scratches", np.random.default_rng(1)))
    mask("dots", dots((256, 256), 120, 4.5, np.random.default_rng(1)))
    mask("dots_300x200", dots((200, 300), 110, 4.5, np.random.default_rng(1)))
