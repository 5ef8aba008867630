"""Agent: the stateful face of the loop. It keeps history, queues and settings; the loop does the work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Unpack, overload

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from typing_extensions import TypeForm, TypeVar

from swink.agent.checkpoint import SavedAgent, placeholders
from swink.agent.config import (
    QUEUE_MODES,
    AgentContext,
    AgentLoopConfig,
    AgentResult,
    ApprovalMode,
    Model,
    PlainSession,
    QueueMode,
    RunOptions,
    SystemPrompt,
    ToolExecution,
    as_state,
    check_session,
)
from swink.agent.context.compaction import Transform
from swink.agent.engine.eventstream import Buffer, EventStream, Subscribers, Subscription
from swink.agent.engine.loop import check_continue, take_turns
from swink.agent.engine.queues import MessageQueue
from swink.agent.engine.request import compacted
from swink.agent.engine.run import End, Run
from swink.agent.policy import Approve, Policy, asking, slots_of, vet_commit
from swink.agent.retry import ExponentialBackoff, RetryStrategy
from swink.agent.runrequest import Order, check_approvals, order_of, prompts_of
from swink.agent.session.journal import settled_turn
from swink.agent.session.known import Known, Standing, Waiting, call_ids, conversation_of
from swink.agent.session.saver import Saver
from swink.agent.structured import StructuredOutput
from swink.errors import (
    Aborted,
    AlreadyRunning,
    ContextWindowOverflow,
    InvalidInput,
    MisuseError,
    SyncInAsyncContext,
)
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
from swink.messages.checks import check_hook, check_list, check_word
from swink.messages.codec import copy_state
from swink.messages.history import History, Snapshot
from swink.messages.providertools import HostedTool
from swink.messages.records import Conversation, OpenTurn, PendingApproval, pending_of
from swink.models import catalog
from swink.stream import StreamFn, StreamOptions
from swink.system.aio import Turnstile, is_async, is_loop_running
from swink.system.threads import run_to_end
from swink.tools import Tool, ToolSource, as_offers, as_tool

log = logging.getLogger("swink")

T = TypeVar("T", default=None)

_SETTINGS = (
    "model",
    "stream_fn",
    "options",
    "retry",
    "policies",
    "approve",
    "approval_mode",
    "transform_context",
    "convert_to_llm",
    "get_api_key",
    "tool_execution",
    "tool_timeout",
    "hosted",
    "deps",
)
"""Keywords of the constructor that are fields of the configuration."""


class _Pause:
    """A pause already asked for; awaiting it waits for the run to stop and gives the checkpoint."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        yield from self._agent.wait_for_idle().__await__()
        return self._agent.checkpoint()


class _Initial(Struct, frozen=True):
    """What `reset` goes back to."""

    model: ModelSpec
    system_prompt: SystemPrompt
    tools: Sequence[Tool | ToolSource]
    messages: Sequence[Message]
    state: dict[str, Any]


