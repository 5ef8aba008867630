"""Calls that a server carries out as tasks: it answers with a task at once, with the result when asked later.

    2025-11-25   tools/call with `task` ─→ the task ─→ tasks/get … ─→ tasks/result
                 only for tools that cannot be called otherwise (`execution.taskSupport` is "required")
    2026-07-28   tools/call ─→ the task, if the server prefers that ─→ tasks/get … , the last with the result
                 (the extension io.modelcontextprotocol/tasks)

A task is waited for like any call, and reports what it does; the time limit of the call is that of each
answer of the server then. Whoever stops waiting cancels it: the server is told so, and given a moment to
hear it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, cast

from msgspec import Struct

from swink.mcp.sdk import Sdk, first_error
from swink.system.aio import wait_through_cancel

log = logging.getLogger("swink.mcp")

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class CallWatcher(Struct, frozen=True):
    """Who waits for a call: told what it does, and given its whole time again when its task says so."""

    progress: Progress
    renew: Callable[[], None]


_SOONEST, _LATEST = 0.05, 30.0
"""Seconds between two questions for a task, whatever the server suggests."""
_USUAL = 1.0
_FAREWELL = 2.0
"""Seconds for telling a server that its task is not wanted any more."""
_ENDED = ("completed", "failed", "cancelled")
_caller: ContextVar[CallWatcher | None] = ContextVar("swink_mcp_caller", default=None)


class TaskCalls:
    """How calls that become tasks are waited for."""

    def __init__(self, sdk: Sdk) -> None:
        self._sdk = sdk
        self.extension = sdk.tasks.extension(self._wait_for_newer)

    async def call(self, client: Any, tool: Any, arguments: dict[str, Any], caller: CallWatcher) -> Any:
        """The result of a call, whatever the server makes of it."""
        reset = _caller.set(caller)
        try:
            if self._needs_task(client, tool):
                return await self._call_older(client, tool.name, arguments, caller)
            return await client.call_tool(tool.name, arguments, progress_callback=caller.progress)
        finally:
            _caller.reset(reset)

    def _needs_task(self, client: Any, tool: Any) -> bool:
        support = getattr(getattr(tool, "execution", None), "task_support", None)
        return support == "required" and client.protocol_version not in self._sdk.modern_versions

    async def _call_older(
        self, client: Any, tool: str, arguments: dict[str, Any], caller: CallWatcher
    ) -> Any:
        session, requests = client.session, self._sdk.tasks
        started = await requests.start(session, tool, arguments, caller.progress)
        match started.get("task"):
            case {"taskId": str(id)} as task:
                ended = await self._wait(session, id, cast("dict[str, Any]", task), "pollInterval")
                if ended["status"] == "cancelled":
                    raise ValueError("the server cancelled its task")
                result = requests.result(await requests.ask(session, "tasks/result", id))
            case _:
                result = requests.result(started)  # it was quicker than its task
        if not result.is_error:
            await session.validate_tool_result(tool, result)
        return result

    async def _wait_for_newer(self, started: dict[str, Any], session: Any) -> Any:
        id = str(started["taskId"])
        ended = await self._wait(session, id, started, "pollIntervalMs")
        result: Any = ended.get("result")
        match ended:
            case {"status": "completed", "result": {}}:
                return self._sdk.tasks.result(result)
            case {"status": "failed", "error": {"message": str(message)}}:
                raise ValueError(message)
            case _:
                said = ended.get("statusMessage") or "it does not say why"
                raise ValueError(f"its task is {ended['status']}: {said}")

    async def _wait(self, session: Any, id: str, task: dict[str, Any], interval: str) -> dict[str, Any]:
        """The task once it has ended; it is cancelled if nobody waits for it any more."""
        count = 0
        try:
            while task.get("status") not in _ENDED:
                count += 1
                await self._report(count, task)
                if requests := task.get("inputRequests"):
                    await self._sdk.tasks.answer(session, id, requests)
                await asyncio.sleep(_seconds(task.get(interval)))
                task = await self._sdk.tasks.ask(session, "tasks/get", id)
                if not isinstance(task.get("status"), str):
                    raise ValueError("it does not say how its task stands")
        except BaseException as error:
            if not isinstance(error, self._sdk.failures):
                await self._cancel(session, id)
            raise
        return task

    async def _report(self, count: int, task: dict[str, Any]) -> None:
        caller, said = _caller.get(), task.get("statusMessage")
        if caller is not None:
            caller.renew()
            if isinstance(said, str):
                await caller.progress(float(count), None, said)

    async def _cancel(self, session: Any, id: str) -> None:
        telling = asyncio.ensure_future(self._tell_cancelled(session, id))
        await wait_through_cancel(telling, timeout=_FAREWELL)
        if not telling.done():
            telling.cancel()

    async def _tell_cancelled(self, session: Any, id: str) -> None:
        try:
            await self._sdk.tasks.ask(session, "tasks/cancel", id)
        except self._sdk.failures as error:
            log.debug("a task was not cancelled: %s", type(first_error(error)).__name__)


def _seconds(milliseconds: Any) -> float:
    """How long to wait before the next question."""
    if isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool):
        most = _LATEST * 1000
        return min(milliseconds, most) / 1000 if milliseconds >= _SOONEST * 1000 else _SOONEST  # NaN too
    return _USUAL
