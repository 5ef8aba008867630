"""Process rules: how every command runs, whichever tool starts it, and how it ends.

    run ──launch──▶ supervisor ──fork, limits, filters, exec──▶ command ─┬─▶ child ─▶ …
        ◀──output─────────────────────────────────────────────────────── ┘
        ◀──status── supervisor, when the command has ended and its last descendant is gone

The supervisor is a small separate process (see `supervisor/start.py`). It adopts orphans, so that no
descendant can leave the tree by a double fork, a new session or a new process group. It ends the tree with
TERM, a grace period and KILL, also when our program dies, because its stdin is closed then. A descendant that
keeps the output pipe open does not delay a run, and a command that kills or stops its supervisor is ended
too.
"""

import asyncio
import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from swink.system.aio import wait_through_cancel
from swink.system.programs import environment, find_program, python_script
from swink.system.threads import in_thread
from swink.tools import ToolError
from swink.tools.coding.orphans import end_marked, make_mark

GRACE = 0.3
"""Seconds between TERM and KILL."""
MARGIN = 3.0
"""Seconds past the time limit after which a supervisor that says nothing is taken for dead."""
CHUNK = 1 << 18

_START = str(Path(__file__).with_name("supervisor") / "start.py")
_POSIX = sys.platform != "win32"
_LIBRARIES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

Reason = Literal["timeout", "killed", "memory", "processes", "disk", "supervisor"]


class Limits(Struct, frozen=True):
    """What a command may use. Processor time and file size hold per process, the others for the whole tree.

    `memory` (including unmapped shared memory such as a memfd), `processes` and `disk` (by how much free
    space may shrink while the command runs) are checked ten times a second; the kernel also enforces `memory`
    for each process. `wall` is the longest timeout a model may set.

    Args:
        cpu: seconds of processor time
        file_size: bytes of a file
    """

    wall: float = 600.0
    cpu: int = 600
    memory: int = 4 << 30
    processes: int = 512
    file_size: int = 2 << 30
    disk: int = 8 << 30


class Launch(Struct, frozen=True):
    """A command as the supervisor starts it."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    limits: Limits = Limits()
    keep_directory: bool = False
    disks: tuple[str, ...] = ()
    guards: int = 0
    landlock: Mapping[str, Any] | None = None
    seccomp: bytes = b""
    seccomp_fd: int = 0
    drop_privileges: bool = False
    backend: str = "none"
    reserved: tuple[tuple[str, bytes | None, str], ...] = ()
    """Names that stay unused: path, content (None for a directory), and what covers it (itself if empty)."""
    watch: Mapping[str, Any] | None = None
    """What must be as it was when the command has ended; see `supervisor/cleanup.py`."""
    further: tuple[Mapping[str, Any], ...] = ()
    """The same of further roots."""
    egress: Callable[[], AbstractAsyncContextManager[object]] | None = None
    """The proxy for the command's network, open while the command runs."""
    running: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered while the command runs."""
    input: bytes = b""
    """What stands on its standard input."""


class ExitStatus(Struct, frozen=True):
    """How a command ended: its exit code as a shell gives it, and the reason if we ended it."""

    code: int
    signal: int | None = None
    reason: Reason | None = None
    cpu: float = 0.0
    left: int = 0
    directory: str = ""
    notes: tuple[str, ...] = ()
    """What the command left in the workspace that was undone or needs attention."""


class CannotStart(ToolError):
    """The command could not be started at all."""


def build_shell_argv(command: str) -> list[str]:
    """The command line for a shell command."""
    shell = find_shell()
    if shell.endswith("bash"):
        return [shell, "--noprofile", "--norc", "-c", command]
    return [shell, "-c", command]


def find_shell() -> str:
    """The shell that runs commands: bash, or else sh."""
    found = find_program("bash") or find_program("sh")
    if found is None:
        raise CannotStart("there is no shell on the PATH, outside of the workspace")
    return os.path.realpath(found)


class HeadAndTail:
    """The first and the last bytes of a stream of any length, and how long it was."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if room := self._half - len(self._head):
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._half :]
        if len(self._tail) > 4 * self._half:
            del self._tail[: -self._half]

    @property
    def cut(self) -> int:
        """How many bytes were left out."""
        return max(0, self.size - 2 * self._half)

    def text(self) -> str:
        """What was kept; a marker stands where something was cut."""
        if not self.cut:
            return bytes(self._head + self._tail).decode(errors="replace")
        head = self._head.decode(errors="ignore")
        tail = self._tail[-self._half :].decode(errors="ignore")
        return f"{head}\n[... {self.cut:,} bytes of {self.size:,} cut here ...]\n{tail}"


