"""Scans of several pages: the one that is meant, and dust found by the infrared scan on a further page."""

import io
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import report_of
from PIL import Image

SIZE = (80, 96)
QUICK = ["--method", "linear"]


def scan(dtype="uint16"):
    """Film in colours with dust on it, its infrared scan, the film without dust, and where the dust is."""
    top, rng = np.iinfo(dtype).max, np.random.default_rng(0)
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    film = np.stack([0.5 + 0.3 * np.sin(rows / 11 + c) + 0.1 * np.cos(columns / 9) for c in range(3)], axis=2)
    dust = ((rows - 30) ** 2 + (columns - 40) ** 2 < 12) | (
        (rows > 50) & (abs(columns - 20 - rows / 4) < 1)
    )  # a speck and a hair
    # Lamps fall off towards the corners, and the dyes hold back a little of infrared, too.
    lamp = 0.9 - 0.3 * ((rows / SIZE[0] - 0.5) ** 2 + (columns / SIZE[1] - 0.5) ** 2) - 0.02 * film[..., 0]
    infrared = lamp * np.where(dust, 0.4, 1.0) + rng.normal(0, 0.004, SIZE)
    scanned = np.where(dust[..., None], 0.95, film)
    return *((top * np.clip(a, 0, 1)).astype(dtype) for a in (scanned, infrared, film)), dust


def write(path, *pages, kinds=None):
    with tifffile.TiffWriter(path) as file:
        for page, kind in zip(pages, kinds or [0] * len(pages)):
            file.write(page, photometric="rgb" if page.ndim == 3 else "minisblack", subfiletype=kind, metadata=None)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("first", [False, True])
def test_dust_is_found_in_infrared_and_filled(tdc, dtype, first):
    scanned, infrared, film, dust = scan(dtype)
    small = scanned[::8, ::8]
    pages, kinds = ([infrared, scanned, small], [0, 0, 1]) if first else ([scanned, small, infrared], [0, 1, 0])
    write("scan.tif", *pages, kinds=kinds)
    result = tdc(
        "complete-image", "scan.tif", "-o", "b.tif", "--mask", "ir", *QUICK, "--json", "--save-incomplete", "i.tif"
    )
    report = report_of(result)
    assert report["missing"]["source"] == "infrared"
    made, marked = tifffile.imread("b.tif"), np.asarray(Image.open("i_mask.png")) > 0
    assert marked[dust].all() and marked.mean() < 2.5 * dust.mean() and np.array_equal(made[~marked], scanned[~marked])
    error = np.abs(made.astype(float) - film) / np.iinfo(dtype).max
    assert error.max() < 0.06
    told = " ".join(report["warnings"])
    assert "of its surroundings in the infrared scan is missing" in told
    assert (
        "scan.tif: is read without its reduced copies or masks on further pages, infrared scan, which only tells where "
        "dust is" in told
    )
    with tifffile.TiffFile("b.tif") as file:
        assert len(file.pages) == 1


def test_a_page_that_is_named_is_completed_alone(tdc):
    scanned, infrared, *_ = scan()
    write("scan.tif", scanned, infrared[:40], scanned[:, ::-1])
    mask = np.zeros(SIZE, np.uint8)
    mask[10:14, 20:30] = 255
    tifffile.imwrite("mask.tif", mask)
    result = tdc("complete-image", "scan.tif", "-o", "b.tif", "--page", 2, "--mask", "mask.tif", *QUICK)
    assert result.exit_code == 0 and "scan.tif: is read without its further pages" in result.stderr
    made = tifffile.imread("b.tif")
    assert np.array_equal(made[mask == 0], scanned[:, ::-1][mask == 0]) and not np.array_equal(made, scanned[:, ::-1])
    grey = tdc("complete-image", "scan.tif", "-o", "c.png", "--page", 1, "--missing-ratio", 0.1, *QUICK)
    assert grey.exit_code == 0 and Image.open("c.png").size == (96, 40)
    piped = tdc(
        "complete-image", "-", "-o", "-", "--page", 2, "--mask", "mask.tif", *QUICK, input=Path("scan.tif").read_bytes()
    )
    assert np.array_equal(tifffile.imread(io.BytesIO(piped.stdout_bytes)), made)


