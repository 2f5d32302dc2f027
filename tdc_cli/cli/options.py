"""Options of commands, made from their declarations or shared by several commands, and how commands tell failures
apart.
"""

import contextlib
import math
import os
import tomllib
from dataclasses import MISSING
from fractions import Fraction
from pathlib import Path

import click

from .. import listed
from ..errors import ConfigError, TdcError
from ..run.option import options_of, sections_of
from ..run.request import FolderOptions, Request, flag_of
from .streams import echo


class Failed(Exception):
    """An error that came up while working; `error` says what happened."""

    def __init__(self, error):
        super().__init__(str(error))
        self.error = error


def in_words(error):
    """What an OSError says, and of which file; one without a name comes from writing to standard output."""
    return f"{error.filename or 'standard output'}: {error.strerror or error}"


@contextlib.contextmanager
def working():
    """Within the block every error is a failure of the work (exit code 1), no longer a mistake in the options (2)."""
    try:
        yield
    except TdcError as error:
        raise Failed(error) from error
    except BrokenPipeError:  # the reader has gone, which is no failure of the work
        raise
    except OSError as error:
        from ..memory import lacking

        if lacking(error):
            raise
        raise Failed(in_words(error)) from error
    except MemoryError as error:
        raise Failed("not enough memory; try a smaller input, fewer chains, or a lower rank") from error


def method_names(ctx, param, incomplete):
    """The methods that begin with what was typed, with their summaries, for a shell that completes."""
    from click.shell_completion import CompletionItem

    from .. import methods

    return [CompletionItem(m.name, help=m.summary) for m in methods.REGISTRY.values() if m.name.startswith(incomplete)]


class Command(click.Command):
    """A command whose help has its options below headings.

    Parameters
    ----------
    sections : dict of str to collection of str
        Heading to the names of its options; the others stand below a heading of their own, at the end.
    """

    others = "Messages and checks"

    def __init__(self, *args, sections, **more):
        super().__init__(*args, **more)
        self._headings = {name: heading for heading, names in sections.items() for name in names}

    def format_options(self, ctx, formatter):
        groups = {heading: [] for heading in (*dict.fromkeys(self._headings.values()), self.others)}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                groups[self._headings.get(parameter.name, self.others)].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def invoke(self, ctx):
        if not ctx.params.get("quiet"):
            for name in _unheard(ctx):
                heard = f"an option is {ctx.auto_envvar_prefix}_ and its name, such as {ctx.auto_envvar_prefix}_SEED"
                echo(f"tdc: warning: {name} in the environment has no effect on {ctx.info_name}; {heard}", err=True)
        return super().invoke(ctx)


def variable_of(ctx, parameter):
    """The environment variable of an option of a command."""
    return f"{ctx.auto_envvar_prefix}_{parameter.name.upper()}"


def _unheard(ctx):
    """Environment variables, sorted, that are named like those of a command and belong to no option of it, or that
    lack its name.
    """
    heard = {variable_of(ctx, parameter) for parameter in ctx.command.params}
    whole, own = (f"{each.auto_envvar_prefix}_" for each in (ctx.find_root(), ctx))
    short = {name.replace(own, whole, 1) for name in heard}
    return sorted(name for name in os.environ if (name.startswith(own) and name not in heard) or name in short)


class File(click.Path):
    """A path; an empty one, which would stand for the current folder, is an error."""

    def __init__(self, path_type=Path):
        super().__init__(path_type=path_type)

    def convert(self, value, param, ctx):
        if not os.fspath(value):
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


class FiniteRange(click.FloatRange):
    """A float within bounds; NaN, which no bound keeps out, and infinity are errors."""

    name = "number"

    def _describe_range(self):
        return super()._describe_range() if (self.min, self.max) != (None, None) else ""

    def convert(self, value, param, ctx):
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number", param, ctx)
        return number


class Listed(click.ParamType):
    """Values with commas between, as a tuple.

    Parameters
    ----------
    kind : type or click.ParamType
        Of one value; the second tells by itself what is wrong with one.
    form : str
        What a list looks like, such as ``30,30,30``.
    once : bool
        Whether no value may come twice.
    """

    def __init__(self, kind, form, *, once=False):
        self.name, self._kind, self._form, self._once = form, kind, form, once

    def convert(self, value, param, ctx):
        if isinstance(value, tuple):
            return value
        try:
            parts = listed.parts(value)
            if isinstance(self._kind, click.ParamType):
                values = tuple(self._kind.convert(part, param, ctx) for part in parts)
            else:
                values = tuple(map(self._kind, parts))
        except ValueError:
            self.fail(f"{value!r} is not of the form {self._form}", param, ctx)
        if self._once and len(set(values)) < len(values):
            self.fail(f"{value!r} names something twice", param, ctx)
        return values