async def run(
    launch: Launch,
    on_output: Callable[[bytes], None],
    stop: asyncio.Future[None] | None = None,
    *,
    on_error: Callable[[bytes], None] | None = None,
) -> ExitStatus:
    """Run a command to its end and give its output to `on_output` as it comes.

    What it writes to standard error goes to `on_error`, or to `on_output` if there is none. Cancelled, it
    ends the command with everything the command started before the cancellation goes on. Once `stop` is done
    it does the same, and gives the status.
    """
    if not _POSIX:
        raise CannotStart("commands need a POSIX system (Linux or macOS); use WSL on Windows")
    with launch.running():
        async with launch.egress() if launch.egress else nullcontext():
            supervisor = _Supervisor(on_output, on_error)
            try:
                await supervisor.instruct(launch)
                if stop is not None:
                    stop.add_done_callback(supervisor.stop)
                report = await supervisor.report(launch.limits.wall)
            finally:
                if stop is not None:
                    stop.remove_done_callback(supervisor.stop)
                await supervisor.end()
    if "error" in report:
        raise CannotStart(f"{launch.argv[0]} could not be started: {report['error']}")
    return ExitStatus(**report)


class _Supervisor:
    """One running supervisor and the pipes to it."""

    def __init__(self, on_output: Callable[[bytes], None], on_error: Callable[[bytes], None] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._mark = make_mark()
        lifeline_read, self._lifeline = os.pipe()
        output, output_write = os.pipe()
        status, status_write = os.pipe()
        errors, errors_write = (-1, -1) if on_error is None else os.pipe()
        kept = () if on_error is None else (errors_write,)
        try:
            libraries = {name: os.environ[name] for name in _LIBRARIES if name in os.environ}
            self._process = python_script(_START, env=environment(libraries)).popen(
                stdin=lifeline_read,
                stdout=output_write,
                stderr=status_write,
                start_new_session=True,
                pass_fds=kept,
            )
        except OSError as error:
            for fd in (self._lifeline, output, status, *((errors,) if kept else ())):
                os.close(fd)
            raise CannotStart(f"the supervisor of commands could not be started: {error}") from error
        finally:
            for fd in (lifeline_read, output_write, status_write, *kept):
                os.close(fd)
        self._errors_fd = errors_write
        self._outputs = [_Reader(output, on_output)]
        if on_error is not None:
            self._outputs.append(_Reader(errors, on_error))
        self._answer = bytearray()
        self._status = _Reader(status, self._hear)

    async def instruct(self, launch: Launch) -> None:
        data = marshal.dumps({**_to_plain(launch), "mark": self._mark, "errors": self._errors_fd})
        data = memoryview(len(data).to_bytes(8, "big") + data)
        os.set_blocking(self._lifeline, False)
        while data:
            try:
                data = data[os.write(self._lifeline, data) :]
            except BlockingIOError:
                await self._writable()
            except BrokenPipeError:
                break  # it is dead already; its report, or the lack of one, says why

    async def report(self, wall: float) -> dict[str, Any]:
        """The exit status; waits shortly for the rest of the output: an escaped process may hold the pipe."""
        # Not the future itself: it must survive our cancellation.
        await asyncio.wait([self._status.closed], timeout=wall + GRACE + MARGIN)
        if not self._is_complete():
            await self.end()
        if self._is_complete():
            await asyncio.wait([reader.closed for reader in self._outputs], timeout=GRACE)
            return marshal.loads(self._answer[8:])
        if text := bytes(self._answer[-2000:]).decode(errors="replace"):
            raise CannotStart(f"the supervisor of the command died with code {self._process.wait()}: {text}")
        return {"code": 128 + signal.SIGKILL, "signal": int(signal.SIGKILL), "reason": "supervisor"}

    def stop(self, _: object = None) -> None:
        """Have the command ended; the report says how."""
        if self._lifeline < 0:
            return
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(self._lifeline, b"!")
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)  # in case the command has stopped it

    async def end(self) -> None:
        """End the command and wait for that, even if we are cancelled meanwhile."""
        if self._lifeline < 0:
            return
        self.stop()
        os.close(self._lifeline)
        self._lifeline = -1
        try:
            await wait_through_cancel(self._status.closed, timeout=GRACE + MARGIN)
        finally:
            try:
                if not self._is_complete() and self._mark:
                    ending = asyncio.ensure_future(in_thread(end_marked, self._mark))
                    await wait_through_cancel(ending, timeout=MARGIN)
            finally:
                self._close()

    def _close(self) -> None:
        self._status.close()
        for reader in self._outputs:
            reader.close()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _hear(self, data: bytes) -> None:
        self._answer += data
        if self._is_complete():
            self._status.close()

    def _is_complete(self) -> bool:
        return len(self._answer) >= 8 and len(self._answer) == 8 + int.from_bytes(self._answer[:8], "big")

    async def _writable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._lifeline, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            self._loop.remove_writer(self._lifeline)


class _Reader:
    """Reads a pipe on the event loop until its end; `closed` is done then."""

    def __init__(self, fd: int, take: Callable[[bytes], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._take = take
        self.closed: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return
        if data:
            self._take(data)
        else:
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if not self.closed.done():
            self.closed.set_result(None)


def _to_plain(launch: Launch) -> dict[str, Any]:
    limits, left_out = launch.limits, ("limits", "egress", "running")
    rlimits = {"CPU": limits.cpu, "DATA": limits.memory, "FSIZE": limits.file_size, "NPROC": limits.processes}
    return {
        **{name: value for name, value in asdict(launch).items() if name not in left_out},
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "disks": list(launch.disks),
        "grace": GRACE,
        **{name: getattr(limits, name) for name in ("wall", "memory", "processes", "disk")},
        "rlimits": {**rlimits, "CORE": 0},
    }