@pytest.mark.parametrize(
    "pages, args, error",
    [
        (
            "ci",
            [],
            "scan.tif: holds 2 pages; give --page 0 or 1, or --pages all; if one of them is an infrared scan of the "
            "other, --mask ir finds dust by it",
        ),
        ("cc", [], "scan.tif: holds 2 pages; give --page 0 or 1, or --pages all"),
        ("ccc", ["--page", "3"], "scan.tif: page 3 is no picture of its own; give --page 0, 1 or 2"),
        ("ct", ["--page", "1"], "scan.tif: page 1 is no picture of its own; give --page 0"),
        (
            "c",
            ["--mask", "ir"],
            "scan.tif: --mask ir needs one further page that is grey and of the same size as the colours, and no page "
            "is; ",
        ),
        (
            "cs",
            ["--mask", "ir"],
            "scan.tif: page 1, in grey, is 24x20 pixels and page 0, in colours, 96x80; --mask ir needs an infrared "
            "scan of the size of the colours: scale it, or save it as a picture with dust in white and give it as "
            "--mask",
        ),
        (
            "cii",
            ["--mask", "ir"],
            "pages 1 and 2 may both be; save the infrared scan as a picture with dust in white and give it as --mask",
        ),
        ("cci", ["--mask", "ir"], "scan.tif: holds 3 pages; give --page 0, 1 or 2, or --pages all"),
        (
            "ci",
            ["--mask", "ir", "--invert-mask"],
            "--invert-mask needs a mask picture; --mask ir always takes what is dark in infrared as",
        ),
        (
            "cf",
            ["--mask", "ir"],
            "scan.tif: nothing in its infrared scan is darker than 94% of its surroundings; give a mask picture",
        ),
        (
            "cb",
            ["--mask", "ir"],
            "scan.tif: its infrared scan is black or not finite in places as large as 32 pixels; give a mask picture",
        ),
    ],
)
def test_what_is_not_clear_is_said_in_a_line(tdc, pages, args, error):
    scanned, infrared, *_ = scan()
    every = {
        "c": scanned,
        "i": infrared,
        "t": scanned[::8, ::8],
        "s": infrared[::4, ::4],
        "f": np.full(SIZE, 900, np.uint16),
        "b": np.zeros(SIZE, np.uint16),
    }
    write("scan.tif", *(every[page] for page in pages), kinds=[page == "t" for page in pages])
    more = args if "ir" in args else [*args, "--missing-ratio", "0.1"]
    result = tdc("complete-image", "scan.tif", "-o", "b.tif", *more, *QUICK)
    assert result.exit_code == 2 and error in result.stderr and result.stderr.count("tdc: ") == 1
    assert not Path("b.tif").exists()


def test_a_page_of_another_size_than_the_mask_is_named(tdc):
    scanned, _, _, dust = scan()
    write("scan.tif", scanned, scanned[:40, :48], scanned)
    Image.fromarray(np.where(dust, 255, 0).astype(np.uint8)).save("dust.png")
    how = ["complete-image", "scan.tif", "-o", "b.tif", "--pages", "all", *QUICK]
    result = tdc(*how, "--mask", "dust.png")
    assert (result.exit_code, result.stderr) == (
        2,
        f"tdc: page 1: mask dust.png is {SIZE[1]}x{SIZE[0]} pixels but picture scan.tif is 48x40; they must have the "
        "same size; complete this page by itself, --page 1, with one of its size\n",
    )
    result = tdc(*how, "--mask-box", "2,2,9,9", "--keep", "dust.png")
    assert result.exit_code == 2 and result.stderr.startswith(
        f"tdc: page 1: keep dust.png is {SIZE[1]}x{SIZE[0]} pixels but picture scan.tif is 48x40; they must have"
    )
    assert not Path("b.tif").exists()


def test_other_formats_have_no_pages(tdc):
    for args in (["--page", "0"], ["--mask", "ir"], ["--pages", "all"]):
        result = tdc("complete-image", "a.png", "-o", "b.tif", *args, *QUICK)
        assert result.exit_code == 2
        assert (
            f"a.png: is a PNG file, and {' '.join(args).replace(' 0', '').replace(' all', '')} is for pages of TIFF "
            "files; leave it out"
            in result.stderr
        )


