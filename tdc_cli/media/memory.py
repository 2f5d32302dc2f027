"""How much memory there is."""

import contextlib
import os
import re
from pathlib import Path

# Limit of a control group, and what it takes already, for both versions of them.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def limit():
    """Bytes of memory that this process may take: of the machine, of its control group, and of its address space; None where nobody tells.

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
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        space = resource.getrlimit(resource.RLIMIT_AS)[0]
        if space != resource.RLIM_INFINITY:
            found.append((space, True))
    return min(found, default=(None, False))


def free():
    """Bytes that this process may still take: of the machine, its control group and its address space; None where nobody tells."""
    found = []
    with contextlib.suppress(OSError, ValueError, AttributeError):
        told = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        found.append(int(told[1]) * 1024)
    for most, taken in _GROUPS:
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(most).read_text()) - int(Path(taken).read_text()))
    there, hard = limit()
    if there is not None and (hard or not found):
        found.append(there)
    return max(0, min(found)) if found else None
