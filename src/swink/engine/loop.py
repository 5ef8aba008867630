"""The loop: turns until there is nothing left to do.

    AgentStart → ( turn → turn → … → follow-ups )* → AgentEnd

A turn: pending messages enter → transform the context → pre-turn policies → the model replies (with retry, fallback
and overflow recovery) → its tools run → post-turn policies. Steering is looked at after every tool and every turn,
follow-ups when the agent would stop. After an error or an abort neither is touched.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from swink.config import AgentContext, AgentLoopConfig
from swink.engine.dispatch import run_batch
from swink.engine.eventstream import Buffer, EventStream
from swink.engine.history import History, paired
from swink.engine.reply import take_reply
from swink.engine.run import Run
from swink.engine.waiting import started
from swink.errors import InvalidContinue, NoMessages
from swink.messages import (
    AssistantMessage,
    ContentBlock,
    Input,
    Message,
    Text,
    Thinking,
    TurnEndReason,
    as_messages,
)
from swink.policy import Inject, Replace, Stop, Turn, consult
from swink.subscribers import Subscribers
from swink.tool import as_tools
from swink.transform import transform_context

_REASONS: dict[str, TurnEndReason] = {
    "done": "tools_executed",
    "stopped": "tools_executed",
    "steered": "steering_interrupt",
    "transfer": "transfer",
}


def agent_loop(prompts: Input, context: AgentContext, config: AgentLoopConfig) -> EventStream:
    """Add the prompts to the context and run; iterate for the events. The context given is not changed."""
    return _open_stream(paired(as_messages(prompts)), context, config)


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
    try:
        await started()
        if _may_steer(run):
            await _poll_steering(run)
        while True:
            reason = await _take_turn(run)
            if reason is None or reason in ("error", "aborted", "transfer") or run.stop_reason is not None:
                break
            run.check()
            if run.pausing:
                run.stop("paused")
                break
            if _may_steer(run):
                await _poll_steering(run)
            if reason in ("complete", "reasoning_only") and not run.pending:
                await _before_stopping(run)
                if run.stop_reason is not None or not run.pending:
                    break
    except asyncio.CancelledError:
        run.close("aborted")
    except Exception as error:
        # A hook is somebody else's code.
        run.crash(error)
    except BaseException as error:
        run.crash(error)
        raise
    finally:
        run.close()
    await run.saved()


async def _take_turn(run: Run) -> TurnEndReason | None:
    """One reply and its tools; None if a policy stopped the run before it."""
    run.enter_pending()
    run.check()
    overflow, run.overflow = run.overflow, False
    messages = await transform_context(run, overflow)
    run.check()
    if run.slots.pre_turn:
        if not await _pre_turn(run):
            return None
        run.check()
        if run.pending:
            run.enter_pending()
            messages = await transform_context(run, overflow)
    run.open_turn()
    await take_reply(run, messages)
    run.check()
    assert run.reply is not None
    if run.reply.failed:
        run.close("error")
        return "error"
    reason = await _act(run)
    if run.config.save is not None:
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
        reason = _REASONS[outcome.reason]
        if outcome.reason == "stopped":
            run.stop(outcome.text)
        elif outcome.reason == "transfer":
            run.stop_reason, run.reason = "transfer", outcome.text
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
                run.inject(inject.messages)
            case _:
                pass
    if run.config.get_follow_up is not None and not run.pending:
        run.check()
        polled = run.config.get_follow_up()
        run.queue(await polled if isinstance(polled, Awaitable) else polled)
    return None


async def _pre_turn(run: Run) -> bool:
    """Whether the turn may begin; injected messages are pending."""
    for policy in run.slots.pre_turn:
        match await consult(policy, "pre_turn", run.policy_context()):
            case Stop(reason):
                run.stop(reason)
                return False
            case Inject() as inject:
                run.inject(inject.messages)
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
                run.inject(inject.messages)
            case Replace(message):
                if not run.replace_reply(message) and policy.fail_closed:
                    return run.stop(f"{type(policy).__name__} failed: its replacement was refused")
            case _:
                pass
    return None


def _may_steer(run: Run) -> bool:
    """Whether steering may wait; what a tool's end already took is in `pending`."""
    config = run.config
    return (
        config.get_steering is not None
        and not run.pending
        and (config.peek_steering is None or config.peek_steering())
    )


async def _poll_steering(run: Run) -> None:
    assert run.config.get_steering is not None
    polled = run.config.get_steering()
    run.queue(await polled if isinstance(polled, Awaitable) else polled)


def _open_stream(prompts: Sequence[Message], context: AgentContext, config: AgentLoopConfig) -> EventStream:
    history = History(context.messages)
    own = AgentContext(context.system_prompt, (), as_tools(context.tools))

    def begin(buffer: Buffer) -> Run:
        run = Run(config, own, history, buffer, _forget)
        run.start(prompts, take_turns)
        return run

    return EventStream(begin, Subscribers(), Run.outcome)


def _forget(run: Run) -> None:
    """Nobody keeps what a bare loop came to but its stream."""
