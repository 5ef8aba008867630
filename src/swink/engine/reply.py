"""One reply: attempts with retry, fallback models and overflow recovery, until it is complete or none is left to ask."""

import asyncio
from collections.abc import Awaitable, Sequence
from copy import copy
from typing import Any, cast

from msgspec.structs import replace

from swink.config import KeyOwner
from swink.engine.history import Snapshot
from swink.engine.run import Run
from swink.errors import (
    AgentError,
    AuthError,
    ContextWindowOverflow,
    ModelError,
    NetworkError,
    StreamError,
    error_for,
)
from swink.events import MessageUpdate, ModelFallback, RetryScheduled
from swink.messages import AssistantMessage, LlmMessage, Message, ModelSpec
from swink.policy import Stop, consult
from swink.redact import describe_error
from swink.retry import wait_before
from swink.stream import Assembly, Error, LlmContext, StreamFn, StreamOptions, Timeout
from swink.tokens import estimate_tokens
from swink.transform import transform_context

_LIMITS = Timeout()


async def take_reply(run: Run, messages: Sequence[Message]) -> None:
    """Ask the model, and its fallbacks in turn, until one reply is complete or none is left to ask."""
    run.model, stream_fn, fallbacks = run.config.model, run.config.stream_fn, run.config.fallbacks
    used, attempt, recovered = 0, 0, False
    run.open_reply()
    while True:
        attempt += 1
        error = await _attempt(run, stream_fn, messages)
        if error is None:
            return None
        if isinstance(error, AuthError) and _withholds_key(run, run.model, stream_fn):
            error = _with_hint(error, run)
        run.check()
        if isinstance(error, ContextWindowOverflow) and not recovered:
            recovered = True
            smaller = await _recovered(run, messages)
            if smaller is not None:
                if await _refused(run, error):
                    return _fail(run, error)
                run.discard_reply(attempt, error)
                messages, attempt = smaller, attempt - 1
                continue
        again = run.config.retry.should_retry(error, attempt)
        if not (again or (error.retryable and used < len(fallbacks))) or await _refused(run, error):
            return _fail(run, error)
        if again:
            run.discard_reply(attempt, error)
            delay = wait_before(run.config.retry, error, attempt)
            run.emit(RetryScheduled(attempt, delay, str(error)))
            await asyncio.sleep(delay)
        else:
            run.discard_reply(attempt, error)
            model, stream_fn = fallbacks[used]
            run.emit(ModelFallback(str(run.model), str(model)))
            run.model, used, attempt = model, used + 1, 0


async def _refused(run: Run, error: AgentError) -> bool:
    """Whether a policy forbids another request in this turn; the reason is then the run's."""
    for policy in run.slots.pre_retry:
        verdict = await consult(
            policy, "pre_retry", replace(run.policy_context(), attempt=run.attempt(error))
        )
        run.check()
        if isinstance(verdict, Stop):
            run.reason = verdict.reason
            return True
    return False


def _fail(run: Run, error: AgentError) -> None:
    """Keep what arrived of the last attempt; an overflow makes the next run prune from its first turn on."""
    run.overflow = isinstance(error, ContextWindowOverflow)
    run.fail(error)
    run.commit_partial("error")


async def _attempt(run: Run, stream_fn: StreamFn, messages: Sequence[Message]) -> AgentError | None:
    """One request; its reply is committed if it is complete, otherwise the error says why not."""
    model = run.model
    options = run.config.options
    if options.api_key is not None or run.config.get_api_key is not None or run.tool_choice is not None:
        options = await _options(run, model, stream_fn)
        run.check()
    context = LlmContext(run.context.system_prompt, _llm_messages(run, messages), _sent_tools(run, model))
    assembly = run.assembly = Assembly()
    run.requests += 1
    limits = _limits(options, stream_fn)
    watch = run.watch
    try:
        watch.begin(assembly, limits)
        stream = stream_fn(model, context, options)
        try:
            async for event in stream:
                if assembly.feed(event):
                    run.emit(MessageUpdate(event))  # pyright: ignore[reportArgumentType]  feed() is True for deltas alone
        finally:
            if (aclose := getattr(stream, "aclose", None)) is not None:
                await aclose()
    except asyncio.CancelledError:
        if not watch.end():
            raise
        if assembly.terminal is None:
            return _stuck(assembly, limits, model)
    except TimeoutError:
        if assembly.terminal is None:
            return _stuck(assembly, limits, model)
    except AgentError as error:
        return _named(error, model)
    except Exception as error:
        # A stream function is somebody else's code; what it raises is a failed reply, and its wording says which.
        return error_for(None, describe_error(error), model=str(model))
    finally:
        watch.end()
    end = assembly.terminal
    if end is None:
        return NetworkError("the stream ended without a terminal event", model=str(model))
    if isinstance(end, Error):
        return error_for(end.kind, end.message, model=str(model), retry_after=end.retry_after)
    if end.stop_reason == "error" or end.stop_reason == "aborted":
        return StreamError(
            f"stream protocol: done({end.stop_reason}); a failed stream ends with an error event",
            model=str(model),
        )
    run.commit_reply(end.stop_reason, end.usage, end.cost)
    return None


def _stuck(assembly: Assembly, limits: Timeout, model: ModelSpec) -> NetworkError:
    return NetworkError(
        f"no content for {limits.idle if assembly.has_content else limits.first:g} s", model=str(model)
    )


async def _recovered(run: Run, sent: Sequence[Message]) -> Sequence[Message] | None:
    """After an overflow: a smaller context, or None if no transformer can make one."""
    smaller = await transform_context(run, True)
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
    whole = end = len(converted)
    while end and isinstance(last := converted[end - 1], AssistantMessage) and last.failed:
        end -= 1
    return converted if end == whole else converted[:end]


async def _options(run: Run, model: ModelSpec, stream_fn: StreamFn) -> StreamOptions:
    """The options for this model: a key that was given for another provider is left out."""
    options = run.config.options
    if _withholds_key(run, model, stream_fn):
        options = replace(options, api_key=None)
    if run.config.get_api_key is not None:
        key = run.config.get_api_key(model.provider)
        key = await key if isinstance(key, Awaitable) else key
        if key is not None:
            options = replace(options, api_key=key)
    if run.tool_choice is not None and options.tool_choice is None:
        options = replace(options, tool_choice=run.tool_choice)
    return options


def _withholds_key(run: Run, model: ModelSpec, stream_fn: StreamFn) -> bool:
    config = run.config
    return config.options.api_key is not None and not (
        config.key_owner and config.key_owner.is_also(KeyOwner.of(model, stream_fn))
    )


def _sent_tools(run: Run, model: ModelSpec) -> Sequence[Any]:
    return () if model.capabilities is not None and not model.capabilities.tools else run.tools


def _limits(options: StreamOptions, stream_fn: StreamFn) -> Timeout:
    limits = options.timeout if options.timeout is not None else getattr(stream_fn, "timeout", None)
    if limits is None:
        return _LIMITS
    return limits if isinstance(limits, Timeout) else Timeout(idle=limits, first=limits)


def _with_hint(error: AuthError, run: Run) -> AuthError:
    owner = run.config.key_owner
    hint = f"the api_key in the options was given for {owner.provider if owner else 'another model'} and is not sent to {run.model}"
    return AuthError(
        f"{error.message}; {hint}: get_api_key= can give each provider its own", model=error.model
    )


def _named(error: AgentError, model: ModelSpec) -> AgentError:
    """The error with the model it came from; a copy, since the stream function may raise the same one again."""
    if isinstance(error, ModelError) and not error.model:
        error = copy(error)
        error.model = str(model)
    return error
