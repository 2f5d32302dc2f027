"""tdc: fill in the missing parts of images, videos and tensors.

`complete` does so with arrays; see docs/python.md.
"""

TYPE_CHECKING = False  # for type checkers, which take it for true; typing would be loaded before Ctrl-C is answered
if TYPE_CHECKING:
    from .arrays import complete

__version__ = "0.1.0"
__all__ = ["complete"]


def __getattr__(name):
    """`complete`, loaded when it is asked for: the command line begins without NumPy."""
    if name != "complete":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .arrays import complete

    return complete


def __dir__():
    return sorted([*globals(), *__all__])
