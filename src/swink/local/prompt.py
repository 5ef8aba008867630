"""What a local model is asked: the history as chat messages, and which kind of reply is wanted.

    tools, and tool_choice "required" or a name     ─▶ one call, forced by a grammar
    tools, and a message that needs one             ─▶ one call, forced by a grammar (`callneed`)
    tools                                           ─▶ one call or words, as the model chooses
    no tools, tool_choice "none", or a call again   ─▶ words

A small model does not know when to stop calling; this module does, so that every run ends. Models whose
template takes tools get them natively (`Native`).
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, cast

from msgspec import Struct

from swink.errors import StreamError
from swink.local.callgrammar import call_text
from swink.local.callneed import choose_tools, find_need
from swink.local.describe import describe_output, describe_tools, example_talk, strip_hints
from swink.local.gguf import GgufHead
from swink.local.schemas import compact
from swink.messages import (
    AssistantMessage,
    Audio,
    ContentBlock,
    Document,
    Image,
    LlmMessage,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from swink.stream import LlmContext, StreamOptions, ToolSpec

MAX_CALLS = 8
"""Calls since the user's message after which words are asked for."""

NO_IMAGE = "[an image; this model cannot see images]"
_NOT_SEEN = {"Image": NO_IMAGE, "Audio": "[a recording; this model cannot hear]"}
_FRAGILE = frozenset(
    {"pattern", "format", "minLength", "maxLength", "minItems", "maxItems"}
    | {"uniqueItems", "default", "additionalProperties"}
)


class ForcedCall(Struct, frozen=True):
    """One call is wanted, to one of these tools; `varied` if the model is repeating itself."""

    tools: tuple[ToolSpec, ...]
    varied: bool = False


class Choice(Struct, frozen=True):
    """A call or words, as the model likes; `made` are the calls of this turn, which it may not repeat.

    If `must_call`, words are for a call that was made before.
    """

    tools: tuple[ToolSpec, ...]
    made: tuple[tuple[str, str], ...] = ()
    must_call: bool = False


class Answer(Struct, frozen=True):
    """Text is wanted; `after_calls` if the prompt contains calls that the model might imitate."""

    after_calls: bool = False


class Native(Struct, frozen=True):
    """The chat template takes the tools, and llama.cpp parses the calls."""

    tools: tuple[ToolSpec, ...]
    choice: Literal["auto", "required", "none"] = "auto"


class NativeCall(Struct, frozen=True):
    """The chat template takes the tools, and one call to an `offered` one is wanted, which is not in `made`.

    llama.cpp's own way to require a call lets a model write words before it, for ever; therefore it is
    written in our form, under our grammar, and the template repeats it in its own.
    """

    tools: tuple[ToolSpec, ...]
    offered: tuple[ToolSpec, ...]
    made: tuple[tuple[str, str], ...] = ()


class Output(Struct, frozen=True):
    """JSON of a schema is wanted, as text."""

    schema: Mapping[str, Any]


Wanted = ForcedCall | Choice | Answer | Native | NativeCall | Output


def wanted_reply(
    context: LlmContext, options: StreamOptions, head: GgufHead = GgufHead(), *, native: bool = True
) -> Wanted:
    """Which kind of reply to ask for; without `native`, tools are never left to the chat template."""
    if context.output is not None:
        if context.tools and options.tool_choice != "none":
            raise StreamError("a local model takes tools or an output schema, not both in one request")
        return Output(context.output.schema)
    native = native and head.knows_tools
    tools, choice = tuple(context.tools), options.tool_choice
    calls = _calls_of_this_turn(context.messages)
    repeating = len(calls) > 1 and calls[-1] == calls[-2]
    called = any(isinstance(message, AssistantMessage) and message.tool_calls for message in context.messages)
    answer = Native(tools, "none") if native and tools else Answer(after_calls=called and not native)
    match choice:
        case _ if not tools or choice == "none":
            return answer
        case "required":
            if repeating or len(calls) >= MAX_CALLS:
                return answer
            return Native(tools, "required") if head.has_channels else ForcedCall(tools)
        case None | "auto":
            need = find_need(context.messages, tools)
            if need == "words" or (repeating if native else len(calls) >= MAX_CALLS):
                return answer
            if native and (need != "call" or head.has_channels or len(calls) >= MAX_CALLS):
                return Native(tools)
            offered = choose_tools(context.messages, tools)
            if native:
                return NativeCall(tools, offered, tuple(calls))
            return Choice(offered, tuple(calls), must_call=need == "call")
        case name:
            named = tuple(tool for tool in tools if tool.name == name)
            if not named:
                known = ", ".join(tool.name for tool in tools)
                raise StreamError(f"tool_choice names {name!r}, which is not among the tools: {known}")
            return Native(named, "required") if head.has_channels else ForcedCall(named, varied=repeating)


