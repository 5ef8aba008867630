"""Agent: the stateful face of the loop. It keeps the history, the queues and the settings; the loop does the work."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from swink import catalog
from swink.checkpoint import Checkpoint, placeholders
from swink.codec import plain, savable
from swink.config import AgentContext, AgentLoopConfig, AgentResult, ApprovalMode, ToolExecution
from swink.context import DEFAULT_WINDOW, SlidingWindow, TransformFn
from swink.engine.eventstream import Buffer, EventStream
from swink.engine.history import History, Snapshot, violations
from swink.engine.loop import check_continue, take_turns
from swink.engine.run import Run
from swink.errors import AlreadyRunning, BrokenHistory, MisuseError, NoMessages, SyncInAsyncContext
from swink.events import AgentEvent, CompactionReport, ContextCompacted
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Input,
    LlmMessage,
    Message,
    ModelSpec,
    ThinkingLevel,
    Usage,
    UserMessage,
    as_messages,
)
from swink.policy import Policy, asking, slots_of, vet_commit
from swink.queues import MessageQueue, QueueMode
from swink.retry import ExponentialBackoff, RetryStrategy
from swink.state import copied
from swink.stream import StreamFn, StreamOptions
from swink.structured import DONE, StructuredOutput
from swink.subscribers import Subscribers, Subscription
from swink.tokens import estimate_tokens
from swink.tool import Tool, as_tools
from swink.transform import in_order

Model = str | ModelSpec

_lock = (
    threading.RLock()
)  # over who runs and who waits for it; one serves all, and a stream dropped meanwhile may take it again


class Session(Protocol):
    """Where a conversation is kept: `append` is one durable transaction."""

    messages: Sequence[Message]
    state: dict[str, Any]

    async def append(self, messages: Sequence[Message]) -> None:
        """Add messages."""
        ...


class _Pause:
    """A pause already asked for; awaiting it waits for the run to stop and gives the checkpoint."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        yield from self._agent.wait_for_idle().__await__()
        return self._agent.checkpoint()


