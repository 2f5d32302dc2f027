"""Options that several subcommands share, each with the check of its value, and how commands tell failures apart."""

import contextlib
import math
import os
import tomllib
from pathlib import Path

import click

from .. import listed
from ..errors import ConfigError, TdcError

# The names that `tdc_cli.holes.PATTERNS` and `CLIP_PATTERNS`, `tdc_cli.media.EXTENSIONS` and the methods know; written here too because
# importing those takes NumPy along.
PATTERNS = ("entries", "pixels", "rows", "columns", "blocks", "text", "scratches")
CLIP_PATTERNS = (*PATTERNS, "frames")
FORMATS = ("png", "jpg", "tif", "webp", "bmp", "npy")
RESIDUALS = ("auto", "mixture", "none", "separable")


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
        raise Failed(in_words(error)) from error
    except MemoryError as error:
        raise Failed("not enough memory; try a smaller input, fewer chains, or a lower rank") from error


def method_names(ctx, param, incomplete):
    """The methods that begin with what was typed, with their summaries, for a shell that completes."""
    from click.shell_completion import CompletionItem

    from .. import methods

    return [CompletionItem(m.name, help=m.summary) for m in methods.REGISTRY.values() if m.name.startswith(incomplete)]


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


class Number(click.ParamType):
    """A float, or the word ``auto``."""

    name = "float|auto"

    def convert(self, value, param, ctx):
        if value == "auto" or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor 'auto'", param, ctx)


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
        ``commands(ctx)`` returns name to click command for every command that may have a table; None in place of a command: its table is
        left to others.
    """

    def load(ctx, param, value):
        if value is None:
            return None
        tables = _tables(value, commands(ctx))
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


def _tables(path, commands):
    """Content of a configuration file with keys as click names them; ConfigError for what is no TOML and what no command knows."""
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
            raise ConfigError(f"{path}: {name} is {table!r}; it must be a table: a line [{name}], and the keys below it")
        if name not in commands:
            raise ConfigError(f"{path}: no command '{name}'; write one table a command: {', '.join(f'[{c}]' for c in commands)}")
        if commands[name] is None:
            continue
        known = {}
        for parameter in commands[name].params:
            if isinstance(parameter, click.Option) and parameter.expose_value:
                known |= {opt.lstrip("-").replace("-", "_"): parameter for opt in parameter.opts if opt.startswith("--")}
        made[name] = {}
        for key, value in table.items():
            parameter = known.get(key.replace("-", "_"))
            if parameter is None:
                raise ConfigError(
                    f"{path}: [{name}] has no key '{key}'; its keys are the long options: {', '.join(sorted(known)).replace('_', '-')}"
                )
            if isinstance(value, dict) and parameter.multiple:
                value = [f"{k}={v}" for k, v in value.items()]
            _check_kind(path, name, key, value, parameter)
            # As text, a number is read as strictly as on the command line.
            made[name][parameter.name] = str(value) if type(value) in (int, float) else value
    return made


def own_table(ctx):
    """For `config` of a subcommand: its own table is read, those of the other commands are none of its business."""
    others = ctx.parent.command.list_commands(ctx.parent) if ctx.parent else ()
    return {**dict.fromkeys(others), ctx.info_name: ctx.command}


def _check_kind(path, name, key, value, parameter):
    """ConfigError for a value that is not of the kind that the option takes."""
    if parameter.is_flag:
        fits, wanted = isinstance(value, bool), "true or false"
    elif parameter.multiple:
        fits, wanted = isinstance(value, list) and all(isinstance(v, str) for v in value), 'a table, or a list such as ["KEY=VALUE"]'
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


_path = File()
_share = FiniteRange(0, 1, max_open=True)
_positive = click.IntRange(1)

missing_ratio = click.option(
    "--missing-ratio",
    type=_share,
    metavar="SHARE",
    help="Hide this share of a whole input, which then is the truth for the metrics.",
)
add_noise = click.option(
    "--add-noise",
    type=FiniteRange(0),
    default=0.0,
    metavar="SD",
    help="Add Gaussian noise first; a fraction of the full range (0.1 = 25.5 of 255), data units for floats.",
)

param = click.option(
    "--param",
    multiple=True,
    callback=_pairs,
    metavar="KEY=VALUE",
    help="Any other parameter of the method (see 'tdc methods NAME'); may be repeated.",
)
threads = click.option(
    "--threads",
    type=click.IntRange(1, 10_000),
    help="Threads to use for each input.  [default: the cores]",
)
overwrite = click.option("--overwrite", is_flag=True, help="Replace outputs that exist; otherwise they are refused before any work.")
telling = stack(
    click.option(
        "--json",
        is_flag=True,
        help="Print the report as JSON, and nothing else, on standard output.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Print the parameters in force, and tracebacks of unexpected errors."),
    click.option(
        "--progress/--no-progress",
        default=None,
        help="Show progress: a bar on a terminal, else a plain line now and then.  [default: shown, unless -q]",
    ),
)

how_masks_are_read = stack(
    click.option("--invert-mask", is_flag=True, help="Black = missing instead."),
    click.option(
        "--mask-threshold",
        type=FiniteRange(0, 255, min_open=True),
        default=128,
        show_default=True,
        help="A mask pixel of at least this level, of 255, is missing.",
    ),
    click.option(
        "--mask-dilate",
        type=click.IntRange(0, 10_000),
        default=0,
        show_default=True,
        metavar="N",
        help="Grow the holes by N pixels in every direction.",
    ),
    click.option("--mask-color", metavar="'#ff00ff'", help="Pixels of this colour are missing."),
    click.option(
        "--mask-tolerance",
        type=click.FloatRange(0, 255),
        default=0,
        show_default=True,
        metavar="N",
        help="How far, of 255, each channel may be from --mask-color.",
    ),
)

what_is_missing = stack(
    click.option(
        "--mask",
        type=_path,
        metavar="PATH|alpha",
        help="Picture that marks the missing pixels: white = missing; or a folder that has one for every picture; or the word alpha: what "
        "is transparent in INPUT is missing.",
    ),
    click.option("--mask-suffix", default="", metavar="TEXT", help="What follows a picture's name in that of its mask, such as _mask."),
    how_masks_are_read,
    missing_ratio,
    click.option(
        "--missing-pattern",
        type=click.Choice(PATTERNS),
        help="What --missing-ratio hides; 'entries' takes every channel by itself.  [default: entries]",
    ),
    add_noise,
    click.option(
        "--reference", type=_path, metavar="PATH", help="The true picture, for metrics where a mask is real; or a folder of them."
    ),
)

how_to_write = stack(
    click.option(
        "--format",
        type=click.Choice(FORMATS, case_sensitive=False),
        help="Format of the output where its name has no extension: on standard output, in a folder.  [default: that of the input]",
    ),
    click.option("--quality", type=click.IntRange(1, 100), metavar="N", help="Of a JPEG output, 1 to 100.  [default: 95]"),
)

METHOD_OPTIONS = ("spatial", "residual", "rank", "components", "burn_in", "samples", "chains")

how_to_complete = stack(
    click.option(
        "--spatial/--no-spatial",
        default=None,
        help="Whether neighbours along the ordered modes, in pictures rows and columns, are alike.  [default: the method's own]",
    ),
    click.option("--residual", type=click.Choice(RESIDUALS), help="Model of what is not low-rank.  [default: the method's own]"),
    click.option("--rank", type=_positive, help="Largest rank to start from."),
    click.option("--components", type=_positive, help="Largest number of Gaussians in the mixture."),
    click.option("--burn-in", type=click.IntRange(0), help="Sweeps thrown away at the start of every chain."),
    click.option("--samples", type=_positive, help="Sweeps kept of every chain."),
    click.option("--chains", type=_positive, help="Independent chains."),
    click.option(
        "--noise-std",
        type=Number(),
        help="Noise of the known entries, as for --add-noise, or 'auto' to learn it. 0: known "
        "entries come back bit for bit; else they are estimated too.  [default: 0]",
    ),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same bytes."),
    param,
    threads,
)

how_to_run_many = stack(
    click.option("--skip-existing", is_flag=True, help="Pass over what is finished already, to go on where a run stopped."),
    click.option("--recursive", is_flag=True, help="Enter folders in folders."),
    click.option(
        "--jobs", type=_positive, default=1, show_default=True, metavar="N", help="Files to work on at the same time; they share the cores."
    ),
    click.option("--fail-fast", is_flag=True, help="Begin no further file after one has failed."),
)

how_to_run = stack(
    overwrite,
    click.option("--dry-run", is_flag=True, help="Check everything, say what would be done, write nothing."),
    telling,
)


def job_fields(ctx, chosen):
    """Fields of a job of `pipeline` from the options that all commands for one kind of input have; the others go along as they are.

    Parameters
    ----------
    ctx : click.Context
    chosen : dict
        Options by their names; those of `METHOD_OPTIONS`, ``param``, ``missing_pattern`` and ``save_incomplete`` among them.

    Raises
    ------
    click.UsageError
        A pattern of what is missing without a share.
    ConfigError
        See `method_parameters`.
    """
    if chosen["missing_pattern"] and chosen["missing_ratio"] is None:
        raise click.UsageError("--missing-pattern needs a --missing-ratio", ctx)
    own = ("param", "missing_pattern", "save_incomplete", *METHOD_OPTIONS)
    return {
        "missing_pattern": chosen["missing_pattern"] or "entries",
        "parameters": method_parameters(chosen, chosen["param"]),
        "incomplete": chosen["save_incomplete"],
        "command": tuple((ctx.obj or {}).get("command", ())),
        **{key: value for key, value in chosen.items() if key not in own},
    }


def method_parameters(chosen, parameters):
    """Parameters for a method: the options of `METHOD_OPTIONS` that were given, and those of ``--param``.

    Raises
    ------
    ConfigError
        The same parameter by both ways.
    """
    given = {key: value for key, value in chosen.items() if key in METHOD_OPTIONS and value is not None}
    twice = given.keys() & parameters.keys()
    if twice:
        name = min(twice)
        raise ConfigError(f"{name} is given twice, by --{name.replace('_', '-')} and by --param {name}; leave one out")
    return given | parameters