def chat_messages(context: LlmContext, wanted: Wanted, options: StreamOptions) -> list[dict[str, Any]]:
    """The messages of a request: plain text, or with native calls and results if the template takes them."""
    if isinstance(wanted, Native | NativeCall):
        messages = [entry for message in context.messages for entry in _native(message)]
        system = [{"role": "system", "content": context.system_prompt}] if context.system_prompt else []
        return [*system, *messages]
    # With "none" no tools are mentioned; otherwise every request begins the same, for the prompt cache.
    tools = () if options.tool_choice == "none" else context.tools
    output = describe_output(wanted.schema) if isinstance(wanted, Output) else ""
    system = "\n\n".join(part for part in (context.system_prompt, describe_tools(tools), output) if part)
    turns: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    if options.tool_choice in (None, "auto"):
        turns += [{"role": role, "content": text} for role, text in example_talk(tools)]
    for message in context.messages:
        role, text = _plain(message)
        if not text.strip():
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{text}"  # many templates require alternating roles
        else:
            turns.append({"role": role, "content": text})
    return turns


def native_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The tools as the chat template takes them."""
    functions = [
        {
            "name": tool.name,
            "description": strip_hints(tool.description),
            "parameters": _loosened(tool.parameters_schema),
        }
        for tool in tools
    ]
    return [{"type": "function", "function": function} for function in functions]


def _loosened(schema: Any, *, named: bool = False) -> Any:
    """The schema without keywords that llama.cpp's conversion rejects; arguments are validated anyway."""
    if isinstance(schema, list):
        return [_loosened(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    items, data = cast("dict[str, Any]", schema).items(), ("enum", "const", "required")
    return {
        key: value if key in data else _loosened(value, named=key in ("properties", "$defs"))
        for key, value in items
        if named or key not in _FRAGILE
    }


def _calls_of_this_turn(messages: Sequence[LlmMessage]) -> list[tuple[str, str]]:
    """The calls since the last user message, each as its name and arguments."""
    calls: list[tuple[str, str]] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            break
        if isinstance(message, AssistantMessage):
            calls[:0] = [(call.name, compact(call.arguments)) for call in message.tool_calls]
    return calls


def _plain(message: LlmMessage) -> tuple[str, str]:
    match message:
        case UserMessage():
            return "user", "\n\n".join(filter(None, map(_user_text, message.content)))
        case AssistantMessage():
            return "assistant", "\n".join(filter(None, (message.text, *map(call_text, message.tool_calls))))
        case ToolResultMessage():
            head = "failed" if message.is_error else "returned"
            return "user", f"{message.tool_name} {head}: {_result_text(message.content)}"


def _user_text(block: ContentBlock) -> str:
    match block:
        case Text(text):
            return text
        case Document() if (text := block.text) is not None:
            return f"{block.title}:\n{text}" if block.title else text
        case Image() | Document() | Audio():
            kind = {"Image": "images", "Audio": "audio"}.get(type(block).__name__, "documents but text")
            raise StreamError(f"the local model takes no {kind}; send text only, or choose another model")
        case _:
            return ""


def _native(message: LlmMessage) -> list[dict[str, Any]]:
    match message:
        case ToolResultMessage():
            result = {"role": "tool", "tool_call_id": message.tool_call_id, "name": message.tool_name}
            return [{**result, "content": _result_text(message.content)}]
        case AssistantMessage() if message.tool_calls:
            calls = [_native_call(call) for call in message.tool_calls]
            return [{"role": "assistant", "content": message.text, "tool_calls": calls}]
        case _:
            role, text = _plain(message)
            return [{"role": role, "content": text}] if text.strip() else []


def _native_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": compact(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _result_text(content: Sequence[ContentBlock]) -> str:
    others = [_NOT_SEEN.get(type(block).__name__, "") for block in content]
    documents = [block.text or "" for block in content if isinstance(block, Document)]
    return "\n".join(part for part in (text_of(content), *documents, *others) if part) or "(nothing)"


_NO_WIDTH = "\u200b"


def as_text(value: Any, tokens: tuple[str, ...]) -> Any:
    """A text, or data with texts in it, in which none of the tokens is left."""
    if not tokens:
        return value
    return _as_text(value, _pattern(tokens))


def _as_text(value: Any, pattern: re.Pattern[str]) -> Any:
    match value:
        case str():
            return pattern.sub(rf"\g<0>{_NO_WIDTH}", value)
        case Mapping():
            items = cast("Mapping[Any, Any]", value).items()
            return {_as_text(key, pattern): _as_text(inner, pattern) for key, inner in items}
        case list() | tuple():
            return [_as_text(inner, pattern) for inner in cast("list[Any]", value)]
        case _:
            return value


@lru_cache(8)
def _pattern(tokens: tuple[str, ...]) -> re.Pattern[str]:
    """The first character of each occurrence, of overlapping ones too."""
    return re.compile(f"(?=(?:{'|'.join(map(re.escape, tokens))})).", re.DOTALL)
