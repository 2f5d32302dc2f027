"""Who hears that code is being compiled: what compiles knows no terminal, and what writes to one loads no compiler."""

from collections.abc import Callable

# Called with True when compiling begins and with False when it ends, in this process; None: nobody asks.
told: Callable[[bool], None] | None = None
