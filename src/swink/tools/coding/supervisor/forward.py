"""The forwarder inside a sandbox: passes connections to a port of loopback on to the proxy's Unix socket.

    forward.py SOCKET PORT COMMAND...

It starts the forwarding process and then becomes the command itself. A second fork makes that process no
child of the command's; it ends with the sandbox.
"""

import _thread
import os
import socket
import sys

CHUNK = 1 << 16


def main() -> None:
    """Listen, start the forwarding process, become the command."""
    path, port, *command = sys.argv[1:]
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(128)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            _forward(listener, path)
        os._exit(0)
    os.waitpid(child, 0)
    listener.close()
    os.execv(command[0], command)


def _forward(listener: socket.socket, path: str) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):  # the command's output must end with the command
        os.dup2(nothing, fd)
    os.closerange(3, listener.fileno())
    while True:
        inside, _ = listener.accept()
        outside = socket.socket(socket.AF_UNIX)
        try:
            outside.connect(path)
            _thread.start_new_thread(_copy, (inside, outside))
            _thread.start_new_thread(_copy, (outside, inside))
        except (OSError, RuntimeError):
            inside.close()
            outside.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for side in (source, target):
            try:  # noqa: SIM105  contextlib would be an import more
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


if __name__ == "__main__":
    main()
