"""What a running tool knows of its call, and can do for it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic

from typing_extensions import TypeVar

from swink.messages import Cost, Message, ToolResult, Usage
from swink.system.aio import running_loop

DepsT = TypeVar("DepsT", default=Any, covariant=True)
"""What a context has: the dependencies that the program gave."""
WantsT = TypeVar("WantsT", default=Any, contravariant=True)
"""What a tool or a policy wants: dependencies of this type, or of a narrower one."""


class CallWaits(BaseException):
    """Stopped for now: a call inside waits for an approval, and after that this call runs again."""


class ToolContext(Generic[DepsT]):
    """What a running tool knows of its call.

    `state` is the session's JSON dict, shared with policies and other tools. `deps` is whatever the program
    gave the agent (a database, a client): a tool that takes `ctx: ToolContext[Db]` has `ctx.deps: Db`.

    Args:
        call_id: the id of the call
        name: the tool
        emit: tells subscribers of progress
        charge: counts what the call spends
        loop: the event loop of the run
    """

    __slots__ = (
        "_cancelled",
        "_charge",
        "_emit",
        "_loop",
        "_waiters",
        "call_id",
        "deps",
        "name",
        "state",
    )

    def __init__(
        self,
        call_id: str,
        name: str,
        state: dict[str, Any] | None = None,
        emit: Callable[[Any], None] | None = None,
        charge: Callable[[Usage, Cost | None], None] | None = None,
        *,
        deps: Any = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.call_id = call_id
        self.name = name
        self.deps: DepsT = deps
        self.state: dict[str, Any] = {} if state is None else state
        self._emit = emit
        self._charge = charge
        self._cancelled = False
        self._waiters: tuple[asyncio.Future[None], ...] = ()
        self._loop = asyncio.get_running_loop() if loop is None else loop

    @property
    def cancelled(self) -> bool:
        """Whether the call is no longer wanted; a sync tool looks here, an async one is simply cancelled."""
        return self._cancelled

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation as it is now, the reply that made this call included."""
        return ()

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call one of the tools that the running tool has inside (`Tool.inside`), by its `name`, with
        `arguments`.

        Policies, approvals, the journal and telemetry see it like a call of the model's own. Whatever goes
        wrong with it is its result. `CallWaits` is raised while it waits for an approval: let it pass.
        """
        raise NotImplementedError("only a tool that an agent runs can call others")

    def update(self, update: Any) -> None:
        """Report progress, any `update`; safe from any thread, in order, always before the result."""
        self._on_loop(lambda: self._report(update))

    def charge(self, usage: Usage, cost: Cost | None = None) -> None:
        """Count model `usage` of the tool's own (a sub-agent's), and its `cost`, in the run's totals."""
        self._on_loop(lambda: self._bill(usage, cost))

    async def wait_cancelled(self) -> None:
        """Return once the call is no longer wanted."""
        if not self._cancelled:
            waiter = self._loop.create_future()
            self._waiters = (*self._waiters, waiter)
            await waiter

    def cancel(self) -> None:
        """Say that the call is no longer wanted."""
        self._cancelled = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """End the call: updates and charges from whatever still runs of it are ignored."""
        self._emit = self._charge = None

    def _report(self, update: Any) -> None:
        if self._emit is not None:
            self._emit(update)

    def _bill(self, usage: Usage, cost: Cost | None) -> None:
        if self._charge is not None:
            self._charge(usage, cost)

    def _on_loop(self, action: Callable[[], None]) -> None:
        if running_loop() is self._loop:
            action()
        else:
            with suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(action)
