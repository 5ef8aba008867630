"""Checkpoint: the conversation is saved after every turn."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from swink import checkpoint
from swink.policy import Policy, PolicyContext, Turn

Data = dict[str, Any]


@runtime_checkable
class CheckpointStore(Protocol):
    """Where checkpoints go."""

    def save(self, data: Data) -> Awaitable[None] | None:
        """Keep one; the newest counts."""
        ...


class Checkpoint(Policy):
    """Save after every turn, as data that `Agent.restore` takes.

    `store` is a function of the data, or an object with `save(data)`; sync or async. A store that fails, or takes
    longer than `timeout` seconds, is logged, and the run goes on. Queued messages are not part of it: a policy does
    not see the queues. List it after policies that replace messages.

    >>> agent = Agent(model, policies=[Checkpoint(store)])
    """

    def __init__(self, store: CheckpointStore | Callable[[Data], Awaitable[None] | None], *, timeout: float = 10.0) -> None:
        self._save: Callable[[Data], Any] = store.save if isinstance(store, CheckpointStore) else store
        self.timeout = timeout

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        """Save; whatever the store raises is logged by the core and is never fatal."""
        async with asyncio.timeout(self.timeout):
            saving = self._save(_data(ctx))
            if inspect.isawaitable(saving):
                await saving


def _data(ctx: PolicyContext) -> Data:
    saved = checkpoint.Checkpoint(model=ctx.model, system_prompt=ctx.system_prompt, messages=list(ctx.messages), state=dict(ctx.state))
    return saved.to_data()
