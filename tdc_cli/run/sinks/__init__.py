"""Where results go: one sink for each kind of input, chosen by what the outputs are called before anything is read.

A sink has two methods: ``fit(request, source)`` refuses formats that cannot hold what is to be written and returns a
list of warnings, what they cannot keep; ``write(plan, measures, monitor)`` writes all files but report and page and
returns what the page shows.
"""

from ...names import CLIP, PICTURE, TENSOR

# Outputs that may be folders.
FOLDERS = {PICTURE: (), CLIP: ("clip", "incomplete", "side_by_side"), TENSOR: ()}


def named(request):
    """The sink of a request, found by names alone; ConfigError or OutputError where they do not tell a format, or tell
    two.
    """
    if request.kind == PICTURE:
        from .picture import Sink
    elif request.kind == CLIP:
        from .clip import Sink
    else:
        from .tensor import Sink
    return Sink(request)