def test_film_that_blocks_infrared_is_suspected(tdc):
    scanned, infrared, *_ = scan()
    silver = np.where(np.random.default_rng(1).random(SIZE) < 0.1, infrared // 3, infrared)
    write("scan.tif", scanned, silver)
    result = tdc("complete-image", "scan.tif", "-o", "b.tif", "--mask", "ir", *QUICK)
    assert (
        result.exit_code == 0
        and "are much for dust; black-and-white film and Kodachrome block infrared themselves" in result.stderr
    )


def test_every_page_is_completed_and_the_file_is_whole_again(tdc):
    scanned, infrared, _, dust = scan()
    tags = [(269, "s", 0, "film 7", True)]
    with tifffile.TiffWriter("scan.tif", byteorder=">") as file:
        file.write(scanned, photometric="rgb", tile=(32, 32), metadata=None, extratags=tags, resolution=(300, 300))
        file.write(scanned[::8, ::8], photometric="rgb", subfiletype=1, metadata=None)
        file.write(infrared, photometric="minisblack", metadata=None, description="second")
        file.write((scanned // 256).astype(np.uint8)[:, ::-1], photometric="rgb", planarconfig="contig", metadata=None)
    Image.fromarray(np.where(dust, 255, 0).astype(np.uint8)).save("dust.png")
    how = ["complete-image", "scan.tif", "-o", "b.tif", "--pages", "all", "--mask", "dust.png", *QUICK]
    dry = tdc(*how, "--dry-run")
    assert dry.exit_code == 0 and dry.stdout.count("pixels missing") == 3 and not Path("b.tif").exists()
    result = tdc(*how)
    assert result.exit_code == 0, result.stderr
    assert (
        "without its reduced copies or masks on further pages" in result.stderr
        and "without its further pages" not in result.stderr
    )
    with tifffile.TiffFile("b.tif") as made, tifffile.TiffFile("scan.tif") as given:
        assert made.byteorder == ">" and len(made.pages) == 3
        for page, before in zip(made.pages, [given.pages[k] for k in (0, 2, 3)], strict=True):
            values, known = page.asarray(), before.asarray()
            assert (values.shape, values.dtype, page.tile) == (known.shape, known.dtype, before.tile)
            assert np.array_equal(values[~dust], known[~dust]) and not np.array_equal(values, known)
            assert page.description == before.description and page.get_resolution() == before.get_resolution()
        assert made.pages[0].tags.valueof(269) == "film 7"
        # Each is what it would be as a picture of its own.
        assert tdc(*how[:3], "c.tif", "--page", 2, *how[6:]).exit_code == 0
        assert np.array_equal(made.pages[1].asarray(), tifffile.imread("c.tif"))
    skipped = tdc(*how, "--skip-existing")
    assert skipped.exit_code == 0 and "b.tif: exists already and is skipped" in skipped.stderr
    assert tdc(*how).exit_code == 2


@pytest.mark.parametrize("args, error", [
    (["--report", "r.json"], "--report is of one picture; leave it out, or name a --page in place of --pages"),
    (["--page", "0"], "--pages and --page exclude each other"),
    (["-o", "b.png"], "b.png: only TIFF holds pages that differ; write to .tif"),
    (["--json"], "--json tells of one picture; name a --page, or leave it out"),
    (["--mask", "m.png"], "mask m.png is 24x20 pixels but picture scan.tif is 96x80; they must have the same size"),
])  # fmt: skip
def test_what_all_pages_cannot_have_is_said_in_a_line(tdc, args, error):
    scanned, infrared, *_ = scan()
    write("scan.tif", scanned, infrared)
    holes = [] if "--mask" in args else ["--missing-ratio", "0.1"]
    result = tdc("complete-image", "scan.tif", "-o", "b.tif", "--pages", "all", *holes, *args, *QUICK)
    assert result.exit_code == 2 and error in result.stderr
    assert not Path("b.tif").exists()
