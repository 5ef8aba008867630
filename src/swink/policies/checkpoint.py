"""Checkpoint: the conversation is saved after every turn."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from swink import checkpoint
from swink.codec import savable
from swink.policy import Ending, Policy, PolicyContext, RunKey, Turn
from swink.workers import Abandoned, run_in_thread

Data = dict[str, Any]


@runtime_checkable
class CheckpointStore(Protocol):
    """Where checkpoints go."""

    def save(self, data: Data) -> Awaitable[None] | None:
        """Keep one; the newest counts."""
        ...


class Checkpoint(Policy):
    """Save after every turn, also one that failed or was aborted, as data that `Agent.restore` takes.

    `store` is a function of the data, or an object with `save(data)`; async, or plain and then called in a thread. A
    store that fails, or takes longer than `timeout` seconds, is logged, and the run goes on; while a save is still
    stuck no other is begun in that run. Queued messages are not part of it: a policy does not see the queues. List it
    after policies that replace messages.

    >>> agent = Agent(model, policies=[Checkpoint(store)])
    """

    def __init__(self, store: CheckpointStore | Callable[[Data], Awaitable[None] | None], *, timeout: float = 10.0) -> None:
        self._save: Callable[[Data], Any] = store.save if isinstance(store, CheckpointStore) else store
        self.timeout = timeout
        self._turns: WeakKeyDictionary[RunKey, int] = WeakKeyDictionary()
        self._stuck: WeakKeyDictionary[RunKey, _Saving] = WeakKeyDictionary()

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        """Save; whatever the store raises is logged by the core and is never fatal."""
        await self._keep(ctx)

    async def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
        """Save the turn in which the run ended, if it did not come to its end."""
        if ending.turn is not None and ctx.run is not None and self._turns.get(ctx.run, 0) < ctx.turn:
            await self._keep(ctx)

    def twin(self, store: Callable[[Data], Any]) -> "Checkpoint":
        """One that saves in the same way to another store."""
        twin = copy(self)
        Checkpoint.__init__(twin, store, timeout=self.timeout)
        return twin

    async def _keep(self, ctx: PolicyContext) -> None:
        saving = _Saving(self._save, self.timeout)
        if ctx.run is not None:
            self._turns[ctx.run] = ctx.turn
            if (before := self._stuck.get(ctx.run)) is not None and before.running:
                raise TimeoutError("the save before is still stuck; this turn is not saved")
            self._stuck[ctx.run] = saving
        await saving.save(ctx)


class _Saving:
    """One save: the data is made, and a plain store called, off the event loop."""

    def __init__(self, store: Callable[[Data], Any], timeout: float) -> None:
        self.store = store
        self.timeout = timeout
        self.running = False

    async def save(self, ctx: PolicyContext) -> None:
        timer = asyncio.timeout(self.timeout)
        try:
            async with timer:
                saving = await run_in_thread(self._call, {"ctx": ctx}, "checkpoint", lambda: None)
                if inspect.isawaitable(saving):
                    await self._waited(asyncio.ensure_future(saving))
        except (TimeoutError, Abandoned) as error:
            if timer.expired():
                raise TimeoutError(f"the store did not save within {self.timeout:g} s") from None
            if isinstance(error, Abandoned):
                raise asyncio.CancelledError from None  # the run was aborted; the store goes on by itself
            raise

    def _call(self, ctx: PolicyContext) -> Any:
        self.running = True
        try:
            return self.store(_data(ctx))
        finally:
            self.running = False

    async def _waited(self, task: "asyncio.Future[Any]") -> None:
        """Wait for an async store, and no longer than that, even if it does not stop when it is cancelled."""
        self.running = True
        task.add_done_callback(self._ended)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
        task.result()

    def _ended(self, task: "asyncio.Future[Any]") -> None:
        self.running = False
        if not task.cancelled():
            task.exception()


def _data(ctx: PolicyContext) -> Data:
    messages = savable(ctx.messages)
    saved = checkpoint.Checkpoint(model=ctx.model, system_prompt=ctx.system_prompt, messages=messages, state=dict(ctx.state))
    return saved.to_data()
