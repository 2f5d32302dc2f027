"""``python -m tdc_cli`` is ``tdc``."""

from .commands.main import main

main(prog_name="tdc")
