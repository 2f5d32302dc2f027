"""Where results go: one sink for each kind of input, chosen by what the outputs are called before anything is read.

A sink has two methods: ``fit(request, source)`` refuses formats that cannot hold what is to be written and returns a
list of warnings, what they cannot keep; ``write(plan, measures, monitor, shown)`` writes all files of an answer but
report and page and returns what the page shows, added to `shown`, that of the answers before.
"""

from ...names import CLIP, PICTURE

# Outputs that are files, whatever the input is.
_FILES = ("uncertainty", "panel", "report", "html")


def folders(request):
    """Names of the outputs that may be folders, a list: of frames."""
    return [name for name in request.outputs if request.kind == CLIP and name not in _FILES]


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
