"""``tdc``, also as ``python -m tdc_cli``: the door, which answers Ctrl-C while the rest is still being loaded."""

import sys


def main():
    """Run the program; see `tdc_cli.cli.main`."""
    try:
        from .cli.main import main as command

        command(prog_name="tdc")
    except KeyboardInterrupt:
        print("tdc: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
