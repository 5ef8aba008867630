"""What `useChat` asks for: the body of its requests, read for what is taken of it."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

from msgspec import Struct

from swink.agent.policy import Answer, Rejected
from swink.messages import Media, Text, ToolResult
from swink.messages.jsondata import encode
from swink.serve.toldhistory import Told, ToldReply, ToldResult, ToldUser, UnknownFields, media_of
from swink.serve.webrun import AskedRun, client_tool
from swink.serve.wire import Refused, fields, members

_NO_PARTS = ("step-start", "reasoning", "reasoning-file", "source-url", "source-document", "custom")
"""Parts of replies that are ours and not taken back."""


class ChatInput(Struct, rename="camel"):
    """The body of a request, as `DefaultChatTransport` sends it; `tools` are those that the page runs."""

    id: str
    messages: list[dict[str, Any]]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = None
    tools: list[dict[str, Any]] | None = None


class AskedChat(Struct, frozen=True):
    """What is asked, and the UI message that the run goes on with, if it answers one."""

    run: AskedRun
    going_on: str | None = None


def read_chat(body: Any, unknown: UnknownFields) -> AskedChat:
    """What is asked; raises `Refused` for what cannot be."""
    request = fields(body)
    id, messages = request.get("id"), request.get("messages")
    if not isinstance(id, str) or not id or not isinstance(messages, list):
        raise Refused(400, "a request has an id, which is a text, and a list of messages")
    known = ChatInput.__struct_encode_fields__
    unknown.tell("the body", [str(name) for name in request if name not in known])
    told: list[Told] = []
    answers: dict[str, Answer] = {}
    for index, message in enumerate(members(messages)):
        _read_message(fields(message), f"message {index + 1}", told, answers, unknown)
    last = fields(members(messages)[-1] if messages else None)
    last_id = last.get("id")
    going_on = last_id if last.get("role") == "assistant" and isinstance(last_id, str) else None
    is_new = last.get("role") == "user" and isinstance(last_id, str) and last_id
    run = AskedRun(
        conversation=id,
        told=told,
        answers=answers,
        client_tools=[client_tool(tool) for tool in members(request.get("tools"))],
        again=request.get("trigger") == "regenerate-message",
        key=_key(str(last_id), last.get("parts")) if is_new else None,
    )
    return AskedChat(run, going_on)


def _key(id: str, parts: Any) -> str:
    """What tells a message that is sent again from one that was edited, which keeps its id."""
    return f"vercel:{id}:{sha256(encode(parts)).hexdigest()[:32]}"


def _read_message(
    message: Mapping[str, Any],
    where: str,
    told: list[Told],
    answers: dict[str, Answer],
    unknown: UnknownFields,
) -> None:
    id, role, parts = message.get("id"), message.get("role"), message.get("parts")
    name = id if isinstance(id, str) else ""
    if not isinstance(parts, list) or role not in ("user", "assistant", "system"):
        raise Refused(400, f"{where} is no UI message: it has a role and a list of parts")
    match role:
        case "user":
            told.append(_user(name, members(parts), where))
        case "assistant":
            _read_reply(name, members(parts), where, told, answers)
        case _:
            unknown.tell("messages", ["system"])


def _user(id: str, parts: Sequence[Any], where: str) -> ToldUser:
    blocks: list[Text | Media] = []
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)}:
                blocks += [Text(text)] if text else []
            case {"type": "file", "url": str(url), "mediaType": str(kind)}:
                title = part.get("filename")
                blocks.append(media_of(url, kind, where, title if isinstance(title, str) else None))
            case {"type": str(kind)} if kind.startswith("data-") or kind in _NO_PARTS:
                pass
            case _:
                raise Refused(400, f"{where} has a part that is neither text nor a file")
    return ToldUser(id, tuple(blocks))


def _read_reply(
    id: str, parts: Sequence[Any], where: str, told: list[Told], answers: dict[str, Answer]
) -> None:
    """A UI message holds several replies of ours, one a step, with the results of their calls."""
    text = ""
    calls: list[str] = []
    results: list[ToldResult] = []

    def end_step() -> None:
        nonlocal text, calls, results
        told.extend([ToldReply(id, text, tuple(calls)), *results])
        text, calls, results = "", [], []

    for part in parts:
        match part:
            case {"type": "step-start"}:
                end_step()
            case {"type": "text", "text": str(more)}:
                text += more
            case {"type": "steering-message", "parts": said}:
                end_step()
                told.append(_user("", members(said), where))
            case {"type": str(kind), "toolCallId": str(call_id)} if kind.startswith(
                ("tool-", "dynamic-tool")
            ):
                calls.append(call_id)
                results += _results(call_id, part)
                _read_answer(call_id, fields(part), answers)
            case _:
                pass
    end_step()


def _results(call_id: str, part: Mapping[str, Any]) -> list[ToldResult]:
    match part:
        case {"state": "output-available", "output": output} if part.get("preliminary") is not True:
            text = output if isinstance(output, str) else encode(output).decode()
            return [ToldResult(call_id, ToolResult(text))]
        case {"state": "output-error", "errorText": str(text)}:
            return [ToldResult(call_id, ToolResult(text, is_error=True))]
        case _:
            return []


def _read_answer(call_id: str, part: Mapping[str, Any], answers: dict[str, Answer]) -> None:
    match part:
        case {"state": "approval-responded", "approval": {"approved": bool(approved)}}:
            reason = fields(part["approval"]).get("reason")
            answers[call_id] = True if approved else Rejected(reason if isinstance(reason, str) else None)
        case _:
            pass
