"""Frames that a text names."""

import re

from ..errors import ConfigError


def frame_numbers(text, count, option):
    """Frames that a text such as ``0::2`` or ``0,4,7`` names.

    Parameters
    ----------
    text : str
        Numbers and slices as in Python, counted from 0, with commas between.
    count : int
        Frames of the clip.
    option : str
        Which one names them, for messages.

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
            raise ConfigError(
                f"`{option}` {text!r} is not understood; give frames such as 0,4,7 or slices such as 0::2, counted "
                "from 0"
            )
        bounds = [int(bound) if bound.strip() else None for bound in part.split(":")]
        if len(bounds) == 1:
            number = bounds[0] + count if bounds[0] < 0 else bounds[0]
            if not 0 <= number < count:
                raise ConfigError(
                    f"`{option}` names frame {bounds[0]}, but the clip has {count}, from 0 to {count - 1}"
                )
            named.add(number)
        elif len(bounds) == 3 and bounds[2] == 0:
            raise ConfigError(f"`{option}` {text!r} has a step of 0; give 1 or more")
        else:
            named.update(range(*slice(*bounds).indices(count)))
    if not named:
        raise ConfigError(f"`{option}` {text!r} names none of the {count} frames of the clip")
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
        raise ConfigError(
            f"`frames` {text!r} is not of the form START:STOP, counted from 0, such as 100:200 or 100: or :200"
        )
    named = frame_numbers(text, count, "frames")
    return named[0], named[-1] + 1
