"""Regular expressions matched in a process of their own, which can be killed when a pattern takes forever.

Python's `re` holds the interpreter while it matches, so a bad pattern would freeze the whole program.

    stdin   the pattern and its flags; then texts (encoding, errors, bytes) or commands (argv, directory)
    stdout  for a text the indices of the lines that match; for a command its exit code and output

A command (ripgrep) is run from here so that it ends with this process. This process ends when the program
does, because its stdin is closed then; in the middle of a match an alarm ends it.

Items are marshalled, each with its length before it. Run by path, like `start.py`, with few imports.
"""

import marshal
import os
import re
import select
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ALARM = 15
"""Seconds a block may take, in case the program that would stop us is gone."""
COMMAND_ALARM = 90


def main() -> None:
    """Answer until there is nothing more to do."""
    pattern, flags = _read()
    search = re.compile(pattern, flags).search
    while (order := _read()) is not None:
        if len(order) == 2:
            _write(_run(*order))
            continue
        encoding, errors, data = order
        signal.alarm(ALARM)
        lines = data.decode(encoding, errors).removesuffix("\n").split("\n")
        _write([index for index, line in enumerate(lines) if search(line.removesuffix("\r"))])
        signal.alarm(0)


def _run(argv: list[str], directory: str) -> tuple[int, bytes]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            nothing = os.open(os.devnull, os.O_RDWR)
            for fd, target in ((nothing, 0), (write, 1), (nothing, 2)):
                os.dup2(fd, target)
            os.chdir(directory)
            signal.alarm(COMMAND_ALARM)  # it outlasts exec
            os.execve(argv[0], argv, {})
        finally:
            os._exit(127)
    os.close(write)
    output = b""
    while True:
        ready, _, _ = select.select([read, 0], [], [])
        if 0 in ready:  # nothing is sent during a command, so this is the end of stdin: the program is gone
            os.killpg(0, signal.SIGKILL)  # our own group: the command, what it started, and us
        data = os.read(read, 1 << 16)
        if not data:
            break
        output += data
    os.close(read)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output


def _read() -> "Any":
    size = sys.stdin.buffer.read(8)
    return marshal.loads(sys.stdin.buffer.read(int.from_bytes(size, "big"))) if len(size) == 8 else None


def _write(found: "Any") -> None:
    data = marshal.dumps(found)
    sys.stdout.buffer.write(len(data).to_bytes(8, "big") + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
