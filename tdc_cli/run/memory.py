"""How much memory a run may take."""

import re

from ..errors import ConfigError
from ..media.memory import free

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# Share of what is free that a run takes unless it is told.
SHARE = 0.5


def parsed(text):
    """Bytes of a size such as ``2G``, ``500M`` or ``1.5GiB``; ConfigError for anything else."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", str(text), re.IGNORECASE | re.ASCII)
    size = float(found[1]) * _UNITS[found[2].lower()] if found else 0
    if not 1 <= size < 2**63:
        raise ConfigError(f"`memory` is {str(text)!r}; give a size such as 2G or 500M")
    return int(size)


def budget(asked):
    """Bytes that a run may take: what the user says, or `SHARE` of what is free; None where nobody tells.

    Parameters
    ----------
    asked : str or None
        As `parsed` takes it.
    """
    if asked is not None:
        return parsed(asked)
    there = free()
    return None if there is None else int(SHARE * there)
