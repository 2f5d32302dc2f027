"""Fields of interlaced video: the even rows of a frame show one moment, the odd rows another, and one of the two comes
first.
"""

import numpy as np

TOP, BOTTOM = "top", "bottom"  # which field comes first
_FILTERS = {TOP: "tff", BOTTOM: "bff"}  # FFmpeg's names
_CONTAINER = {TOP: 2, BOTTOM: 3}  # AVFieldOrder


def first_of(frame):
    """The field of an interlaced frame that comes first, `TOP` or `BOTTOM`; None where both are the same.

    PyAV does not tell, but FFmpeg's filter gives the first field first.
    """
    even, odd = apart(_luma(frame))
    if np.array_equal(even, odd):
        return None
    return TOP if np.array_equal(_luma(_filtered(frame, "separatefields")), even) else BOTTOM


def flagged(frame, fields):
    """The frame, said to be interlaced with this field first; PyAV sets no such flag, but FFmpeg's filter does."""
    made = _filtered(frame, "setfield", _FILTERS[fields])
    made.colorspace, made.color_range = frame.colorspace, frame.color_range
    made.color_primaries, made.color_trc = frame.color_primaries, frame.color_trc
    return made


def order_in_container(fields):
    """FFmpeg's number for the order of fields in the head of a container."""
    return _CONTAINER[fields]


def apart(rows):
    """The two fields of rows of a frame, the even rows first, each a view."""
    return rows[0::2], rows[1::2]


def woven(even, odd):
    """Rows of a frame from its two fields; the inverse of `apart`."""
    rows = np.empty((len(even) + len(odd), *even.shape[1:]), even.dtype)
    rows[0::2], rows[1::2] = even, odd
    return rows


def _filtered(frame, name, *arguments):
    """The first frame that a filter of FFmpeg makes of a frame."""
    import av

    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base or 1
    )
    within, sink = graph.add(name, *arguments), graph.add("buffersink")
    source.link_to(within)
    within.link_to(sink)
    graph.configure()
    graph.push(frame)
    return graph.pull()


def _luma(frame):
    """Bytes of the first plane, (rows, bytes that are seen)."""
    plane = frame.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    return rows[: plane.height, : plane.width]
