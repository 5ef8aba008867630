"""What an AG-UI client asks for: its `RunAgentInput`, read for what is taken of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from swink.agent.policy import Answer, Rejected
from swink.messages import Media, Text, ToolResult
from swink.serve.agui.shapes import block_of
from swink.serve.toldhistory import Told, ToldReply, ToldResult, ToldUser, UnknownFields
from swink.serve.webrun import AskedRun, client_tool
from swink.serve.wire import Refused, fields, members

_ROLES = {"system", "developer", "reasoning", "activity"}
"""Roles of messages that are not taken: the application writes the prompt, and thinking is ours."""
_NOT_TAKEN = ("state", "context", "forwardedProps")


class RunInput(Struct, rename="camel"):
    """The body of a request, as the protocol describes it."""

    thread_id: str
    run_id: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    resume: list[dict[str, Any]] | None = None
    state: Any = None
    context: Any = None
    forwarded_props: Any = None
    protocol_version: str | None = None
    parent_run_id: str | None = None


def read_input(body: Any, unknown: UnknownFields) -> tuple[str, AskedRun]:
    """The id of the run, and what is asked; raises `Refused` for what cannot be."""
    request = fields(body)
    thread_id, run_id = _text(request, "threadId"), _text(request, "runId")
    if not isinstance(request.get("messages"), list):
        raise Refused(400, "a request has a list of messages")
    known = set(RunInput.__struct_encode_fields__)
    unknown.tell("RunAgentInput", [str(name) for name in request if name not in known])
    unknown.tell("RunAgentInput", [name for name in _NOT_TAKEN if request.get(name)])
    asked = AskedRun(
        conversation=thread_id,
        told=_told(members(request["messages"]), unknown),
        answers=_answers(members(request.get("resume"))),
        client_tools=[client_tool(tool) for tool in members(request.get("tools"))],
        key=f"ag-ui:{run_id}",
    )
    return run_id, asked


def _text(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(400, f"a request has a {name}, which is a text")
    return value


def _told(messages: Sequence[Any], unknown: UnknownFields) -> list[Told]:
    told: list[Told] = []
    for index, message in enumerate(messages):
        where = f"message {index + 1}"
        match message:
            case {"subagentRunId": str()}:
                continue  # what a sub-agent said is in no history of ours
            case {"role": "user", "content": content}:
                told.append(ToldUser(_id(message), _blocks(content, where)))
            case {"role": "assistant"}:
                calls = [fields(call).get("id") for call in members(message.get("toolCalls"))]
                ids = [id for id in calls if isinstance(id, str)]
                content = message.get("content")
                told.append(ToldReply(_id(message), content if isinstance(content, str) else "", tuple(ids)))
            case {"role": "tool", "toolCallId": str(call_id), "content": content}:
                error = message.get("error")
                result = ToolResult(_blocks(content, where), is_error=isinstance(error, str) and bool(error))
                told.append(ToldResult(call_id, result))
            case {"role": str(role)} if role in _ROLES:
                unknown.tell("messages", [role] if role in ("system", "developer") else [])
            case _:
                raise Refused(400, f"{where} is no message: it has a role, and what belongs to that role")
    return told


def _id(message: Mapping[str, Any]) -> str:
    id = message.get("id")
    return id if isinstance(id, str) else ""


def _blocks(content: Any, where: str) -> tuple[Text | Media, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        raise Refused(400, f"{where} has content that is neither a text nor a list of parts")
    return tuple([block_of(part, where) for part in members(content)])


def _answers(entries: Sequence[Any]) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for entry in entries:
        match entry:
            case {"interruptId": str(id), "status": "cancelled"}:
                answers[id] = Rejected("the user cancelled it")
            case {"interruptId": str(id), "payload": {"approved": bool(approved)}}:
                reason = fields(entry["payload"]).get("reason")
                answers[id] = True if approved else Rejected(reason if isinstance(reason, str) else None)
            case _:
                raise Refused(
                    400, 'an entry of resume has an interruptId, and a payload such as {"approved": true}'
                )
    return answers
