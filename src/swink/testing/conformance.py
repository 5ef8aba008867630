"""The conformance kit: whether a stream function keeps the contract of `swink.stream`, and how it breaks it.

    broken = MyStreamFn(base_url="http://127.0.0.1:9")
    await check_stream_fn(MyStreamFn(base_url=…), model="mine:model-1", failing=broken)

Behind the function is the provider, or a server that answers `TEXT_PROMPT`, `TOOL_PROMPT` and a conversation
that another provider left.
"""

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from swink.errors import AgentError, ModelError
from swink.messages import AssistantMessage, LlmMessage, ModelSpec, UserMessage
from swink.stream import (
    Assembly,
    AssistantMessageEvent,
    Done,
    Error,
    LlmContext,
    Start,
    StreamFn,
    StreamOptions,
)
from swink.system.aio import closing
from swink.testing.problems import error_problems, stream_problems
from swink.testing.samples import HISTORY, TEXT_PROMPT, TOOL, TOOL_PROMPT, ToolOnOffer

Events = list[AssistantMessageEvent]
_SETTLE_SECONDS = 1.0
_HELLO = LlmContext("", (UserMessage(TEXT_PROMPT),))
_started: ContextVar[set[asyncio.Task[Any]] | None] = ContextVar("swink.testing.started", default=None)


async def check_stream_fn(
    fn: StreamFn,
    *,
    model: ModelSpec | str = ModelSpec("test", "test"),
    failing: StreamFn | None = None,
    secret: str | None = None,
    tools: bool = True,
    options: StreamOptions = StreamOptions(),
    cancellations: int = 12,
    seconds: float = 30.0,
) -> None:
    """Assert that a stream function keeps its contract; the `AssertionError` lists every breach.

    `failing` is the same kind of function, set up so that it must fail (nobody listens, a wrong key).
    `secret` is the key that no error and no repr may show. `tools=False` leaves tool calls out. No single
    request may take longer than `seconds`.

    Args:
        fn: the stream function
        model: the model that it is asked for
        options: how it is asked
        cancellations: at how many places it is cancelled
    """
    probe = _Probe(fn, _spec(model), options, secret, seconds)
    with _watched_tasks():
        await probe.text("text", [UserMessage(TEXT_PROMPT)])
        if tools:
            await probe.tool_call()
            await probe.text("a conversation of another provider's", HISTORY, (TOOL,))
        await probe.at_once()
        for pauses in range(cancellations):
            await probe.cancelled(pauses)
        await probe.abandoned()
        if failing is not None:
            await _Probe(failing, probe.model, options, secret, seconds, probe.problems).failure()
    problems = list(dict.fromkeys(probe.problems))
    if problems:  # not assert, which pytest would write out once more
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise AssertionError(f"the stream function breaks its contract:\n{listed}")


def _spec(model: ModelSpec | str) -> ModelSpec:
    if isinstance(model, ModelSpec):
        return model
    provider, _, model_id = model.partition(":")
    return ModelSpec(provider, model_id)


