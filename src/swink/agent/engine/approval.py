"""Approval: a person's word before a call may run."""

import asyncio
import logging

from swink.agent.engine.run import Run
from swink.agent.engine.turnstate import Call
from swink.agent.policy import Answer, ApprovalRequest, Approve, Approved, Deferred, Rejected, defer
from swink.events import ApprovalRequested, ApprovalResolved
from swink.messages.jsondata import encode
from swink.messages.records import PendingApproval
from swink.messages.redact import MARK, describe_traceback
from swink.system.aio import is_async, resolve
from swink.system.threads import in_thread
from swink.tools import Tool, copy_json
from swink.tools.workers import Abandoned, run_in_thread

log = logging.getLogger("swink.approval")

_AT_ONCE = 20_000
"""Characters of a call for which the view is made on the event loop."""


def needs_approval(run: Run, call: Call) -> bool:
    """Whether a person has to be asked."""
    tool, mode = call.tool, run.setup.config.approval_mode
    if tool is None or mode == "off" or (mode == "smart" and tool.requires_approval is False):
        return False
    return tool not in run.setup.own_tools and (mode == "on" or tool.needs_approval(call.arguments))


async def ask_approval(run: Run, call: Call) -> Approved | Rejected | PendingApproval:
    """Ask for one call, and announce question and answer; no answer means no, `defer` means later."""
    tool, approve, ledger = call.tool, run.setup.config.approve, run.ledger
    assert tool is not None
    approve = _given(run, call) or approve
    if approve is None:
        log.warning("%s needs approval, and there is no approve callback: the call is not run", tool.name)
        return Rejected(f"{tool.name!r} needs approval and nobody can give it (no approve callback is set)")
    request = await _request(run, call, tool)
    run.check()
    ledger.emit(ApprovalRequested(request.call_id, tool.name, request.shown, call.outer_id))
    if run.recorder is not None:
        run.recorder.note(
            PendingApproval(request.call_id, tool.name, copy_json(call.arguments), request.shown)
        )
    verdict: Approved | Rejected | PendingApproval = Rejected("aborted")
    try:
        answer = _read(await _ask(approve, request), request)
        if answer == Approved() and request.arguments != call.arguments:
            text = "the approval of %s changed the request, which has no effect; return Approved(arguments)"
            log.warning(text, tool.name)
        if not ledger.closed and run.life.aborted is None:
            verdict = answer
    finally:
        if not isinstance(verdict, PendingApproval):
            approved = isinstance(verdict, Approved)
            reason = verdict.note or None if isinstance(verdict, Approved) else verdict.reason
            ledger.emit(ApprovalResolved(request.call_id, tool.name, approved, reason, call.outer_id))
    run.check()
    return verdict


def _given(run: Run, call: Call) -> Approve | None:
    """What answers instead of the callback: the word given for what was asked, and nothing else."""
    asked, id = call.asked, call.call.id
    if asked is None:
        return None
    if id not in run.approvals:
        return defer if run.setup.config.approve is None else None
    if asked.name != call.call.name or asked.arguments != call.arguments:
        text = "the call of %s is no longer what was approved: policies have changed it; it waits again"
        log.warning(text, call.call.name)
        return defer

    async def answer(request: ApprovalRequest) -> Answer:
        return run.approvals[id]

    return answer


async def _request(run: Run, call: Call, tool: Tool) -> ApprovalRequest:
    # Not at the top: its patterns take 10 ms to compile, and many programs never ask.
    from swink.messages.redact.shown import show_arguments

    arguments = call.arguments
    # A long view takes seconds if it is full of what looks like secrets: not on the event loop.
    is_long = len(encode(arguments)) > _AT_ONCE
    shown = await in_thread(show_arguments, arguments) if is_long else show_arguments(arguments)
    wanted, context = tool.needs_approval(arguments), run.policy_context(call.known)
    return ApprovalRequest(call.call.id, tool.name, copy_json(arguments), shown, wanted, context)


async def _ask(approve: Approve, request: ApprovalRequest) -> Answer:
    try:
        if is_async(approve):
            return await resolve(approve(request))
        # A person may be typing the answer at a prompt: not on the event loop.
        return await resolve(await run_in_thread(lambda: approve(request), {}, "approve", lambda: None))
    except Abandoned:
        raise asyncio.CancelledError from None
    except Exception as error:
        # An approval that fails is no approval; its bug is the application's to see, not the model's.
        log.error("the approval of %s failed\n%s", request.name, describe_traceback(error))
        return Rejected(f"the approval failed: {type(error).__name__}")


def _read(answer: object, request: ApprovalRequest) -> Approved | Rejected | PendingApproval:
    """The answer as a verdict; what is no answer counts as no."""
    if isinstance(answer, Rejected):
        return answer
    if isinstance(answer, Deferred):
        return PendingApproval(request.call_id, request.name, request.arguments, request.shown)
    if isinstance(answer, Approved):
        given, asked = encode(answer.arguments), encode(request.arguments)
        if given.count(MARK.encode()) <= asked.count(MARK.encode()):
            return answer
        text = "the approval of %s gave back the redacted view; edit the request's arguments instead"
        log.warning(text, request.name)
        return Rejected("the approval failed: it gave back the redacted view of the arguments")
    if answer is True:
        return Approved()
    if answer is not False:
        text = "the approval of %s returned %s, which counts as no; return True, False, Approved or Rejected"
        log.warning(text, request.name, type(answer).__name__)
    return Rejected()
