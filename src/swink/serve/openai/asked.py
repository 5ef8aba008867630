"""What a body of the OpenAI protocols asks of an agent."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from swink import stream
from swink.errors import BrokenHistory, InvalidInput
from swink.messages import AssistantMessage, LlmMessage, ToolCall, ToolResultMessage, UserMessage
from swink.messages.history import History
from swink.messages.message import text_of
from swink.serve import wire
from swink.serve.openai.parts import block_of
from swink.serve.openaiwire import (
    check_count,
    read_format,
    read_history,
    read_tool_choice,
    read_tools,
    wants_counts,
)
from swink.serve.wire import Refused, ServedTool, fields, members

_BOTH = frozenset(
    {"model", "tools", "tool_choice", "stream", "stream_options", "user", "store", "metadata"}
) | {
    "temperature",
    "top_p",
}
_CHAT = _BOTH | {"messages", "response_format", "n", "stop", "seed", "max_tokens", "max_completion_tokens"}
_RESPONSES = _BOTH | {"input", "instructions", "text", "previous_response_id", "max_output_tokens"}


class AskedOfAgent(Struct, frozen=True):
    """One request, as an agent is asked."""

    messages: tuple[LlmMessage, ...]
    """The history up to the new input; with `previous` only what is new."""
    instructions: str = ""
    """The client's system prompt, which goes with the agent's own."""
    tools: tuple[ServedTool, ...] = ()
    output: stream.OutputSchema | None = None
    options: Mapping[str, Any] = {}
    """What the client changes of the agent's `StreamOptions`."""
    stream: bool = False
    counts: bool = True
    previous: str | None = None
    """The response that is continued."""
    store: bool = False
    ignored: tuple[str, ...] = ()
    """Fields that change nothing here."""


def read_chat(body: Any) -> AskedOfAgent:
    """A body of `/v1/chat/completions`; raises `Refused`."""
    with _refusing():
        return _chat(body)


def read_responses(body: Any) -> AskedOfAgent:
    """A body of `/v1/responses`; raises `Refused`."""
    with _refusing():
        return _responses(body)


@contextmanager
def _refusing() -> Generator[None]:
    """What a message cannot hold is the client's mistake."""
    try:
        yield
    except (InvalidInput, BrokenHistory) as error:
        raise Refused(400, str(error)) from None


def _chat(body: Any) -> AskedOfAgent:
    request = wire.read_request(body)
    check_count(request)
    system, history = read_history(members(request["messages"]), block_of)
    _check_end(history, "messages")
    History(history)  # refuses results without calls
    return AskedOfAgent(
        tuple(history),
        system,
        _tools(request, tuple(read_tools(members(request.get("tools"))))),
        read_format(request.get("response_format")),
        _options(
            request,
            max_tokens=request.get("max_completion_tokens") or request.get("max_tokens"),
            seed=request.get("seed"),
            stop=request.get("stop"),
        ),
        bool(request.get("stream")),
        wants_counts(request),
        ignored=_ignored(request, _CHAT),
    )


def _responses(body: Any) -> AskedOfAgent:
    request = fields(body)
    for name in ("background", "conversation", "prompt"):
        if request.get(name):
            raise Refused(400, f"{name} is not known here; previous_response_id goes on")
    previous = request.get("previous_response_id")
    if not isinstance(previous, str | None):
        raise Refused(400, "previous_response_id is the id of a response")
    system, history = _items(request.get("input"))
    instructions = request.get("instructions")
    if isinstance(instructions, str) and instructions:
        system.insert(0, instructions)
    _check_end(history, "input")
    if previous is None:
        History(history)  # refuses results without calls
    elif any(isinstance(message, AssistantMessage) for message in history):
        raise Refused(400, "with previous_response_id, the input is what is new: no replies and no calls")
    tools = tuple(_function(tool) for tool in members(request.get("tools")))
    return AskedOfAgent(
        tuple(history),
        "\n\n".join(system),
        _tools(request, tools),
        _text_format(fields(request.get("text")).get("format")),
        _options(request, max_tokens=request.get("max_output_tokens")),
        bool(request.get("stream")),
        previous=previous,
        store=request.get("store") is not False,
        ignored=_ignored(request, _RESPONSES),
    )


