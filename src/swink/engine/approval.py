"""Approval: somebody's word before a call may run."""

import asyncio
import inspect
import logging
from typing import Any

from swink.engine.ledger import Call
from swink.engine.run import Run
from swink.events import ApprovalRequested, ApprovalResolved
from swink.policy import ApprovalRequest, Approved, Rejected
from swink.redact import MARK
from swink.tool import copy_json, failure
from swink.workers import Abandoned, run_in_thread

log = logging.getLogger("swink.approval")

_AT_ONCE = 20_000
"""Characters of a call that are made a view of at once."""


def needs_approval(run: Run, call: Call) -> bool:
    """Whether somebody has to be asked."""
    if call.tool is None or call.tool in run.extra_tools:
        return False
    return run.config.approval_mode == "enabled" or call.tool.needs_approval(call.arguments)


async def ask_approval(run: Run, call: Call) -> bool:
    """Ask for one call; no answer means no. Whether it now has other arguments, which the policies have not judged."""
    tool = call.tool
    assert tool is not None
    if run.config.approve is None:
        run.settle(
            call,
            failure(
                f"tool call rejected: {tool.name!r} needs approval and nobody can give it (no approve callback is set)"
            ),
        )
        return False
    # A long view takes seconds if it is full of what looks like secrets: not on the event loop.
    is_long = len(repr(call.arguments)) > _AT_ONCE
    # Not at the top: its patterns take 10 ms to compile, and many programs never ask.
    from swink.redact.shown import show_arguments

    shown = (
        await asyncio.to_thread(show_arguments, call.arguments) if is_long else show_arguments(call.arguments)
    )
    run.check()
    run.emit(ApprovalRequested(call.call.id, tool.name, shown))
    wanted = tool.needs_approval(call.arguments)
    answer = await _answer(
        run,
        ApprovalRequest(
            call.call.id, tool.name, copy_json(call.arguments), shown, wanted, run.policy_context()
        ),
    )
    if run.aborting:
        answer = Rejected("aborted")
    reason = answer.reason if isinstance(answer, Rejected) else None
    run.emit(ApprovalResolved(call.call.id, tool.name, isinstance(answer, Approved), reason))
    run.check()
    if isinstance(answer, Rejected):
        run.settle(call, failure("tool call rejected" + (f": {reason}" if reason else " by the user")))
    elif answer.arguments is not None:
        call.arguments = copy_json(answer.arguments)
        return True
    return False


async def _answer(run: Run, request: ApprovalRequest) -> Approved | Rejected:
    approve = run.config.approve
    assert approve is not None
    try:
        if inspect.iscoroutinefunction(approve) or inspect.iscoroutinefunction(
            getattr(approve, "__call__", None)  # noqa: B004
        ):
            answer = await approve(request)
        else:
            # Somebody may be typing the answer at a prompt: not on the event loop.
            answer = await run_in_thread(lambda: approve(request), {}, "approve", lambda: None)
            answer = await answer if inspect.isawaitable(answer) else answer
    except asyncio.CancelledError:
        run.emit(ApprovalResolved(request.call_id, request.name, False, "aborted"))
        raise
    except Abandoned:
        run.emit(ApprovalResolved(request.call_id, request.name, False, "aborted"))
        raise asyncio.CancelledError from None
    except Exception as error:
        # An approval that fails is no approval; its bug is the application's to see, not the model's.
        log.exception("the approval of %s failed", request.name)
        return Rejected(f"the approval failed: {type(error).__name__}")
    match answer:
        case Approved(arguments=dict() as arguments) if _marks(arguments) > _marks(request.arguments):
            log.warning(
                "the approval of %s gave back the redacted view; edit the request's arguments, not what it shows",
                request.name,
            )
            return Rejected("the approval failed: it gave back the redacted view of the arguments")
        case Approved() | Rejected():
            return answer
        case True:
            return Approved()
        case _:
            return Rejected()


def _marks(arguments: dict[str, Any]) -> int:
    return repr(arguments).count(MARK)
