"""The start of the command: what a signal does before the rest of swink is there to handle it.

Until a command says otherwise, Ctrl-C, SIGTERM and SIGHUP end its process at once, without a traceback:
nothing has begun that would have to be cleaned up. `import swink` imports this module first, and it imports
next to nothing, so that it is in time. In other programs it does nothing.
"""

import os
import signal
import sys

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

last_words = None
"""A function that writes what a process which ends at once still has to say, or None."""


def begin() -> None:
    """Make the standard streams safe, and let signals end the process."""
    for descriptor, way in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_RDWR)):
        try:
            os.fstat(descriptor)
        except OSError:
            # No file opened later may pass for a closed stream. What is written to stdout still fails.
            os.set_inheritable(os.open(os.devnull, way), True)  # the lowest place that is free
    leave_at_signals()


def heeded_signals() -> "tuple[signal.Signals, ...]":
    """The signals that end a command; one that was ignored when it started (`nohup`, `&`) stays ignored."""
    return tuple(number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)


def leave_at_signals() -> None:
    """From now on a signal ends the process at once."""
    for number in heeded_signals():
        signal.signal(number, leave)


def leave(number: int, frame: object = None) -> None:
    """End the process at once, with the exit code that shells know for a signal."""
    global last_words
    words, last_words = last_words, None
    try:
        if words is not None:
            words()
    finally:
        os._exit(128 + number)


def _is_command() -> bool:
    """Whether this process is the command itself: `python -m swink`, or the script beside this Python."""
    if sys.argv[:1] == ["-m"]:  # as long as the module is being looked for
        at = sys.orig_argv.index("-m") if "-m" in sys.orig_argv else -1
        return sys.orig_argv[at + 1 : at + 2] in (["swink"], ["swink.app.cli"])
    directory, name = os.path.split(os.path.realpath(sys.argv[0] if sys.argv else ""))
    return name in ("swink", "swink.exe") and directory == os.path.realpath(os.path.dirname(sys.executable))


def put_last(directory: str) -> None:
    """Look for modules in a directory, and below it, after those of Python and of installed packages.

    `python -m` puts the working directory before all of them, and so does a PYTHONPATH with `.` in it: a file
    of the folder would be imported in place of a module.
    """
    place = os.path.realpath(directory)
    ours = [
        os.path.realpath(top)
        for top in (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    ]

    def is_in_it(entry: str) -> bool:
        found = os.path.realpath(entry)
        return (found + os.sep).startswith(place.rstrip(os.sep) + os.sep) and not any(
            (found + os.sep).startswith(top + os.sep) for top in ours
        )

    sys.path.sort(key=is_in_it)


if _is_command():
    begin()
    try:  # noqa: SIM105  contextlib would be an import more
        put_last(os.getcwd())
    except OSError:
        pass  # it is gone, and there is nothing to import from it
