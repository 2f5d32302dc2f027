"""How much memory there is, and how much of it may be taken."""

import contextlib
import os
import re
from pathlib import Path

from .errors import ConfigError

# Limit of a control group, and what it takes already, for both versions of them.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
_UNITS = ("", "k", "m", "g", "t")  # each a thousand of the one before, as messages have it; 1024 with "iB"
# Share of what is free that a run takes unless it is told.
SHARE = 0.5
# Bytes of address space that the libraries take before any work, with some threads; with less they end the process, or
# wait for ever.
LIBRARIES, COMPILER = 500e6, 900e6
# What libraries say where they get no memory, or no thread, while they are loaded or begin.
_LACK = (
    "failed to map segment",
    "cannot allocate memory",
    "libllvmlite",
    "can't start new thread",
    "unable to allocate",
)


def limit():
    """Bytes of memory that this process may take: of the machine, of its control group, and of its address space; None
    where nobody tells.

    Returns
    -------
    bytes : int or None
    hard : bool
        Whether more would end the process at once, as a limit of the address space does.
    """
    found = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # not told on every system
        found.append((os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), False))
    for file, _ in _GROUPS:
        with contextlib.suppress(OSError, ValueError):
            found.append((int(Path(file).read_text()), True))
    space = _address_space()
    if space is not None:
        found.append((space, True))
    return min(found, default=(None, False))


def _address_space():
    """Bytes that this process may map; None where there is no limit, or nobody tells."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        space = resource.getrlimit(resource.RLIMIT_AS)[0]
        return None if space == resource.RLIM_INFINITY else space
    return None


def check_room(needed=LIBRARIES):
    """ConfigError where the limit of the address space is less than what libraries take."""
    space = _address_space()
    if space is not None and space < needed:
        raise ConfigError(
            f"this process may map {space / 1e6:.0f} MB (ulimit -v), and the libraries alone take up to "
            f"{needed / 1e6:.0f} MB; raise the limit"
        )


def lacking(error):
    """Whether an error of a library says that there is not enough memory for it."""
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in _LACK)


def free():
    """Bytes that this process may still take: of the machine, its control group and its address space; None where
    nobody tells.
    """
    found = []
    with contextlib.suppress(OSError, ValueError, TypeError):
        line = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        found.append(int(line[1]) * 1024)
    for most, taken in _GROUPS:
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(most).read_text()) - int(Path(taken).read_text()))
    there, hard = limit()
    if there is not None and (hard or not found):
        found.append(there)
    return max(0, min(found)) if found else None


def parsed(text):
    """Bytes of a size such as ``2G``, ``500M`` or ``1.5GiB``; ConfigError for anything else."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?\s*", str(text), re.IGNORECASE | re.ASCII)
    base = 1024 if found and (found[3] or "").lower() == "ib" else 1000
    size = float(found[1]) * base ** _UNITS.index(found[2].lower()) if found else 0
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
