"""Agent: the stateful face of the loop. It keeps history, queues and settings; the loop does the work."""

from __future__ import annotations  # help(Agent) shows the names of types

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self, Unpack, overload

from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from typing_extensions import TypeForm, TypeVar

from swink.agent.agentoptions import KEYWORDS, AgentOptions, DepsT, OutputT, check_keywords
from swink.agent.checkpoint import SavedAgent
from swink.agent.config import (
    AgentContext,
    AgentLoopConfig,
    ApprovalMode,
    Model,
    PlainSession,
    QueueMode,
    SystemPrompt,
    ToolExecution,
    as_state,
)
from swink.agent.context.compaction import Transform
from swink.agent.eventstream import Subscribers, Subscription
from swink.agent.policy import Approve, Policy
from swink.agent.queues import Queues, checked_mode
from swink.agent.retry import ExponentialBackoff, RetryStrategy
from swink.agent.running import Paused, Running
from swink.agent.state import AgentState, model_and_context
from swink.agent.typedagent import Schema, TypedAgent
from swink.errors import plainly
from swink.events import AgentEvent, CompactionReport
from swink.messages import AssistantMessage, Input, LlmMessage, Message, ModelSpec, ThinkingLevel, as_messages
from swink.messages.checks import as_tuple
from swink.messages.history import History, Snapshot
from swink.messages.providertools import Hosted
from swink.messages.records import PendingApproval, pending_of
from swink.models.catalog import check_name
from swink.stream import StreamFn, StreamOptions
from swink.tools import Tool, ToolSource, as_offers

T = TypeVar("T", default=None)
D = TypeVar("D")


