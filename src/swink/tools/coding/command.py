"""One command run for a tool: its output streamed as updates, its end described to the model."""

import asyncio
import codecs
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.messages import Text
from swink.system.aio import call_later
from swink.tools import ToolContext, ToolResult
from swink.tools.coding.domainquestions import CommandNetwork
from swink.tools.coding.process import ExitStatus, HeadAndTail, Launch, Limits, Reason, run
from swink.tools.coding.sandbox import Level, Sandbox

MAX_OUTPUT = 32_000
"""Bytes of output a model gets to see: the first and the last half of it."""
TICK = 0.1
"""Seconds between two updates."""


class Completed(Struct, frozen=True):
    """How a command ended, and what it wrote."""

    status: ExitStatus
    output: str
    details: dict[str, Any]

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        status = self.status
        if status.reason is not None:
            return _REASONS[status.reason].format(self.details["timeout"])
        killed = f": killed by signal {status.signal}" if status.signal is not None else ""
        return f"exit code {status.code}{killed}"

    def result(self, *notes: str) -> ToolResult:
        """What the model gets: the output and, in brackets, how it ended."""
        status = self.status
        text = self.output + ("" if not self.output or self.output.endswith("\n") else "\n")
        alive = [f"[{status.left} of its processes could not be ended]"] if status.left else []
        lines = [f"[{self.ending}]", *alive, *status.notes, *notes]
        is_error = status.code != 0 or status.reason is not None
        return ToolResult((Text(text + "\n".join(lines)),), self.details, is_error)


async def run_command(
    sandbox: Sandbox,
    argv: Sequence[str],
    directory: str,
    limits: Limits,
    ctx: ToolContext,
    *,
    keep_directory: bool = False,
    environment: Mapping[str, str] | None = None,
    tap: Callable[[bytes], None] | None = None,
    stop: asyncio.Future[None] | None = None,
    network: CommandNetwork | None = None,
) -> Completed:
    """Run a command with no input until it ends or `stop` is done; updates and `tap` get its output.

    One that failed only because it did not wait for a domain to be allowed is started again once it is.
    """
    network = network or sandbox.open_network(argv)
    try:
        while True:
            done = await _run_once(
                sandbox, argv, directory, limits, ctx, keep_directory, environment, tap, stop, network
            )
            if network is None or not await network.settle(done.status, stop):
                notes = [] if network is None else network.notes()
                if network is not None and done.details["backend"] == "landlock" and done.status.code:
                    notes.append("[commands have no network under Landlock; with bubblewrap they can ask]")
                return replace(done, status=replace(done.status, notes=(*done.status.notes, *notes)))
            network.begin_again()
    finally:
        if network is not None:
            await network.close()


async def _run_once(
    sandbox: Sandbox,
    argv: Sequence[str],
    directory: str,
    limits: Limits,
    ctx: ToolContext,
    keep_directory: bool,
    environment: Mapping[str, str] | None,
    tap: Callable[[bytes], None] | None,
    stop: asyncio.Future[None] | None,
    network: CommandNetwork | None,
) -> Completed:
    launch = await sandbox.launch(argv, directory, limits=limits, network=network)
    launch = replace(launch, keep_directory=keep_directory, env={**launch.env, **(environment or {})})
    completed = await run_launch(launch, directory, ctx, level=sandbox.level, tap=tap, stop=stop)
    notes = sandbox.explain(" ".join(argv) + completed.output, launch.backend)
    status = replace(completed.status, notes=(*completed.status.notes, *notes))
    return replace(completed, status=status)


async def run_launch(
    launch: Launch,
    directory: str,
    ctx: ToolContext,
    *,
    level: Level = "none",
    tap: Callable[[bytes], None] | None = None,
    stop: asyncio.Future[None] | None = None,
) -> Completed:
    """Run a command as it is launched; `directory` and `level` are for the details."""
    output = HeadAndTail(MAX_OUTPUT)
    started = time.monotonic()
    with _Live(ctx) as live:

        def take(data: bytes) -> None:
            output.add(data)
            live.add(data)
            if tap is not None:
                tap(data)

        status = await run(launch, take, stop)
    details = {
        "exit_code": status.code,
        "signal": status.signal,
        "reason": status.reason,
        "seconds": round(time.monotonic() - started, 3),
        "cpu_seconds": round(status.cpu, 3),
        "bytes": output.size,
        "cut": output.cut,
        "sandbox": level if launch.backend != "none" else "none",
        "backend": launch.backend,
        "directory": directory,
        "timeout": launch.limits.wall,
    }
    return Completed(status, output.text(), details)


class _Live:
    """Sends output as updates, at most ten a second, and past the cap only its size."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, data: bytes) -> None:
        if (room := MAX_OUTPUT - self._size) > 0:
            self._waiting += self._decoder.decode(data[:room])
        self._size += len(data)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = call_later(loop, TICK if self._waiting else 1.0, self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._ctx.update(self._waiting or f"[{self._size:,} bytes so far]\n")
        self._waiting = ""

    def __enter__(self) -> "_Live":
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._flush()


_REASONS: Mapping[Reason, str] = {
    "timeout": "timed out after {:g} s; the command and everything it started were ended",
    "memory": "ended: it used more memory than a command may",
    "processes": "ended: it started more processes than a command may have",
    "disk": "ended: it filled more of the disk than a command may",
    "supervisor": "ended: it killed or stopped the process that watches over its limits",
    "killed": "ended from outside",
}
