"""Errors that a user can cause, each with a text that says what is wrong, where, and what to try.

Nothing in this module knows about the command line: `tdc_cli.cli` translates these errors into exit codes.
"""


class TdcError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(TdcError):
    """A file or an array cannot be used: wrong type, shape, range or content."""


class MaskError(TdcError):
    """A mask does not say which entries are missing: wrong size, unreadable, or everything missing."""


class MaskSizeError(MaskError):
    """A mask has another size than what it is for."""


class ConfigError(TdcError):
    """An option or a parameter of a method has a value that makes no sense.

    Attributes
    ----------
    fields : tuple of str
        Names of the options or parameters that the text speaks of, spelt as in Python.
    """

    def __init__(self, text, fields=()):
        super().__init__(text)
        self.fields = tuple(fields)


class OutputError(TdcError):
    """A result cannot be written: existing file, missing folder, full disk."""


class OutputExists(OutputError):
    """A result is there already and is not to be replaced."""


class ClusterError(TdcError):
    """A cluster cannot be reached, has gone, or has a worker that cannot do the work."""


class NumericalError(TdcError):
    """A computation produced values that are not finite."""


class WorkerLost(TdcError):
    """A process that worked on a part of the input was killed."""
