"""Calls that a running call makes itself: asked about, journaled, run and told like those of the reply.

They have ids of their own ("id.1", "id.2", …) and no place in the history: who made them has their results.
"""

import asyncio
from typing import Any

from swink.agent.engine.approval import needs_approval
from swink.agent.engine.dispatch import Batch, ask_person, ask_policies
from swink.agent.engine.ledger import find_tool
from swink.agent.engine.run import Run
from swink.agent.engine.turnstate import Call
from swink.messages import ToolCall, ToolResult
from swink.messages.readonly import freeze
from swink.messages.records import fingerprint
from swink.tools import CallWaits, ToolError, failure

WENT_ELSEWHERE = "the program was run again after an interruption, and its calls were others than before"


async def call_inside(run: Run, outer: Call, name: str, arguments: dict[str, Any]) -> ToolResult:
    """The result of the next call that a running one makes; raises `CallWaits` if a person answers later."""
    batch: Batch = run.batch
    call = _made(run, outer, name, arguments)
    batch.vetting = batch.vetting or asyncio.Lock()
    async with batch.vetting:
        await _vet(run, batch, call)
        if call.is_open and run.setup.config.tool_execution != "concurrent":
            await Batch(run).run_group([call])
    if call.is_open:
        await Batch(run).run_group([call])
    await batch.look_for_steering()
    if call.result is None:
        raise CallWaits
    return call.result


def _made(run: Run, outer: Call, name: str, arguments: dict[str, Any]) -> Call:
    """The call, with what is known of it from before the turn was left open."""
    made = ToolCall(f"{outer.call.id}.{len(outer.inside) + 1}", name, freeze(arguments, "the arguments"))
    call, left = Call(made, None, outer), run.ledger.turn.left
    call.tool = None if call.known is None else find_tool(call.known.tools, name)
    if left is not None and left.made.get(made.id, fingerprint(made)) != fingerprint(made):
        raise ToolError(WENT_ELSEWHERE)
    outer.inside.append(call)
    run.ledger.turn.inner += (call,)
    if left is not None:
        call.take_up(left, run.ledger.emit)
    return call


async def _vet(run: Run, batch: Batch, call: Call) -> None:
    """Ask policies and a person; a policy that stops the run ends the calls under way."""
    if batch.outcome is not None:
        run.ledger.settle(call, failure(batch.outcome.refusal))
    stopped = await ask_policies(run, call) if call.is_open and run.ledger.slots.pre_dispatch else None
    if stopped is None and call.is_open and needs_approval(run, call):
        stopped = await ask_person(run, call)
    if stopped is not None:
        batch.outcome = stopped
        for other in run.ledger.turn.calls:
            batch.end(other, stopped.refusal)
