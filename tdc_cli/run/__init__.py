"""The way of a file: read, decide what is missing, complete, restore what is known, measure, write.

`prepare` finds everything that can be found before any work; `execute` does the work. `run` is both. For tensors the first two are in
`tensors`, for clips in `clip`. What pictures share with other inputs is in modules of its own: `job`, `options`, `outputs`, `holes`,
`values`, `completing`, `outcome`, `seeds`.
"""

from .holes import ALPHA
from .job import BaseJob, Job, TensorJob
from .outputs import UNCERTAINTY_FORMATS, sweep
from .picture import Plan, check_options, execute, prepare, run
from .seeds import DRAWS, HOLES, NOISE, stream
from .values import LARGEST_VALUE

__all__ = [
    "ALPHA",
    "DRAWS",
    "HOLES",
    "LARGEST_VALUE",
    "NOISE",
    "UNCERTAINTY_FORMATS",
    "BaseJob",
    "Job",
    "Plan",
    "TensorJob",
    "check_options",
    "execute",
    "prepare",
    "run",
    "stream",
    "sweep",
]
