"""The program between swink and an isolated tool: it starts the tool's interpreter and ends its process tree.

    argv    a file descriptor, then the command; a byte on that descriptor, or its end, ends the command
    stdin, stdout, stderr and the exit code are the command's own; one ended by a signal shows as killed

Run by path, like `start.py`: imports cost time at every call.
"""

import os
import select
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swink.tools.coding.supervisor import tree
else:
    import tree

_signals: list[int] = []


def main() -> None:
    """Run one command to its end."""
    lifeline = int(sys.argv[1])
    os.set_inheritable(lifeline, False)
    wake = tree.catch_signals(_signals)
    tree.adopt_orphans()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.execv(sys.argv[2], sys.argv[2:])
        finally:
            os._exit(127)
    for own in (0, 1):  # the command alone holds them, so that the other side sees when it closes them
        os.close(own)
    _wait(child, lifeline, wake)
    tree.end_all(child, 0, 0)
    code, _ = tree.read_outcome(child)
    if code < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(code)


def _wait(child: int, lifeline: int, wake: int) -> None:
    poller = select.poll()
    poller.register(lifeline, select.POLLIN)
    poller.register(wake, select.POLLIN)
    while True:
        tree.reap()
        if tree.has_ended(child) or _signals:
            return
        for fd, _ in poller.poll():
            if fd == lifeline:
                return
            os.read(wake, 4096)


if __name__ == "__main__":
    main()
