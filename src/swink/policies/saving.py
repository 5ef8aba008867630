"""Saving: the conversation is kept in a store after every turn."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from msgspec import Struct

from swink.agent.checkpoint import SavedAgent
from swink.agent.policy import Ending, Policy, PolicyContext, RunKey, Turn
from swink.errors import InvalidInput
from swink.messages.records import OpenTurn
from swink.policies.inputs import check_number
from swink.system.aio import mark_exception_seen, resolve
from swink.tools.workers import run_in_thread

Data = dict[str, Any]


@runtime_checkable
class CheckpointStore(Protocol):
    """Keeps checkpoints; the newest one counts."""

    def save(self, data: Data) -> Awaitable[None] | None:
        """Keep one, `data`; the newest counts."""
        ...


class Checkpoint(Policy):
    """Save after every turn, also one that failed or was aborted, as data that `Agent.restore` takes.

    `store` is a function of the data, or an object with `save(data)`; async, or plain and then called in a
    thread. A store that fails, or takes longer than `timeout` seconds, is logged, and the run goes on; while
    a save is stuck, later turns are not saved, nor ever queued messages. List it after policies that replace.

    >>> agent = Agent(model, policies=[Checkpoint(store)])
    """

    for_sub_agents = False  # the newest checkpoint counts, and is the assistant's

    def __init__(
        self, store: CheckpointStore | Callable[[Data], Awaitable[None] | None], *, timeout: float = 10.0
    ) -> None:
        self._save: Callable[[Data], Any] = store.save if isinstance(store, CheckpointStore) else store
        if not callable(self._save):
            raise InvalidInput(f"store={store!r}: give a function of the data, or an object with save(data)")
        check_number("timeout", timeout, above=True)
        self.timeout = timeout
        self._turns: WeakKeyDictionary[RunKey, int] = WeakKeyDictionary()
        self._stuck: WeakKeyDictionary[RunKey, _Saving] = WeakKeyDictionary()

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        """Save the conversation; what the store raises is logged by the core and never stops the run."""
        await self._keep(ctx)

    async def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
        """Save the last turn if the run ended in the middle of it."""
        if ending.turn is not None and ctx.run is not None and self._turns.get(ctx.run, 0) < ctx.turn:
            await self._keep(ctx, ending.open)

    def twin(self, store: Callable[[Data], Any]) -> "Checkpoint":
        """One that saves in the same way to another store."""
        twin = copy(self)
        Checkpoint.__init__(twin, store, timeout=self.timeout)
        return twin

    async def _keep(self, ctx: PolicyContext, open: OpenTurn | None = None) -> None:
        saving = _Saving(self._save, open)
        if ctx.run is not None:
            self._turns[ctx.run] = ctx.turn
            if (before := self._stuck.get(ctx.run)) is not None and before.running:
                raise TimeoutError("the save before is still stuck; this turn is not saved")
            self._stuck[ctx.run] = saving
        await saving.within(self.timeout, ctx)


class _Saving(Struct, eq=False):
    """One save: the data is made, and a plain store called, off the event loop."""

    store: Callable[[Data], Any]
    open: OpenTurn | None
    in_thread: bool = False
    abandoned: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self.in_thread or (self.task is not None and not self.task.done())

    async def within(self, timeout: float, ctx: PolicyContext) -> None:
        """Wait for the store for `timeout` seconds at most, even if it does not stop when cancelled."""
        self.task = asyncio.ensure_future(self._save(ctx))
        self.task.add_done_callback(mark_exception_seen)  # the timeout has been reported
        try:
            await asyncio.wait([self.task], timeout=timeout)
        finally:
            self.abandoned = not self.task.done()
            self.task.cancel()
        if self.abandoned:
            raise TimeoutError(f"the store did not save within {timeout:g} s")
        self.task.result()

    async def _save(self, ctx: PolicyContext) -> None:
        saving = await run_in_thread(self._call, {"ctx": ctx}, "checkpoint", lambda: None)
        if self.abandoned and inspect.iscoroutine(saving):
            saving.close()
        else:
            await resolve(saving)

    def _call(self, ctx: PolicyContext) -> Any:
        self.in_thread = True
        try:
            prompt, messages, state = ctx.system_prompt, list(ctx.messages), dict(ctx.state)
            saved = SavedAgent(
                model=ctx.model, system_prompt=prompt, messages=messages, state=state, open=self.open
            )
            return self.store(saved.to_data())
        finally:
            self.in_thread = False
