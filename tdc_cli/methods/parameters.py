"""Parameters of a method, each declared once: its default, what it means, what it may be, and its unit.

`Config` of a method is a frozen dataclass that inherits from `Parameters`, with fields made by `parameter`. The check
of a value, its conversion from text and what `tdc methods NAME` prints come from that declaration.
"""

import numbers
import types
import typing
from dataclasses import dataclass, field, fields

from .. import listed
from ..bounds import Bounds, in_short
from ..errors import ConfigError

DECLARATION = "declaration"  # key of a field's metadata
# Powers of the unit of the data that a parameter may be measured in.
UNITS = {"": 0, "data": 1, "1 / data^2": -2}

# How values that are no numbers are written, in small letters.
WORDS = {
    bool: {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False},
    type(None): {"none": None, "": None},
}


@dataclass(frozen=True)
class Declaration(Bounds):
    """What is said of a parameter beside its name, type, default and the bounds of a number or of each number of a
    tuple.

    Attributes
    ----------
    help : str
        What it means.
    choices : tuple of str
        Words that it may be.
    units : str
        Key of `UNITS`; a parameter in units of the data changes along with them.
    """

    help: str
    choices: tuple[str, ...] = ()
    units: str = ""


def parameter(default, help, **declared):
    """A field of a `Config`; keywords as the attributes of `Declaration`."""
    return field(default=default, metadata={DECLARATION: Declaration(help, **declared)})


def noise_level(meanings):
    """The field `noise_std` of methods that know noise; `meanings` says what 0 and ``"auto"`` are."""
    what = (
        "Standard deviation of the noise, as a fraction of the full range of integer pictures, in data units of "
        "floats; "
    )
    return parameter(0.0, what + meanings, ge=0.0, choices=("auto",), units="data")


def frame_mode():
    """The field `frames` of methods that tell clips from pictures."""
    return parameter(
        None,
        "Mode that counts the frames of a clip, after the rows and the columns; None: the values are a picture.",
        ge=2,
    )


def most_iterations(count):
    """The field `iterations` of methods that end by themselves, at the latest after so many."""
    return parameter(count, "At most so many.", ge=1, le=1_000_000)


def declaration(field):
    """The `Declaration` of a field that `parameter` made."""
    return field.metadata[DECLARATION]


@dataclass(frozen=True)
class Parameters:
    """Base of every `Config`: refuses values that the declarations do not allow, with a ConfigError."""

    def __post_init__(self):
        for each in fields(self):
            _check(each.name, getattr(self, each.name), declaration(each))


def _check(name, value, declared):
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        if value not in declared.choices:
            some = ", ".join(declared.choices)
            wrong = f"not one of {some}" if declared.ge is None else f"neither a number nor {some}"
            raise ConfigError(f"{name} '{value}' is {wrong}", fields=(name,))
    elif isinstance(value, tuple):
        if not all(map(declared.allows, value)):
            text = f"{name} are {', '.join(map(in_short, value))}; they must be {declared.bounds}"
            raise ConfigError(text, fields=(name,))
    elif not declared.allows(value):
        raise ConfigError(f"{name} is {in_short(value)}; it must be {declared.bounds}", fields=(name,))


def convert(config, name, value):
    """`value` in the type of a field; text is read, and a list may stand for a tuple.

    Parameters
    ----------
    config : type
        Of the `Config`.
    name : str
        Of the field.
    value : object

    Raises
    ------
    ConfigError
        It cannot be read as what the field holds.
    """
    kind = typing.get_type_hints(config)[name]
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    for one in kinds:
        if isinstance(value, str):
            try:
                return _read(value, one)
            except ValueError:
                continue
        if _fits(value, one):
            return tuple(value) if isinstance(value, list) else value
    text = getattr(kind, "__name__", kind)
    raise ConfigError(f"parameter {name}={value!r} is not understood; expected {text}", fields=(name,))


def _inner(kind):
    """Type of what a tuple holds; None for other types."""
    return (typing.get_args(kind) or (int,))[0] if kind is tuple or typing.get_origin(kind) is tuple else None


def _fits(value, kind):
    """Whether a value that is no text is of a type; NumPy's numbers are numbers."""
    if inner := _inner(kind):
        return isinstance(value, (tuple, list)) and all(_fits(each, inner) for each in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, {int: numbers.Integral, float: numbers.Real}.get(kind, kind))


def _read(text, kind):
    """`text` as a value of a type; ValueError where it is none."""
    if inner := _inner(kind):
        return tuple(map(inner, listed.parts(text))) if text else ()
    if kind is bool or kind is type(None):
        if text.lower() not in WORDS[kind]:
            raise ValueError(text)
        return WORDS[kind][text.lower()]
    return kind(text)