class Agent(TypedAgent[DepsT, OutputT]):
    """A model, its tools and one conversation; one run at a time. Other methods may be called any time.

    The key comes from `ANTHROPIC_API_KEY` and the like, or from `swink keys set anthropic`. A failed run is a
    result whose `raise_for_error()` raises; see `AgentResult`. `help(swink)` shows a longer program.

    >>> from swink import Agent, tool
    >>> @tool
    ... def weather(city: str) -> str:
    ...     return f"18 °C in {city}"
    >>> agent = Agent("anthropic:claude-sonnet-4-6", tools=[weather])
    >>> result = agent.run_sync("A jacket in Oslo?").raise_for_error()
    >>> print(result.text, result.usage.total, result.cost)

    Args:
        model: "provider:model", or a `ModelSpec`; with a session it may be left out
        name: what it is called in events, traces and by other agents
        system_prompt: a text, or a function of a `PromptContext`, called at the start of each run
        tools: typed functions, `Tool`s, or sources such as `McpServers.tools` of `swink.mcp`
        deps: what tools, prompt and policies may use, such as a database; `deps=Db()` makes an `Agent[Db]`
        deps_type: the type of the `deps=` that each run brings, if the agent has none
        output: the type, or JSON Schema, of what every run gives: the `output` of its result
        thinking_level: how hard it thinks, from "off" to "extra_high"; what a model lacks is reported
        messages: the history to begin with
        stream_fn: asks the model instead of its provider's adapter, as `ScriptedModel` of `swink.testing`
        options: `StreamOptions` of every request: temperature, limits, keys, timeouts
        retry: when a failed request is sent again, and after how long
        fallback_models: models to ask once the retries of the one before are used up
        policies: objects that may stop or change what happens, in order, such as `Budget` of `swink.policies`
        approve: asked about calls that need one; it gives True, False, `Approved`, `Rejected` or `defer`s
        approval_mode: "smart" asks about tools that require it, "on" about every call, "off" about none
        transform_context: chooses what of the history is sent (default: a window that fits the model)
        convert_to_llm: makes a message for the model of a message of yours, or None to leave it out
        get_api_key: gives the key of a provider when it is needed
        steering_mode: whether a turn takes one message of `steer` or "all" that wait
        follow_up_mode: the same for messages of `follow_up`
        tool_execution: "concurrent", "sequential", by "priority", or a function that groups the calls
        tool_timeout: seconds after which a call is given up, for tools that say nothing else
        hosted: tools that the provider runs, such as `WebSearch()` of `swink.messages.providertools`
        session: it saves every turn: `await SqliteStore("agent.db").create()` of `swink.memory`
        state: a JSON dict that tools and policies share; it is saved with the session
        unknown: none; a keyword that is misspelled is refused with the one that is meant
    """

    __slots__ = ("_queues", "_state")

    @overload
    def __init__(
        self: Agent[None, None], model: Model | None = None, **options: Unpack[AgentOptions[None]]
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[None, T],
        model: Model | None = None,
        *,
        output: TypeForm[T],
        **options: Unpack[AgentOptions[None]],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[None, Any],
        model: Model | None = None,
        *,
        output: Schema,
        **options: Unpack[AgentOptions[None]],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[D, T],
        model: Model | None = None,
        *,
        deps: D,
        deps_type: type[D] | None = None,
        output: TypeForm[T] | None = None,
        **options: Unpack[AgentOptions[D]],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[D, T],
        model: Model | None = None,
        *,
        deps_type: type[D],
        output: TypeForm[T] | None = None,
        **options: Unpack[AgentOptions[D]],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[D, Any],
        model: Model | None = None,
        *,
        deps: D,
        deps_type: type[D] | None = None,
        output: Schema,
        **options: Unpack[AgentOptions[D]],
    ) -> None: ...
    @plainly
    def __init__(
        self,
        model: Model | None = None,
        *,
        name: str | None = None,
        system_prompt: SystemPrompt | UnsetType = UNSET,
        tools: Any = (),
        deps: Any = None,
        deps_type: Any = None,
        output: Any = None,
        thinking_level: ThinkingLevel | None = None,
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
        hosted: Hosted = (),
        session: PlainSession | None = None,
        state: dict[str, Any] | None = None,
        **unknown: Any,
    ) -> None:
        check_keywords(unknown)
        self._queues = Queues(steering_mode, follow_up_mode)
        spec, context = model_and_context(model, system_prompt, tools, thinking_level, session)
        self._config = AgentLoopConfig(
            model=spec,
            stream_fn=stream_fn,
            options=options,
            retry=retry,
            fallbacks=as_tuple("fallback_models", fallback_models, "models"),
            policies=as_tuple("policies", policies, "policy objects"),
            approve=approve,
            approval_mode=approval_mode,
            transform_context="window" if transform_context is None else transform_context,
            convert_to_llm=convert_to_llm,
            get_api_key=get_api_key,
            get_steering=self._queues.steering,
            get_follow_up=self._queues.follow_up,
            peek_steering=self._queues.steering.__len__,
            tool_execution=tool_execution,
            tool_timeout=tool_timeout,
            hosted=hosted,
            state={} if session is None and state is None else as_state(session, state),
            deps=deps,
            deps_type=deps_type,
            name=name,
            output=output,
        )
        self._state = AgentState(self._config, context, self._queues, messages, session)
        self._running, self._subscribers = Running(self._state), Subscribers()

    def steer(self, message: Input) -> None:
        """Say a `message` while it works: once a tool ends others are cancelled; the next turn has it."""
        self._running.queue(self._queues.steering, message)

    def follow_up(self, message: Input) -> None:
        """Say a `message` for when the agent would stop."""
        self._running.queue(self._queues.follow_up, message)

    @property
    def steering(self) -> tuple[Message, ...]:
        """What was said while the agent works and waits for the next turn."""
        return tuple(self._queues.steering)

    @property
    def follow_ups(self) -> tuple[Message, ...]:
        """What waits for when the agent would stop."""
        return tuple(self._queues.follow_up)

    def unqueue(self, message: Message) -> bool:
        """Take back a message that waits, the very object in `steering` or `follow_ups`; in the event loop.

        False if it waits no more: its `MessageEnd` has come, or is about to.
        """
        return self._running.unqueue(message)

    def clear_steering(self) -> None:
        """Forget the steering that no turn has taken yet."""
        self._queues.steering.clear()
        self._running.save_soon()

    def clear_follow_up(self) -> None:
        """Forget the follow-ups that no run has taken yet."""
        self._queues.follow_up.clear()
        self._running.save_soon()

    def clear_queues(self) -> None:
        """Forget queued steering and follow-ups."""
        self.clear_steering()
        self.clear_follow_up()

    @property
    def steering_mode(self) -> QueueMode:
        """Whether a turn gets one steering message or all that wait."""
        return self._queues.steering.mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._queues.steering.mode = checked_mode("steering_mode", mode)

    @property
    def follow_up_mode(self) -> QueueMode:
        """Whether one follow-up is taken at a time or all that wait."""
        return self._queues.follow_up.mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._queues.follow_up.mode = checked_mode("follow_up_mode", mode)

    @property
    def has_pending(self) -> bool:
        """Whether steering or follow-ups wait, or a turn that was left open: `run()` has something to do."""
        return bool(self._queues) or self._state.open is not None

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """The calls that wait for an approval; `run(approvals={call_id: …})` answers them."""
        return pending_of(self._running.open)

    @property
    def error(self) -> str | None:
        """What went wrong in the last run, if anything did."""
        return self._state.error

    def abort(self) -> None:
        """End the current run, keeping what arrived, or `compact()`; does nothing when idle."""
        self._running.abort()

    def pause(self) -> Awaitable[dict[str, Any]]:
        """Stop after the current turn; await the answer for the checkpoint. `run()` goes on from there."""
        self._running.pause()
        return Paused(self)

    async def wait_for_idle(self) -> None:
        """Return once no run is active."""
        await self._running.wait_for_idle()

    async def aclose(self) -> None:
        """End the current run, if there is one, and wait until all is saved that a session keeps."""
        self.abort()
        await self.wait_for_idle()
        await self._running.save()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def reset(self) -> None:
        """Back to the model, prompt, tools, messages and state it was made with; queues are cleared."""
        self._running.refuse_unless_idle("reset")
        self._state.reset()
        self.clear_queues()

    def copy(self, **changes: Any) -> Agent[DepsT, OutputT]:
        """Another agent like this one, with some of the constructor's keywords changed.

        History, queues, state and a turn that was left open are copied, a session is not; `reset` goes back
        to the same beginning.

        Args:
            changes: keywords of the constructor
        """
        made: Any = Agent(**{**self._state.options(KEYWORDS, self.messages), **changes})
        made._state.take_after(self._state, self._running.taken, set(changes))
        return made

    async def compact(self) -> CompactionReport:
        """Run the context transformers now and keep only what they keep; a session is told at once.

        The report says what a summary cost. After `abort()` it raises `Aborted`, and nothing has changed.
        """
        return await self._running.compact(self._subscribers)

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Subscription:
        """Call back with every later event, in order; a callback that raises is logged and dropped."""
        return self._subscribers.add(callback)

    @property
    def messages(self) -> Snapshot:
        """The history as it is now; assign to replace it."""
        return self._running.messages

    @messages.setter
    def messages(self, messages: Sequence[Message]) -> None:
        self._running.replace_history(History(self._state.vetted(messages)))

    def append_messages(self, messages: Input) -> None:
        """Add `messages` to the history without running."""
        self._running.append(as_messages(messages))

    def clear_messages(self) -> None:
        """Empty the history; during a run, from its next turn on."""
        self._running.replace_history(History())

    @property
    def model(self) -> ModelSpec:
        """The model; assign a spec or "provider:model"."""
        return self._config.spec

    @model.setter
    def model(self, model: Model) -> None:
        # One assignment: a turn that begins meanwhile, in another thread, has the old model or the new one.
        self._config.model, stream_fn = self._config.route_to(model)
        check_name(self._config.model, stream_fn)

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How hard the model should think."""
        return self.model.thinking_level

    @thinking_level.setter
    def thinking_level(self, level: ThinkingLevel) -> None:
        self._config.model = replace(self.model, thinking_level=level)

    @property
    def fallback_models(self) -> tuple[Model | tuple[Model, StreamFn], ...]:
        """The models that are asked in turn when the model fails; assign to change them."""
        return tuple(self._config.fallbacks)

    @fallback_models.setter
    def fallback_models(self, models: Sequence[Model | tuple[Model, StreamFn]]) -> None:
        fallbacks = as_tuple("fallback_models", models, "models")
        for fallback in fallbacks:
            check_name(*self._config.fallback_route(fallback))
        self._config.fallbacks = fallbacks

    @property
    def system_prompt(self) -> SystemPrompt:
        """The system prompt, or the function that writes it; assign to change it."""
        return self._state.context.system_prompt

    @system_prompt.setter
    def system_prompt(self, prompt: SystemPrompt) -> None:
        self._state.context.system_prompt = AgentContext(prompt).system_prompt

    @property
    def tools(self) -> tuple[Tool | ToolSource, ...]:
        """The tools and sources of tools; assign to replace them."""
        return tuple(self._state.context.tools)

    @tools.setter
    def tools(self, tools: Sequence[Any]) -> None:
        self._state.context.tools = as_offers(tools)

    @property
    def state(self) -> dict[str, Any]:
        """The session state: a JSON dict shared with tools and policies."""
        return self._config.state

    @property
    def is_running(self) -> bool:
        """Whether a run is active; one whose event loop was closed is ended here."""
        return self._running.is_running

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """Ids of the calls running now."""
        return self._running.pending_tool_calls

    @property
    def streaming_message(self) -> AssistantMessage | None:
        """The reply as far as it has arrived, or None."""
        return self._running.streaming_message

    def checkpoint(self) -> dict[str, Any]:
        """Everything but code, as plain JSON data: history, queues, state, model, prompt, an open turn."""
        running = self._running
        return self._state.checkpoint(running.messages, running.taken, running.open)

    @classmethod
    def restore(
        cls,
        data: dict[str, Any],
        *,
        stream_fn: StreamFn | None = None,
        tools: Sequence[Any] = (),
        **options: Any,
    ) -> Agent[Any, Any]:
        """An agent from a checkpoint; tools it used that are no longer there get a placeholder that says so.

        Args:
            data: what `checkpoint` gave
            stream_fn: what asks the model, as in the constructor
            tools: functions and tools; they are not part of a checkpoint
            options: other keywords of the constructor; a `system_prompt` that is a function is given again
        """
        saved = SavedAgent.from_data(data)
        agent: Agent[Any, Any] = cls(**{**saved.options(tools, stream_fn), **options})
        agent._queues.extend(saved.steering, saved.follow_up)
        agent._state.open = agent._state.open or saved.open
        return agent
