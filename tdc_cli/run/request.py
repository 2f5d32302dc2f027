"""What is to be done, as the user says it. Each option is declared here and nowhere else; see `option`."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path

from ..errors import ConfigError
from ..memory import parsed
from ..names import (
    ALPHA,
    CLIP,
    CLIP_PATTERNS,
    FORMATS,
    INFRARED,
    KINDS_OF_INPUT,
    NODATA,
    PATTERNS,
    PICTURE,
    RESIDUALS,
    STANDARD,
    TENSOR,
    WHITE,
)
from .option import check_options, option, options_of
from .written import is_ours

# What the main result is called in a report.
MAIN = {PICTURE: "image", CLIP: "clip", TENSOR: "tensor"}
PIXELS = (PICTURE, CLIP)
SMALLEST_REGION = 32  # pixels
_PATH = os.PathLike | str


@dataclass(frozen=True, kw_only=True)
class Request:
    """One picture, clip or tensor to complete, and how; ``-`` as input or output is standard input and output.

    Attributes
    ----------
    kind : str
        `names.PICTURE`, `names.CLIP` or `names.TENSOR`. Of a tensor `input`, `mask` and `reference` are ``FILE`` or
        ``FILE:NAME``.
    input, output : path-like
    make_folders : bool
        Whether folders of outputs that are missing are made, when there is something to write into them.
    command : tuple of str
        For the report.
    consulted : mapping of str to path
        What else was read, files of options, by what they are called: no result takes their place.

    The other fields are options: their declarations say what they mean. None is "not said".
    """

    kind: str = PICTURE
    input: _PATH
    output: _PATH
    make_folders: bool = False
    command: tuple = ()
    consulted: Mapping = field(default_factory=dict)

    format: str | None = option(
        None, section="Output", form="choice", choices=FORMATS, scope=(PICTURE,), affects_result=False,
        default_words="that of the input",
        help="Format of the output where its name has no extension: in a folder, on standard output.")  # fmt: skip
    codec: str | None = option(
        None, metavar="NAME", scope=(CLIP,), affects_result=False, default_words="by the format",
        help="Of a video file, such as ffv1, without loss; see 'tdc info'.")  # fmt: skip
    quality: int | None = option(
        None, form="count", ge=1, le=100, metavar="N", scope=PIXELS, affects_result=False,
        help={PICTURE: "Of a JPEG output, 1 to 100; an error for other formats.  [default: 95]",
              CLIP: "Of a codec with loss, 1 to 100.  [default: by the codec]"})  # fmt: skip

    page: int | None = option(
        None, section="What is missing", form="count", ge=0, metavar="N", scope=(PICTURE,),
        help="Page of a TIFF file that is meant, counted from 0; the others are not written.")  # fmt: skip
    pages: str | None = option(
        None, form="choice", choices=("all",), scope=(PICTURE,), affects_result=False,
        help="Complete every page of a TIFF file as a picture of its own, and write the file whole again.")  # fmt: skip
    mask: _PATH | None = option(
        None,
        form="path",
        metavar={PICTURE: "PATH|alpha|ir", CLIP: "PATH|alpha", TENSOR: "FILE[:NAME]"},
        help={
            PICTURE: "Picture that marks the missing pixels: white = missing; or a folder that has one for every "
                     "picture; or the word alpha: what is wholly transparent in INPUT is missing, is filled and made "
                     "opaque; or the word ir: what the infrared scan on a further page of INPUT shows as dust.",
            CLIP: "Picture that marks the missing pixels of all frames, white = missing; or a folder, clip or .npy "
                  "array with one for each frame; or the word alpha: what is wholly transparent is missing.",
            TENSOR: "Array that marks the missing entries: any number but 0 = missing.",
        },
    )
    mask_frames: str | None = option(
        None, metavar="FRAMES", scope=(CLIP,),
        help="Frames that --mask is for, counted from 0: a slice such as 0::2, or a list such as 0,4,7.")  # fmt: skip
    invert_mask: bool = option(
        False, form="flag", help={PICTURE: "Black = missing instead.", CLIP: "Black = missing instead.",
                                  TENSOR: "0 = missing instead, where the array says what is observed."})  # fmt: skip
    mask_threshold: float = option(
        WHITE,
        form="number",
        gt=0,
        le=255,
        scope=PIXELS,
        help="A mask pixel of at least this level, of 255, is missing; lower where soft edges leave a rim.",
    )
    mask_dilate: int = option(
        0,
        form="count",
        ge=0,
        le=10_000,
        metavar="N",
        scope=PIXELS,
        help="Grow the holes by N pixels in every direction.",
    )
    mask_box: tuple = option(
        (),
        form="texts",
        metavar="X,Y,W,H",
        scope=PIXELS,
        help="The pixels of this box are missing, such as a logo or a date: left, top, width and height in pixels or, "
             "as in 5%, in percent; left and top below 0 count from the right and the bottom; may be repeated.",
    )
    mask_color: str | None = option(None, metavar="'#ff00ff'", scope=PIXELS, help="Pixels of this colour are missing.")
    mask_tolerance: float = option(
        0,
        form="number",
        ge=0,
        le=255,
        metavar="N",
        scope=PIXELS,
        help="How far, of 255, each channel may be from --mask-color.",
    )
    missing_value: tuple = option(
        (), form="values", metavar="V",
        help="Entries of this value, such as -9999 or 0, are missing, as NaN always is; may be repeated.")  # fmt: skip
    keep: _PATH | None = option(
        None,
        form="path",
        metavar={PICTURE: "nodata|PATH", CLIP: "nodata|PATH", TENSOR: "nodata|FILE[:NAME]"},
        help={
            kind: "What stays as it is, neither filled nor looked at: the word nodata, for what is missing by its "
                  f"value alone and not by the mask; or {marks}."
            for kind, marks in (
                (PICTURE, "a picture that marks it in white"),
                (CLIP, "a picture that marks it in white, for all frames"),
                (TENSOR, "an array that marks it, any number but 0"),
            )
        },
    )
    missing_ratio: float | None = option(
        None, section="Trials and measures", form="number", ge=0, lt=1, metavar="SHARE",
        help="Hide this share of a whole input, which then is the truth for the metrics.")  # fmt: skip
    missing_pattern: str | None = option(
        None,
        form="choice",
        choices={PICTURE: PATTERNS, CLIP: CLIP_PATTERNS},
        metavar={TENSOR: "entries|fibers:AXES"},
        default_words="entries",
        help={
            PICTURE: "What --missing-ratio hides; 'entries' takes every channel by itself.",
            CLIP: "What --missing-ratio hides in each frame; 'blocks' move, 'frames' loses whole frames.",
            TENSOR: "What --missing-ratio hides: single entries, or together all that share their indices in the named "
                    "modes, as in fibers:0,1.",
        },
    )
    add_noise: float = option(
        0.0,
        form="number",
        ge=0,
        metavar="SD",
        default_words="none",
        help="Add Gaussian noise first; a fraction of the full range (0.1 = 25.5 of 255), data units for floats.",
    )
    reference: _PATH | None = option(
        None, form="path", metavar={PICTURE: "PATH", CLIP: "PATH", TENSOR: "FILE[:NAME]"},
        help={PICTURE: "The true picture, for metrics where a mask is real; or a folder of them.",
              CLIP: "The true clip, for metrics where a mask is real.",
              TENSOR: "The true tensor, for metrics where a mask is real."})  # fmt: skip

    frames: str | None = option(
        None, section="How it is completed", metavar="START:STOP", scope=(CLIP,),
        help="Work on these frames only, counted from 0; the others pass as they are.")  # fmt: skip
    frame_rate: Fraction | None = option(
        None, form="rate", metavar="RATE", scope=(CLIP,), affects_result=False,
        help="Frames a second, 25 or 30000/1001, of an input that holds no times.")  # fmt: skip
    method: str = option("auto", form="method", defaults={TENSOR: "datc"}, help="How to complete; see 'tdc methods'.")
    source: _PATH | None = option(
        None,
        form="path",
        metavar="PATH",
        scope=PIXELS,
        help="Picture that marks, in white, what may be copied into holes by methods that copy, such as exemplar.",
    )
    ordered_modes: tuple = option(
        (), form="modes", metavar="MODES", scope=(TENSOR,),
        help="Modes with an order in space or time, such as 0,1, counted from 0.")  # fmt: skip
    spatial: bool | None = option(
        None, form="switch", parameter=True, default_words="the method's own",
        help="Whether neighbours along the ordered modes, in pictures rows and columns, are alike.")  # fmt: skip
    residual: str | None = option(
        None, form="choice", choices=RESIDUALS, parameter=True, default_words="the method's own",
        help="Model of what is not low-rank.")  # fmt: skip
    rank: int | None = option(None, form="count", ge=1, parameter=True, help="Largest rank to start from.")
    components: int | None = option(
        None, form="count", ge=1, parameter=True, help="Largest number of Gaussians in the mixture."
    )
    burn_in: int | None = option(
        None, form="count", ge=0, parameter=True, help="Sweeps thrown away at the start of every chain."
    )
    samples: int | None = option(None, form="count", ge=1, parameter=True, help="Sweeps kept of every chain.")
    chains: int | None = option(None, form="count", ge=1, parameter=True, help="Independent chains.")
    noise_std: float | str | None = option(
        None,
        form="noise",
        default_words="0",
        help="Noise of the known entries, as for --add-noise, or 'auto' to learn it. 0: known entries come back bit "
             "for bit; else they are estimated too.",
    )
    seed: int = option(0, form="count", ge=0, help="Same seed, same bytes.")
    variants: int | None = option(
        None, form="count", ge=2, le=16, metavar="N", scope=PIXELS, affects_result=False,
        help="Write 2 to 16 answers to choose from, with --seed, --seed + 1 and so on, as NAME-1.EXT to NAME-N.EXT "
             "where -o says NAME.EXT; what else is written is of the first, but the page shows all.")  # fmt: skip
    grain: bool = option(
        False,
        form="flag",
        scope=PIXELS,
        affects_result=False,
        help="Add to what is predicted noise like that of its surroundings, which an estimate lacks; metrics are "
             "without it.",
    )
    param: Mapping = option(
        None, form="pairs", metavar="KEY=VALUE",
        help="Any other parameter of the method (see 'tdc methods NAME'); may be repeated.")  # fmt: skip
    threads: int | None = option(
        None, section="Threads, memory and regions", form="count", ge=1, le=10_000, affects_result=False,
        default_words="the cores", help="Threads to use for each input.")  # fmt: skip
    jobs: int = option(
        1,
        form="count",
        ge=1,
        le=1000,
        metavar="N",
        scope=PIXELS,
        affects_result=False,
        help={
            PICTURE: "Regions of a large picture, or files of a folder, to work on at the same time; they share the "
                     "cores.",
            CLIP: "Regions to work on at the same time; they share the cores.",
        },
    )
    memory: str | None = option(
        None, metavar="SIZE", scope=PIXELS, affects_result=False, default_words="half of what is free",
        help="Memory to keep to, such as 500M or 1.5GiB: what is larger is completed in regions.")  # fmt: skip
    cluster: str | None = option(
        None,
        metavar="ADDRESS",
        scope=PIXELS,
        affects_result=False,
        help="Work on the workers of the Dask scheduler at tcp://HOST:PORT, in place of --jobs; see docs/scale.md.",
    )
    region: int | str | None = option(
        None,
        form="side",
        metavar="auto|whole|N",
        scope=PIXELS,
        default_words="auto",
        help="Side, in pixels, of the regions that are completed one at a time; whole: rows and columns are not "
             "divided.",
    )
    chunk: int | None = option(
        None, form="chunk", metavar="auto|N", scope=(CLIP,), default_words="auto",
        help="Frames that are completed together; more take more memory.")  # fmt: skip

    report: _PATH | None = option(
        None, section="What else is written", form="path", metavar="PATH", affects_result=False,
        help={PICTURE: "Write the report, a JSON file. Of a folder of pictures PATH is a folder too, here and in the "
                       "next four options.",
              CLIP: "Write the report, a JSON file.", TENSOR: "Write the report, a JSON file."})  # fmt: skip
    html: _PATH | None = option(
        None, form="path", metavar="PATH", scope=PIXELS, affects_result=False,
        help="Write a page to judge the result by, a file for the browser that needs no other.")  # fmt: skip
    uncertainty: _PATH | None = option(
        None,
        form="path",
        metavar="PATH",
        affects_result=False,
        help={
            PICTURE: "Write the standard deviation of every entry in the output's units: .npy or .tif, or .png as a "
                     "picture.",
            CLIP: "Write the standard deviation of every entry in the output's units: .npy, or .tif with a page for "
                  "each frame.",
            TENSOR: "Write the standard deviation of every entry, in the units of the output, in any of the formats.",
        },
    )
    panel: _PATH | None = option(
        None,
        form="path",
        metavar="PATH",
        scope=PIXELS,
        affects_result=False,
        help={
            PICTURE: "Write a PNG of the incomplete, completed, uncertain and true pictures side by side.",
            CLIP: "Write a PNG of some frames, incomplete, completed, uncertain and true, one below the other.",
        },
    )
    side_by_side: _PATH | None = option(
        None,
        form="path",
        metavar="PATH",
        scope=(CLIP,),
        affects_result=False,
        help="Write a clip of the incomplete and the completed frames next to each other, and the true ones where "
             "known.",
    )
    save_incomplete: _PATH | None = option(
        None,
        form="path",
        metavar="PATH",
        affects_result=False,
        help={
            PICTURE: "Write the picture with its holes as 0, NaN in floats, and beside it the mask as understood.",
            CLIP: "Write the clip with its holes as 0, NaN in floats.",
            TENSOR: "Write the tensor with its holes as NaN, 0 in integers, and beside it the mask as understood.",
        },
    )

    overwrite: bool = option(
        False,
        section="Files that exist, and folders",
        form="flag",
        affects_result=False,
        help="Replace outputs that exist; otherwise they are refused before any work.",
    )
    skip_existing: bool = option(
        False, form="flag", scope=(PICTURE,), affects_result=False,
        help="Pass over what is finished already, to go on where a run stopped.")  # fmt: skip
    resume: bool = option(
        False, form="flag", scope=PIXELS, affects_result=False,
        help="Go on with the finished regions of a run that was interrupted or killed.")  # fmt: skip

    @property
    def answers(self):
        """Requests for one answer each: this one, or as many as `variants` says, the first with the further outputs."""
        if self.variants is None:
            return (self,)
        path = Path(self.output)
        # The page stays with all of them, which it shows.
        further = dict.fromkeys(("report", "uncertainty", "panel", "side_by_side", "save_incomplete"))
        first, *others = (
            replace(self, output=path.with_name(f"{path.stem}-{k + 1}{path.suffix}"), seed=self.seed + k, variants=None)
            for k in range(self.variants)
        )
        return first, *(replace(other, **further) for other in others)

    @property
    def outputs(self):
        """Name in the report to Path, for every file that is to be written; the main one first."""
        main, *others = (answer.output for answer in self.answers)
        named = {MAIN[self.kind]: main} | {f"variant_{k}": path for k, path in enumerate(others, 2)}
        named["incomplete"] = self.save_incomplete
        if self.save_incomplete is not None and self.kind != CLIP:
            beside = Path(self.save_incomplete)
            named["mask"] = beside.with_name(f"{beside.stem}_mask{'.png' if self.kind == PICTURE else beside.suffix}")
        named |= {name: getattr(self, name) for name in ("uncertainty", "side_by_side", "panel", "report", "html")}
        return {name: Path(path) for name, path in named.items() if path is not None}

    @property
    def sources(self):
        """Role to path or None, for every file that is read."""
        read = {"input": self.input, "mask": self.mask, "reference": self.reference, "source": self.source,
                "keep": None if self.keeps_nodata else self.keep}
        if self.kind != TENSOR:
            return read
        from ..media import tensor

        return {role: path and tensor.split(path)[0] for role, path in read.items()}

    @property
    def names_holes(self):
        """Whether the options say what is missing; if not, only NaN in the input can."""
        given = self.mask, self.missing_ratio, self.mask_color
        return any(option is not None for option in given) or bool(
            self.mask_box or self.missing_value or self.add_noise or self.noise_std
        )

    @property
    def by_transparency(self):
        """Whether what is transparent is missing."""
        return self.kind != TENSOR and self.mask is not None and str(self.mask) == ALPHA

    @property
    def by_infrared(self):
        """Whether what an infrared scan shows as dust is missing."""
        return self.kind == PICTURE and self.mask is not None and str(self.mask) == INFRARED

    @property
    def keeps_nodata(self):
        """Whether what is missing by its value alone is kept as it is."""
        return self.keep is not None and str(self.keep) == NODATA

    @property
    def pattern(self):
        """What a `missing_ratio` hides."""
        return self.missing_pattern or "entries"

    @property
    def simulated(self):
        """Whether the input is its own truth: holes or noise are made."""
        return self.mask is None and not self.mask_box and (self.missing_ratio is not None or bool(self.add_noise))

    @property
    def parameters(self):
        """Parameters for the method, a dict; ConfigError where one is given twice."""
        named = {f.name: getattr(self, f.name) for f in _options(self) if f.metadata["option"].parameter}
        given = {name: value for name, value in named.items() if value is not None}
        further = {key.replace("-", "_"): value for key, value in (self.param or {}).items()}
        twice = given.keys() & further.keys()
        if twice:
            raise ConfigError(
                f"{min(twice)} is given twice, by `{min(twice)}` and by `param` {min(twice)}; leave one out"
            )
        return given | further

    @property
    def main(self):
        """Path of the main output, which tells that the others are there too: the first of several answers."""
        return self.outputs[MAIN[self.kind]]

    @property
    def finished(self):
        """Whether every output is there: each appears whole, the main one last."""
        return not self.lacks and self.main.exists()

    @property
    def lacks(self):
        """Names of the further outputs that are not there."""
        return tuple(name for name, path in self.outputs.items() if name != MAIN[self.kind] and not path.exists())

    @property
    def to_skip(self):
        """Whether the main output is there and is to be passed over."""
        return self.skip_existing and self.main.exists()

    @property
    def replaces(self):
        """Whether further outputs replace what is there: with `skip_existing` only what is known for one of this
        program.
        """
        return self.overwrite or (is_ours if self.skip_existing else False)

    def absolute(self):
        """The same request with all paths from the root, as a process in another folder, or on another machine, needs
        them.
        """
        named = {"input", "output", *(f.name for f in _options(self) if f.metadata["option"].form == "path")}
        words = (
            "",
            STANDARD,
            *([self.mask] if self.by_transparency or self.by_infrared else []),
            *([NODATA] if self.keeps_nodata else []),
        )
        given = {name: getattr(self, name) for name in named}
        paths = {
            name: Path(path).absolute()
            for name, path in given.items()
            if path is not None and str(path) not in map(str, words)
        }
        return replace(self, consulted={name: Path(path).absolute() for name, path in self.consulted.items()}, **paths)

    def fingerprint(self):
        """All that the completed values depend on and that is said by options, ready for JSON; files by their names
        only.
        """
        return {f.name: _plain(getattr(self, f.name)) for f in _options(self) if f.metadata["option"].affects_result}


@dataclass(frozen=True)
class FolderOptions:
    """How a folder of pictures is worked through."""

    mask_suffix: str = option(
        "", section="What is missing", metavar="TEXT", scope=(PICTURE,),
        help="What follows a picture's name in that of its mask, such as _mask.")
    recursive: bool = option(
        False,
        section="Files that exist, and folders",
        form="flag",
        scope=(PICTURE,),
        affects_result=False,
        help="Enter folders in folders.",
    )
    fail_fast: bool = option(
        False, form="flag", scope=(PICTURE,), affects_result=False, help="Begin no further file after one has failed.")


def check(request):
    """Find what is wrong with the options of a request by themselves, which no file is needed for.

    Raises
    ------
    ConfigError
    """
    from .. import holes

    check_options(request, request.kind)
    if isinstance(request.noise_std, str) and request.noise_std != "auto":
        raise ConfigError(f"`noise_std` is {request.noise_std!r}; give a standard deviation, such as 0.1, or auto")
    if not isinstance(request.noise_std, str | None) and not 0 <= request.noise_std < float("inf"):
        raise ConfigError(
            f"`noise_std` {request.noise_std:g} is negative or not finite; give a standard deviation, such as 0.1, or "
            "auto"
        )
    if request.missing_pattern is not None and request.missing_ratio is None:
        raise ConfigError("`missing_pattern` needs a `missing_ratio`")
    if request.memory is not None:
        parsed(request.memory)
    if request.cluster is not None and request.jobs > 1:
        raise ConfigError("`cluster` and `jobs` exclude each other: the cluster's workers do the work")
    if request.grain and request.noise_std:
        raise ConfigError("`grain` adds the noise that `noise_std` takes away; leave one of them out")
    if request.variants is not None and request.kind == PICTURE and str(request.output) == STANDARD:
        raise ConfigError("`variants` are several files, and - stands for one; name out.png for out-1.png, out-2.png")
    if not (
        request.region in (None, "whole") or (isinstance(request.region, int) and request.region >= SMALLEST_REGION)
    ):
        raise ConfigError(f"`region` is {request.region!r}; give a side of at least {SMALLEST_REGION} pixels, or whole")
    said = [name for name in ("mask", "mask_color", "missing_ratio") if getattr(request, name) is not None]
    said += ["mask_box"] if request.mask_box else []
    if said[:2] == ["mask", "missing_ratio"]:
        raise ConfigError("`mask` and `missing_ratio` exclude each other: holes are either given or simulated")
    if said[1:]:
        one, other = sorted(said[:2], key=lambda name: name != "mask_color")
        way = "; paint the boxes into the mask" if {one, other} == {"mask", "mask_box"} else ""
        raise ConfigError(f"`{one}` and `{other}` exclude each other: holes are said in one way{way}")
    if request.mask_color is not None:
        holes.parse_color(request.mask_color)
    elif request.mask_tolerance:
        raise ConfigError("`mask_tolerance` needs a `mask_color`")
    for box in request.mask_box:
        holes.parse_box(box)
    if request.invert_mask and request.by_transparency:
        raise ConfigError(
            "`invert_mask` needs a mask picture; `mask=alpha` always takes what is transparent as missing"
        )
    if request.invert_mask and request.by_infrared:
        raise ConfigError(
            "`invert_mask` needs a mask picture; `mask=ir` always takes what is dark in infrared as missing"
        )
    if request.mask is None and (
        request.invert_mask or (request.mask_color is None and not request.mask_box and request.mask_dilate)
    ):
        words = "`invert_mask` needs" if request.kind == TENSOR else "`invert_mask` and `mask_dilate` need"
        raise ConfigError(f"{words} a `mask`")
    if request.mask_frames is not None and not request.mask_box and (request.mask is None or request.by_transparency):
        raise ConfigError("`mask_frames` needs a `mask` that is a picture or a clip")
    if request.keeps_nodata and not said:
        raise ConfigError(
            "`keep=nodata` leaves what is missing by its value as it is; say with a `mask` what is to be filled"
        )
    if request.kind == CLIP and STANDARD in (str(request.input), str(request.output)):
        raise ConfigError(
            "- stands for standard input or output; a clip is read from and written to a file or a folder: name one"
        )
    if request.kind == TENSOR:
        holes.tensor_axes(request.pattern)


def flag_of(name):
    """The option on the command line of a field that is one."""
    return f"--{name.replace('_', '-')}"


def worded(text):
    """A message with options as they are written on the command line in place of the names of fields in backticks.

    Nothing that says something knows of options: a message says ``give `mask_dilate=2` ``, which a caller from Python
    understands.
    """

    def option(found):
        name, equals, value = found[1].partition("=")
        if name not in _FIELDS:
            return found[0]
        return flag_of(name) + (f" {value}" if equals and value != "True" else "")

    return re.sub(r"`([a-z_]+(?:=[^`]*)?)`", option, text)


_FIELDS = {name for kind in KINDS_OF_INPUT for cls in (Request, FolderOptions) for name in options_of(cls, kind)}


def _options(request):
    return [f for f in fields(request) if "option" in f.metadata and request.kind in f.metadata["option"].scope]


def _plain(value):
    if isinstance(value, os.PathLike):
        return Path(value).name
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
