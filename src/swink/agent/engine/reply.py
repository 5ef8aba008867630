"""One reply: attempts with retry, fallback models and overflow recovery."""

import asyncio
from collections.abc import Sequence
from copy import copy
from types import AsyncGeneratorType
from typing import TypeVar

from msgspec.structs import replace

from swink.agent.engine.request import llm_context
from swink.agent.engine.run import End, Run
from swink.agent.policy import Stop, consult
from swink.agent.retry import wait_before
from swink.agent.transform import refit_context, shrink_context
from swink.errors import (
    AgentError,
    AuthError,
    ContextWindowOverflow,
    ModelError,
    NetworkError,
    NoMessages,
    StreamError,
    error_for,
    message_of,
)
from swink.events import PROMPT_PROGRESS, CustomEvent, MessageUpdate, ModelFallback, RetryScheduled
from swink.messages import Message, ModelSpec
from swink.messages.redact import describe_error, hold
from swink.stream import (
    Assembly,
    Done,
    Error,
    LlmContext,
    PromptProgress,
    StreamFn,
    StreamOptions,
    observer,
)
from swink.stream.watch import limits_for
from swink.system.aio import close, resolve

E = TypeVar("E", bound=BaseException)


async def take_reply(run: Run, messages: Sequence[Message]) -> End | None:
    """Ask the model, and its fallbacks in turn, until one reply is complete; an `End` if none is."""
    config, ledger = run.setup.config, run.ledger
    asked = ledger.attempt
    (asked.model, stream_fn), *fallbacks = run.setup.routes
    used, attempt, recovered = 0, 0, False
    while True:
        attempt += 1
        error = await _attempt(run, stream_fn, messages)
        if error is None:
            return None
        asked.end(error)
        if isinstance(error, AuthError) and config.withholds_key(asked.model, stream_fn):
            error = config.explain_withheld(error, asked.model)
        run.check()
        if isinstance(error, ContextWindowOverflow) and not recovered:
            recovered = True
            smaller = await shrink_context(run, messages)
            if smaller is not None:
                refused = await _refused(run, error)
                if refused is not None:
                    return _failed(run, error, refused)
                ledger.discard_reply(attempt, error)
                messages, attempt = smaller, attempt - 1
                continue
        again = config.retry.should_retry(error, attempt)
        if not again and not (error.retryable and used < len(fallbacks)):
            return _failed(run, error)
        refused = await _refused(run, error)
        if refused is not None:
            return _failed(run, error, refused)
        ledger.discard_reply(attempt, error)
        if again:
            delay = wait_before(config.retry, error, attempt)
            ledger.emit(RetryScheduled(attempt, delay, message_of(error)))
            await asyncio.sleep(delay)
        else:
            model, stream_fn = fallbacks[used]
            ledger.emit(ModelFallback(str(asked.model), str(model)))
            asked.model, used, attempt = model, used + 1, 0
            messages = await refit_context(run, messages)
            run.check()


async def _refused(run: Run, error: AgentError) -> str | None:
    """Why a policy forbids another request in this turn, if one does."""
    for policy in run.ledger.slots.pre_retry:
        context = replace(run.policy_context(), attempt=run.ledger.attempt.message("error", error))
        verdict = await consult(policy, "pre_retry", context)
        run.check()
        if isinstance(verdict, Stop):
            return verdict.reason
    return None


def _failed(run: Run, error: AgentError, reason: str | None = None) -> End:
    """Keep what arrived of the last attempt."""
    run.ledger.commit_reply((), "error", error)
    return End("error", reason, error)


async def _attempt(run: Run, stream_fn: StreamFn, messages: Sequence[Message]) -> AgentError | None:
    """One request; its reply is committed if it is complete, otherwise the error says why not."""
    ledger, watch = run.ledger, run.watch
    asked, config = ledger.attempt, run.setup.config
    model = asked.model
    context = llm_context(run, messages, stream_fn)
    if not context.messages:
        hook = "convert_to_llm" if config.convert_to_llm is not None else "the context"
        return NoMessages(f"{hook} leaves no message to send to {model}; keep at least the prompt")
    options = config.options
    choice = run.setup.tool_choice if context.output is None else None
    if options.api_key is not None or options.headers or config.get_api_key is not None or choice is not None:
        options = await _options(run, model, stream_fn, choice)
        run.check()
    assembly = asked.assembly = Assembly()
    asked.requests += 1
    if observer.current is not None:
        asked.observed = observer.current.request(model, context, options)
        options = asked.observed.options
    try:
        watch.begin(assembly, limits_for(stream_fn, options))
        stream = stream_fn(model, context, options)
        is_read = False
        try:
            async for event in stream:
                if assembly.feed(event):
                    emit = ledger.emit  # read each time: a run that has ended emits no more
                    emit(MessageUpdate(event))
                elif type(event) is PromptProgress:
                    ledger.emit(CustomEvent(PROMPT_PROGRESS, {"done": event.done, "total": event.total}))
            is_read = True
        finally:
            # A generator that came to its end is closed.
            if not (is_read and type(stream) is AsyncGeneratorType):
                await close(stream)
    except (asyncio.CancelledError, TimeoutError) as error:
        waited = watch.end()
        if isinstance(error, asyncio.CancelledError) and not waited:
            raise
        if assembly.terminal is None:
            if waited:
                return watch.error(model)
            failed = NetworkError(describe_error(error), model=str(model))
            failed.__cause__ = _without_run(error)
            return failed
    except AgentError as error:
        return _named(_without_run(error), model)
    except Exception as error:
        # A stream function is foreign code; the wording of what it raises says how the reply failed.
        failed = error_for(None, describe_error(error), model=str(model))
        failed.__cause__ = _without_run(error)
        return failed
    finally:
        watch.end()
    return _taken(run, context, assembly.terminal)


def _taken(run: Run, context: LlmContext, end: Done | Error | None) -> AgentError | None:
    """Commit the reply that ended so; the error if it did not end well."""
    ledger, model = run.ledger, run.ledger.attempt.model
    match end:
        case None:
            return NetworkError("the stream ended without a terminal event", model=str(model))
        case Error(message, kind, retry_after):
            failed = error_for(kind, message, model=str(model), retry_after=retry_after)
            failed.__cause__ = end.cause
            return failed
        case Done("error" | "aborted"):
            text = f"stream protocol: done({end.stop_reason}); a failed stream ends with an error event"
            return StreamError(text, model=str(model))
        case Done():
            pass
    run.setup.config.ratio.learn(model, context, end.usage)
    ledger.commit_reply(run.setup.tools, end.stop_reason)
    return None


async def _options(run: Run, model: ModelSpec, stream_fn: StreamFn, tool_choice: str | None) -> StreamOptions:
    options = run.setup.config.options_for(model, stream_fn)
    if run.setup.config.get_api_key is not None:
        key = await resolve(run.setup.config.get_api_key(model.provider))
        if key is not None:
            options = replace(options, api_key=key)
    if options.api_key is not None:
        hold(options.api_key.strip())
    if tool_choice is not None and options.tool_choice is None:
        options = replace(options, tool_choice=tool_choice)
    return options


def _without_run(error: E) -> E:
    """The error without our own frame, which would keep the run and its agent as long as the error lives."""
    trace = error.__traceback__
    return error.with_traceback(trace and trace.tb_next)


def _named(error: AgentError, model: ModelSpec) -> AgentError:
    """The error with the model it came from; a copy, since the same one may be raised again."""
    if not isinstance(error, ModelError) or error.model:
        return error
    named = copy(error)
    named.model, named.__cause__ = str(model), error.__cause__
    return named
