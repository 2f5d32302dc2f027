"""One declaration for an option: from it come the check of its value, the command line's option with its help and its
key in a configuration file, the row in docs/cli.md, the entry in the report, and its part in the fingerprint of
finished regions.
"""

import numbers
from dataclasses import MISSING, dataclass, field, fields

from ..bounds import Bounds, in_short
from ..errors import ConfigError
from ..names import KINDS_OF_INPUT


@dataclass(frozen=True)
class Option(Bounds):
    """What is declared of an option, beside the bounds of a number.

    Attributes
    ----------
    help : str or dict of str to str
        One text for all kinds of input, or one for each.
    form : str
        How a value is written: ``text``, ``path``, ``flag``, ``switch`` (on, off or unsaid), ``number``, ``count``,
        ``choice``, or a word for which `cli.options` has a type of its own.
    choices : tuple of str, or dict of str to tuple
        For all kinds of input, or for each.
    metavar : str, dict, or None
        What stands for the value in the help.
    scope : tuple of str
        Kinds of input that have the option.
    affects_result : bool
        Whether the completed values depend on it.
    parameter : bool
        Whether it is handed to the method, which knows what it means.
    default_words : str or None
        The default in words, where the value itself says nothing.
    defaults : dict of str to object
        Kinds of input whose default is another one.
    section : str or None
        Heading of the help that stands above it and those that follow, up to the next that names one.
    """

    help: object
    form: str = "text"
    choices: object = None
    metavar: object = None
    scope: tuple = KINDS_OF_INPUT
    affects_result: bool = True
    parameter: bool = False
    default_words: str | None = None
    defaults: dict = field(default_factory=dict)
    section: str | None = None

    def of(self, kind, name):
        """The attribute `name` for one kind of input."""
        value = getattr(self, name)
        return value.get(kind) if isinstance(value, dict) else value


def option(default=MISSING, **declared):
    """Field of a dataclass that is an option; see `Option`."""
    return field(default=default, metadata={"option": Option(**declared)})


def options_of(cls, kind):
    """Name to (`Option`, default) of the options that a dataclass has for one kind of input, in the order of their
    declaration.
    """
    found = {f.name: (f.metadata["option"], f.default) for f in fields(cls) if "option" in f.metadata}
    return {name: (declared, declared.defaults.get(kind, default))
            for name, (declared, default) in found.items() if kind in declared.scope}  # fmt: skip


def sections_of(*classes):
    """Heading of the help to the names of the options below it, of all kinds of input, as dataclasses declare them."""
    found: dict[str, list] = {}
    for cls in classes:
        heading = None
        for name, declared in ((f.name, f.metadata["option"]) for f in fields(cls) if "option" in f.metadata):
            heading = declared.section or heading
            found.setdefault(heading, []).append(name)
    return found


def check_options(instance, kind):
    """Refuse values out of their bounds or choices, and options that other kinds of input have.

    Raises
    ------
    ConfigError
    """
    for f in fields(instance):
        declared = f.metadata.get("option")
        value = getattr(instance, f.name)
        if declared is None or value is None or value == f.default:
            continue
        if kind not in declared.scope:
            raise ConfigError(f"`{f.name}` is for a {' or a '.join(declared.scope)}, not for a {kind}")
        _check(f.name, value, declared, kind)


def _check(name, value, declared, kind):
    if declared.form in ("number", "count"):
        whole = declared.form == "count"
        fits = isinstance(value, numbers.Integral if whole else numbers.Real) and not isinstance(value, bool)
        if not fits:
            raise ConfigError(f"`{name}` is {value!r}; give a {'whole ' * whole}number")
        if not declared.allows(value):
            raise ConfigError(f"`{name}` is {in_short(value)}; it must be {declared.bounds}")
    elif declared.form == "choice":
        choices = declared.of(kind, "choices")
        if choices is not None and value not in choices:
            raise ConfigError(f"`{name}` is {value!r}; it must be one of {', '.join(choices)}")
