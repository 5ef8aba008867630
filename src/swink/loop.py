"""The loop: turns until there is nothing left to do.

    AgentStart → ( turn → turn → … → follow-ups )* → AgentEnd

A turn: pending messages enter → transform the context → pre-turn policies → the model replies (with retry, fallback
and overflow recovery) → its tools run → post-turn policies. Steering is looked at after every tool and every turn,
follow-ups when the agent would stop. After an error or an abort neither is touched.
"""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from swink.config import AgentContext, AgentLoopConfig
from swink.context import TransformFn, estimate_tokens
from swink.dispatch import run_batch
from swink.errors import AgentError, ContextWindowOverflow, InvalidContinue, NetworkError, NoMessages, StreamError, error_for
from swink.events import AgentEvent, CompactionReport, ContextCompacted, MessageUpdate, ModelFallback, RetryScheduled
from swink.eventstream import EventStream
from swink.history import History, Snapshot
from swink.messages import (
    AssistantMessage,
    ContentBlock,
    Input,
    LlmMessage,
    Message,
    ModelSpec,
    Text,
    Thinking,
    TurnEndReason,
    Usage,
    as_messages,
)
from swink.policy import Inject, Replace, Stop, Turn, consult
from swink.retry import wait_before
from swink.run import Run
from swink.stream import Assembly, AssistantMessageEvent, Done, Error, LlmContext, StreamFn, StreamOptions, Timeout
from swink.tool import as_tools

AFTER_TERMINAL = 1.0
"""Seconds a stream function gets to finish after its terminal event."""


def agent_loop(prompts: Input, context: AgentContext, config: AgentLoopConfig) -> EventStream:
    """Add the prompts to the context and run; iterate for the events. The context given is not changed."""
    return _open_stream(as_messages(prompts), context, config)


def agent_loop_continue(context: AgentContext, config: AgentLoopConfig) -> EventStream:
    """Run from the context as it stands: after tool results, a failed reply, or a user message."""
    check_continue(context.messages)
    return _open_stream((), context, config)


def check_continue(messages: Sequence[Message]) -> None:
    """Raise if there is nothing to answer."""
    if not messages:
        raise NoMessages
    last = messages[-1]
    if isinstance(last, AssistantMessage) and not last.failed and not last.tool_calls:
        raise InvalidContinue


async def take_turns(run: Run) -> None:
    """The whole run: turns, steering between them, follow-ups at the end."""
    await _poll_steering(run)
    while True:
        reason = await _take_turn(run)
        if reason is None or reason in ("error", "aborted", "transfer") or run.stop_reason is not None:
            return None
        run.check()
        if run.pausing:
            return run.stop("paused")
        await _poll_steering(run)
        if reason in ("complete", "reasoning_only") and not run.pending:
            await _before_stopping(run)
            if run.stop_reason is not None or not run.pending:
                return None


async def _take_turn(run: Run) -> TurnEndReason | None:
    """One reply and its tools; None if a policy stopped the run before it."""
    run.enter_pending()
    run.check()
    overflow, run.overflow = run.overflow, False
    messages = await _transformed(run, overflow)
    if run.slots.pre_turn:
        if not await _pre_turn(run):
            return None
        if run.pending:
            run.enter_pending()
            messages = await _transformed(run, overflow)
    run.open_turn()
    await _reply(run, messages)
    run.check()
    assert run.reply is not None
    if run.reply.failed:
        run.close("error")
        return "error"
    reason = await _act(run)
    await run.save()
    run.end_turn(reason)
    return reason


async def _act(run: Run) -> TurnEndReason:
    """Run the reply's tools, if it has any, and let the post-turn policies see the turn."""
    reply = run.reply
    assert reply is not None
    reason: TurnEndReason = "complete"
    if run.calls:
        outcome = await run_batch(run)
        run.check()
        run.commit_results()
        match outcome.reason:
            case "stopped":
                run.stop(outcome.text)
            case "transfer":
                run.stop_reason, run.reason = "transfer", outcome.text
            case _:
                pass
        reasons: dict[str, TurnEndReason] = {"steered": "steering_interrupt", "transfer": "transfer"}
        reason = reasons.get(outcome.reason, "tools_executed")
    elif reply.thinking and not any(_is_visible(block) for block in reply.content):
        reason = "reasoning_only"
    if run.slots.post_turn:
        await _post_turn(run, reason)
    return reason


def _is_visible(block: ContentBlock) -> bool:
    return not isinstance(block, Thinking) and (not isinstance(block, Text) or bool(block.text.strip()))


async def _before_stopping(run: Run) -> None:
    """Post-loop policies, then follow-ups: what they give becomes the next turn's pending messages."""
    for policy in run.slots.post_loop:
        match await consult(policy, "post_loop", run.policy_context()):
            case Stop(reason):
                return run.stop(reason)
            case Inject() as inject:
                run.pending.extend(inject.as_messages)
            case _:
                pass
    if run.config.get_follow_up is not None and not run.pending:
        run.check()
        polled = run.config.get_follow_up()
        run.pending.extend(await polled if inspect.isawaitable(polled) else polled)
    return None


