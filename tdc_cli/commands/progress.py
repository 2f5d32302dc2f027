"""Progress on standard error: a bar on a terminal, else a plain line now and then."""

import contextlib
import sys
import time

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

        with tqdm(total=0, file=sys.stderr, leave=False, dynamic_ncols=True, delay=0.5) as bar:

            def draw(done, total, label):
                if bar.desc != f"{label}: ":
                    bar.set_description(label, refresh=False)
                bar.total = total
                bar.update(done - bar.n)

            yield draw
    else:
        last = time.monotonic()

        def line(done, total, label):
            nonlocal last
            now = time.monotonic()
            if now - last >= LINE_SECONDS:
                last = now
                print(f"tdc: {label}: {done} of {total}", file=sys.stderr, flush=True)

        yield line
