"""Every choice that a user makes by name, and the names of what is measured.

Free of NumPy, so that ``tdc --help`` stays quick; tests hold the lists against what they name.
"""

from dataclasses import dataclass

PICTURE, CLIP, TENSOR = KINDS_OF_INPUT = ("picture", "clip", "tensor")
DEFAULT_METHODS = {PICTURE: "auto", CLIP: "auto", TENSOR: "datc"}

STANDARD = "-"  # in place of a path: standard input or output
ALPHA = "alpha"  # in place of a mask's path: what is transparent
INFRARED = "ir"  # in place of a mask's path: what the infrared scan on a further page shows as dust
NODATA = "nodata"  # in place of the path of what is kept: what is missing by its value alone
WHITE = (
    128  # level, of 255, from which on what a user paints counts as white, and what is transparent in part as opaque
)

# What says which entries are missing, in reports, and in words.
SAID_BY = {
    "mask": "by mask",
    "alpha": "as transparent",
    "infrared": "by infrared scan",
    "color": "by color",
    "box": "by box",
    "nan": "as NaN",
    "value": "by value",
    "simulated": "simulated",
}
PATTERNS = ("entries", "pixels", "rows", "columns", "blocks", "text", "scratches")
CLIP_PATTERNS = (*PATTERNS, "frames")
FORMATS = ("png", "jpg", "tif", "webp", "jxl", "jp2", "j2k", "exr", "bmp", "npy")
RESIDUALS = ("auto", "mixture", "none", "separable")
# Laws of the residual in synthetic problems.
RESIDUAL_LAWS = ("zero", "gaussian", "sparse", "mixture", "mixture-shifted")


@dataclass(frozen=True)
class Measure:
    """How near a result is to the truth, one number; `metrics.MEASURES` has the function of the same key.

    Attributes
    ----------
    key : str
        In reports.
    title : str
    digits : int
        Behind the point, where people read it.
    unit : str
        What follows the number.
    meaning : str
    later : bool
        Whether reports of earlier versions of the program lack it.
    """

    key: str
    title: str
    digits: int
    unit: str
    meaning: str
    later: bool = False


MEASURES = (
    Measure("psnr", "PSNR", 2, " dB", "peak signal-to-noise ratio"),
    Measure(
        "ssim",
        "SSIM",
        4,
        "",
        "structural similarity, which needs whole windows and so is not known for missing entries alone",
    ),
    Measure("rre", "RRE", 4, "", "relative reconstruction error"),
    Measure("mae", "MAE", 3, "", "mean absolute error, in the units of the file", later=True),
)


def shown(text):
    """A line of text for people: characters with which the name of a file could end it or give orders to a terminal, as
    escapes.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _BLANKS else c.encode("unicode_escape").decode() for c in text)


def cell(value):
    """A value for a table that a spreadsheet opens: what it would take for a formula begins with an apostrophe."""
    if not isinstance(value, str):
        return value
    return f"'{shown(value)}" if value.startswith(_FORMULAS) else shown(value)


_BLANKS = "\N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}"
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