class _Probe(msgspec.Struct):
    """Asks one stream function and collects what is wrong with its answers."""

    fn: StreamFn
    model: ModelSpec
    options: StreamOptions
    secret: str | None
    seconds: float
    problems: list[str] = []
    tasks: set[asyncio.Task[Any]] = set()

    def __post_init__(self) -> None:
        if self.secret and self.secret in repr(self.fn):
            self.problems.append("its repr shows the secret")

    async def text(
        self, what: str, messages: Sequence[LlmMessage], tools: Sequence[ToolOnOffer] = ()
    ) -> None:
        events = await self._ask(what, LlmContext("Be brief.", messages, tools), self.options)
        message = None if events is None else self._reply(what, events)
        if message is not None and not message.text.strip():
            self._say(what, "the reply has no text")

    async def tool_call(self) -> None:
        what = "a tool call"
        options = msgspec.structs.replace(self.options, tool_choice="required")
        events = await self._ask(what, LlmContext("", [UserMessage(TOOL_PROMPT)], (TOOL,)), options)
        message = None if events is None else self._reply(what, events)
        if message is None:
            return
        if not message.tool_calls:
            self._say(what, "the reply calls no tool")
        for call in message.tool_calls:
            if call.name != TOOL.name:
                self._say(what, f"the call is of {call.name!r}, but only {TOOL.name!r} is on offer")
            elif call.partial_json is not None:
                self._say(what, f"the arguments do not add up to a JSON object: {call.partial_json[:80]!r}")
            elif not isinstance(call.arguments.get("city"), str):
                self._say(what, f"the arguments are not those of the schema: {call.arguments}")

    async def at_once(self) -> None:
        """Replies at the same time do not disturb each other."""
        await asyncio.gather(*[self.text("several at once", [UserMessage(TEXT_PROMPT)]) for _ in range(3)])

    async def cancelled(self, pauses: int) -> None:
        """Cancelled after so many turns of the event loop, it stops at once and leaves no task behind."""
        what = "cancellation"
        reading = asyncio.ensure_future(self._read(_HELLO, self.options, []))
        for _ in range(pauses * 3 + 1):
            await asyncio.sleep(0)
        reading.cancel()
        done, _ = await asyncio.wait([reading], timeout=_SETTLE_SECONDS)
        if not done:
            self._say(what, "it goes on after it was cancelled")
        elif not reading.cancelled() and (error := reading.exception()) is not None:
            self._say(what, f"it raises {type(error).__name__} instead of letting the cancellation through")
        await self._nothing_left(what)

    async def abandoned(self) -> None:
        """Closed after its first event, it releases what it holds."""
        what = "a stream that is closed early"
        if (error := await self._exception(self._read(_HELLO, self.options, [], most=1))) is not None:
            self._say(what, f"it raises {type(error).__name__}: {error}")
        await self._nothing_left(what)

    async def failure(self) -> None:
        """A failure is a start and an error, or an `AgentError`."""
        what = "failure"
        events: Events = []
        match await self._exception(self._read(_HELLO, self.options, events)):
            case None:
                self._add(what, stream_problems(events))
                self._keeps_secret(what, repr(events))
                if events and isinstance(events[-1], Done):
                    self._say(what, "it does not fail")
                elif [type(event) for event in events] != [Start, Error]:
                    names = ", ".join(type(event).__name__ for event in events)
                    self._say(what, f"before any content it should be a start and an error, but is {names}")
            case AgentError() as error:
                message = error.message if isinstance(error, ModelError) else str(error)
                self._add(what, error_problems(message, error.kind))
                self._keeps_secret(what, str(error))
            case error:
                raised = f"it raises {type(error).__name__}"
                self._say(what, f"{raised}, not an error event or an AgentError: {error}")

    async def _ask(self, what: str, context: LlmContext, options: StreamOptions) -> Events | None:
        """The events of one reply; None if it could not be read to its end."""
        events: Events = []
        given = repr(context)
        error = await self._exception(self._read(context, options, events))
        if error is not None:
            self._say(what, f"it raises {type(error).__name__}: {error}")
            return None
        if repr(context) != given:
            self._say(what, "it changes the context it was given")
        return events

    async def _read(
        self, context: LlmContext, options: StreamOptions, events: Events, most: int | None = None
    ) -> None:
        _started.set(self.tasks)
        async with closing(self.fn(self.model, context, options)) as stream:
            async for event in stream:
                events.append(event)
                if len(events) == most:
                    break

    async def _exception(self, work: Coroutine[Any, Any, None]) -> BaseException | None:
        """What the work raises, whatever it is; a `TimeoutError` if it takes too long."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait([task], timeout=self.seconds)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=_SETTLE_SECONDS)
        if not done:
            return TimeoutError(f"no end within {self.seconds:g} s")
        return asyncio.CancelledError("it cancels itself") if task.cancelled() else task.exception()

    def _reply(self, what: str, events: Sequence[AssistantMessageEvent]) -> AssistantMessage | None:
        """The message of a reply that is as it should be."""
        if problems := stream_problems(events):
            self._add(what, problems)
            return None
        assembly = Assembly()
        for event in events:
            assembly.feed(event)
        match assembly.terminal:
            case Done(stop_reason, usage):
                return assembly.message(self.model, stop_reason, usage=usage)
            case Error(message, kind):
                self._say(what, f"it fails: {message} ({kind})")
            case None:
                pass
        return None

    async def _nothing_left(self, what: str) -> None:
        left = {task for task in self.tasks if not task.done()}
        if left:
            _, left = await asyncio.wait(left, timeout=_SETTLE_SECONDS)
        self.tasks.clear()
        for task in left:
            self._say(what, f"it leaves a task behind: {task.get_name()}")
            task.cancel()

    def _keeps_secret(self, what: str, text: str) -> None:
        if self.secret and self.secret in text:
            self._say(what, "the error shows the secret")

    def _add(self, what: str, problems: Sequence[str]) -> None:
        for problem in problems:
            self._say(what, problem)

    def _say(self, what: str, problem: str) -> None:
        self.problems.append(f"{what}: {problem}")


@contextmanager
def _watched_tasks() -> Generator[None, None, None]:
    """Record the tasks that a stream function starts, but not those of a server on the same event loop."""
    loop = asyncio.get_running_loop()
    previous = loop.get_task_factory()

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **keywords: Any) -> Any:
        task: Any = None if previous is None else previous(loop, work, **keywords)
        if previous is None:
            task = asyncio.Task(work, loop=loop, **keywords)
        if (started := _started.get()) is not None:
            started.add(task)
        return task

    loop.set_task_factory(factory)
    try:
        yield
    finally:
        loop.set_task_factory(previous)
