"""The command, forked from a process that has imported it: starting Python for each of hundreds takes minutes.

The child is a process of its own with its own streams, directory and environment, and runs `main` to the end of
its interpreter. Whatever Python reads at its start (`LANG`, `PYTHON...`) it has from the process it was forked from.
"""

import array
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "SSL_", "MALLOC_")


class WarmProcess:
    """Forks the command whenever it is asked to; it ends with the process that started it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._lock = threading.Lock()
        with theirs:
            arguments = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(arguments, env=dict(environ), pass_fds=[theirs.fileno()])
        atexit.register(self.end)

    def end(self) -> None:
        """It ends when nobody can ask it any more."""
        self._socket.close()
        self._process.wait()

    def run(
        self,
        arguments: Sequence[str],
        streams: Sequence[IO[Any]],
        cwd: Path,
        env: Mapping[str, str],
        timeout: float,
    ) -> int:
        """The exit code, or minus the number of the signal, as `subprocess` tells it."""
        order = json.dumps({"arguments": arguments, "cwd": str(cwd), "env": dict(env)}).encode()
        descriptors = array.array("i", [stream.fileno() for stream in streams])
        with self._lock:
            head = len(order).to_bytes(4, "big")
            self._socket.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            self._socket.sendall(order)
            pid = self._number()
            if not select.select([self._socket], [], [], timeout)[0]:
                os.kill(pid, signal.SIGKILL)
                self._number()
                raise subprocess.TimeoutExpired(list(arguments), timeout)
            return self._number()

    def _number(self) -> int:
        data = b""
        while len(data) < 4:
            more = self._socket.recv(4 - len(data))
            assert more, "the warm process has ended"
            data += more
        return int.from_bytes(data, "big", signed=True)


@cache
def warm_process(environ: tuple[tuple[str, str], ...]) -> WarmProcess:
    """One for every way in which Python can be started."""
    return WarmProcess(dict(environ))


def start_of(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What of an environment Python reads at its start."""
    return tuple(sorted((name, value) for name, value in env.items() if name.startswith(READ_AT_START)))


def serve(orders: socket.socket) -> None:
    """Fork for every order; returns in the child, which then is the command."""
    while True:
        head, ancillary, _, _ = orders.recvmsg(4, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        if not head:
            os._exit(0)
        assert len(head) == 4
        descriptors = array.array("i")
        descriptors.frombytes(ancillary[0][2])
        length = int.from_bytes(head, "big")
        data = b""
        while len(data) < length:
            data += orders.recv(length - len(data))
        order = json.loads(data)
        pid = os.fork()
        if pid == 0:
            orders.close()
            become(order, descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        orders.sendall(pid.to_bytes(4, "big"))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        orders.sendall(code.to_bytes(4, "big", signed=True))


def become(order: dict[str, Any], descriptors: Sequence[int]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv[1:] = order["arguments"]


def import_everything() -> None:
    import importlib
    import pkgutil

    import aiohttp  # noqa: F401

    import swink.cli
    import swink.providers

    for package in (swink.cli, swink.providers):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


if __name__ == "__main__":
    del sys.path[0]
    import_everything()
    serve(socket.socket(fileno=int(sys.argv.pop())))
    from swink.cli import main

    sys.exit(main())
