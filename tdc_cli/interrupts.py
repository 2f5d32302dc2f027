"""Ctrl-C (SIGINT) and SIGTERM: where they end the work at once, where they wait, and what if a library swallows them.

A signal raises KeyboardInterrupt in whatever is being done within `heard`. What must not be left half done (making,
naming and clearing up of files, the ends of processes) stands within `held`, where a signal waits; what may take long
within it stands within `heard` again. So a cleanup is safe if its whole ``try`` statement stands within `held`.

An exception that is raised in a callback of a library of C is thrown away by Python. As long as the program has not
come to its end it is therefore raised again now and then. Within llvmlite, which compiles, none is raised: between a
call of LLVM that frees something and the note of it in Python it would be freed a second time, and end the process.
"""

import contextlib
import signal
import sys
import threading

AGAIN_SECONDS = 0.5  # between a signal and the next time that it is raised
SOON_SECONDS = 0.02  # where it could not be raised


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Python itself, once a KeyboardInterrupt has passed through code that was given as text, as that of data
    classes is, would end with a signal in place of an exit code; it takes no notice of classes derived from it.
    """


class Terminated(KeyboardInterrupt):
    """Another program, as the system before it goes down, asked this one to end: the same is cleaned up as after
    Ctrl-C.
    """


class _Thread(threading.local):
    """What is so in one thread; signals reach the main one only."""

    held = False


class _Signals:
    """What has been heard so far.

    Attributes
    ----------
    raised : type or None
        What the last signal raises.
    """

    raised: type[KeyboardInterrupt] | None = None


_mine, _signals = _Thread(), _Signals()


class _Section(contextlib.ContextDecorator):
    """Block within which signals wait or not, whatever they do around it."""

    def __init__(self, held):
        self._held, self._before = held, False

    def _recreate_cm(self):  # a function may call itself
        return _Section(self._held)

    def __enter__(self):
        self._before = _mine.held
        try:
            _mine.held = self._held
            check()
        except BaseException:
            _mine.held = self._before
            raise

    def __exit__(self, kind, *_):
        _mine.held = self._before
        if kind is None and _signals.raised is not None and not (self._held and self._before):
            raise _signals.raised


# While a block is being left, a signal waits until that is done.
_LEAVING = _Section.__exit__.__code__


def held():
    """Context, or decorator of a function: within it a signal waits, and is raised at its end."""
    return _Section(True)


def heard():
    """Context, or decorator of a function: within it a signal is raised at once, also within `held`.

    Around it a signal waits as it did before.
    """
    return _Section(False)


def check():
    """Raise what has been heard, where nothing holds it."""
    if _signals.raised is not None and not _mine.held:
        raise _signals.raised


def begin():
    """Have Ctrl-C raise `Interrupted` from now on, while the program is being loaded."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def end():
    """Ignore Ctrl-C from now on: all is done, and nobody wants to read what it would do to Python's own ending."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupt(number, frame):
    raise Interrupted


@contextlib.contextmanager
def listening():
    """Within the block, in the main thread, signals do what this module says, unless somebody has said what they do.

    They wait wherever no `heard` lets them through; what still waits at the end of the block is forgotten.
    """
    usual = (signal.SIG_DFL, signal.default_int_handler, _interrupt)
    hooks = {signal.SIGINT: _hear, signal.SIGTERM: _hear}
    if hasattr(signal, "setitimer"):
        hooks[signal.SIGALRM] = _raise_again
    if threading.current_thread() is not threading.main_thread():
        hooks = {}
    before = {number: signal.getsignal(number) for number in hooks}
    ours = {number: handler for number, handler in before.items() if handler in usual}
    unraisable, held_before = sys.unraisablehook, _mine.held
    _signals.raised, _mine.held = None, True
    sys.unraisablehook = _told_by(unraisable)
    try:
        for number in ours:
            signal.signal(number, hooks[number])
        yield
    finally:
        if hasattr(signal, "SIGALRM") and signal.SIGALRM in ours:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in ours.items():
            signal.signal(number, handler)
        sys.unraisablehook, _signals.raised, _mine.held = unraisable, None, held_before


def _hear(number, frame):
    """Handler of both signals."""
    _signals.raised = Terminated if number == signal.SIGTERM else Interrupted
    _raise_again(number, frame)


def _raise_again(number, frame):
    """Handler of the timer."""
    compiling = _within_llvmlite(frame)
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _raise_again:
        signal.setitimer(signal.ITIMER_REAL, SOON_SECONDS if compiling else AGAIN_SECONDS)
    if not compiling and (frame is None or frame.f_code is not _LEAVING):
        check()


def _within_llvmlite(frame):
    """Whether a frame, or one that has called it, is of llvmlite."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite."):
            return True
        frame = frame.f_back
    return False


def _told_by(hook):
    """Hook for exceptions that nobody can catch: a signal among them is no news, since it will be raised again."""

    def tell(unraisable):
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            hook(unraisable)

    return tell
