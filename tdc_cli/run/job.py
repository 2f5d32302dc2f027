"""What is to be done, as the user says it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..media import tensor


@dataclass(frozen=True)
class BaseJob:
    """One input to complete, and how: what every kind of input has.

    Attributes
    ----------
    input, output : path-like
    method : str
        Name in `methods.REGISTRY`.
    mask : path-like, str or None
        What says which entries are missing.
    missing_ratio : float or None
        Share to hide from a whole input, in [0, 1).
    missing_pattern : str
    add_noise : float
        Standard deviation of noise added to the input; a fraction of the full range for integers, data units for floats.
    reference : path-like or None
        File that holds the truth.
    parameters : mapping of str to object
        For the method; strings are converted.
    noise_std : float, "auto" or None
        Noise of the known entries, in the units of `add_noise`. None or 0: they come back bit for bit; else they are estimated.
    seed : int
        Not negative.
    threads : int or None
        None = all cores.
    report, uncertainty, incomplete : path-like or None
        Further files to write.
    overwrite : bool
    command : tuple of str
        For the report.
    """

    input: os.PathLike | str
    output: os.PathLike | str
    method: str
    mask: os.PathLike | str | None = None
    missing_ratio: float | None = None
    missing_pattern: str = "entries"
    add_noise: float = 0.0
    reference: os.PathLike | str | None = None
    parameters: Mapping = field(default_factory=dict)
    noise_std: float | str | None = None
    seed: int = 0
    threads: int | None = None
    report: os.PathLike | str | None = None
    uncertainty: os.PathLike | str | None = None
    incomplete: os.PathLike | str | None = None
    overwrite: bool = False
    command: tuple = ()

    @property
    def named_outputs(self):
        """Name in the report to path or None, for every file that may be written; the main one first."""
        raise NotImplementedError

    @property
    def outputs(self):
        """Name in the report to path, for every file that is to be written."""
        return {key: Path(path) for key, path in self.named_outputs.items() if path is not None}

    @property
    def sources(self):
        """Role to path or None, for every file that is read."""
        return {"input": self.input, "mask": self.mask, "reference": self.reference}

    @property
    def names_holes(self):
        """Whether the options say what is missing; if not, only NaN in the input can."""
        given = self.mask, self.missing_ratio
        return any(option is not None for option in given) or bool(self.add_noise or self.noise_std)


@dataclass(frozen=True)
class PixelJob(BaseJob):
    """One picture or clip to complete, and how.

    Attributes
    ----------
    mask : path-like or None
        Picture, white = missing; or the word `holes.ALPHA`: what is transparent in the input.
    invert_mask : bool
    mask_threshold : float
        On levels 0..255.
    mask_dilate : int
        Pixels by which the holes grow.
    mask_color : str or None
        Colour that stands for holes, such as ``#ff00ff``.
    mask_tolerance : float
        Largest difference from it, in each channel, of 255.
    html, panel : path-like or None
        Further files to write.
    quality : int or None
        Of formats that compress with loss, 1 to 100.
    """

    invert_mask: bool = False
    mask_threshold: float = 128
    mask_dilate: int = 0
    mask_color: str | None = None
    mask_tolerance: float = 0
    html: os.PathLike | str | None = None
    panel: os.PathLike | str | None = None
    quality: int | None = None

    @property
    def names_holes(self):
        """See `BaseJob`."""
        return self.mask_color is not None or super().names_holes


@dataclass(frozen=True)
class Job(PixelJob):
    """One picture to complete, and how; ``-`` as input or output is standard input and output.

    Beside `incomplete` also a picture of the mask is written.

    Attributes
    ----------
    missing_pattern : str
        One of `missing.PATTERNS`.
    format : str or None
        Extension, without its dot, that says the format of the output; None: that of its name, of the input for standard output.
    skip_existing : bool
        The job is one that `finished` has found to be undone: outputs of a run that did not come to its end are made anew, a picture
        that appears during the run stays.
    make_folders : bool
        Whether folders of outputs that are missing are made, when there is something to write into them.
    """

    format: str | None = None
    skip_existing: bool = False
    make_folders: bool = False

    @property
    def named_outputs(self):
        """See `BaseJob`."""
        return {
            "image": self.output,
            "incomplete": self.incomplete,
            "mask": self.incomplete and Path(self.incomplete).with_name(f"{Path(self.incomplete).stem}_mask.png"),
            "uncertainty": self.uncertainty,
            "panel": self.panel,
            "report": self.report,
            "html": self.html,
        }

    @property
    def finished(self):
        """Whether every output is there: each appears whole, the picture last."""
        return all(path.exists() for path in self.outputs.values())


@dataclass(frozen=True)
class TensorJob(BaseJob):
    """One tensor to complete, and how; ``-`` as input or output is standard input and output.

    Beside `incomplete` also an array of the mask is written.

    Attributes
    ----------
    input, mask, reference : path-like or None
        ``FILE``, or ``FILE:NAME`` where a file holds several arrays. In the mask anything but 0 = missing.
    missing_pattern : str
        See `missing.simulate_tensor`.
    invert_mask : bool
        0 = missing instead.
    ordered_modes : tuple of int
        Modes with an order in space or time, from 0.
    """

    invert_mask: bool = False
    ordered_modes: tuple = ()

    @property
    def named_outputs(self):
        """See `BaseJob`."""
        beside = self.incomplete and Path(self.incomplete)
        return {
            "tensor": self.output,
            "incomplete": self.incomplete,
            "mask": beside and beside.with_name(f"{beside.stem}_mask{beside.suffix}"),
            "uncertainty": self.uncertainty,
            "report": self.report,
        }

    @property
    def sources(self):
        """See `BaseJob`."""
        return {role: path and tensor.split(path)[0] for role, path in super().sources.items()}
