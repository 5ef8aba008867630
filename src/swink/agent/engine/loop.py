"""The loop: turns until there is nothing left to do.

    AgentStart → ( turn → turn → … → follow-ups )* → AgentEnd

A turn: pending messages enter → transform the context → pre-turn policies → the model replies (with retry,
fallback and overflow recovery) → its tools run → post-turn policies → the turn is saved. Steering is looked
at after every tool and every turn, follow-ups when the agent would stop. After an error or an abort neither
is touched. How a run ends is a value, `End`, which travels up to `take_turns`.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Literal

from swink.agent.endedturn import ended_turn
from swink.agent.engine.account import payer
from swink.agent.engine.dispatch import Outcome, run_batch
from swink.agent.engine.innercalls import call_inside
from swink.agent.engine.reply import take_reply
from swink.agent.engine.run import End, Run
from swink.agent.policy import Inject, Replace, Stop, consult
from swink.agent.transform import transform_context
from swink.messages import AssistantMessage, Message, Text, Thinking, TurnEndReason
from swink.system.aio import resolve, started

_COMPLETE = Outcome("complete")


async def take_turns(run: Run) -> None:
    """The whole run: what its task does."""
    try:
        await started()
        if payer.get() is not None:
            payer.set(None)  # what is started inside this run is not charged past it
        run.ledger.call_inside = partial(call_inside, run)
        run.end(await _until_done(run))
    except asyncio.CancelledError:
        run.end(End("aborted"))
    except Exception as error:
        # A hook is foreign code.
        run.end(End(), error)
    except BaseException as error:
        run.end(End(), error)
        raise
    run.ledger.call_inside = None  # it holds the run
    if run.last_steps is not None:
        await asyncio.wait([run.last_steps.task])  # so that asyncio.run() does, too


async def _until_done(run: Run) -> End:
    """Turns, steering between them, follow-ups at the end; how it ended."""
    ledger, pending = run.ledger, run.ledger.inbox.pending
    if ledger.open is None and _may_steer(run):
        await _poll_steering(run)
    while True:
        begun = await (_begin_turn(run) if ledger.open is None else _take_up_turn(run))
        if isinstance(begun, End):
            return begun
        end = None if begun is None else await take_reply(run, begun)
        if end is not None:
            return end
        reason = await _finish_turn(run)
        if type(reason) is End:
            return reason
        run.check()
        if run.pausing:
            return End(reason="paused")
        if not pending and _may_steer(run):
            await _poll_steering(run)
        if reason in ("complete", "reasoning_only") and not pending:
            end = await _before_stopping(run)
            if end is not None or not pending:
                return end or End()


async def _begin_turn(run: Run) -> Sequence[Message] | End:
    """What the model is asked in this turn; an `End` if the run ends before it."""
    ledger = run.ledger
    if ledger.inbox.pending:
        ledger.enter_pending()
        run.check()
    overflow, run.overflow = run.overflow, False
    await run.setup.take(ledger.history)
    ledger.attempt.model = run.setup.routes[0][0]
    messages = await transform_context(run, overflow)
    run.check()
    if ledger.slots.pre_turn:
        end = await _ask_policies(run, "pre_turn")
        if end is not None:
            return end
        run.check()
        if ledger.inbox.pending:
            ledger.enter_pending()
            messages = await transform_context(run, overflow)
    if run.recorder is not None:
        await run.recorder.ask()
    ledger.open_turn()
    return messages


async def _take_up_turn(run: Run) -> None:
    """Go on with the turn that was left open, in this process or another: its tools, without asking again."""
    await run.setup.take(run.ledger.history)
    run.ledger.attempt.model = run.setup.routes[0][0]
    run.check()
    run.ledger.reopen_turn(run.setup.tools)


async def _finish_turn(run: Run) -> TurnEndReason | End:
    """The tools of a reply that is there, if it has any, and what follows them."""
    ledger = run.ledger
    run.check()
    if ledger.turn.calls:
        outcome = await run_batch(run)
        run.check()
        if outcome.reason == "approval":
            ledger.leave_open()
            return outcome.end or outcome.reason
        ledger.commit_results()
    else:
        outcome = _without_tools(ledger.turn.reply)
    stopped = await _post_turn(run, outcome.reason) if ledger.slots.post_turn else None
    if run.recorder is not None:
        await run.recorder.save()
    ledger.end_turn(outcome.reason)
    return stopped or outcome.end or outcome.reason


def _without_tools(reply: AssistantMessage | None) -> Outcome:
    assert reply is not None
    for block in reply.content:
        if not isinstance(block, Thinking) and (not isinstance(block, Text) or block.text.strip()):
            return _COMPLETE
    return Outcome("reasoning_only") if reply.thinking else _COMPLETE


async def _ask_policies(run: Run, slot: Literal["pre_turn", "post_loop"]) -> End | None:
    """Ask the policies of a slot; what they inject is pending, and the first stop ends the run."""
    slots = run.ledger.slots
    for policy in slots.pre_turn if slot == "pre_turn" else slots.post_loop:
        match await consult(policy, slot, run.policy_context()):
            case Stop() as stop:
                return End.by(stop)
            case Inject(messages):
                run.ledger.inbox.inject(messages)
            case _:
                pass
    return None


async def _post_turn(run: Run, reason: TurnEndReason) -> End | None:
    """Let the post-turn policies see the turn."""
    ledger = run.ledger
    for policy in ledger.slots.post_turn:
        turn = ended_turn(ledger.turn, reason)
        match await consult(policy, "post_turn", run.policy_context(), turn):
            case Stop() as stop:
                return End.by(stop)
            case Inject(messages):
                ledger.inbox.inject(messages)
            case Replace(message):
                replaced = ledger.replace_reply(message)
                if not replaced and policy.fail_closed:
                    why = f"{type(policy).__name__} failed: its replacement was refused"
                    return End(reason=why, stopped=True)
            case _:
                pass
    return None


async def _before_stopping(run: Run) -> End | None:
    """Post-loop policies, then follow-ups: what they give becomes the next turn's pending messages."""
    end = await _ask_policies(run, "post_loop") if run.ledger.slots.post_loop else None
    poll, inbox = run.setup.config.get_follow_up, run.ledger.inbox
    if end is None and poll is not None and not inbox.pending:
        run.check()
        polled = poll()
        if polled:
            inbox.queue(await resolve(polled))
    return end


def _may_steer(run: Run) -> bool:
    """Whether steering may wait; what a tool's end already took is delivered first."""
    config = run.setup.config
    if config.get_steering is None or run.ledger.inbox.pending:
        return False
    return config.peek_steering is None or bool(config.peek_steering())


async def _poll_steering(run: Run) -> None:
    poll = run.setup.config.get_steering
    assert poll is not None
    run.ledger.inbox.queue(await resolve(poll()))
