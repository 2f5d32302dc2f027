"""Where a problem comes from: drawn, or read from a file."""

import hashlib
import io
import time
from dataclasses import dataclass

from ...media.files import check_file, read_bytes
from .. import synth


@dataclass(frozen=True)
class Source:
    """A problem and where it comes from.

    Attributes
    ----------
    problem : synth.SyntheticProblem
    path : str
        Its file; in words where it has none.
    sha256 : str
        Of the file, or of the one that `synth.save` would write.
    seconds : float
        Spent on drawing or reading it.
    """

    problem: synth.SyntheticProblem
    path: str
    sha256: str
    seconds: float


def draw(**parameters):
    """Source of a problem that is drawn; `parameters` are those of `synth.draw`."""
    begin = time.perf_counter()
    problem = synth.draw(**parameters)
    return Source(problem, "synthetic", hashlib.sha256(encode(problem)).hexdigest(), time.perf_counter() - begin)


def read(path):
    """Source of a problem that `synth.save` has written.

    Raises
    ------
    InputError
        Not to be read, or no such problem.
    """
    begin = time.perf_counter()
    check_file(path)
    content, sha256 = read_bytes(path)
    problem = synth.load(io.BytesIO(content), name=str(path))
    return Source(problem, str(path), sha256, time.perf_counter() - begin)


def encode(problem):
    """Bytes of the file of a problem; the same for the same problem."""
    buffer = io.BytesIO()
    synth.save(problem, buffer)
    return buffer.getvalue()
