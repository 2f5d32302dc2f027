"""Clips as arrays: ``.npy`` files of shape (T, H, W) or (T, H, W, C), of which only the frames that are asked for are
read.
"""

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..array import MAGIC, told
from ..files import digest
from ..limits import check_size, check_type
from ..pixels import Media
from .clip import Clip


def read_array(path, form):
    """Clip of a ``.npy`` file; see `read_clip`.

    Parameters
    ----------
    path : path-like
    form : ClipFormat
    """
    sha256 = digest(path)
    values = _mapped(path)
    if values.ndim not in (3, 4) or not values.size:
        raise InputError(
            f"{path}: array of shape {values.shape}; a clip has shape (frames, height, width) or (frames, height, "
            "width, channels); 'tdc complete-tensor' completes other arrays"
        )
    check_type(values.dtype.newbyteorder("="), path)
    check_size(values.shape[2], values.shape[1], path)
    dtype, source = values.dtype.newbyteorder("="), Rows(str(path), sha256)
    return Clip(str(path), sha256, form.name, len(values), values.shape[1:], dtype, "array", source=source)


def _mapped(path):
    """The array in a file, of which nothing is read yet."""
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
    with told(path, start):
        return np.load(path, mmap_mode="r", allow_pickle=False)


@dataclass(frozen=True)
class Rows:
    """The frames of an array; see `clip.Source`."""

    path: str
    sha256: str

    def frames(self, start, stop):
        """Iterate over frames."""
        values = _mapped(self.path)
        rows = self._read(values, start, stop) if values.flags.c_contiguous else values[start:stop]
        for frame in rows:
            yield Media(
                np.array(frame, dtype=frame.dtype.newbyteorder("="), order="C"),
                "array",
                self.path,
                self.sha256,
                format="NPY",
            )

    def _read(self, values, start, stop):
        """Frames read one by one: a mapped file that somebody makes shorter would end the program by a signal."""
        size = values[0].nbytes
        with open(self.path, "rb") as file:
            file.seek(values.offset + start * size)
            for _ in range(start, min(stop, len(values))):
                content = file.read(size)
                if len(content) < size:
                    raise InputError(
                        f"{self.path}: was made shorter while it was worked on; run again when it is left alone"
                    )
                yield np.frombuffer(content, values.dtype).reshape(values.shape[1:])


def write(frames, file, clip):
    """Write frames into an open binary file, as one array."""
    header = {
        "descr": np.lib.format.dtype_to_descr(clip.dtype),
        "fortran_order": False,
        "shape": (clip.count, *clip.shape),
    }
    np.lib.format.write_array_header_1_0(file, header)
    for media in frames:
        file.write(np.ascontiguousarray(media.values).tobytes())
