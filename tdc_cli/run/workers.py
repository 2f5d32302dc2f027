"""What a process that works for another one does first."""

import os
import signal
import threading
import time

WATCH_SECONDS = 1.0  # how often a worker looks whether the program that started it still lives


def settle(parent):
    """Make this process a worker: Ctrl-C is the business of the program, and the worker ends when the program is gone.

    Parameters
    ----------
    parent : int
        Process that started this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch():
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
