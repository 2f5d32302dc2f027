"""The `tdc` command: finds subcommands when they are needed, and turns every error into one line and an exit code."""

import contextlib
import importlib
import logging
import os
import sys
import warnings

import click

from .. import __version__, interrupts
from ..errors import TdcError
from ..listed import likely
from ..run.request import worded
from . import options, streams
from .streams import echo

# Name of the subcommand -> module in this package and its command. To add one: write the module, add a line.
COMMANDS = {
    "complete-image": ("image", "complete_image"),
    "complete-video": ("video", "complete_video"),
    "complete-tensor": ("tensor", "complete_tensor"),
    "synth": ("synth", "synth"),
    "bench": ("bench", "bench"),
    "methods": ("methods", "methods_list"),
    "info": ("info", "info"),
    "report-schema": ("report_schema", "report_schema"),
}

_COMPLETION = "_TDC_COMPLETE"

EXIT_CODES = """\b
Exit codes:
  0    done
  1    an input failed while it was worked on
  2    wrong options or files, found before any work
  3    some or all files of a folder failed
  130  interrupted
  141  the reader of the output has gone
  143  told to end, by a signal"""


class _ClosedPipe(Exception):
    """Standard output was closed by its reader; not an OSError, which click would catch."""


class _Interrupted(Exception):
    """A KeyboardInterrupt, for which click would print an empty line."""


class Group(click.Group):
    """Group that imports a subcommand only when it is asked for, and that reports errors as the whole program does."""

    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, cmd_name):
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        return getattr(importlib.import_module(f".{module}", __package__), name)

    def resolve_command(self, ctx, args):
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"no command {args[0]!r}; {likely(args[0], list(COMMANDS))}", ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *args, **extra):
        try:
            with interrupts.heard():
                return super().make_context(*args, **extra)
        except BrokenPipeError as error:  # of --help
            raise _ClosedPipe from error
        except KeyboardInterrupt as error:
            raise _Interrupted from error

    def invoke(self, ctx):
        try:
            with interrupts.heard():
                result = super().invoke(ctx)
                if sys.stdout is not None:
                    sys.stdout.flush()
        except BrokenPipeError as error:
            raise _ClosedPipe from error
        except KeyboardInterrupt as error:
            raise _Interrupted from error
        return result

    def main(self, args=None, prog_name=None, standalone_mode=True, **extra):
        """Run, print errors as ``tdc: ...`` on standard error, and exit with the code that `EXIT_CODES` names."""
        args = list(sys.argv[1:] if args is None else args)
        if _COMPLETION in os.environ and not _a_shell_asks():
            del os.environ[_COMPLETION]
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, obj={"command": args}, **extra)
        with interrupts.listening(), streams.guarded(), _no_python_warnings():
            code = _no_current_folder() or self._run(args, prog_name, extra)
        sys.exit(code)

    def _run(self, args, prog_name, extra):
        try:
            return super().main(args, prog_name, standalone_mode=False, obj={"command": args}, **extra) or 0
        except options.Failed as failed:
            return _complain(failed.error, 1)
        except click.exceptions.NoArgsIsHelpError as error:
            echo(*error.format_message().split("\n"), err=True)
            return 2
        except (click.ClickException, TdcError) as error:
            return _complain(error, 2)
        except (click.Abort, KeyboardInterrupt, _Interrupted) as error:
            terminated = isinstance(error.__cause__ or error, interrupts.Terminated)
            streams.abandon_output()
            return _complain("terminated", 143) if terminated else _complain("interrupted", 130)
        except _ClosedPipe:
            return 141
        except Exception as error:
            return self._failed(error, args)

    def _failed(self, error, args):
        """Exit code of an error that is none of ours."""
        from ..memory import lacking

        if lacking(error):
            return _complain(
                "not enough memory; try a smaller input, fewer threads, or raise the limit of the process (ulimit -v)",
                1,
            )
        if isinstance(error, OSError):
            # What has a name is looked at before the work, or within `options.working`.
            return _complain(options.in_words(error), 2 if error.filename else 1)
        if {"-v", "--verbose"} & set(args):
            raise error
        return _complain(f"unexpected {type(error).__name__}: {error}; run again with -v for the traceback", 1)


def _a_shell_asks():
    """Whether the environment is that of a shell that completes what was typed, or of one that wants the script for it.
    """
    shell, _, what = os.environ[_COMPLETION].partition("_")
    asked = what == "source" or ("COMP_WORDS" in os.environ and os.environ.get("COMP_CWORD", "0").isdigit())
    return shell in ("bash", "zsh", "fish") and what in ("source", "complete") and asked


def _no_current_folder():
    """Exit code where the current folder has been removed, so that no relative name means anything; else 0."""
    try:
        os.getcwd()
    except OSError:
        return _complain("the current folder is not there any more; change to another one", 2)
    return 0


@contextlib.contextmanager
def _no_python_warnings():
    """Within the block, what libraries tell programmers does not reach the user, unless ``python -W`` asks for it."""
    # Matplotlib and tifffile log warnings, which without a handler go to standard error.
    logging.lastResort = logging.NullHandler()
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        yield


def _complain(error, code):
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "tdc"
        text = f"{error.format_message().rstrip('.')}{_origin(error)}; see '{where} --help'"
    elif isinstance(error, click.ClickException):
        text = error.format_message()
    else:
        text = worded(str(error))
    echo(f"tdc: {' '.join(text.split())}", err=True)
    return code


def _origin(error):
    """Words for where a wrong value was read, if it was in the environment, which nobody sees on the command line."""
    parameter = getattr(error, "param", None)
    if error.ctx is None or parameter is None:
        return ""
    source = error.ctx.get_parameter_source(parameter.name)
    if source is not click.core.ParameterSource.ENVIRONMENT:
        return ""
    return f" (from the environment: {options.variable_of(error.ctx, parameter)})"


@click.group(
    name="tdc",
    cls=Group,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "TDC"},
)
@click.version_option(__version__, prog_name="tdc")
@options.config(lambda ctx: {name: ctx.command.get_command(ctx, name) for name in COMMANDS})
def main():
    """Fill in the missing parts of pictures, clips and tensors, and say how sure the result is.

    Every option can also be given by an environment variable (TDC_COMPLETE_IMAGE_SEED=1) or in a file
    (tdc --config tdc.toml ..., with a table [complete-image]). A flag comes before the environment, the environment
    before the file, the file before the default.
    """
