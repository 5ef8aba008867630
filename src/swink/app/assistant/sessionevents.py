"""When hooks hear that a session starts, ends or is compacted.

    SessionStart   startup, resume   when swink has read what there is
                   clear, resume     after /new, /sessions and others that go on with another conversation
                   compact           after a compaction, of the person or by itself
    PreCompact     manual, auto      before it
    SessionEnd     clear, resume     when another conversation takes its place
                   prompt_input_exit, other    when swink is left by the person, or ends otherwise

They run beside the person's work: what SessionStart says waits for the next turn, which waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, Literal, cast

from swink.agent import Agent
from swink.agent.context.windows import ContextRequest, Fit, TransformFn
from swink.app.assistant.hookwatch import Look
from swink.messages import Message
from swink.messages.history import Snapshot

if TYPE_CHECKING:
    from swink.policies.hooks import HookGroup

Source = Literal["startup", "resume", "clear", "compact"]
Reason = Literal["clear", "resume", "prompt_input_exit", "other"]
Facts = Callable[[], Awaitable[Mapping[str, Any]]]


class SessionEvents:
    """Tells the hooks of the life of a session; without any it does nothing."""

    def __init__(
        self, group: "Callable[[], HookGroup | None]", agent: Callable[[], Agent | None], look: Look
    ) -> None:
        self.source: Source = "startup"
        """How the session begins that no hook has heard of yet."""
        self.reason: Reason = "other"
        """Why it ends when the environment is closed."""
        self._group = group
        self._look = look
        self._agent = agent
        self._has_begun = False
        self._contexts: list[str] = []
        self._telling: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        """Of a conversation that another one took the place of."""
        self._is_by_hand = False

    def begin_soon(self) -> None:
        """Tell that the session starts, once, beside everything else."""
        had_begun, self._has_begun = self._has_begun, True
        if not had_begun and self._group() is not None:
            self._tell_soon(partial(self._start, self.source))

    async def begin(self) -> None:
        """Have told that the session starts; who is cancelled waiting for a hook ends it."""
        self.begin_soon()
        while (task := self._telling) is not None:
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                task.cancel()
                raise
            self._telling = None if self._telling is task else self._telling

    def take_context(self) -> str:
        """What hooks have to say to the model since the last time."""
        contexts, self._contexts = self._contexts, []
        return "\n".join(contexts)

    def change(self, before: Facts, reason: Reason, source: Source) -> None:
        """Tell that another conversation takes the place of one, of which `before` has the facts."""
        had_begun, self._has_begun, self._contexts = self._has_begun, True, []
        self.source = source
        if self._group() is None:
            return
        if had_begun:
            self._ending = self._tell_soon(partial(self._end, before, reason))
        self._tell_soon(partial(self._start, source))

    async def before_compaction(self, trigger: Literal["manual", "auto"], instructions: str = "") -> str:
        """Why a compaction is not made; empty if no hook blocks it."""
        await self._look()
        group = self._group()
        if group is None:
            return ""
        answer = await group.run(
            "PreCompact", {"trigger": trigger, "custom_instructions": instructions}, trigger
        )
        return answer.stop or (answer.reason if answer.decision == "deny" else "")

    @contextmanager
    def by_hand(self) -> Generator[None]:
        """Inside it a compaction is the person's, who has asked the hooks already."""
        self._is_by_hand = True
        try:
            yield
        finally:
            self._is_by_hand = False

    @property
    def judges_compaction(self) -> bool:
        """Whether a compaction that is made by itself concerns any hook."""
        group = self._group()
        return group is not None and (group.has("PreCompact") or group.has("SessionStart"))

    async def may_compact(self) -> bool:
        """Whether no hook blocks the compaction that is about to be made."""
        if self._is_by_hand:
            return True
        await self.begin()  # the session starts before it is compacted
        return not await self.before_compaction("auto")

    def compacted(self) -> None:
        """Tell that the session goes on with less."""
        if (group := self._group()) is not None and group.has("SessionStart"):
            self._tell_soon(partial(self._start, "compact"))

    async def aclose(self) -> None:
        """Tell that the session ends."""
        if self._ending is not None:
            await asyncio.wait({self._ending})
        if (task := self._telling) is not None:
            self._telling = None
            task.cancel()
            await asyncio.wait({task})
        if (group := self._group()) is not None and self._has_begun:
            self._has_begun = False
            await group.run("SessionEnd", {"reason": self.reason}, self.reason)

    def _tell_soon(self, telling: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        self._telling = asyncio.create_task(_in_turn(self._telling, telling), name="swink-hooks")
        return self._telling

    async def _end(self, before: Facts, reason: Reason) -> None:
        if (group := self._group()) is not None and group.has("SessionEnd"):
            await group.run("SessionEnd", {**await before(), "reason": reason}, reason)

    async def _start(self, source: Source) -> None:
        group, agent = self._group(), self._agent()
        if group is not None:
            model = {} if agent is None else {"model": str(agent.model)}
            context = (await group.run("SessionStart", {"source": source, **model}, source)).context
            self._contexts += [context] if context else []


class HookedCompaction:
    """A way to compact that asks hooks before it, and tells them after it: wrap another one in it.

    What a hook blocks is not made: the context stays as it is, also if it is too long for the model.
    """

    def __init__(self, inner: TransformFn, events: SessionEvents) -> None:
        self.inner = inner
        self._fit = cast(Fit, inner.fit)  # pyright: ignore[reportFunctionMemberAccess]
        self._events = events
        self._sent: tuple[Snapshot, Sequence[Message]] | None = None
        """The last context that had been compacted, and of what."""

    async def __call__(self, messages: Sequence[Message], overflow: bool) -> Sequence[Message]:
        """The messages to send if there is nobody to ask."""
        sent: Any = self.inner(messages, overflow)
        return await sent if iscoroutine(sent) else sent

    def fit(
        self, messages: Sequence[Message], overflow: bool, request: ContextRequest
    ) -> Sequence[Message] | Awaitable[Sequence[Message]]:
        """The messages to send in this request."""
        sent = self._fit(messages, overflow, request)
        if sent is messages:
            return sent
        if iscoroutine(sent):  # it begins to compact when it is awaited
            return self._compact(messages, sent)
        self._keep(messages, cast("Sequence[Message]", sent))
        return sent

    async def _compact(
        self, messages: Sequence[Message], compacting: Coroutine[Any, Any, Sequence[Message]]
    ) -> Sequence[Message]:
        events, before = self._events, self._uncompacted(messages)
        try:
            if events.judges_compaction and not await events.may_compact():
                return before
            made = await compacting
        finally:
            compacting.close()  # without effect where it has ended
        self._keep(messages, made)
        if len(made) < len(before):
            events.compacted()
        return made

    def _keep(self, messages: Sequence[Message], sent: Sequence[Message]) -> None:
        self._sent = (messages, sent) if isinstance(messages, Snapshot) else None

    def _uncompacted(self, messages: Sequence[Message]) -> Sequence[Message]:
        """What would be sent without another compaction."""
        if self._sent is None or not isinstance(messages, Snapshot):
            return messages
        base, sent = self._sent
        if base.history is not messages.history or len(base) > len(messages):
            return messages
        return [*sent, *messages[len(base) :]]


async def _in_turn(before: "asyncio.Task[None] | None", telling: Callable[[], Awaitable[None]]) -> None:
    """Tell after what was told before; cancelled, neither is."""
    try:
        if before is not None:
            await asyncio.wait({before})
    except asyncio.CancelledError:
        if before is not None:
            before.cancel()
        raise
    await telling()
