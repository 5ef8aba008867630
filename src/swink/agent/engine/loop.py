"""The loop: turns until there is nothing left to do.

    AgentStart → ( turn → turn → … → follow-ups )* → AgentEnd

A turn: pending messages enter → transform the context → pre-turn policies → the model replies (with retry,
fallback and overflow recovery) → its tools run → post-turn policies. Steering is looked at after every tool
and every turn, follow-ups when the agent would stop. After an error or an abort neither is touched. How a
run ends is a value, `End`, which travels up to `take_turns`.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal

from swink.agent.config import AgentContext, AgentLoopConfig
from swink.agent.engine.account import payer
from swink.agent.engine.dispatch import Outcome, run_batch
from swink.agent.engine.eventstream import Buffer, EventStream, Subscribers
from swink.agent.engine.reply import take_reply
from swink.agent.engine.request import transform_context
from swink.agent.engine.run import End, Run
from swink.agent.policy import Inject, Replace, Stop, Turn, consult
from swink.agent.session.journal import known_result
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
from swink.messages.history import History, paired
from swink.system.aio import resolve, started
from swink.tools import as_offers


def agent_loop(prompts: Input, context: AgentContext, config: AgentLoopConfig) -> EventStream[None]:
    """Add the prompts to the context and run; iterate for the events. The context given is not changed."""
    return _open_stream(paired(as_messages(prompts)), context, config)


def agent_loop_continue(context: AgentContext, config: AgentLoopConfig) -> EventStream[None]:
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
    """The whole run: what its task does."""
    try:
        await started()
        payer.set(None)  # what is started inside this run is not charged past it
        run.end(await _until_done(run))
    except asyncio.CancelledError:
        run.end(End("aborted"))
    except Exception as error:
        # A hook is somebody else's code.
        run.end(End(), error)
    except BaseException as error:
        run.end(End(), error)
        raise
    await run.wound_up()


async def _until_done(run: Run) -> End:
    """Turns, steering between them, follow-ups at the end; how it ended."""
    ledger, pending = run.ledger, run.ledger.pending
    if ledger.open is None and _may_steer(run):
        await _poll_steering(run)
    while True:
        reason = await (_take_turn(run) if ledger.open is None else _take_up_turn(run))
        if isinstance(reason, End):
            return reason
        run.check()
        if run.pausing:
            return End(reason="paused")
        if _may_steer(run):
            await _poll_steering(run)
        if reason in ("complete", "reasoning_only") and not pending:
            end = await _before_stopping(run)
            if end is not None or not pending:
                return end or End()


async def _take_turn(run: Run) -> TurnEndReason | End:
    """One reply and its tools; an `End` if the run ends with it, or before it."""
    ledger = run.ledger
    ledger.enter_pending()
    run.check()
    overflow, run.overflow = run.overflow, False
    await run.set_up()
    run.check()
    messages = await transform_context(run, overflow)
    run.check()
    if run.slots.pre_turn:
        end = await _ask_policies(run, "pre_turn")
        if end is not None:
            return end
        run.check()
        if ledger.pending:
            ledger.enter_pending()
            messages = await transform_context(run, overflow)
    ledger.open_turn()
    end = await take_reply(run, messages)
    if end is not None:
        return end
    return await _finish_turn(run)


async def _take_up_turn(run: Run) -> TurnEndReason | End:
    """Go on with the turn that was left open, in this process or another: its tools, without asking again."""
    await run.set_up()
    run.check()
    run.ledger.reopen_turn(run.tools, known_result)
    return await _finish_turn(run)


async def _finish_turn(run: Run) -> TurnEndReason | End:
    """The tools of a reply that is there, and what follows them."""
    ledger = run.ledger
    run.check()
    outcome = await _act(run)
    if outcome.reason == "approval":
        ledger.leave_open()
        return outcome.end or outcome.reason
    stopped = await _post_turn(run, outcome.reason) if run.slots.post_turn else None
    if run.saver is not None:
        await run.saver.save()
    ledger.end_turn(outcome.reason)
    return stopped or outcome.end or outcome.reason


async def _act(run: Run) -> Outcome:
    """Run the reply's tools, if it has any."""
    ledger = run.ledger
    reply = ledger.reply
    assert reply is not None
    if not ledger.calls:
        is_empty = reply.thinking and not any(_is_visible(block) for block in reply.content)
        return Outcome("reasoning_only" if is_empty else "complete")
    outcome = await run_batch(run)
    run.check()
    if outcome.reason != "approval":
        ledger.commit_results()
    return outcome


def _is_visible(block: ContentBlock) -> bool:
    return not isinstance(block, Thinking) and (not isinstance(block, Text) or bool(block.text.strip()))


async def _ask_policies(run: Run, slot: Literal["pre_turn", "post_loop"]) -> End | None:
    """Ask the policies of a slot; what they inject is pending, and the first stop ends the run."""
    for policy in run.slots.pre_turn if slot == "pre_turn" else run.slots.post_loop:
        match await consult(policy, slot, run.policy_context()):
            case Stop() as stop:
                return End.by(stop)
            case Inject(messages):
                run.ledger.inject(messages)
            case _:
                pass
    return None


async def _post_turn(run: Run, reason: TurnEndReason) -> End | None:
    """Let the post-turn policies see the turn."""
    ledger = run.ledger
    for policy in run.slots.post_turn:
        assert ledger.reply is not None
        turn = Turn(ledger.reply, ledger.results, reason)
        match await consult(policy, "post_turn", run.policy_context(), turn):
            case Stop() as stop:
                return End.by(stop)
            case Inject(messages):
                ledger.inject(messages)
            case Replace(message):
                replaced = ledger.replace_reply(message)
                if not replaced and policy.fail_closed:
                    return End(reason=f"{type(policy).__name__} failed: its replacement was refused")
            case _:
                pass
    return None


async def _before_stopping(run: Run) -> End | None:
    """Post-loop policies, then follow-ups: what they give becomes the next turn's pending messages."""
    end = await _ask_policies(run, "post_loop") if run.slots.post_loop else None
    if end is None and run.config.get_follow_up is not None and not run.ledger.pending:
        run.check()
        polled = run.config.get_follow_up()
        if polled:
            run.ledger.queue(await resolve(polled))
    return end


def _may_steer(run: Run) -> bool:
    """Whether steering may wait; what a tool's end already took is delivered first."""
    config = run.config
    if config.get_steering is None or run.ledger.pending:
        return False
    return config.peek_steering is None or config.peek_steering()


async def _poll_steering(run: Run) -> None:
    assert run.config.get_steering is not None
    run.ledger.queue(await resolve(run.config.get_steering()))


def _open_stream(
    prompts: Sequence[Message], context: AgentContext, config: AgentLoopConfig
) -> EventStream[None]:
    history = History(context.messages)
    as_offers(context.tools)  # what is no tool is refused before anything starts

    def begin(buffer: Buffer) -> Run:
        config.check_key()
        run = Run(config, context, history, buffer.push, lambda run: buffer.wake())
        run.start(prompts, take_turns(run), None)
        return run

    return EventStream(begin, Subscribers(), Run.result)
