"""A served agent whose process is killed: what the store has at that moment is all that the next one finds."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from swink import Agent
from swink.memory import MemoryStore, Store
from swink.serve.hosting import Caller, Conversation, FolderClaims, Host, HostedRun, ServeLimits
from swink.stream import LlmContext, StreamFn
from swink.testing import ScriptedModel

ANNA = Caller("anna")
LIMITS = ServeLimits(shutdown_seconds=0.01)


def killed(store: MemoryStore) -> MemoryStore:
    """A store with what this one has now, as after `kill -9`: what is written from now on is lost."""
    left = MemoryStore()
    backend: Any = left.sync.backend
    backend._sessions = copy(store.sync.backend._sessions)  # type: ignore[attr-defined]
    return left


class Heard:
    """A model that says what it is told to, and remembers what it was asked."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self._model: StreamFn = ScriptedModel(list(replies))
        self.contexts: list[LlmContext] = []

    def __call__(self, model: Any, context: LlmContext, options: Any) -> Any:
        self.contexts.append(context)
        return self._model(model, context, options)


def host(store: Store, model: StreamFn, *, claims: FolderClaims | None = None, **agent: Any) -> Host:
    """A process that serves an agent over a store."""
    return Host(lambda request: Agent("test:m", stream_fn=model, **agent), store, LIMITS, claims=claims)


async def until_told(run: HostedRun, is_it: Callable[[Any], bool], after: int = 0) -> list[Any]:
    """The numbered events of a run up to the first one that is meant."""
    seen: list[Any] = []
    async for numbered in run.events(after):
        seen.append(numbered)
        if is_it(numbered.event):
            return seen
    raise AssertionError(f"it was never told: {seen}")


async def all_of(run: HostedRun, after: int = 0) -> list[Any]:
    """The numbered events of a run after that one, until its end."""
    return [numbered async for numbered in run.events(after)]


def said(conversation: Conversation) -> list[str]:
    return [message.text for message in conversation.messages]
