"""Background: commands that go on after the call that started them.

    call ──▶ command ──▶ ends in time               the call has its output
                    ──▶ is sent here, or began here  the call returns an id; it is read and stopped by tools

They stay in the sandbox and within the limits of other commands, but for the time; `aclose` ends them all.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec.structs import replace

from swink.messages import Text
from swink.system.aio import wait_through_cancel
from swink.tools import Tool, ToolError, ToolResult, tool
from swink.tools.coding.command import Completed
from swink.tools.coding.domainquestions import CommandNetwork

MOST = 8
"""Commands in the background at a time."""
SECONDS = 12 * 3600.0
"""How long one may take."""
_FIRST = 1.0  # seconds a command that begins here is watched, so that a failure at once is seen at once
_KEPT = 64_000
_ENDED = 20


class Job:
    """One command: in front of its call, or in the background.

    Args:
        call_id: the call that began it
        command: what runs
        directory: where
    """

    def __init__(self, call_id: str, command: str, directory: str) -> None:
        self.call_id, self.command, self.directory = call_id, command, directory
        self.id = ""  # it has one in the background alone
        self.started = time.time()
        self.ended: float | None = None
        self.completed: Completed | None = None
        self.error: str | None = None
        loop = asyncio.get_running_loop()
        self.stop: asyncio.Future[None] = loop.create_future()
        """Done when the command is to be ended."""
        self.moved: asyncio.Future[None] = loop.create_future()
        self.network: CommandNetwork | None = None
        """Its questions to a person, if there can be some."""
        self._tail = bytearray()
        self._size = self._read = 0

    @property
    def state(self) -> Literal["running", "ended"]:
        """Whether it still runs, or has ended."""
        return "running" if self.ended is None else "ended"

    @property
    def was_asked(self) -> bool:
        """Whether a person is asked about its network, or was since the last look."""
        return self.network is not None and self.network.take_asked()

    def take(self, data: bytes) -> None:
        """Keep `data` of its output, of which the end matters."""
        self._size += len(data)
        self._tail += data[-_KEPT:]
        if len(self._tail) > 2 * _KEPT:
            del self._tail[:-_KEPT]

    def output(self) -> str:
        """The end of what it wrote."""
        return self._since(0)

    def unread(self) -> str:
        """What it wrote since the last time."""
        text, self._read = self._since(self._read), self._size
        return text

    def describe(self) -> str:
        """How it stands, in a line for the model."""
        if self.ended is None:
            return f"[{self.id} is running: {self.command}]"
        if self.completed is None:
            return f"[{self.id} failed: {self.error}]"
        return f"[{self.id} has ended: {self.completed.ending}]"

    def _since(self, position: int) -> str:
        new = min(self._size - position, _KEPT)
        cut = self._size - position - new
        text = self._tail[len(self._tail) - new :].decode(errors="replace")
        return f"[... {cut:,} bytes cut here ...]\n{text}" if cut else text


class Background:
    """The commands of one workspace that go on by themselves."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.on_end: Callable[[Job], None] = lambda job: None
        """Called when one has ended."""
        self._front: list[Job] = []
        self._tasks: set[asyncio.Task[Completed]] = set()
        self._count = 0

    @property
    def running(self) -> int:
        """How many go on in the background now."""
        return sum(job.ended is None for job in self.jobs.values())

    @property
    def in_front(self) -> tuple[Job, ...]:
        """Commands whose calls wait for them, which can be sent to the background."""
        return tuple(self._front)

    def send(self, call_id: str | None = None) -> Job | None:
        """Let the command of the call `call_id`, else the newest one, go on in the background; None if there
        is none.
        """
        for job in reversed(self._front):
            if call_id in (None, job.call_id) and not job.moved.done():
                job.moved.set_result(None)
                return self._number(job)
        return None

    def stop(self, id: str) -> Job:
        """Have one ended; raises `ToolError` if there is none of that id."""
        job = self.find(id)
        if not job.stop.done():
            job.stop.set_result(None)
        return job

    def find(self, id: str) -> Job:
        """The command with an id."""
        if id not in self.jobs:
            known = ", ".join(self.jobs) or "none"
            raise ToolError(f"there is no background command {id!r}; there are: {known}")
        return self.jobs[id]

    async def run(
        self,
        call_id: str,
        command: str,
        directory: str,
        start: Callable[[Job], Awaitable[Completed]],
        seconds: float | None,
    ) -> Completed | Job:
        """Run the `command` of a call, `call_id`, in `directory`, by `start`; here without `seconds`."""
        if seconds is None and len(self._tasks) - len(self._front) >= MOST:
            raise ToolError(f"{MOST} commands are in the background already; stop one first")
        job = Job(call_id, command, directory)
        task = asyncio.create_task(_complete(start, job), name=f"swink-bash-{call_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if seconds is not None:
            self._front.append(job)
        try:
            watched = _FIRST if seconds is None else seconds
            await asyncio.wait({task, job.moved}, timeout=watched, return_when="FIRST_COMPLETED")
            while seconds is not None and not task.done() and not job.moved.done() and job.was_asked:
                # A person was thinking meanwhile: the time begins again.
                await asyncio.wait({task, job.moved}, timeout=watched, return_when="FIRST_COMPLETED")
            timed_out = seconds is not None and not task.done() and not job.moved.done()
            if timed_out:
                job.stop.set_result(None)
                await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await wait_through_cancel(asyncio.gather(task, return_exceptions=True))
            raise
        finally:
            if job in self._front:
                self._front.remove(job)
        if task.done():
            return _timed_out(task.result(), watched) if timed_out else task.result()
        self.jobs[self._number(job).id] = job
        task.add_done_callback(lambda task: self._end(job, task))
        return job

    async def aclose(self) -> None:
        """End every command and wait for that."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await wait_through_cancel(asyncio.gather(*tasks, return_exceptions=True))

    def tools(self) -> list[Tool]:
        """background_output and background_stop."""

        @tool(read_only=True)
        async def background_output(id: str | None = None) -> ToolResult:
            """Read what a background command wrote since you last looked, and whether it still runs.

            Args:
                id: The command, such as b1; leave it out for a list of all.
            """
            if id is None:
                lines = [job.describe() for job in self.jobs.values()]
                return ToolResult((Text("\n".join(lines) or "[no background commands]"),))
            return _seen(self.find(id))

        @tool
        async def background_stop(id: str) -> ToolResult:
            """End a background command and everything it started.

            Args:
                id: The command, such as b1.
            """
            job = self.stop(id)
            while job.ended is None:
                await asyncio.wait(list(self._tasks), return_when="FIRST_COMPLETED")
                await asyncio.sleep(0)  # its end is noted by a callback
            return _seen(job)

        return [background_output, background_stop]

    def _number(self, job: Job) -> Job:
        """Give it an id when it comes here: commands in front count for nothing."""
        if not job.id:
            self._count += 1
            job.id = f"b{self._count}"
        return job

    def _end(self, job: Job, task: "asyncio.Task[Completed]") -> None:
        job.ended = time.time()
        if task.cancelled():
            job.error = "it was ended with the program"
        elif (error := task.exception()) is not None:
            job.error = str(error)
        else:
            job.completed = task.result()
        over = [id for id, kept in self.jobs.items() if kept.ended is not None]
        for id in over[:-_ENDED]:
            del self.jobs[id]
        self.on_end(job)


async def _complete(start: Callable[[Job], Awaitable[Completed]], job: Job) -> Completed:
    return await start(job)


def _seen(job: Job) -> ToolResult:
    text = job.unread()
    text += "" if not text or text.endswith("\n") else "\n"
    return ToolResult((Text(f"{text}{job.describe()}"),), {"id": job.id, "state": job.state})


def _timed_out(completed: Completed, seconds: float) -> Completed:
    if completed.status.reason != "killed":
        return completed  # it ended by itself in the last moment
    details = {**completed.details, "reason": "timeout", "timeout": seconds}
    return replace(completed, status=replace(completed.status, reason="timeout"), details=details)
