"""The way of one clip, of any length: looked at once, completed chunk by chunk, then put together frame by frame.

`prepare` finds everything that can be found before any work; `execute` does the work.
"""

from .finish import execute
from .job import ClipJob
from .plan import Plan, prepare

__all__ = ["ClipJob", "Plan", "execute", "prepare"]