class NumberOrWord(click.ParamType):
    """A number, or a word that stands for one.

    Parameters
    ----------
    kind : type
        Of the number, int or float.
    what : str
        What the number is, for errors.
    words : dict of str to object
        What each of the words becomes.
    least : int or None
        No number is less.
    """

    def __init__(self, kind, what, words, least=None):
        self.name = "|".join((*words, kind.__name__))
        self._kind, self._what, self._words, self._least = kind, what, words, least

    def convert(self, value, param, ctx):
        if value is None or isinstance(value, self._kind):
            return value
        if value in self._words:
            return self._words[value]
        try:
            number = self._kind(value)
        except ValueError:
            wanted = " nor ".join((self._what, *map(repr, self._words)))
            self.fail(f"{value!r} is neither {wanted}", param, ctx)
        if self._least is not None and number < self._least:
            self.fail(f"{number} is less than {self._least}", param, ctx)
        return number


_CONFIGURATIONS = "tdc_cli.configurations"


def _pairs(ctx, param, value):
    """KEY=VALUE options as a dict; a key given twice is an error."""
    pairs = {}
    for text in value:
        key, equals, content = text.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE", ctx, param)
        if key in pairs:
            raise click.BadParameter(f"{key} is given twice", ctx, param)
        pairs[key] = content
    return pairs


def config(commands):
    """Option ``--config FILE.toml`` that gives defaults from a table per command.

    Parameters
    ----------
    commands : callable
        ``commands(ctx)`` returns name to click command for every command that may have a table; None in place of a
        command: its table is left to others.
    """

    def load(ctx, param, value):
        if value is None:
            return None
        tables = _tables(value, commands(ctx))
        ctx.meta.setdefault(_CONFIGURATIONS, []).append(value)
        # A subcommand has its own table only; the group hands the others on.
        ctx.default_map = {
            **(ctx.default_map or {}),
            **(tables if isinstance(ctx.command, click.Group) else tables.get(ctx.info_name, {})),
        }
        return value

    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False),
        callback=load,
        is_eager=True,
        expose_value=False,
        metavar="FILE.toml",
        help="Defaults from a file, a table per command, keys named like the options.",
    )


def consulted(ctx):
    """Name in messages to path of the configuration files that were read for a command."""
    return {
        f"configuration{f' {k + 1}' if k else ''}": path for k, path in enumerate(ctx.meta.get(_CONFIGURATIONS, ()))
    }


def _tables(path, commands):
    """Content of a configuration file with keys as click names them; ConfigError for what is no TOML and what no
    command knows.
    """
    if not Path(path).is_file():
        raise ConfigError(
            f"{path}: {'not a regular file' if Path(path).exists() else 'no such file'}; name a file of TOML"
        )
    try:
        return _known(path, tomllib.loads(Path(path).read_text(encoding="utf-8")), commands)
    except (ValueError, OSError) as error:  # of the syntax, of the encoding, of integers with thousands of digits
        raise ConfigError(f"{path}: not a readable TOML file ({error})") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not a readable TOML file (nested too deeply)") from error


def _known(path, tables, commands):
    """`tables` of the file `path` with keys as click names them; ConfigError for what no command knows."""
    made = {}
    for name, table in tables.items():
        if name in commands and not isinstance(table, dict):
            raise ConfigError(
                f"{path}: {name} is {table!r}; it must be a table: a line [{name}], and the keys below it"
            )
        if name not in commands:
            raise ConfigError(
                f"{path}: no command '{name}'; write one table a command: {', '.join(f'[{c}]' for c in commands)}"
            )
        if commands[name] is None:
            continue
        known = {}
        for parameter in commands[name].params:
            if isinstance(parameter, click.Option) and parameter.expose_value:
                known |= {
                    opt.lstrip("-").replace("-", "_"): parameter for opt in parameter.opts if opt.startswith("--")
                }
        made[name] = {}
        for key, value in table.items():
            parameter = known.get(key.replace("-", "_"))
            if parameter is None:
                raise ConfigError(
                    f"{path}: [{name}] has no key '{key}'; its keys are the long options: "
                    f"{', '.join(sorted(known)).replace('_', '-')}"
                )
            if parameter.multiple:
                value = _repeated(value, parameter)
            _check_kind(path, name, key, value, parameter)
            # As text, a number is read as strictly as on the command line.
            made[name][parameter.name] = str(value) if type(value) in (int, float) else value
    return made


def own_table(ctx):
    """For `config` of a subcommand: its own table is read, those of the other commands are none of its business."""
    others = ctx.parent.command.list_commands(ctx.parent) if ctx.parent else ()
    return {**dict.fromkeys(others), ctx.info_name: ctx.command}


def _takes_pairs(parameter):
    return parameter.metavar == "KEY=VALUE"


def _repeated(value, parameter):
    """What a file says of an option that may be repeated, as a list of texts; anything else as it is."""
    if isinstance(value, dict) and _takes_pairs(parameter):
        return [f"{k}={v}" for k, v in value.items()]
    values = value if isinstance(value, list) else [value]
    plain = all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in values)
    return [str(v) for v in values] if plain and (isinstance(value, list) or not _takes_pairs(parameter)) else value


