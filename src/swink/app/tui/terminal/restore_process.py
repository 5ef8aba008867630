"""The restorer's program: it puts the terminal back when the interface was killed and could not do so itself.

It runs as a script, without site packages and without swink, so that it starts within milliseconds. Standard
input is a pipe from the interface, standard output the terminal. Every message is a letter, the length of the
rest in four bytes, and the rest:

    n  the interface has the terminal. By `marshal`: the settings it found, those it made, the process groups
       that may have the terminal when the interface is dead, and what ends every mode
    f  the terminal is as it was
    w  what to tell the user who finds the interface dead

The end of the pipe is the death of the interface.
"""

import errno
import marshal
import os
import signal
import sys
import termios

Settings = list[int | list[bytes | int]]
PIPE, TTY = 0, 1
PATIENCE = 60
"""Seconds to wait for a terminal that takes nothing."""


def main() -> None:
    """Listen until the interface is gone, then do what it could not."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    state = words = b""
    while head := read(5):
        body = read(int.from_bytes(head[1:], "big"))
        if head[:1] == b"w":
            words = body
        else:
            state = body
    if state:
        signal.alarm(PATIENCE)
        before, during, groups, reset = marshal.loads(state)
        put_back(before, during, groups, reset, words)


def read(count: int) -> bytes:
    """So many bytes; none if they do not come."""
    data = b""
    while len(data) < count:
        more = os.read(PIPE, count - len(data))
        if not more:
            return b""
        data += more
    return data


def put_back(before: Settings, during: Settings, groups: list[int], reset: bytes, words: bytes) -> None:
    """Undo what the interface did, unless another process has the terminal by now."""
    try:
        if not is_free(groups):
            return
        os.write(TTY, reset)
        if termios.tcgetattr(TTY) == during:  # a shell may have made its own settings already
            termios.tcflush(TTY, termios.TCIFLUSH)
            termios.tcsetattr(TTY, termios.TCSANOW, before)
        os.write(TTY, words)
    except (OSError, termios.error):
        sys.exit()  # the terminal is gone


def is_free(groups: list[int]) -> bool:
    """Whether no other process has the terminal by now."""
    try:
        return os.tcgetpgrp(TTY) in groups
    except OSError as error:
        return error.errno == errno.ENOTTY  # the interface was the leader of the session: nobody has it


if __name__ == "__main__":
    main()
