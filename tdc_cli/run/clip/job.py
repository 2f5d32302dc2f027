"""What is to be done to a clip, as the user says it."""

import os
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ...errors import ConfigError
from ..job import PixelJob


@dataclass(frozen=True)
class ClipJob(PixelJob):
    """One clip to complete, and how.

    `mask` may hold a mask for each frame; `incomplete`, `uncertainty` and `side_by_side` are clips.

    Attributes
    ----------
    missing_pattern : str
        One of `missing.CLIP_PATTERNS`.
    mask_frames : str or None
        Frames that the mask is for, such as ``0::2``; None: all.
    frames : str or None
        ``START:STOP``: the frames that are worked on; the others pass as they are. None: all.
    frame_rate : Fraction or None
        Frames a second of an input that holds no times.
    chunk : int or None
        Frames that are completed at a time; None: by the method and its memory.
    resume : bool
        Go on with the finished chunks of a run that did not come to its end.
    codec : str or None
        Of the output; None: the usual one of its format.
    side_by_side : path-like or None
        Further file to write.
    """

    mask_frames: str | None = None
    frames: str | None = None
    frame_rate: Fraction | None = None
    chunk: int | None = None
    resume: bool = False
    codec: str | None = None
    side_by_side: os.PathLike | str | None = None

    @property
    def named_outputs(self):
        """See `BaseJob`."""
        return {
            "clip": self.output,
            "incomplete": self.incomplete,
            "uncertainty": self.uncertainty,
            "side_by_side": self.side_by_side,
            "panel": self.panel,
            "report": self.report,
            "html": self.html,
        }

    @property
    def work_folder(self):
        """Where finished chunks are kept until the run comes to its end: hidden, beside the output."""
        output = Path(self.output).absolute()
        return output.with_name(f".{output.name}.tdc-work")


def frame_numbers(text, count, option):
    """Frames that a text such as ``0::2`` or ``0,4,7`` names.

    Parameters
    ----------
    text : str
        Numbers and slices as in Python, counted from 0, with commas between.
    count : int
        Frames of the clip.
    option : str
        For messages.

    Returns
    -------
    tuple of int
        Rising.

    Raises
    ------
    ConfigError
        Not of this form, no frames, or frames that the clip does not have.
    """
    named = set()
    for part in text.split(","):
        if not re.fullmatch(r"\s*-?\d+\s*|\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(:\s*(-?\d+)?\s*)?", part):
            raise ConfigError(f"{option} {text!r} is not understood; give frames such as 0,4,7 or slices such as 0::2, counted from 0")
        bounds = [int(bound) if bound.strip() else None for bound in part.split(":")]
        if len(bounds) == 1:
            number = bounds[0] + count if bounds[0] < 0 else bounds[0]
            if not 0 <= number < count:
                raise ConfigError(f"{option} names frame {bounds[0]}, but the clip has {count}, from 0 to {count - 1}")
            named.add(number)
        elif len(bounds) == 3 and bounds[2] == 0:
            raise ConfigError(f"{option} {text!r} has a step of 0; give 1 or more")
        else:
            named.update(range(*slice(*bounds).indices(count)))
    if not named:
        raise ConfigError(f"{option} {text!r} names none of the {count} frames of the clip")
    return tuple(sorted(named))


def frame_range(text, count):
    """First frame and the one behind the last of a text such as ``100:200``.

    Raises
    ------
    ConfigError
    """
    if text is None:
        return 0, count
    if not re.fullmatch(r"-?\d*:-?\d*", text.strip()) or text.count("-") > len(re.findall(r"-\d", text)):
        raise ConfigError(f"--frames {text!r} is not of the form START:STOP, counted from 0, such as 100:200 or 100: or :200")
    named = frame_numbers(text, count, "--frames")
    return named[0], named[-1] + 1
