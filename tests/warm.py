"""Programs and the command, forked from a process that has imported swink: starting Python for hundreds takes minutes.

The child is a process of its own with its own streams, directory and environment. What Python reads at its start
(`LANG`, `PYTHON...`) it has from the process it was forked from. A program runs to the end of its interpreter. The
command does so in `make test-more` alone: to take an interpreter apart costs as much as most commands do.
"""

import array
import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

if sys.platform != "win32":
    import fcntl
    import termios

READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "SSL_", "MALLOC_")


class WarmProcess:
    """Forks the command whenever it is asked to; it ends with the process that started it."""

    def __init__(self, environ: Mapping[str, str], packages: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._lock = threading.Lock()
        with theirs:
            end = "whole" if os.environ.get("SWINK_TEST_MORE") else "quick"
            arguments = [sys.executable, __file__, str(theirs.fileno()), end, *packages]
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
        program: str = "",
    ) -> int:
        """The exit code, or minus the number of the signal, as `subprocess` tells it.

        What is run is the command, or the `program` in that file.
        """
        order = json.dumps(
            {"arguments": arguments, "cwd": str(cwd), "env": dict(env), "program": program}
        ).encode()
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

    def start_in_terminal(
        self, arguments: Sequence[str], tty: int, cwd: Path, env: Mapping[str, str]
    ) -> "Started":
        """The command in a session of its own that the terminal belongs to."""
        order = json.dumps(
            {"arguments": arguments, "cwd": str(cwd), "env": dict(env), "terminal": True}
        ).encode()
        told, tells = os.pipe()
        descriptors = array.array("i", [tty, tty, tty, tells])
        with self._lock:
            head = len(order).to_bytes(4, "big")
            self._socket.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            self._socket.sendall(order)
        os.close(tells)
        return Started(told)

    def _number(self) -> int:
        data = b""
        while len(data) < 4:
            more = self._socket.recv(4 - len(data))
            assert more, "the warm process has ended"
            data += more
        return int.from_bytes(data, "big", signed=True)


class Started:
    """A command that runs in a terminal, seen like a `subprocess.Popen`."""

    def __init__(self, told: int) -> None:
        self._told = told
        self.returncode: int | None = None
        self.pid = int.from_bytes(os.read(told, 4), "big")

    def poll(self) -> int | None:
        """The exit code once it has ended."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.returncode = int.from_bytes(os.read(self._told, 4), "big", signed=True)
            os.close(self._told)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, as soon as it has ended."""
        if self.returncode is None:
            select.select([self._told], [], [], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def __enter__(self) -> "Started":
        return self

    def __exit__(self, *failure: object) -> None:
        self.wait()

    def send_signal(self, number: int) -> None:
        """Nothing, once it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


@cache
def warm_process(
    environ: tuple[tuple[str, str], ...], packages: tuple[str, ...] = ("swink.app.cli", "swink.providers")
) -> WarmProcess:
    """One for every way in which Python can be started, with packages that it imports beforehand.

    Without packages it has imported what `import swink` imports, and no more: a program that forgets an import fails.
    """
    return WarmProcess(dict(environ), packages)


def start_of(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What of an environment Python reads at its start."""
    return tuple(sorted((name, value) for name, value in env.items() if name.startswith(READ_AT_START)))


def serve(orders: socket.socket) -> str:
    """Fork for every order; returns in the child, which then is the program with that name, or the command."""
    while True:
        head, ancillary, _, _ = orders.recvmsg(4, socket.CMSG_SPACE(4 * array.array("i").itemsize))
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
        if order.get("terminal"):
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if os.fork() == 0:
                orders.close()
                keep(descriptors.pop(), descriptors)
                os.setsid()
                fcntl.ioctl(descriptors[0], termios.TIOCSCTTY, 0)
                become(order, descriptors)
                return ""
            for descriptor in descriptors:
                os.close(descriptor)
            continue
        pid = os.fork()
        if pid == 0:
            orders.close()
            become(order, descriptors)
            return order["program"]
        for descriptor in descriptors:
            os.close(descriptor)
        orders.sendall(pid.to_bytes(4, "big"))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        orders.sendall(code.to_bytes(4, "big", signed=True))


def keep(tells: int, others: Sequence[int]) -> None:
    """Fork, and tell how the child ends; returns in the child alone."""
    pid = os.fork()
    if pid == 0:
        os.close(tells)
        return
    for descriptor in others:
        os.close(descriptor)  # a terminal is gone only when nobody has it open
    os.write(tells, pid.to_bytes(4, "big"))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        os.write(tells, code.to_bytes(4, "big", signed=True))
    os._exit(0)


def become(order: dict[str, Any], descriptors: Sequence[int]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv[1:] = order["arguments"]


def leave(code: int) -> None:
    """End as Python does, but for taking apart what the command made."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # a stream that is closed or missing: Python itself says what becomes of it
    os._exit(code)


def import_everything(packages: Sequence[str]) -> None:
    import importlib
    import pkgutil

    import aiohttp  # noqa: F401

    import swink  # noqa: F401

    for name in packages:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


if __name__ == "__main__":
    del sys.path[0]
    orders = socket.socket(fileno=int(sys.argv[1]))
    end, packages = sys.argv[2], sys.argv[3:]
    import_everything(packages)
    gc.collect()
    gc.freeze()  # what every child has is not looked through by it, nor copied for that
    if program := serve(orders):
        import runpy

        sys.argv[0] = program
        sys.path.insert(0, os.path.dirname(program))
        runpy.run_path(program, run_name="__main__")
    else:
        from swink.app.cli import main

        code = main()
        if end == "quick":
            leave(code)
        sys.exit(code)
