"""Pipelines: sequential, parallel or repeated. Each is a `Flow`, and may be a member of another."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from swink.agent.agentresult import AgentResult
from swink.errors import MisuseError
from swink.messages import Input
from swink.messages.checks import check_hook
from swink.system.aio import resolve
from swink.teams.flow import Flow, blamed, closing, failed, named, summed
from swink.teams.member import Emit, Member, check_members

HandOn = Callable[[AgentResult], Input]


def _text(result: AgentResult) -> Input:
    return result.text


def sequential(*members: Member | Mapping[str, Member], hand_on: HandOn = _text) -> Flow:
    """The `members` one after the other: each gets what `hand_on` makes of the result before it (its text).

    The first that fails, is aborted, or is stopped by a policy ends the run; the error or reason names it.

    >>> report = await sequential({"draft": writer, "edit": editor}).run("The history of tea.")
    """

    async def body(flow: Flow, input: Input, emit: Emit) -> AgentResult:
        results: list[AgentResult] = []
        for name in flow.members:
            result = blamed(name, await flow.step(name, input, emit))
            results.append(result)
            if _ends(result):
                break
            input = hand_on(result)
            if not input and name != next(reversed(flow.members)):
                return failed(results, f"{name}: gave nothing to hand on")
        return summed(results)

    return Flow(named(members), body)


def parallel(
    *members: Member | Mapping[str, Member], join: Callable[[Mapping[str, AgentResult]], str] | None = None
) -> Flow:
    """All `members` at once on one input; `join` makes one text of the results (by default each under its
    name).

    A failure does not disturb the others: all messages and texts are in the result, which names each failure.

    >>> opinions = await parallel({"legal": lawyer, "money": accountant}).run("May we buy it?")
    """
    by_name = named(members)
    if len({id(member) for member in by_name.values()}) != len(by_name):
        raise MisuseError("one agent cannot do two things at once; give parallel() different agents")

    async def body(flow: Flow, input: Input, emit: Emit) -> AgentResult:
        results = await _all(flow, input, emit)
        every = [*results.values(), closing((join or _under_names)(results))]
        wrong = [result for result in results.values() if _ends(result)]
        if not wrong:
            return summed(every, stop_reason="stop")
        worst = next((result for result in wrong if result.stop_reason == "error"), wrong[0])
        errors = "; ".join(result.error for result in wrong if result.error is not None) or None
        reasons = "; ".join(result.reason for result in wrong if result.reason is not None) or None
        ending = {"stop_reason": worst.stop_reason, "error_kind": worst.error_kind}
        return summed(every, error=errors, reason=reasons, **ending)

    return Flow(by_name, body)


def loop(
    member: Member,
    *,
    until: Callable[[AgentResult], bool | Awaitable[bool]],
    max_rounds: int = 10,
    hand_on: HandOn = _text,
) -> Flow:
    """Run a `member` again, on what `hand_on` makes of the last result, until `until(result)` or
    `max_rounds`.

    >>> rounds = loop(sequential(writer, critic), until=lambda result: "APPROVED" in result.text)
    >>> final = await rounds.run("A haiku.")
    """
    check_members({"loop": member})
    check_hook("until", until)
    if max_rounds < 1:
        raise MisuseError(f"loop(max_rounds={max_rounds}) would do nothing; give at least 1")

    async def body(flow: Flow, input: Input, emit: Emit) -> AgentResult:
        results: list[AgentResult] = []
        for number in range(1, max_rounds + 1):
            result = blamed(f"round {number}", await flow.step("loop", input, emit))
            results.append(result)
            if _ends(result) or await resolve(until(result)):
                return summed(results)
            input = hand_on(result)
            if not input:
                return failed(results, f"round {number}: gave nothing to hand on")
        return summed(results, reason=f"not done after {max_rounds} rounds")

    return Flow({"loop": member}, body)


def _ends(result: AgentResult) -> bool:
    """Whether a result ends the flow: a failure, an abort, a handoff to nobody here, a policy's stop."""
    return result.stop_reason in ("error", "aborted", "transfer") or result.reason is not None


def _under_names(results: Mapping[str, AgentResult]) -> str:
    texts = {name: result.text or result.error or "(nothing)" for name, result in results.items()}
    return "\n\n".join(f"{name}:\n{text}" for name, text in texts.items())


async def _all(flow: Flow, input: Input, emit: Emit) -> dict[str, AgentResult]:
    """Everybody's result; an exception of one (a hook's, a misuse) ends the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(flow.step(name, input, emit)) for name in flow.members}
    except BaseExceptionGroup as raised:
        raise raised.exceptions[0] from None
    return {name: blamed(name, task.result()) for name, task in tasks.items()}
