"""An agent as a tool: each call is a conversation of its own, with a fresh agent of the factory's.

call of the client      → a run; its turns and tool calls are progress
an approval is needed   → the run ends there; the client's user is asked, and it goes on with the answer
the client cancels      → the run is aborted
the run has ended       → its text, or its output as structured content; a failed run is an error result
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from swink import Agent, AgentResult
from swink.agent.policy import Answer, Rejected, defer
from swink.errors import MisuseError
from swink.events import AgentEvent, NestedEvent, ToolExecutionStart, ToolExecutionUpdate, TurnStart
from swink.messages.jsondata import encode
from swink.messages.records import PendingApproval
from swink.messages.redact import redact_text
from swink.serve.mcp.toolcall import Answers, ElicitQuestion, ServerCall
from swink.serve.mcp.toolserver import McpTool
from swink.system.aio import resolve
from swink.system.shorten import clip
from swink.tools.schema import Shape

Factory = Callable[[], Agent[Any, Any] | Awaitable[Agent[Any, Any]]]
_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What the agent is asked to do."}},
    "required": ["input"],
    "additionalProperties": False,
}
_ANSWER = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "title": "Run it?"},
        "reason": {"type": "string", "title": "Reason", "description": "What the agent is told about a no."},
    },
    "required": ["approved"],
}
_MOST_SHOWN = 2_000
_NOBODY = "it needs approval, and the client that called cannot ask its user"


class AgentTool:
    """Makes agents with a factory and runs them for clients; make it with `open`.

    Args:
        factory: makes the agent of a call
        output_type: what its runs give
        name: of the tool
        description: what clients are told about it
    """

    def __init__(self, factory: Factory, output_type: Any, name: str, description: str) -> None:
        self._factory, self._output = factory, OutputShape(output_type)
        self.served = McpTool(name, description, _INPUT, self._start, self._output.schema)

    @classmethod
    async def open(
        cls, factory: Factory, name: str | None = None, description: str | None = None
    ) -> "AgentTool":
        """The tool; the factory is asked for one agent, to learn its name and its type of output.

        `name` and `description` replace those of the agent and the factory.
        """
        agent = await _make(factory)
        output_type, own_name = agent.output_type, agent.name
        await agent.aclose()
        said = name or own_name or getattr(factory, "__name__", "agent")
        about = description or inspect.getdoc(factory) or f"Ask the agent {said} to do something."
        return cls(factory, output_type, re.sub(r"[^\w-]", "_", said, flags=re.ASCII)[:64], about)

    async def _start(self, call: ServerCall) -> Any:
        match call.arguments:
            case {"input": str() as text} if text.strip() and len(call.arguments) == 1:
                agent = await _make(self._factory)
            case _:
                return call.sdk.text_result(
                    "pass input, a text that is not empty, and nothing else", is_error=True
                )
        if agent.approve is None:
            agent.approve = defer
        return await self._run(call, agent, text, None)

    async def _run(
        self,
        call: ServerCall,
        agent: Agent[Any, Any],
        text: str | None,
        approvals: Mapping[str, Answer] | None,
    ) -> Any:
        is_left_open = False
        try:
            while (result := await _run_once(call, agent, text, approvals)).pending and not call.can_ask:
                text, approvals = None, {one.call_id: Rejected(_NOBODY) for one in result.pending}
            if not result.pending:
                return self._answer(call, result)
            pending = result.pending

            async def go_on(call: ServerCall, answers: Answers) -> Any:
                return await self._run(
                    call, agent, None, {one.call_id: _answer_of(one, answers) for one in pending}
                )

            is_left_open = not call.context.session.can_send_request
            questions = {one.call_id: _question(one) for one in pending}
            return await call.ask(questions, go_on, agent.aclose)
        finally:
            if not is_left_open:
                await agent.aclose()

    def _answer(self, call: ServerCall, result: AgentResult[Any]) -> Any:
        if result.stop_reason in ("error", "aborted") or result.stopped:
            why = result.error or result.reason or result.stop_reason
            return call.sdk.text_result(redact_text(f"the agent did not finish: {why}"), is_error=True)
        if self._output.schema is None:
            return call.sdk.text_result(result.text)
        structured = self._output.structured(result.output)
        return call.sdk.text_result(msgspec.json.encode(structured).decode(), structured)


class OutputShape:
    """The type of an output as the protocol wants it, an object: what is none is in its field `result`."""

    def __init__(self, output_type: Any) -> None:
        self.schema: dict[str, Any] | None = None
        self._is_wrapped = False
        if output_type is None:
            return
        schema = dict(Shape.of(output_type).schema)
        self._is_wrapped = schema.get("type") != "object"
        if self._is_wrapped:
            hoisted = {name: schema.pop(name) for name in ("$defs", "$schema") if name in schema}
            schema = {"type": "object", "properties": {"result": schema}, "required": ["result"], **hoisted}
        self.schema = schema

    def structured(self, value: Any) -> Any:
        """The output as JSON data."""
        data = msgspec.json.decode(encode(value))
        return {"result": data} if self._is_wrapped else data


async def _make(factory: Factory) -> Agent[Any, Any]:
    made = await resolve(factory())
    if not isinstance(made, Agent):
        raise MisuseError(f"the factory gave {type(made).__name__}, not an Agent")
    return made


async def _run_once(
    call: ServerCall, agent: Agent[Any, Any], text: str | None, approvals: Mapping[str, Answer] | None
) -> AgentResult[Any]:
    async with agent.stream(text, approvals=approvals) as run:
        async for event in run:
            if said := _progress(event):
                await call.step(said)
        return await run.result()


def _progress(event: AgentEvent, path: tuple[str, ...] = ()) -> str | None:
    """What a client's user is told of an event; arguments are not shown, for they may hold secrets."""
    match event:
        case TurnStart(turn) if not path:
            return f"turn {turn}"
        case ToolExecutionStart(_, name):
            return " › ".join((*path, name))
        case ToolExecutionUpdate(update=NestedEvent(path=inner, event=nested)):
            return _progress(nested, inner)
        case _:
            return None


def _question(pending: PendingApproval) -> ElicitQuestion:
    shown = clip(encode(pending.shown).decode(), _MOST_SHOWN)
    return ElicitQuestion(f"The agent wants to run {pending.name} with {shown}", _ANSWER)


def _answer_of(pending: PendingApproval, answers: Answers) -> Answer:
    given = answers[pending.call_id]
    match given.action, dict(given.values):
        case "accept", {"approved": True}:
            return True
        case "accept", values:
            return Rejected(str(values.get("reason") or "") or None)
        case "decline", _:
            return Rejected("the user declined")
        case _:
            return Rejected("the user gave no answer")
