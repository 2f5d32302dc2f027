"""``tdc``, also as ``python -m tdc_cli``: the door, which answers Ctrl-C while the rest is still being loaded."""

import gc
import os
import sys

# Objects that come before Python looks for forgotten cycles again: loading the libraries makes many that stay, and to
# go through them at every 700 took a tenth of a short run.
COLLECTED = 100_000


def main():
    """Run the program; see `tdc_cli.cli.main`."""
    gc.set_threshold(COLLECTED)
    try:
        # When the current folder is forgotten, which may hold files named as what this imports.
        from . import interrupts

        interrupts.begin()
        try:
            from .cli.main import main as command

            command(prog_name="tdc")
        finally:
            interrupts.end()
            # Python looks for forgotten cycles at its end, too, and gives nothing back that the system would not.
            gc.freeze()
    except KeyboardInterrupt:
        print("tdc: interrupted", file=sys.stderr)
        sys.exit(130)


def forget_the_current_folder():
    """Take the current folder, where ``python -m`` looks first, from the import path, unless the package itself lies
    there.
    """
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):
        del sys.path[0]


if __name__ == "__main__":
    forget_the_current_folder()
    main()
