"""The difference between a conversation and what its session has: what the session is told next.

Nothing is noted when it changes: the difference is made when it is saved. Every append brings the session up
to date with everything but a turn that is still open, so that a message which left a queue for the history
is in exactly one of both in whatever is saved.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import is_
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.agent.config import AgentContext, AgentLoopConfig, PlainSession
from swink.agent.policy import vet_all
from swink.agent.queues import Queues
from swink.errors import SessionConflict
from swink.events import CompactionReport
from swink.messages import AssistantMessage, Message, ModelSpec
from swink.messages.codec import encode_state
from swink.messages.history import History
from swink.messages.jsondata import decode
from swink.messages.records import (
    Compaction,
    Conversation,
    ModelChange,
    PromptChange,
    QueueChange,
    Record,
    ThinkingLevelChange,
    TurnDropped,
    TurnOpened,
)
from swink.system.aio import call_to_end, is_async, resolve
from swink.system.threads import Serial

Append = Callable[..., Awaitable[None] | None]
Done = Callable[[BaseException | None], None]
"""Called with what went wrong, if anything did."""
CallIds = tuple[str, ...]
"""Of the calls of a reply: they tell turns apart."""


class ConversationState(Struct, frozen=True):
    """A conversation as it is now: the first `upto` messages of its history are final."""

    history: History
    upto: int
    produced: Sequence[Message] = ()
    """What the run has added, also what has left the history since."""
    pending: Sequence[Message] = ()
    """What the run has taken from the queues, and not yet into the history."""
    open: CallIds | None = None
    """The turn that is open, if one is."""


class SavedQueues(Struct, frozen=True):
    """The queues as they were saved."""

    steering: Sequence[Message] = ()
    follow_up: Sequence[Message] = ()


class _Knowledge(Struct, frozen=True):
    """What the session has: everything up to its last append."""

    history: History
    length: int
    model: ModelSpec | None = None
    prompt: str = ""
    queues: SavedQueues = SavedQueues()
    state: Mapping[str, bytes] = {}
    open: CallIds | None = None


class Update(Struct, frozen=True):
    """One append, and what is known after it."""

    messages: Sequence[Message]
    state: dict[str, Any] | None
    records: Sequence[Record]
    after: _Knowledge


class SessionWriter(Struct):
    """An agent as its session knows it: how much had been written when the agent last read or wrote."""

    at: int

    def check(self, session: Any) -> None:
        """Refuse to go on if somebody else has continued the conversation through the same object."""
        if session.written > self.at:
            raise SessionConflict(
                f"session {session.id} was continued by another agent with the same session object, or by"
                " session.append(); nothing was saved. One agent writes to a session: make this one anew with"
                " `await store.open(id)`, or let it go on in a fork (`await store.fork(id)`); to add messages"
                " use agent.append_messages()"
            )


class SessionDiff:
    """What one session has of a conversation, and what it lacks."""

    __slots__ = (
        "_append",
        "_config",
        "_context",
        "_count",
        "_doubtful",
        "_known",
        "_queues",
        "_serial",
        "_session",
        "_start",
        "_writer",
        "report",
        "takes_records",
    )

    def __init__(self, append: Append, history: History, session: PlainSession | None = None) -> None:
        self._serial = Serial()
        self._count: int | None = None if is_async(append) else 0
        self._append = append if is_async(append) else self._one_by_one(append)
        self._session = session
        self._start = _starter_of(session)
        self._writer = SessionWriter(getattr(session, "written", 0))
        self.takes_records = session is not None and takes_records(append)
        self.report: CompactionReport | None = None
        """Of the compaction that made the history what it is."""
        self._known = _Knowledge(history, len(history))
        self._doubtful: tuple[Update, int | None] | None = None
        """An append of which it is not known yet whether it was stored, and how many there were before it."""
        self._config: AgentLoopConfig
        self._context: AgentContext
        self._queues: Queues

    @property
    def session_id(self) -> str | None:
        """The id of the session, if it has one."""
        return getattr(self._session, "id", None)

    @property
    def saves_prompts_first(self) -> bool:
        """Whether the session is to have a prompt before a model is asked."""
        return bool(getattr(self._session, "saves_prompts_first", False))

    @classmethod
    def of(
        cls,
        session: PlainSession,
        history: History,
        config: AgentLoopConfig,
        context: AgentContext,
        queues: Queues,
    ) -> "SessionDiff":
        """What a session knows that an agent was just made with: all that it has.

        One that takes only messages is given those of the runs, and not what the agent began with.
        """
        known = cls(session.append, history, session)
        if known.takes_records:
            known._known = _Knowledge(History.of(session.messages), len(session.messages))
        known._config, known._context, known._queues = config, context, queues
        saved = conversation_of(session)
        if saved is not None:
            known._known = replace(
                known._known,
                model=saved.model,
                prompt=saved.system_prompt or "",
                queues=SavedQueues(tuple(saved.steering), tuple(saved.follow_up)),
                state=encode_state(saved.state),
                open=None if saved.open is None else call_ids(saved.open.reply),
            )
        return known

    @property
    def sequence(self) -> int | None:
        """How many appends the session has had, if it counts them, or if they are counted here."""
        return getattr(getattr(self._session, "meta", None), "sequence", self._count)

    def check_writer(self) -> None:
        """Raise `SessionConflict` if somebody else has continued the conversation through the same object."""
        if self._start is not None:
            self._writer.check(self._session)

    def has_open(self, reply: AssistantMessage) -> bool:
        """Whether the session knows of this turn as one that is open."""
        return self._known.open is not None and self._known.open == call_ids(reply)

    def changes(self, now: ConversationState, told: int, notes: Sequence[Record] = ()) -> Update | None:
        """What to append, if anything; `told` is how much of what the run produced the session has."""
        known = self._known
        messages, compaction = self._unsaved(now, told)
        upto = max(now.upto, known.length) if now.history is known.history else now.upto
        if not self.takes_records:
            after = replace(known, history=now.history, length=upto)
            return Update(messages, None, (), after) if messages else None
        records: list[Record] = [] if compaction is None else [compaction]
        if self._is_as_known(now):
            if not (messages or records or notes) and now.open == known.open:
                return None
            model, prompt, queues = known.model, known.prompt, known.queues
            state, encoded = None, known.state
        else:
            model = self._model(records)
            prompt = self._prompt(records)
            queues = self._waiting(now, records)
            state, encoded = self._state()
        opened = next((note for note in reversed(notes) if isinstance(note, TurnOpened)), None)
        still = known.open
        if still is not None and opened is None and now.open != still:
            still = None
            if not any(_closes(message, known.open) for message in messages):
                records.append(TurnDropped())
        elif opened is not None:
            still = call_ids(opened.reply)
        records.extend(notes)
        if not (messages or records or state is not None):
            return None
        return Update(
            messages, state, records, _Knowledge(now.history, upto, model, prompt, queues, encoded, still)
        )

    def _is_as_known(self, now: ConversationState) -> bool:
        """Whether model, prompt, queues and state plainly are what the session has, as they mostly are."""
        known, queues = self._known, self._queues
        return (
            self._config.model is known.model
            and self._context.system_prompt is known.prompt
            and not (now.pending or queues.steering or queues.follow_up)
            and not (known.queues.steering or known.queues.follow_up)
            and not (self._config.state or known.state)
        )

    def has(self, update: Update) -> bool:
        """Whether an update was the last thing the session was told."""
        return self._known is update.after

    @property
    def is_in_doubt(self) -> bool:
        """Whether the session can say if the last append was stored, and has not been asked."""
        return self._doubtful is not None and self._doubtful[1] is not None

    async def settle(self) -> None:
        """Wait for an append that was given up while the session still wrote: what it has is known then."""
        doubtful = self._doubtful
        stored = getattr(self._session, "stored", None)
        await (self._serial.call(int) if stored is None else stored())
        if doubtful is not None and self._doubtful is doubtful:
            self._look(doubtful)
            self._doubtful = None

    def start(self, update: Update, done: Done) -> Callable[[], object] | None:
        """Begin to append to the session; `done` is called in this event loop when it has ended, and known.

        What is returned cancels it, where that can be done.
        """
        doubtful = self._doubtful = update, self.sequence

        def ended(error: BaseException | None) -> None:
            self._ended(doubtful, error)
            done(error)

        if self._start is not None:
            self._start(ended, update.messages, update.state, update.records, self._writer)
            return None
        task = asyncio.get_running_loop().create_task(self._call(update))
        task.add_done_callback(
            lambda task: ended(asyncio.CancelledError() if task.cancelled() else task.exception())
        )
        return task.cancel

    async def _call(self, update: Update) -> None:
        if self.takes_records:
            await resolve(self._append(update.messages, state=update.state, records=update.records))
        else:
            await resolve(self._append(update.messages))

    def _ended(self, doubtful: "tuple[Update, int | None]", error: BaseException | None) -> None:
        if self._doubtful is not doubtful:
            return
        if error is None:
            self._took(doubtful[0])
            return
        # Cancelled, a session may have stored it all the same, or do so later: what it has is not appended
        # again.
        self._look(doubtful)
        if not isinstance(error, asyncio.CancelledError):
            self._doubtful = None

    def _one_by_one(self, append: Append) -> Append:
        """A plain function, called off the event loop, one call after the other, and counted."""

        def counted(messages: Sequence[Message], **more: Any) -> Awaitable[None] | None:
            result = append(messages, **more)
            if self._count is not None and not inspect.isawaitable(result):
                self._count += 1
            return result

        async def call(messages: Sequence[Message], **more: Any) -> None:
            await resolve(await call_to_end(self._serial, counted, messages, **more))

        return call

    def _look(self, doubtful: "tuple[Update, int | None]") -> None:
        update, before = doubtful
        if self.sequence != before:
            self._took(update)

    def _took(self, update: Update) -> None:
        self._known = update.after
        self._doubtful = None
        self.report = None

    def _unsaved(self, now: ConversationState, told: int) -> tuple[Sequence[Message], Compaction | None]:
        """The messages that the session does not have, and the context if it is not what they add up to."""
        known, items = self._known, now.history.items
        if now.history is known.history:
            return items[known.length : now.upto], None
        # What is not final yet was produced by the run as well.
        fresh = now.produced[told : len(now.produced) - (len(items) - now.upto)]
        before = known.history.items[: known.length]
        tail = items[len(before) : now.upto]
        if (
            len(before) <= now.upto
            and len(fresh) <= len(tail)
            and all(map(is_, before, items))
            and all(map(is_, fresh, tail[len(tail) - len(fresh) :]))
        ):
            return tail, None
        kept: list[int | Message] = [*items[: now.upto]]
        if self.report is None:
            return fresh, Compaction(kept, "replaced")
        report = self.report
        about = report.tokens_before, report.tokens_after, report.usage, report.cost
        return fresh, Compaction(kept, "compacted", *about)

    def _model(self, records: list[Record]) -> ModelSpec:
        model, known = self._config.spec, self._known.model
        if model is known or model == known:
            return model
        level = model.thinking_level
        if known is not None and replace(known, thinking_level=level) == model:
            records.append(ThinkingLevelChange(level))
        else:
            records.append(ModelChange(model))
        return model

    def _prompt(self, records: list[Record]) -> str:
        prompt, known = self._context.system_prompt, self._known.prompt
        if not isinstance(prompt, str) or prompt == known:
            return known  # a function is code, and has to be given again
        records.append(PromptChange(prompt))
        return prompt

    def _waiting(self, now: ConversationState, records: list[Record]) -> SavedQueues:
        known = self._known.queues
        steering, follow_up = (*now.pending, *self._queues.steering), tuple(self._queues.follow_up)
        if _same(steering, known.steering) and _same(follow_up, known.follow_up):
            return known
        policies = self._config.policies
        records.append(QueueChange(list(vet_all(policies, steering)), list(vet_all(policies, follow_up))))
        return SavedQueues(steering, follow_up)

    def _state(self) -> tuple[dict[str, Any] | None, Mapping[str, bytes]]:
        encoded = encode_state(self._config.state)
        if encoded == self._known.state:
            return None, encoded
        return {key: decode(value) for key, value in encoded.items()}, encoded


def conversation_of(session: PlainSession) -> Conversation | None:
    """What a session adds up to, if it keeps more than messages."""
    conversation = getattr(session, "conversation", None)
    return conversation if isinstance(conversation, Conversation) else None


def takes_records(append: Append) -> bool:
    """Whether an append takes the state and records besides messages."""
    try:
        parameters = inspect.signature(append).parameters
    except (TypeError, ValueError):
        return False
    any_keyword = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return any_keyword or ("state" in parameters and "records" in parameters)


def _starter_of(session: PlainSession | None) -> Callable[..., None] | None:
    """How to append without a task, if a session has a way that is as good as its `append`."""
    for cls in type(session).__mro__:
        if "append" in vars(cls):
            is_own = "start_append" in vars(cls) and "append" not in getattr(session, "__dict__", ())
            return getattr(session, "start_append") if is_own else None  # noqa: B009 - no session must have it
    return None


def call_ids(reply: AssistantMessage) -> CallIds:
    """What tells a turn apart."""
    return tuple([call.id for call in reply.tool_calls])


def _closes(message: Message, ids: CallIds | None) -> bool:
    return isinstance(message, AssistantMessage) and call_ids(message) == ids


def _same(some: Sequence[Message], others: Sequence[Message]) -> bool:
    """Whether both are the same objects: data of the application's own may not compare."""
    return len(some) == len(others) and all(map(is_, some, others))
