"""Progress on standard error: a bar on a terminal, else a plain line now and then."""

import contextlib
import sys
import threading
import time

from .. import compiled, interrupts

COMPILING_SECONDS = 2.0  # in all, after which it is told
FRAMES = "frames"  # label under which a clip is completed: how fast that goes is told too
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
        yield lambda done, total, label: interrupts.check()
    elif sys.stderr is not None and sys.stderr.isatty():
        from tqdm import tqdm

        with _compiling(), tqdm(total=0, file=sys.stderr, leave=False, dynamic_ncols=True, delay=0.5) as bar:

            def draw(done, total, label):
                interrupts.check()
                if bar.desc != f"{label}: ":
                    bar.set_description(label, refresh=False)
                    bar.reset(total)
                    bar.initial = bar.n = done  # what an earlier run has done says nothing of how fast this one is
                    bar.unit = "frame" if label == FRAMES else "it"
                bar.total = total
                bar.update(done - bar.n)

            yield draw
    else:
        last, told = time.monotonic(), ("", "")  # when a line was printed, and what of
        began = (last, 0, "")  # when what is done now began, with how much done, and its label

        with _compiling():

            def line(done, total, label):
                nonlocal last, told, began
                interrupts.check()
                now = time.monotonic()
                if label != began[2]:
                    began = (now, done, label)
                if now - last >= LINE_SECONDS:
                    how_far = f"{done} of {total}" if total > 1 else f"{done / max(total, 1e-9):.0%}"
                    if told == (label, how_far):
                        return
                    last, told = now, (label, how_far)
                    pace = _pace(done - began[1], total - done, now - began[0]) if label == FRAMES else ""
                    print(f"tdc: {label}: {how_far}{pace}", file=sys.stderr, flush=True)

            yield line


def _pace(done, left, seconds):
    """How fast frames were done and how long the others will take, in words; nothing before the first one is done."""
    if done <= 0 or seconds <= 0:
        return ""
    rest = left * seconds / done
    return f", {done / seconds:.2g} a second, {f'{rest / 60:.0f} min' if rest > 100 else f'{rest:.0f} s'} left"


@contextlib.contextmanager
def _compiling():
    """Within the block, say once, when compiling has taken a while in all, what takes so long."""
    timer, since, spent, at_once, lock = None, 0.0, 0.0, 0, threading.Lock()

    def say():
        compiled.told = None
        with contextlib.suppress(OSError, ValueError):  # standard error may be gone
            print(
                "tdc: compiling what this needs and no run has needed yet; up to half a minute on an idle machine",
                file=sys.stderr,
                flush=True,
            )

    def told(begins):
        nonlocal timer, since, spent, at_once
        with lock:  # workers are heard by a thread each
            at_once += 1 if begins else -1
            if begins and at_once == 1:
                since = time.monotonic()
                timer = threading.Timer(max(0.0, COMPILING_SECONDS - spent), say)
                timer.daemon = True
                timer.start()
            elif not at_once and timer is not None:
                timer.cancel()
                spent += time.monotonic() - since

    before, compiled.told = compiled.told, told
    try:
        yield
    finally:
        compiled.told = before
        if timer is not None:
            timer.cancel()