class Agent:
    """A model, its tools and one conversation; one run at a time. Other methods may be called any time."""

    # Without a dict: an assignment that would change nothing (agent.policies = …) is an AttributeError.
    __slots__ = (
        "__weakref__",
        "_active",
        "_compacting",
        "_config",
        "_context",
        "_follow_up",
        "_history",
        "_initial",
        "_known",
        "_open",
        "_overflow",
        "_steering",
        "_subscribers",
        "_turnstile",
        "error",
    )

    def __init__(
        self,
        model: Model | None = None,
        *,
        system_prompt: SystemPrompt | UnsetType = UNSET,
        tools: Sequence[Any] = (),
        messages: Sequence[Message] = (),
        stream_fn: StreamFn | None = None,
        options: StreamOptions = StreamOptions(),
        retry: RetryStrategy = ExponentialBackoff(),
        fallback_models: Sequence[Model | tuple[Model, StreamFn]] = (),
        policies: Sequence[Policy] = (),
        approve: Approve | None = None,
        approval_mode: ApprovalMode = "smart",
        transform_context: Transform | None = None,
        convert_to_llm: Callable[[Message], LlmMessage | None] | None = None,
        get_api_key: Callable[[str], str | Awaitable[str | None] | None] | None = None,
        steering_mode: QueueMode = "one_at_a_time",
        follow_up_mode: QueueMode = "one_at_a_time",
        tool_execution: ToolExecution = "concurrent",
        tool_timeout: float | None = None,
        hosted: Sequence[HostedTool] = (),
        session: PlainSession | None = None,
        state: dict[str, Any] | None = None,
        deps: Any = None,
    ) -> None:
        if session is not None:
            check_session(session)
        saved = conversation_of(session) if session is not None else None
        spec = _model(model, saved)
        if system_prompt is UNSET:
            system_prompt = (saved.system_prompt or "") if saved is not None else ""
        check_word("steering_mode", steering_mode, QUEUE_MODES)
        check_word("follow_up_mode", follow_up_mode, QUEUE_MODES)
        self._steering, self._follow_up = MessageQueue(steering_mode), MessageQueue(follow_up_mode)
        self._context = AgentContext(system_prompt, (), as_offers(tools))
        self._config = AgentLoopConfig(
            model=spec,
            stream_fn=stream_fn,
            options=options,
            retry=retry,
            fallbacks=tuple(check_list("fallback_models", fallback_models, "models")),
            policies=tuple(check_list("policies", policies, "policy objects")),
            approve=approve,
            approval_mode=approval_mode,
            transform_context="window" if transform_context is None else transform_context,
            convert_to_llm=convert_to_llm,
            get_api_key=get_api_key,
            get_steering=self._steering,
            get_follow_up=self._follow_up,
            peek_steering=self._steering.waits,
            tool_execution=tool_execution,
            tool_timeout=tool_timeout,
            hosted=hosted,
            state=as_state({} if session is None else session.state, state),
            deps=deps,
        )
        given = check_list("messages", messages, "messages")
        if session is not None:
            given = (*session.messages, *given)
        self._history = History(_vetted(given, self._config.policies))
        self._open: OpenTurn | None = None
        self._known: Known | None = None
        if session is not None:
            queues = Waiting(self._steering, self._follow_up)
            self._known = Known.of(session, self._history, self._config, self._context, queues)
        if saved is not None:
            self._open = saved.open
            self._steering.extend(saved.steering)
            self._follow_up.extend(saved.follow_up)
        self.error: str | None = None
        self._subscribers = Subscribers()
        self._active: Run | None = None
        self._compacting: asyncio.Future[Any] | None = None
        self._turnstile = Turnstile()
        self._overflow = False
        made_with = self._history.snapshot() if len(self._history) else ()
        self._initial = _Initial(
            spec, system_prompt, self._context.tools, made_with, copy_state(self._config.state)
        )

    @overload
    async def run(
        self,
        input: Input | None = None,
        *,
        output: TypeForm[T] | None = None,
        **options: Unpack[RunOptions[T]],
    ) -> AgentResult[T]: ...
    @overload
    async def run(
        self, input: Input | None = None, *, output: Mapping[str, Any], **options: Unpack[RunOptions[Any]]
    ) -> AgentResult[Any]: ...
    async def run(self, input: Input | None = None, **options: Any) -> AgentResult[Any]:
        """Run to the end and return the result; without input, continue from the context.

        `output` is the type of the answer (or a JSON Schema); `validate(value)` may change it, or raise
        `ToolError` to have the model try again, at most `max_output_retries` times. `deadline` bounds the
        whole run, in seconds. `deps` and `policies` are for this run: other dependencies, more policies.
        `approvals` answers the calls in `pending`, by their ids, and goes on with them.
        """
        order, prompts = self._order(input, **options)
        run = self._begin(order, prompts, Buffer(self._subscribers, closed=True))
        await run.life.wait()
        if run.life.failure is not None:
            raise run.life.failure
        return _result(order.structured, run)

    @overload
    def run_sync(
        self,
        input: Input | None = None,
        *,
        output: TypeForm[T] | None = None,
        **options: Unpack[RunOptions[T]],
    ) -> AgentResult[T]: ...
    @overload
    def run_sync(
        self, input: Input | None = None, *, output: Mapping[str, Any], **options: Unpack[RunOptions[Any]]
    ) -> AgentResult[Any]: ...
    def run_sync(self, input: Input | None = None, **options: Any) -> AgentResult[Any]:
        """`run` for code without an event loop."""
        if is_loop_running():
            raise SyncInAsyncContext
        return run_to_end(self.run(input, **options))

    @overload
    def stream(
        self,
        input: Input | None = None,
        *,
        output: TypeForm[T] | None = None,
        **options: Unpack[RunOptions[T]],
    ) -> EventStream[T]: ...
    @overload
    def stream(
        self, input: Input | None = None, *, output: Mapping[str, Any], **options: Unpack[RunOptions[Any]]
    ) -> EventStream[Any]: ...
    def stream(self, input: Input | None = None, **options: Any) -> EventStream[Any]:
        """A run as a stream of events: `async with agent.stream(...) as run: async for event in run: ...`."""
        order, prompts = self._order(input, **options)
        begin, result = partial(self._begin, order, prompts), partial(_result, order.structured)
        growing = None if order.structured is None else order.structured.grow
        return EventStream(begin, self._subscribers, result, growing=growing)

    def steer(self, message: Input) -> None:
        """Say something while the agent works: running tools are cut short, and the next turn gets it."""
        self._steering.extend(self._queueable(message))
        self._save_soon()

    def follow_up(self, message: Input) -> None:
        """Say something for when the agent would stop."""
        self._follow_up.extend(self._queueable(message))
        self._save_soon()

    @property
    def steering(self) -> tuple[Message, ...]:
        """What was said while the agent works and waits for the next turn."""
        return tuple(self._steering)

    @property
    def follow_ups(self) -> tuple[Message, ...]:
        """What waits for when the agent would stop."""
        return tuple(self._follow_up)

    def unqueue(self, message: Message) -> bool:
        """Take back a message that waits, the very object in `steering` or `follow_ups`; in the event loop.

        False if it waits no more: its `MessageEnd` has come, or is about to.
        """
        taken = self._steering.drop(message) or self._follow_up.drop(message)
        if taken:
            self._save_soon()
        return taken

    def clear_steering(self) -> None:
        """Forget queued steering."""
        self._steering.clear()
        self._save_soon()

    def clear_follow_up(self) -> None:
        """Forget queued follow-ups."""
        self._follow_up.clear()
        self._save_soon()

    def clear_queues(self) -> None:
        """Forget both queues."""
        self.clear_steering()
        self.clear_follow_up()

    @property
    def steering_mode(self) -> QueueMode:
        """Whether a turn gets one steering message or all that wait."""
        return self._steering.mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        check_word("steering_mode", mode, QUEUE_MODES)
        self._steering.mode = mode

    @property
    def follow_up_mode(self) -> QueueMode:
        """Whether one follow-up is taken at a time or all that wait."""
        return self._follow_up.mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        check_word("follow_up_mode", mode, QUEUE_MODES)
        self._follow_up.mode = mode

    @property
    def has_pending(self) -> bool:
        """Whether steering or follow-ups wait, or a turn that was left open: `run()` has something to do."""
        return bool(self._steering or self._follow_up or self._open is not None)

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """The calls that wait for somebody's word; `run(approvals={call_id: …})` gives it."""
        return pending_of(self._open if (run := self._active) is None else run.ledger.open)

    def abort(self) -> None:
        """End the current run, keeping what arrived, or `compact()`; does nothing when idle."""
        run, compacting = self._active, self._compacting
        if run is not None and not self._freed():
            run.life.abort()
        if compacting is not None:
            with suppress(RuntimeError):  # the event loop is closed
                compacting.get_loop().call_soon_threadsafe(compacting.cancel)

    def pause(self) -> Awaitable[dict[str, Any]]:
        """Stop after the current turn; await the answer for the checkpoint. `run()` goes on from there."""
        run = self._active
        if run is not None:
            run.pausing = True
        return _Pause(self)

    async def wait_for_idle(self) -> None:
        """Return once no run is active."""
        while self._turnstile.is_taken and not self._freed():
            await self._turnstile.wait()

    async def aclose(self) -> None:
        """End the current run, if there is one, and wait until all is saved that a session keeps."""
        self.abort()
        await self.wait_for_idle()
        await self._save()

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def reset(self) -> None:
        """Back to the model, prompt, tools, messages and state it was made with; queues are cleared."""
        self._idle_only("reset")
        initial = self._initial
        self.model = initial.model
        self._context.system_prompt, self._context.tools = initial.system_prompt, initial.tools
        self._replace_history(History(initial.messages))
        self._config.state.clear()
        self._config.state.update(copy_state(initial.state))
        self.clear_queues()
        self.error = None
        self._overflow = False

    def copy(self, **changes: Any) -> "Agent":
        """Another agent like this one, with some of the constructor's keywords changed.

        History, queues, state and a turn that was left open are copied, a session is not; `reset` goes back
        to the same beginning.
        """
        config = self._config
        kept: dict[str, Any] = {name: getattr(config, name) for name in _SETTINGS} | {
            "system_prompt": self._context.system_prompt,
            "tools": self.tools,
            "messages": self.messages,
            "fallback_models": config.fallbacks,
            "steering_mode": self.steering_mode,
            "follow_up_mode": self.follow_up_mode,
            "state": copy_state(config.state),
        }
        if unknown := changes.keys() - kept.keys() - {"session"}:
            raise InvalidInput(f"copy() takes the keywords of Agent(...); {unknown.pop()!r} is none of them")
        made = Agent(**{**kept, **changes})
        if "stream_fn" not in changes:
            made._config.own_provider = config.own_provider
        if "options" not in changes:
            made._config.key_owner = config.key_owner
        made._steering.extend([*self._pending(), *self._steering])
        made._follow_up.extend(self._follow_up)
        if "messages" not in changes:
            made._open = made._open or self._open
        unchanged = {
            name: getattr(self._initial, name) for name in _Initial.__struct_fields__ if name not in changes
        }
        made._initial = replace(made._initial, **unchanged)
        return made

    async def compact(self) -> CompactionReport:
        """Run the context transformers now and keep only what they keep; a session is told at once.

        The report says what a summary cost. After `abort()` it raises `Aborted`, and nothing has changed.
        """
        self._idle_only("compact")
        history = self._history
        before = history.snapshot()
        work = self._compacting = asyncio.ensure_future(compacted(self._config, self.tools, before))
        try:
            after, report = await work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise Aborted("the compaction was aborted; nothing has changed") from None
        finally:
            self._compacting = None
        self._idle_only("compact")
        if self._history is not history or len(history) != len(before):
            raise MisuseError("the history changed while it was being compacted; call compact() again")
        self._history = History(_vetted(after, self._config.policies))
        if self._known is not None:
            self._known.report = report
        if report.dropped or report.pruned:
            self._subscribers.notify(ContextCompacted(report))
        await self._save()  # a summary was paid for
        return report

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Subscription:
        """Call back with every later event, in order; a callback that raises is logged and dropped."""
        check_hook("a subscriber", callback)
        if is_async(callback):
            raise InvalidInput("a subscriber is a plain function, not async; to await, read agent.stream(…)")
        return self._subscribers.add(callback)

    @property
    def messages(self) -> Snapshot:
        """The history as it is now; assign to replace it."""
        run = self._active  # read once, here and below: in another thread the run may end meanwhile
        return (run.ledger.history if run is not None else self._history).snapshot()

    @messages.setter
    def messages(self, messages: Sequence[Message]) -> None:
        given = check_list("messages", messages, "messages")
        self._replace_history(History(_vetted(given, self._config.policies)))

    def append_messages(self, messages: Input) -> None:
        """Add to the history without running."""
        added = as_messages(messages)
        if (run := self._active) is not None:
            run.ledger.append(added, by_policy=asking.get())
        else:
            self._history = History([*self._history.snapshot(), *_vetted(added, self._config.policies)])

    def clear_messages(self) -> None:
        """Empty the history."""
        self._replace_history(History())

    @property
    def model(self) -> ModelSpec:
        """The model; assign a spec or "provider:model"."""
        return self._config.spec

    @model.setter
    def model(self, model: Model) -> None:
        # One assignment: a turn that begins meanwhile, in another thread, has the old model or the new one.
        self._config.model, _ = self._config.route_to(model)

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How hard the model should think."""
        return self.model.thinking_level

    @thinking_level.setter
    def thinking_level(self, level: ThinkingLevel) -> None:
        self._config.model = replace(self.model, thinking_level=level)

    @property
    def system_prompt(self) -> SystemPrompt:
        """The system prompt, or the function that writes it; assign to change it."""
        return self._context.system_prompt

    @system_prompt.setter
    def system_prompt(self, prompt: SystemPrompt) -> None:
        self._context.system_prompt = AgentContext(prompt).system_prompt

    @property
    def tools(self) -> tuple[Tool | ToolSource, ...]:
        """The tools and sources of tools; assign to replace them."""
        return tuple(self._context.tools)

    @tools.setter
    def tools(self, tools: Sequence[Any]) -> None:
        self._context.tools = as_offers(tools)

    @property
    def state(self) -> dict[str, Any]:
        """The session state: a JSON dict shared with tools and policies."""
        return self._config.state

    @property
    def is_running(self) -> bool:
        """Whether a run is active; one whose event loop was closed is ended here."""
        return self._turnstile.is_taken and not self._freed()

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """Ids of the calls running now."""
        calls = run.ledger.calls if (run := self._active) is not None else ()
        return frozenset(call.call.id for call in calls if call.task is not None and call.result is None)

    @property
    def streaming_message(self) -> AssistantMessage | None:
        """The reply as far as it has arrived, or None."""
        run = self._active
        assembly = None if run is None else run.ledger.assembly
        if run is None or assembly is None:
            return None
        return assembly.message(run.ledger.model, "stop", usage=Usage())

    def checkpoint(self) -> dict[str, Any]:
        """Everything but code, as plain JSON data: history, queues, state, model, prompt, an open turn."""
        prompt = self.system_prompt
        return SavedAgent(
            model=self.model,
            system_prompt=prompt if isinstance(prompt, str) else "",
            messages=list(self.messages),
            steering=list(_vetted([*self._pending(), *self._steering], self._config.policies)),
            follow_up=list(_vetted(self._follow_up, self._config.policies)),
            state=copy_state(self.state),
            open=self._open if (run := self._active) is None else run.ledger.open,
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
        """An agent from a checkpoint; tools it used that are no longer there get a placeholder that says so.

        A `system_prompt` that is a function is code, and has to be given again.
        """
        saved = SavedAgent.from_data(data)
        used = saved.messages if saved.open is None else [*saved.messages, *settled_turn(saved.open)]
        given = as_offers(tools)
        known = [
            as_tool(tool) for item in given for tool in ([item] if isinstance(item, Tool) else item.tools())
        ]
        kept: dict[str, Any] = {
            "model": saved.model,
            "system_prompt": saved.system_prompt,
            "messages": saved.messages,
            "state": saved.state,
            "stream_fn": stream_fn,
            "tools": [*given, *placeholders(used, known)],
        }
        agent = cls(**{**kept, **options})
        agent._steering.extend(saved.steering)
        agent._follow_up.extend(saved.follow_up)
        agent._open = agent._open or saved.open
        return agent

    def _order(self, input: Input | None, **options: Any) -> tuple[Order, tuple[Message, ...] | None]:
        """What is asked of a run, refused at once if it cannot start one; without prompts it continues."""
        order = order_of(self.model, self._context.tools, self._config.policies, **options)
        if self._turnstile.is_taken and not self._freed():
            raise AlreadyRunning
        if order.approvals is not None:
            check_approvals(order.approvals, input, self.pending)
        if input is not None:
            return order, prompts_of(input, self.messages)
        if not self.has_pending:
            check_continue(self.messages)
        return order, None

    def _begin(self, order: Order, prompts: tuple[Message, ...] | None, buffer: Buffer) -> Run:
        """Start the loop."""
        structured = order.structured
        self._config.check_key()
        if not self._turnstile.enter():
            raise AlreadyRunning
        try:
            helped = (
                self.tools or self._config.hosted
            )  # a forced answer would come before any of them is used
            forced = structured is not None and not helped and self.thinking_level == "off"
            run = Run(
                self._config,
                self._context,
                self._history,
                buffer.push,
                partial(self._release, buffer),
                tools=() if structured is None else (structured.tool,),
                policies=order.policies if structured is None else (*order.policies, structured),
                deps=order.deps,
                tool_choice=structured.tool.name if structured is not None and forced else None,
                overflow=self._overflow,
                known=self._known,
                open=self._open if prompts is None else None,
                approvals=order.approvals,
            )
            self._active = run
            said = self._continuation() if prompts is None else prompts
            if prompts is not None and self._open is not None:
                said = (*settled_turn(self._open), *prompts)
            run.start(said, take_turns(run), order.deadline)
        except BaseException:
            self._active = None
            self._turnstile.leave()
            raise
        return run

    def _continuation(self) -> Sequence[Message]:
        """What a run without input starts with: follow-ups, if the conversation has its answer already."""
        if self._open is not None:
            return ()
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

    def _release(self, buffer: Buffer, run: Run) -> None:
        """The run is over: keep what it came to, let the next one in, and wake the reader."""
        self._history, self._open = run.ledger.history, run.ledger.open
        self._overflow = run.ending is not None and isinstance(run.ending.error, ContextWindowOverflow)
        self.error = run.error_text
        self._active = None
        self._turnstile.leave()
        buffer.wake()

    def _pending(self) -> Sequence[Message]:
        """What the run has taken from the queues, and not yet into the history."""
        return () if (run := self._active) is None else tuple(run.ledger.pending)

    def _replace_history(self, history: History) -> None:
        if (run := self._active) is not None:
            run.ledger.replace_history(history)
        else:
            self._history, self._open = history, None

    def _standing(self, final: bool) -> Standing:
        """How the conversation stands while no run is active."""
        turn = self._open
        return Standing(self._history, len(self._history), open=turn and call_ids(turn.reply))

    async def _save(self) -> None:
        """Have the session brought up to date while no run is active."""
        if self._known is not None and self._turnstile.enter():
            try:
                await Saver(self._known, self._standing).save()
            finally:
                self._turnstile.leave()

    def _save_soon(self) -> None:
        """Let what was queued during a run be saved; when idle, it goes with the next append."""
        if (run := self._active) is not None and run.saver is not None:
            run.saver.save_soon()

    def _queueable(self, message: Input) -> tuple[Message, ...]:
        messages = as_messages(message)
        if not all(isinstance(item, UserMessage | CustomMessage) for item in messages):
            raise MisuseError("only user and custom messages can be queued")
        if (run := self._active) is not None and asking.get():
            run.ledger.injected.extend(messages)
        return messages

    def _freed(self) -> bool:
        """Whether the active run's event loop was closed; then the run is ended and its history completed."""
        run = self._active
        if run is None or not run.life.loop.is_closed():
            return False
        run.end(End("aborted"))
        return True

    def _idle_only(self, what: str) -> None:
        if self._turnstile.is_taken and not self._freed():
            raise AlreadyRunning(f"{what}() needs an idle agent; await wait_for_idle() first")


def _result(structured: StructuredOutput | None, run: Run) -> AgentResult[Any]:
    return run.result() if structured is None else structured.complete(run.result())


def _model(given: Model | None, saved: Conversation | None) -> ModelSpec:
    """The model given, else that of the session; a name alone does not say how hard it thinks."""
    kept = None if saved is None else saved.model
    if given is None:
        if kept is None:
            hint = "the session has none yet" if saved is not None else 'such as Agent("openai:gpt-5")'
            raise InvalidInput(f"an agent needs a model; {hint}")
        return kept
    spec = catalog.parse_model(given)
    return replace(spec, thinking_level=kept.thinking_level) if kept and isinstance(given, str) else spec


def _vetted(messages: Sequence[Message], policies: Sequence[Policy]) -> Sequence[Message]:
    """The messages as the pre-commit policies want them kept, whichever way they enter a history."""
    guards = slots_of(policies).pre_commit
    return [vet_commit(guards, message) for message in messages] if guards else messages
