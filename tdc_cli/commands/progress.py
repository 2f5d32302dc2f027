"""Progress on standard error: a bar on a terminal, else a plain line now and then."""

import contextlib
import sys
import threading
import time

# Loading what was compiled before takes less; compiling itself some half minute.
COMPILING_SECONDS = 4.0
COMPILING = "compile"  # label under which a method is got ready
LINE_SECONDS = 10.0  # off a terminal, so that a log of a long run has a few lines and one of a short run has none


@contextlib.contextmanager
def shown(wanted):
    """Monitor for a method, as a context.

    Parameters
    ----------
    wanted : bool
        False gives a monitor that shows nothing.

    Yields
    ------
    callable
        ``monitor(done, total, label)``.
    """
    if not wanted:
        yield lambda done, total, label: None
    elif sys.stderr is not None and sys.stderr.isatty():
        from tqdm import tqdm

        with _compiling() as tell, tqdm(total=0, file=sys.stderr, leave=False, dynamic_ncols=True, delay=0.5) as bar:

            def draw(done, total, label):
                tell(done, total, label)
                if label == COMPILING:
                    return
                if bar.desc != f"{label}: ":
                    bar.set_description(label, refresh=False)
                bar.total = total
                bar.update(done - bar.n)

            yield draw
    else:
        last = time.monotonic()

        with _compiling() as tell:

            def line(done, total, label):
                nonlocal last
                tell(done, total, label)
                now = time.monotonic()
                if now - last >= LINE_SECONDS and label != COMPILING:
                    last = now
                    print(f"tdc: {label}: {done} of {total}", file=sys.stderr, flush=True)

            yield line


@contextlib.contextmanager
def _compiling():
    """Monitor that says, if `COMPILING` is not done after a while, what takes so long."""
    timer = None

    def say():
        with contextlib.suppress(OSError, ValueError):  # standard error may be gone
            print("tdc: compiling, once after an installation; about half a minute on an idle machine", file=sys.stderr, flush=True)

    def tell(done, total, label):
        nonlocal timer
        if timer is not None:
            timer.cancel()
            timer = None
        if label == COMPILING and done < total:
            timer = threading.Timer(COMPILING_SECONDS, say)
            timer.daemon = True
            timer.start()

    try:
        yield tell
    finally:
        tell(1, 1, COMPILING)