async def _pre_turn(run: Run) -> bool:
    """Whether the turn may begin; injected messages are pending."""
    for policy in run.slots.pre_turn:
        match await consult(policy, "pre_turn", run.policy_context()):
            case Stop(reason):
                run.stop(reason)
                return False
            case Inject() as inject:
                run.pending.extend(inject.as_messages)
            case _:
                pass
    return True


async def _post_turn(run: Run, reason: TurnEndReason) -> None:
    for policy in run.slots.post_turn:
        assert run.reply is not None
        match await consult(policy, "post_turn", run.policy_context(), Turn(run.reply, run.results, reason)):
            case Stop(text):
                return run.stop(text)
            case Inject() as inject:
                run.pending.extend(inject.as_messages)
            case Replace(message):
                run.replace_reply(message)
            case _:
                pass
    return None


async def _poll_steering(run: Run) -> None:
    """Take waiting steering; what a tool's end already took is in `pending`."""
    if run.config.get_steering is None or run.pending:
        return
    polled = run.config.get_steering()
    run.pending.extend(await polled if inspect.isawaitable(polled) else polled)


async def _reply(run: Run, messages: Sequence[Message]) -> None:
    """Ask the model, and its fallbacks in turn, until one reply is complete or none is left to ask."""
    models = [(run.config.model, run.config.stream_fn), *run.config.fallbacks]
    recovered = False
    error: AgentError | None = None
    run.open_reply()
    for position, (model, stream_fn) in enumerate(models):
        run.model = model
        attempt = 0
        while True:
            attempt += 1
            error = await _attempt(run, stream_fn, messages)
            if error is None:
                return
            if isinstance(error, ContextWindowOverflow) and not recovered:
                recovered = True
                smaller = await _recovered(run, messages)
                if smaller is not None:
                    run.discard_reply(attempt, error)
                    messages, attempt = smaller, attempt - 1
                    continue
            if not run.config.retry.should_retry(error, attempt):
                break
            run.discard_reply(attempt, error)
            delay = wait_before(run.config.retry, error, attempt)
            run.emit(RetryScheduled(attempt, delay, str(error)))
            await asyncio.sleep(delay)
        if not error.retryable or position + 1 == len(models):
            break
        run.discard_reply(attempt, error)
        run.emit(ModelFallback(str(model), str(models[position + 1][0])))
    assert error is not None
    _fail(run, error)


def _fail(run: Run, error: AgentError) -> None:
    """Keep what arrived of the last attempt; an overflow makes the next run prune from its first turn on."""
    terminal = run.assembly.terminal if run.assembly is not None else None
    run.overflow = isinstance(error, ContextWindowOverflow)
    run.fail(error)
    run.commit_reply("error", terminal.usage if terminal is not None else Usage(), None, error)


async def _attempt(run: Run, stream_fn: StreamFn, messages: Sequence[Message]) -> AgentError | None:
    """One request; its reply is committed if it is complete, otherwise the error says why not."""
    model = run.model
    options = await _options(run, model)
    context = LlmContext(run.context.system_prompt, _llm_messages(run, messages), _sent_tools(run, model))
    assembly = run.assembly = Assembly()
    limits = _limits(options, stream_fn)
    try:
        await _read(run, stream_fn(model, context, options), assembly, limits)
    except AgentError as error:
        return _named(error, model)
    except TimeoutError:
        if assembly.terminal is None:
            seconds = limits.idle if assembly.has_content else limits.first
            return NetworkError(f"no content for {seconds:g} s", model=str(model))
    except Exception as error:
        # A stream function is somebody else's code; what it raises is a failed reply, told by its wording.
        return (
            _named(error_for(None, f"{type(error).__name__}: {error}"), model)
            if isinstance(error, OSError)
            else StreamError(f"{type(error).__name__}: {error}", model=str(model))
        )
    match assembly.terminal:
        case None:
            return NetworkError("the stream ended without a terminal event", model=str(model))
        case Error() as failure:
            return error_for(failure.kind, failure.message, model=str(model), retry_after=failure.retry_after)
        case Done("error" | "aborted" as stop_reason):
            return StreamError(f"stream protocol: done({stop_reason}); a failed stream ends with an error event", model=str(model))
        case Done() as done:
            run.commit_reply(done.stop_reason, done.usage, done.cost)
            return None


async def _read(run: Run, stream: AsyncIterator[AssistantMessageEvent], assembly: Assembly, limits: Timeout) -> None:
    """Feed the stream's events to the assembly and show its deltas, under the watchdog."""
    feed, emit = assembly.feed, run.emit
    async with asyncio.timeout(None) as scope:
        watch = _Watch(scope, assembly, limits)
        try:
            async for event in stream:
                if feed(event):
                    emit(MessageUpdate(event))  # pyright: ignore[reportArgumentType]  feed() is True for deltas alone
        finally:
            watch.stop()
            if (aclose := getattr(stream, "aclose", None)) is not None:
                await aclose()