def _options(request: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    given |= {"temperature": request.get("temperature"), "top_p": request.get("top_p")}
    found = {name: value for name, value in given.items() if value is not None}
    wire.options_of(**found)  # refuses what cannot be
    return found


def _ignored(request: Mapping[str, Any], known: frozenset[str]) -> tuple[str, ...]:
    return tuple(str(name) for name, value in request.items() if name not in known and value is not None)


def _check_end(history: list[LlmMessage], field: str) -> None:
    if not history or isinstance(history[-1], AssistantMessage):
        raise Refused(400, f"{field} ends with what the user says, or with the results of tools")


def _tools(request: Mapping[str, Any], tools: tuple[ServedTool, ...]) -> tuple[ServedTool, ...]:
    """The client's tools that may be called: the agent decides which of them are."""
    choice = request.get("tool_choice")
    name = fields(choice).get("name")
    chosen = name if isinstance(name, str) else read_tool_choice(choice)
    if chosen not in (None, "auto", "none"):
        raise Refused(400, 'the agent decides which tools it calls; tool_choice is "auto" or "none"')
    return () if chosen == "none" else tools


def _function(tool: Any) -> ServedTool:
    match tool:
        case {"type": "function", "name": str() as name}:
            about = fields(tool)
            return wire.served_tool(name, about, about.get("parameters"))
        case {"type": str(kind)} if kind != "function":
            raise Refused(400, f"a tool of type {kind[:40]!r} is not known here; give functions")
        case _:
            raise Refused(400, "a tool has the type function, and a name")


def _text_format(format: Any) -> stream.OutputSchema | None:
    match format:
        case {"type": "json_schema", "schema": schema}:
            return stream.OutputSchema(str(fields(format).get("name", "output")), fields(schema))
        case _:
            return read_format(format)


def _items(given: Any) -> tuple[list[str], list[LlmMessage]]:
    """The system prompts and the messages of an input; the items of one reply become one message."""
    if isinstance(given, str):
        return [], [UserMessage(given)]
    system: list[str] = []
    history: list[LlmMessage] = []
    reply: list[Any] = []
    names: dict[str, str] = {}
    for at, item in enumerate(members(given)):
        where = f"input[{at}]"
        about = fields(item)
        match item:
            case {"type": "function_call", "call_id": str(id), "name": str(name), "arguments": str(text)}:
                names[id] = name
                reply.append(ToolCall(id, name, stream.parse_arguments(text) or {}))
                continue
            case {"role": "assistant"}:
                reply += _blocks(about.get("content"), where)
                continue
            case {"type": "reasoning"}:
                continue  # what the agent thought is its own, and a summary is not what it thought
            case {"role": "system" | "developer"}:
                system.append(text_of(_blocks(about.get("content"), where)))
                continue
            case {"type": "function_call_output", "call_id": str(id)}:
                said = ToolResultMessage(id, names.get(id, "tool"), _blocks(about.get("output"), where))
            case {"role": "user"}:
                said = UserMessage(_blocks(about.get("content"), where))
            case _:
                raise Refused(400, f"{where} is no message, function_call or function_call_output")
        if reply:
            history.append(AssistantMessage(reply))
            reply = []
        history.append(said)
    return system, [*history, AssistantMessage(reply)] if reply else history


def _blocks(content: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(content, str | list):
        raise Refused(400, f"{where} has content that is neither text nor a list of parts")
    parts: list[Any] = [content] if isinstance(content, str) else members(content)
    return tuple(block_of(part, where) for part in parts)