class Agent:
    """A model, its tools and one conversation. One run at a time; everything else may be called at any time."""

    def __init__(
        self,
        model: Model,
        *,
        system_prompt: str = "",
        tools: Sequence[Any] = (),
        messages: Sequence[Message] = (),
        stream_fn: StreamFn | None = None,
        options: StreamOptions = StreamOptions(),
        retry: RetryStrategy = ExponentialBackoff(),
        fallback_models: Sequence[Model | tuple[Model, StreamFn]] = (),
        policies: Sequence[Policy] = (),
        approve: Callable[[Any], Any] | None = None,
        approval_mode: ApprovalMode = "smart",
        transform_context: TransformFn | Sequence[TransformFn] | None = None,
        convert_to_llm: Callable[[Message], LlmMessage | None] | None = None,
        get_api_key: Callable[[str], str | Awaitable[str | None] | None] | None = None,
        steering_mode: QueueMode = "one_at_a_time",
        follow_up_mode: QueueMode = "one_at_a_time",
        tool_execution: ToolExecution = "concurrent",
        tool_timeout: float | None = None,
        session: Session | None = None,
        state: dict[str, Any] | None = None,
    ) -> None:
        spec = catalog.parse_model(model)
        self._stream_fn = stream_fn
        self._provider = spec.provider
        self._own_window = transform_context is None
        self._steering = MessageQueue(steering_mode)
        self._follow_up = MessageQueue(follow_up_mode)
        self._context = AgentContext(system_prompt, (), as_tools(tools))
        self._history = History(
            _vetted([*session.messages, *messages] if session is not None else messages, policies)
        )
        self._config = AgentLoopConfig(
            model=spec,
            stream_fn=stream_fn if stream_fn is not None else catalog.stream_fn_for(spec),
            options=options,
            retry=retry,
            fallbacks=tuple([self._fallback(item) for item in fallback_models]),
            policies=tuple(policies),
            approve=approve,
            approval_mode=approval_mode,
            transform_context=_window(spec) if transform_context is None else transform_context,
            convert_to_llm=convert_to_llm,
            get_api_key=get_api_key,
            get_steering=self._steering,
            get_follow_up=self._follow_up,
            peek_steering=self._steering.waits,
            tool_execution=tool_execution,
            tool_timeout=tool_timeout,
            price=catalog.price_of,
            state=_json_copy({**session.state, **(state or {})} if session is not None else state or {}),
            save=session.append if session is not None else None,
        )
        self.error: str | None = None
        self._subscribers = Subscribers()
        self._active: Run | None = None
        self._claimed = False
        self._overflow = False
        self._waiters: tuple[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]], ...] = ()
        initial = self._history.snapshot() if len(self._history) else ()
        self._initial = (
            spec,
            system_prompt,
            self._context.tools,
            initial,
            _json_copy(self._config.state) or None,
        )

    # Running

    async def run(
        self,
        input: Input | None = None,
        *,
        output: Any = None,
        max_output_retries: int = 3,
        deadline: float | None = None,
    ) -> AgentResult:
        """Run to the end and return the result; without input, continue from the context."""
        structured = StructuredOutput(output, max_output_retries) if output is not None else None
        run = self._begin(self._checked(input), structured, deadline, Buffer(self._subscribers, closed=True))
        await run.wait()
        if run.failure is not None:
            raise run.failure
        return _outcome(structured, run)

    def run_sync(
        self,
        input: Input | None = None,
        *,
        output: Any = None,
        max_output_retries: int = 3,
        deadline: float | None = None,
    ) -> AgentResult:
        """`run` for code without an event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise SyncInAsyncContext
        return asyncio.run(
            self.run(input, output=output, max_output_retries=max_output_retries, deadline=deadline)
        )

    def stream(
        self,
        input: Input | None = None,
        *,
        output: Any = None,
        max_output_retries: int = 3,
        deadline: float | None = None,
    ) -> EventStream:
        """A run as a stream of events: `async with agent.stream(...) as run: async for event in run: ...`."""
        prompts = self._checked(input)
        structured = StructuredOutput(output, max_output_retries) if output is not None else None
        begin = partial(self._begin, prompts, structured, deadline)
        return EventStream(
            begin, self._subscribers, Run.outcome if structured is None else partial(_outcome, structured)
        )

    # Steering

    def steer(self, message: Input) -> None:
        """Say something while the agent works: running tools are cut short, and the next turn hears it."""
        self._steering.extend(self._queueable(message))

    def follow_up(self, message: Input) -> None:
        """Say something for when the agent would stop."""
        self._follow_up.extend(self._queueable(message))

    def clear_steering(self) -> None:
        """Forget queued steering."""
        self._steering.clear()

    def clear_follow_up(self) -> None:
        """Forget queued follow-ups."""
        self._follow_up.clear()

    def clear_queues(self) -> None:
        """Forget both queues."""
        self.clear_steering()
        self.clear_follow_up()

    @property
    def steering_mode(self) -> QueueMode:
        """Whether a turn hears one steering message or all that wait."""
        return self._steering.mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._steering.mode = mode

    @property
    def follow_up_mode(self) -> QueueMode:
        """Whether one follow-up is taken at a time or all that wait."""
        return self._follow_up.mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._follow_up.mode = mode

    @property
    def has_pending(self) -> bool:
        """Whether steering or follow-ups wait."""
        return bool(self._steering or self._follow_up)

    # Control

    def abort(self) -> None:
        """End the current run, keeping what arrived; does nothing when idle."""
        run = self._active
        if run is not None and not self._freed():
            run.abort()

    def pause(self) -> Awaitable[dict[str, Any]]:
        """Stop after the current turn; await the answer for the checkpoint. `run()` goes on from there."""
        run = self._active
        if run is not None:
            run.pausing = True
        return _Pause(self)

    async def wait_for_idle(self) -> None:
        """Return once no run is active."""
        loop = asyncio.get_running_loop()
        while True:
            if self._freed():
                return
            waiter: asyncio.Future[None] = loop.create_future()
            with _lock:
                if not self._claimed:
                    return
                self._waiters = (*self._waiters, (loop, waiter))
            await waiter

    def reset(self) -> None:
        """Back to how the agent was made: model, prompt, tools, messages, state; queues and error are cleared."""
        self._idle_only("reset")
        spec, prompt, tools, messages, state = self._initial
        self.model = spec
        self._context.system_prompt, self._context.tools = prompt, tools
        self._history = History(messages)
        self._config.state.clear()
        self._config.state.update(_json_copy(state or {}))
        self.clear_queues()
        self.error = None
        self._overflow = False

    async def compact(self) -> CompactionReport:
        """Run the context transformers now and keep only what they keep."""
        self._idle_only("compact")
        before = self._history.snapshot()
        after: Sequence[Message] = before
        for function in in_order(self._config.transform_context):
            returned = function(after, True)
            after = await returned if isinstance(returned, Awaitable) else returned
        self._idle_only("compact")
        report = CompactionReport(
            len(before) - len(after),
            sum(map(estimate_tokens, before)),
            sum(map(estimate_tokens, after)),
            True,
        )
        self._history = History(_vetted(after, self._config.policies))
        if report.dropped:
            self._subscribers.notify(ContextCompacted(report))
        return report

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Subscription:
        """Call back with every later event, in order; a callback that raises is logged and dropped."""
        return self._subscribers.add(callback)

    # State

    @property
    def messages(self) -> Snapshot:
        """The history as it is now; assign to replace it."""
        return (self._active.history if self._active is not None else self._history).snapshot()

    @messages.setter
    def messages(self, messages: Sequence[Message]) -> None:
        self._replace_history(History(_vetted(messages, self._config.policies)))

    def append_messages(self, messages: Input) -> None:
        """Add to the history without running."""
        added = as_messages(messages)
        if (run := self._active) is not None:
            (run.inject_behind if asking.get() else run.append)(added)
        else:
            self._history = History([*self._history.snapshot(), *_vetted(added, self._config.policies)])

    def clear_messages(self) -> None:
        """Empty the history."""
        self._replace_history(History())

    @property
    def model(self) -> ModelSpec:
        """The model; assign a spec or "provider:model"."""
        return self._config.model

    @model.setter
    def model(self, model: Model) -> None:
        spec = catalog.parse_model(model)
        self._config.stream_fn = self._stream_fn_for(spec)
        self._config.model = spec
        if self._own_window:
            self._config.transform_context = _window(spec)

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How hard the model should think."""
        return self._config.model.thinking_level

    @thinking_level.setter
    def thinking_level(self, level: ThinkingLevel) -> None:
        self._config.model = replace(self._config.model, thinking_level=level)

    @property
    def system_prompt(self) -> str:
        """The system prompt."""
        return self._context.system_prompt

    @system_prompt.setter
    def system_prompt(self, text: str) -> None:
        self._context.system_prompt = text

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools; assign to replace them."""
        return tuple(self._context.tools)

    @tools.setter
    def tools(self, tools: Sequence[Any]) -> None:
        self._context.tools = as_tools(tools)

    @property
    def state(self) -> dict[str, Any]:
        """The session state: a JSON dict shared with tools and policies."""
        return self._config.state

    @property
    def is_running(self) -> bool:
        """Whether a run is active."""
        return self._claimed

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """Ids of the calls running now."""
        calls = self._active.calls if self._active is not None else ()
        return frozenset(call.call.id for call in calls if call.task is not None and call.result is None)

    @property
    def streaming_message(self) -> AssistantMessage | None:
        """The reply as far as it has arrived, or None."""
        run = self._active
        if run is None or run.assembly is None:
            return None
        return run.assembly.message(run.model, "stop", usage=Usage())

    # Checkpoints

    def checkpoint(self) -> dict[str, Any]:
        """Everything but code, as plain JSON data: history, queues, state, model and prompt."""
        return Checkpoint(
            model=self.model,
            system_prompt=self.system_prompt,
            messages=savable(self.messages),
            steering=list(
                _vetted(
                    [*(self._active.pending if self._active is not None else ()), *self._steering],
                    self._config.policies,
                )
            ),
            follow_up=list(_vetted(self._follow_up, self._config.policies)),
            state=copied(self.state),
        ).to_data()

    @classmethod
    def restore(
        cls,
        data: dict[str, Any],
        *,
        stream_fn: StreamFn | None = None,
        tools: Sequence[Any] = (),
        **options: Any,
    ) -> "Agent":
        """An agent from a checkpoint; tools it used that are no longer there get a placeholder that says so."""
        saved = Checkpoint.from_data(data)
        given = as_tools(tools)
        agent = cls(
            saved.model,
            system_prompt=saved.system_prompt,
            tools=[*given, *placeholders(saved.messages, given)],
            messages=saved.messages,
            stream_fn=stream_fn,
            state=saved.state,
            **options,
        )
        agent._steering.extend(saved.steering)
        agent._follow_up.extend(saved.follow_up)
        return agent

    # Inside

    def _checked(self, input: Input | None) -> tuple[Message, ...] | None:
        """The input as messages, refused at once if it cannot start a run."""
        if self._claimed and not self._freed():
            raise AlreadyRunning
        if input is None:
            if not self.has_pending:
                check_continue(self.messages)
            return None
        prompts = as_messages(input)
        if input and type(input) is str:
            return prompts
        if not prompts or not any(isinstance(item, CustomMessage) or item.content for item in prompts):
            raise NoMessages(
                "the input is empty; give some text, an image or a message, or call run() without input to continue"
            )
        if not all(isinstance(item, UserMessage | CustomMessage) for item in prompts):
            broken = violations([*self.messages, *prompts])
            if broken:
                raise BrokenHistory("the input does not fit the history: " + "; ".join(broken))
        return prompts

    def _begin(
        self,
        prompts: tuple[Message, ...] | None,
        structured: StructuredOutput | None,
        deadline: float | None,
        buffer: Buffer,
    ) -> Run:
        if structured is not None and any(tool.name == structured.tool.name for tool in self.tools):
            raise MisuseError(
                f"output= needs the tool name {structured.tool.name!r} for itself; rename your tool"
            )
        with _lock:
            if self._claimed:
                raise AlreadyRunning
            self._claimed = True
        try:
            run = Run(
                self._config,
                self._context,
                self._history,
                buffer,
                self._ended if structured is None else partial(self._ended, structured=structured),
                tools=() if structured is None else (structured.tool,),
                policies=() if structured is None else (structured,),
                tool_choice=structured.tool.name
                if structured is not None and not self.tools and self.thinking_level == "off"
                else None,
                overflow=self._overflow,
            )
            self._active = run
            run.start(self._continuation() if prompts is None else prompts, take_turns, deadline)
        except BaseException:
            self._active = None
            self._release()
            raise
        return run

    def _continuation(self) -> Sequence[Message]:
        """What a run without input starts with: nothing, or the follow-ups if the conversation has its answer."""
        try:
            check_continue(self.messages)
        except MisuseError:
            if self._steering:
                return ()
            follow_ups = self._follow_up()
            if not follow_ups:
                raise
            return follow_ups
        return ()

    def _ended(self, run: Run, structured: StructuredOutput | None = None) -> None:
        self._history = run.history
        self._overflow = run.overflow
        if structured is not None:
            self.error = _outcome(structured, run).error
        else:
            self.error = run.error_text
        self._active = None
        self._release()

    def _release(self) -> None:
        with _lock:
            self._claimed = False
            waiters, self._waiters = self._waiters, ()
        for loop, waiter in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, waiter)

    def _replace_history(self, history: History) -> None:
        if self._active is not None:
            self._active.replace_history(history)
        else:
            self._history = history

    def _queueable(self, message: Input) -> tuple[Message, ...]:
        messages = as_messages(message)
        if not all(isinstance(item, UserMessage | CustomMessage) for item in messages):
            raise MisuseError("only user and custom messages can be queued")
        if self._active is not None and asking.get():
            self._active.injected.extend(messages)
        return messages

    def _fallback(self, item: Model | tuple[Model, StreamFn]) -> tuple[ModelSpec, StreamFn]:
        if isinstance(item, tuple):
            return catalog.parse_model(item[0]), item[1]
        spec = catalog.parse_model(item)
        return spec, self._stream_fn_for(spec)

    def _stream_fn_for(self, spec: ModelSpec) -> StreamFn:
        """The agent's own stream function, unless the catalog has one for another provider than the agent was made with."""
        if self._stream_fn is not None and (
            spec.provider == self._provider or not catalog.has_provider(spec.provider)
        ):
            return self._stream_fn
        return catalog.stream_fn_for(spec)

    def _freed(self) -> bool:
        """Whether the active run's event loop was closed under it; then the run is over, and its history completed."""
        run = self._active
        if run is None or not run.loop.is_closed():
            return False
        run.close("aborted")
        return True

    def _idle_only(self, what: str) -> None:
        if self._claimed and not self._freed():
            raise AlreadyRunning(f"{what}() needs an idle agent; await wait_for_idle() first")


def _outcome(structured: StructuredOutput | None, run: Run) -> AgentResult:
    result = run.outcome()
    if structured is None or result.stop_reason in ("aborted", "error"):
        return result
    if structured.received:
        return replace(
            result, output=structured.value, reason=None if result.reason == DONE else result.reason
        )
    if failure := structured.failure:
        return replace(result, stop_reason="error", error=str(failure), error_kind=failure.kind)
    return result


def _window(spec: ModelSpec) -> SlidingWindow:
    """A window that leaves room for the reply, the system prompt and the tools."""
    window = spec.context_window or DEFAULT_WINDOW
    return SlidingWindow(window - min(spec.max_output or window // 8, window // 4) - window // 20)


def _vetted(messages: Sequence[Message], policies: Sequence[Policy]) -> Sequence[Message]:
    """The messages as the pre-commit policies want them kept, whichever way they enter a history."""
    guards = slots_of(policies).pre_commit
    return [vet_commit(guards, message) for message in messages] if guards else messages


def _json_copy(value: dict[str, Any]) -> dict[str, Any]:
    if not value:
        return {}
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=plain))


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