class _Watch:
    """Ends a stream that brings no content: what counts is events, so a provider's pings cannot hold it open."""

    __slots__ = ("_assembly", "_began", "_limits", "_loop", "_scope", "_timer")

    def __init__(self, scope: asyncio.Timeout, assembly: Assembly, limits: Timeout) -> None:
        self._scope = scope
        self._assembly = assembly
        self._limits = limits
        self._began = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(min(limits.first, limits.idle), self._look)

    def _look(self) -> None:
        touched = self._assembly.touched
        limit = AFTER_TERMINAL if self._assembly.terminal is not None else self._limits.idle if touched else self._limits.first
        left = limit - (time.monotonic() - (touched or self._began))
        if left <= 0:
            self._scope.reschedule(self._loop.time())
        else:
            self._timer = self._loop.call_later(left, self._look)

    def stop(self) -> None:
        self._timer.cancel()


async def transformed(
    transform: TransformFn | Sequence[TransformFn],
    messages: Sequence[Message],
    overflow: bool,
    announce: Callable[[int, Sequence[Message], Sequence[Message]], None] | None = None,
) -> Sequence[Message]:
    """The messages after the transformers, async ones first; `announce` hears of each that changed something."""
    transforms: Sequence[TransformFn] = [transform] if callable(transform) else transform
    if len(transforms) > 1:
        transforms = sorted(transforms, key=lambda function: not _is_async(function))
    for position, function in enumerate(transforms):
        before = messages
        returned = function(before, overflow)
        messages = await returned if inspect.isawaitable(returned) else returned
        if announce is not None and messages is not before:
            announce(position, before, messages)
    return messages


async def _transformed(run: Run, overflow: bool) -> Sequence[Message]:
    return await transformed(
        run.config.transform_context,
        run.history.snapshot(),
        overflow,
        lambda position, before, after: _announce(run, position, before, after, overflow),
    )


def _announce(run: Run, position: int, before: Sequence[Message], after: Sequence[Message], overflow: bool) -> None:
    kept = {id(message) for message in after}
    dropped = sum(id(message) not in kept for message in before)
    if dropped > run.dropped.get(position, 0):
        tokens = sum(map(estimate_tokens, before)), sum(map(estimate_tokens, after))
        run.emit(ContextCompacted(CompactionReport(dropped, *tokens, overflow)))
    run.dropped[position] = dropped


async def _recovered(run: Run, sent: Sequence[Message]) -> Sequence[Message] | None:
    """After an overflow: a smaller context, or None if no transformer can make one."""
    smaller = await _transformed(run, True)
    run.check()
    return smaller if sum(map(estimate_tokens, smaller)) < sum(map(estimate_tokens, sent)) else None


def _llm_messages(run: Run, messages: Sequence[Message]) -> Sequence[LlmMessage]:
    """What the model gets to see: converted, and without a failed reply at the very end, which would be a prefill."""
    if (convert := run.config.convert_to_llm) is not None:
        converted: Sequence[Any] = [kept for message in messages if (kept := convert(message)) is not None]
    elif isinstance(messages, Snapshot) and not messages.has_custom:
        converted = cast("Sequence[LlmMessage]", messages)
    else:
        converted = [message for message in messages if message.role != "custom"]
    end = len(converted)
    while end and isinstance(last := converted[end - 1], AssistantMessage) and last.failed:
        end -= 1
    return converted if end == len(converted) else converted[:end]


async def _options(run: Run, model: ModelSpec) -> StreamOptions:
    options = run.config.options
    if run.config.get_api_key is not None:
        key = run.config.get_api_key(model.provider)
        key = await key if inspect.isawaitable(key) else key
        if key is not None:
            options = replace(options, api_key=key)
    if run.tool_choice is not None and options.tool_choice is None:
        options = replace(options, tool_choice=run.tool_choice)
    return options


def _sent_tools(run: Run, model: ModelSpec) -> Sequence[Any]:
    return () if model.capabilities is not None and not model.capabilities.tools else run.tools


def _limits(options: StreamOptions, stream_fn: StreamFn) -> Timeout:
    match options.timeout:
        case Timeout() as limits:
            return limits
        case None:
            return getattr(stream_fn, "timeout", None) or Timeout()
        case seconds:
            return Timeout(idle=seconds, first=seconds)


def _named(error: AgentError, model: ModelSpec) -> AgentError:
    if hasattr(error, "model") and not error.model:
        error.model = str(model)  # type: ignore[attr-defined]
    return error


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _open_stream(prompts: Sequence[Message], context: AgentContext, config: AgentLoopConfig) -> EventStream:
    history = History(context.messages)
    own = AgentContext(context.system_prompt, (), as_tools(context.tools))

    def begin(emit: Callable[[AgentEvent], None]) -> Run:
        run = Run(config, own, history, emit)
        run.start(prompts, take_turns)
        return run

    return EventStream(begin)
