"""Peak memory of a piece of work in this process."""

import contextlib
import sys

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_STATUS, _RESET = "/proc/self/status", "/proc/self/clear_refs"


class Peak:
    """Bytes at the peak beyond those at the start; None until the work is done, and where the system does not tell."""

    bytes = None


@contextlib.contextmanager
def peak():
    """Measure the block.

    Linux can set the peak back to what is in use now; elsewhere only a block that goes beyond all that the process ever
    had is seen in full.

    Yields
    ------
    Peak
    """
    measured = Peak()
    before = _start()
    yield measured
    after = _highest()
    measured.bytes = max(0, after - before) if None not in (before, after) else None


def _start():
    """Bytes in use, the peak set back to them; where that is not possible, the peak so far."""
    try:
        with open(_RESET, "w") as file:
            file.write("5")
        return _status("VmRSS")
    except OSError:
        return _highest()


def _highest():
    """Bytes at the peak."""
    try:
        return _status("VmHWM")
    except OSError:
        return resource and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
            1 if sys.platform == "darwin" else 1024
        )


def _status(name):
    """A line of the process's status, in bytes."""
    with open(_STATUS) as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(f"{name}:"))
