"""Who hears that code is being compiled, and whether it can be kept.

What compiles knows no terminal, and what writes to one loads no compiler.
"""

from collections.abc import Callable

# Called with True when compiling begins and with False when it ends, in this process; None: nobody asks.
told: Callable[[bool], None] | None = None
# Whether there is a folder for compiled code, and the errors of a disk that did not take it, in this process.
kept = True
refused: list[OSError] = []


def not_kept():
    """What to tell, a tuple of str, where compiled code could not be kept."""
    if kept and not refused:
        return ()
    why = f" ({refused[0].strerror})" if refused else ""
    return (
        f"compiled code cannot be kept{why}, so every run compiles anew: set NUMBA_CACHE_DIR to a folder that can be "
        "written and has 20 MB of room",
    )
