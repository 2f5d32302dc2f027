"""Methods tried on a synthetic problem: completed without its truth, then measured against it.

`prepare` finds every mistake in names and parameters before any work; `run` does the work of one method.
"""

from .files import Files
from .source import Source, draw, read
from .trial import Trial, prepare, run

__all__ = ["Files", "Source", "Trial", "draw", "prepare", "read", "run"]
