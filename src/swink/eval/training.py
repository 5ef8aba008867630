"""Training data: the conversations of attempts that passed, as lines of JSON without secrets.

openai      {"messages": [system, user, assistant with tool_calls, tool, …], "tools": […]}
sharegpt    {"conversations": [{"from": …, "value": …}], "system": …, "tools": …}

A conversation is written once, whole or not at all: one that a format cannot hold is skipped and named.
Thinking is left out: it is the provider's own.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.errors import AgentError
from swink.eval.result import CaseResult
from swink.eval.resultfile import open_results
from swink.messages.blocks import Extension, Media, Thinking, ToolCall
from swink.messages.checks import check_word
from swink.messages.message import AssistantMessage, CustomMessage, LlmMessage, ToolResultMessage
from swink.messages.modelspec import ModelSpec
from swink.messages.redact import redact_text, redact_texts, redact_value
from swink.providers.chat.conversation import ChatConversation
from swink.providers.chat.dialect import ChatDialect
from swink.providers.convert import paired_messages
from swink.system.files import whole_file

TrainingFormat = Literal["openai", "sharegpt"]
_DIALECT = ChatDialect("openai", documents="file", audio="object")
_MODEL = ModelSpec("openai", "training")


class Skipped(Struct, frozen=True):
    """An attempt that is not written, and why."""

    case_id: str
    repeat: int
    why: str


class TrainingExport(Struct, frozen=True):
    """What was written, and which attempts that passed were not."""

    written: int
    skipped: tuple[Skipped, ...] = ()


class _Unfit(AgentError):
    """A conversation that cannot be written whole."""

    kind = "misuse"


def export_training(
    directory: str | Path, path: str | Path, format: TrainingFormat = "openai"
) -> TrainingExport:
    """Write the attempts of the run in `directory` that passed to a file at `path`, whole or not at all.

    Args:
        format: "openai" or "sharegpt"
    """
    check_word("format", format, ("openai", "sharegpt"))
    seen: set[bytes] = set()
    skipped: list[Skipped] = []
    with whole_file(path, make_parents=True) as file:
        for result in open_results(directory):
            if not result.passed:
                continue
            try:
                line = msgspec.json.encode(training_example(result, format))
            except AgentError as error:
                skipped.append(Skipped(result.case_id, result.repeat, str(error)))
                continue
            digest = hashlib.sha256(line).digest()
            if digest not in seen:
                seen.add(digest)
                file.write(line + b"\n")
    return TrainingExport(len(seen), tuple(skipped))


def training_example(result: CaseResult, format: TrainingFormat = "openai") -> dict[str, Any]:
    """The conversation of one attempt in a format; an `AgentError` says why it cannot be written whole."""
    messages = _whole(result)
    system = redact_text(result.system_prompt)
    tools = [{"type": "function", "function": redact_texts(tool)} for tool in result.tools]
    match format:
        case "openai":
            chat = ChatConversation(_MODEL, _DIALECT)
            for message in messages:
                chat.add(_with_safe_calls(message))
            said = [_with_safe_text(item) for item in chat.items]
            lead: list[Any] = [{"role": "system", "content": system}] if system.strip() else []
            return {"messages": lead + said} | ({"tools": tools} if tools else {})
        case "sharegpt":
            example: dict[str, Any] = {"conversations": _turns(messages)}
            example |= {"system": system} if system.strip() else {}
            return example | ({"tools": _text(tools)} if tools else {})


def _whole(result: CaseResult) -> Sequence[LlmMessage]:
    """The messages that the model saw, if they are a whole conversation."""
    messages = [message for message in result.transcript if not isinstance(message, CustomMessage)]
    if not messages:
        raise _Unfit("there is no transcript")
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    if any(reply.failed for reply in replies):
        raise _Unfit("a reply failed on the way")
    calls = [call.id for reply in replies for call in reply.tool_calls]
    results = [message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)]
    if sorted(calls) != sorted(results):
        raise _Unfit("not every tool call has its result")
    last = messages[-1]
    if not isinstance(last, AssistantMessage) or last.tool_calls or not last.text.strip():
        raise _Unfit("it does not end with an answer")
    if any(isinstance(block, Extension) for message in messages for block in message.content):
        raise _Unfit("it has content that only its provider can read")
    return paired_messages(messages)


def _with_safe_calls(message: LlmMessage) -> LlmMessage:
    """A message without thinking, whose calls have no secrets in their arguments."""
    if not isinstance(message, AssistantMessage):
        return message
    content = [
        replace(block, arguments=redact_value(block.arguments)) if isinstance(block, ToolCall) else block
        for block in message.content
        if not isinstance(block, Thinking)
    ]
    return replace(message, content=tuple(content))


def _with_safe_text(item: Mapping[str, Any]) -> dict[str, Any]:
    """A chat message without secrets in its text; the bytes of an image stay as they are."""
    content = item["content"]
    if isinstance(content, str):
        return {**item, "content": redact_text(content)}
    if content is None:
        return dict(item)
    parts = [
        {**part, "text": redact_text(part["text"])} if part.get("type") == "text" else part
        for part in content
    ]
    return {**item, "content": parts}


def _turns(messages: Sequence[LlmMessage]) -> list[dict[str, str]]:
    """The conversation as turns; calls made at once are a list, and so are their results."""
    turns: list[dict[str, str]] = []
    observed: list[ToolResultMessage] = []

    def put(speaker: str, value: str) -> None:
        if turns and turns[-1]["from"] == speaker == "human":
            turns[-1]["value"] += f"\n\n{value}"
        else:
            turns.append({"from": speaker, "value": value})

    for message in messages:
        if any(isinstance(block, Media) for block in message.content):
            raise _Unfit("it has images, documents or sound, which this format has no place for")
        if isinstance(message, ToolResultMessage):
            observed.append(message)
            continue
        if observed:
            texts = [redact_text(result.text) for result in observed]
            named = [result.tool_name for result in observed]
            told = [{"name": name, "content": text} for name, text in zip(named, texts, strict=True)]
            put("observation", texts[0] if len(texts) == 1 else _text(told))
            observed = []
        if isinstance(message, AssistantMessage):
            if message.text:
                put("gpt", redact_text(message.text))
            calls = message.tool_calls
            made = [{"name": call.name, "arguments": redact_value(call.arguments)} for call in calls]
            if made:
                put("function_call", _text(made[0] if len(made) == 1 else made))
        else:
            put("human", redact_text(message.text))
    return turns


def _text(data: Any) -> str:
    return msgspec.json.encode(data).decode()
