"""What a run was asked to do, as its session keeps it: another process goes on with it as it was begun.

    RunStart → RunStarted (input, key, digest, terms) → RunStart

Not kept are policies and types of Python, which only programs in the same process can give.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from msgspec import Struct

from swink.agent.policy import Answer, Approved, Deferred, Rejected
from swink.errors import InvalidInput
from swink.messages import ToolResult, as_messages
from swink.messages.jsondata import decode, encode
from swink.messages.records import RunStarted
from swink.serve.hosting.clienttools import ClientTool
from swink.serve.hosting.servedagent import RunStart


class KeptAnswer(Struct, frozen=True, omit_defaults=True):
    """An answer to a call: yes, no, or later."""

    said: str
    text: str | None = None
    arguments: dict[str, Any] | None = None


class _KeptTerms(Struct, frozen=True, omit_defaults=True):
    """What a run was asked beside its input."""

    tools: Sequence[ClientTool] = ()
    results: Mapping[str, ToolResult] = {}
    approvals: Mapping[str, KeptAnswer] = {}
    output: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    instructions: str | None = None
    options: Mapping[str, Any] = {}
    unanswered: KeptAnswer | None = None


def record_start(run: str, caller: str, start: RunStart, key: str | None) -> RunStarted:
    """The record of a run that begins, or was accepted to begin later."""
    output: Any = start.output
    terms = _KeptTerms(
        tuple(start.client_tools),
        dict(start.tool_results),
        {id: keep_answer(answer) for id, answer in start.approvals.items()},
        cast("dict[str, Any]", output) if isinstance(output, dict) else None,
        None if start.state is None else dict(start.state),
        start.instructions,
        dict(start.options),
        None if start.unanswered is None else keep_answer(start.unanswered),
    )
    said = [] if start.input is None else list(as_messages(start.input))
    names = [tool.name for tool in start.client_tools]
    return RunStarted(run, caller, said, key, digest(start), names, decode(encode(terms)))


def recorded_start(started: RunStarted) -> RunStart:
    """What the run of this record was asked to do; what an earlier release did not keep is left out."""
    try:
        terms = decode(encode(started.terms), _KeptTerms)
    except InvalidInput:
        terms = _KeptTerms()
    return RunStart(
        input=started.input or None,
        approvals={id: answer_of(answer) for id, answer in terms.approvals.items()},
        client_tools=terms.tools or [ClientTool(name) for name in started.client_tools],
        tool_results=terms.results,
        output=terms.output,
        state=terms.state,
        instructions=terms.instructions,
        options=terms.options,
        unanswered=None if terms.unanswered is None else answer_of(terms.unanswered),
    )


def still_open(start: RunStart, pending: Collection[str], *, lacks_prompt: bool) -> RunStart:
    """What is left to do of a start whose run had begun: calls that were settled are not answered again."""
    return RunStart(
        input=start.input if lacks_prompt else None,
        approvals=_among(start.approvals, pending),
        client_tools=start.client_tools,
        tool_results=_among(start.tool_results, pending),
        output=start.output,
        instructions=start.instructions,
        options=start.options,
        policies=start.policies,
        unanswered=start.unanswered,
    )


def digest(start: RunStart) -> str:
    """What tells whether a request asks for the same."""
    said = (
        [] if start.input is None else [getattr(item, "content", item) for item in as_messages(start.input)]
    )
    asked = [said, sorted(start.approvals), sorted(start.tool_results), start.output, start.state]
    return sha256(encode(asked)).hexdigest()[:32]


def _among(given: Mapping[str, Any], ids: Collection[str]) -> dict[str, Any]:
    return {id: value for id, value in given.items() if id in ids}


def keep_answer(answer: Answer) -> KeptAnswer:
    """An answer as it is kept."""
    match answer:
        case Approved(arguments, note):
            return KeptAnswer("yes", note, arguments)
        case Rejected(reason):
            return KeptAnswer("no", reason)
        case Deferred():
            return KeptAnswer("later")
        case yes:
            return KeptAnswer("yes" if yes else "no")


def answer_of(kept: KeptAnswer) -> Answer:
    """The answer that was kept."""
    match kept.said:
        case "yes":
            return Approved(kept.arguments, kept.text or "")
        case "later":
            return Deferred()
        case _:
            return Rejected(kept.text)