def _check_kind(path, name, key, value, parameter):
    """ConfigError for a value that is not of the kind that the option takes."""
    if parameter.is_flag:
        fits, wanted = isinstance(value, bool), "true or false"
    elif parameter.multiple:
        fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
        wanted = (
            'a table, or a list such as ["KEY=VALUE"]' if _takes_pairs(parameter) else "one value, or a list of them"
        )
    else:
        fits, wanted = isinstance(value, (str, int, float)) and not isinstance(value, bool), "a number or a string"
    if not fits or "\0" in str(value):
        raise ConfigError(f"{path}: [{name}] {key} is {value!r}; give {wanted}")


def stack(*decorators):
    """One decorator from several, the first one's option shown first in the help."""

    def decorate(command):
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


class Rate(click.ParamType):
    """Frames a second, an exact number above 0: ``25``, ``30000/1001`` or ``23.976``."""

    name = "rate"
    least, most = Fraction(1, 1000), 1000

    def convert(self, value, param, ctx):
        if isinstance(value, Fraction):
            return value
        try:
            rate = Fraction(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is no rate; give frames a second, such as 25 or 30000/1001", param, ctx)
        if not self.least <= rate <= self.most:
            self.fail(f"{value} is not in the range {self.least} to {self.most} frames a second", param, ctx)
        return rate


def _number(declared, kind):
    least = declared.ge if declared.ge is not None else declared.gt
    most = declared.le if declared.le is not None else declared.lt
    return FiniteRange(least, most, min_open=declared.gt is not None, max_open=declared.lt is not None)


# Form of a declared option -> the click type of its value.
_TYPES = {
    "text": lambda declared, kind: str,
    "path": lambda declared, kind: File(),
    "number": _number,
    "count": lambda declared, kind: click.IntRange(declared.ge, declared.le),
    "choice": lambda declared, kind: click.Choice(declared.of(kind, "choices"), case_sensitive=False)
    if declared.of(kind, "choices") else str,
    "noise": lambda declared, kind: NumberOrWord(float, "a number", {"auto": "auto"}),
    "modes": lambda declared, kind: Listed(int, "0,1: numbers of modes from 0, with commas between"),
    "chunk": lambda declared, kind: NumberOrWord(int, "a number of frames", {"auto": None}, least=1),
    "rate": lambda declared, kind: Rate(),
    "side": lambda declared, kind: NumberOrWord(
        int, "a number of pixels", {"auto": None, "whole": "whole"}),
}  # fmt: skip


_METAVARS = {"count": "N", "number": "NUMBER", "noise": "SD|auto", "method": "NAME"}


def made(name, declared, default, kind):
    """The click option of a declared option."""
    flag, words = flag_of(name), declared.of(kind, "help")
    if declared.default_words:
        words += f"  [default: {declared.default_words}]"
    how = {"help": words, "metavar": declared.of(kind, "metavar") or _METAVARS.get(declared.form)}
    if declared.form == "flag":
        return click.option(flag, is_flag=True, help=words)
    if declared.form == "switch":
        return click.option(f"{flag}/--no-{name.replace('_', '-')}", default=None, help=words)
    if declared.form == "pairs":
        return click.option(flag, multiple=True, callback=_pairs, **how)
    if declared.form in ("values", "texts"):
        return click.option(flag, multiple=True, type=FiniteRange() if declared.form == "values" else str, **how)
    if declared.form == "method":
        return click.option(flag, default=default, show_default=True, shell_complete=method_names, **how)
    if default not in (None, MISSING, (), ""):
        how |= {"default": default, "show_default": not declared.default_words}
    elif default in ((), ""):
        how["default"] = default
    return click.option(flag, type=_TYPES[declared.form](declared, kind), **how)


def declared(kind):
    """Decorator: all options of `Request` for one kind of input, and those of folders where they are for it."""
    found = options_of(Request, kind) | options_of(FolderOptions, kind)
    return stack(*(made(name, *rest, kind) for name, rest in found.items()))


def completing(summary):
    """Decorator: the command that completes one kind of input, whose options are those of `Request`."""
    sections = sections_of(Request, FolderOptions)
    sections["Output"] = ["output", *sections["Output"]]
    return click.command(cls=Command, sections=sections, short_help=summary)


def single(name):
    """Decorator: one option of `Request`, for commands that have but a few of them."""
    kind = "tensor"
    return made(name, *options_of(Request, kind)[name], kind)


telling = stack(
    click.option("--json", is_flag=True, help="Print the report as JSON, and nothing else, on standard output."),
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    click.option(
        "-v", "--verbose", is_flag=True, help="Print the parameters in force, and tracebacks of unexpected errors."
    ),
    click.option(
        "--progress/--no-progress",
        default=None,
        help="Show progress: a bar on a terminal, else a plain line now and then.  [default: shown, unless -q]",
    ),
)
dry_run = click.option("--dry-run", is_flag=True, help="Check everything, say what would be done, write nothing.")
