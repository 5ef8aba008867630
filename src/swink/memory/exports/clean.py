"""Records without secrets: every text, argument, detail and state in them redacted, everything else kept."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import convert, to_builtins
from msgspec.structs import replace

from swink.memory.meta import SessionMeta
from swink.messages import (
    AssistantMessage,
    Audio,
    Citation,
    CustomMessage,
    Document,
    Extension,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UrlSource,
    UserMessage,
)
from swink.messages.jsondata import decode, encode
from swink.messages.readonly import freeze
from swink.messages.records import (
    CallEnded,
    Compaction,
    CustomSaved,
    FilesChanged,
    Label,
    MessageSaved,
    PendingApproval,
    PromptChange,
    QueueChange,
    Record,
    StateChange,
    TurnOpened,
    UnknownRecord,
)
from swink.messages.redact import MARK, redact_text, redact_value, secret_spans

T = TypeVar("T")


def clean_meta(meta: SessionMeta) -> SessionMeta:
    """The metadata with secrets in its title and directory redacted."""
    directory = None if meta.directory is None else redact_text(meta.directory)
    return replace(meta, title=redact_text(meta.title), directory=directory)


def clean_record(record: Record) -> Record:
    """The record with every text, argument, detail and state in it redacted."""
    match record:
        case MessageSaved(message) | CustomSaved(message):
            return replace(record, message=cast(Any, clean_message(message)))
        case StateChange(state):
            return StateChange(_redacted(state))
        case PromptChange(text):
            return PromptChange(redact_text(text))
        case QueueChange(steering, follow_up):
            return QueueChange([*map(clean_message, steering)], [*map(clean_message, follow_up)])
        case Compaction(kept):
            clean = [item if isinstance(item, int) else clean_message(item) for item in kept]
            return replace(record, kept=clean)
        case Label(text):
            return replace(record, text=redact_text(text))
        case TurnOpened(reply):
            return TurnOpened(cast(AssistantMessage, clean_message(reply)))
        case CallEnded(_, ToolResult(content, details) as result):
            result = ToolResult(_clean_blocks(content), _redacted(details), result.is_error)
            return replace(record, result=result)
        case PendingApproval(_, _, arguments, shown):
            return replace(record, arguments=_redacted(arguments), shown=_redacted(shown))
        case FilesChanged(directory=directory):
            return replace(record, directory=redact_text(directory))
        case UnknownRecord(_, data):
            return replace(record, data={**_redacted(data), "type": record.type})
        case _:
            return record


def clean_message(message: Message) -> Message:
    """The message with its content, details and error redacted."""
    match message:
        case UserMessage(content):
            return replace(message, content=_clean_blocks(content))
        case ToolResultMessage(content=content, details=details):
            return replace(message, content=_clean_blocks(content), details=_redacted(details))
        case AssistantMessage(content=content, error_message=error):
            error = None if error is None else redact_text(error)
            return replace(message, content=_clean_blocks(content), error_message=error)
        case CustomMessage(kind, data, timestamp):
            data = _redacted(data)
            try:
                return CustomMessage(kind, data, timestamp)
            except msgspec.ValidationError:  # the registered class takes no mark in that place
                return CustomMessage(f"{kind} {MARK}", data, timestamp)


def _clean_blocks(content: Sequence[T]) -> tuple[T, ...]:
    """Blocks without secrets, also such as begin in one text and end in another: they are read as one."""
    texts = _clean_texts([block.text for block in content if isinstance(block, Text)])
    thoughts = _clean_texts([block.text for block in content if isinstance(block, Thinking)])
    blocks: list[Any] = []
    for block in cast("Sequence[Any]", content):
        match block:
            case Text():
                cited = tuple([convert(_redacted(to_builtins(item)), Citation) for item in block.citations])
                text = next(texts)
                blocks.append(Text(text, cited, block.signature if text == block.text else None))
            case Thinking():
                blocks.append(replace(block, text=next(thoughts)))
            case ToolCall(arguments=arguments, partial_json=partial):
                partial = None if partial is None else redact_text(partial)
                clean = freeze(_redacted(arguments), "arguments")
                blocks.append(replace(block, arguments=clean, partial_json=partial))
            case Image(UrlSource(url)) if not url.startswith("data:"):
                blocks.append(Image(UrlSource(redact_text(url))))
            case Document() | Audio():
                blocks.append(_clean_media(block))
            case Extension(name, data, shown):
                blocks.append(Extension(name, _redacted(data), redact_text(shown)))
            case _:
                blocks.append(block)
    return tuple(blocks)


def _clean_media(block: Document | Audio) -> Document | Audio:
    if isinstance(source := block.source, UrlSource) and not source.url.startswith("data:"):
        block = replace(block, source=UrlSource(redact_text(source.url)))
    return block.with_texts(redact_text) if isinstance(block, Document) else block


def _clean_texts(texts: Sequence[str]) -> Iterator[str]:
    """Each text without secrets, and without the part of one that continues in the next text."""
    if len(texts) < 2:
        return iter([redact_text(text) for text in texts])
    spans = secret_spans("".join(texts))
    clean: list[str] = []
    at = 0
    for text in texts:
        end = at + len(text)
        parts: list[str] = []
        position = at
        for start, stop in spans:
            if start >= end or stop <= at:
                continue
            parts += [text[position - at : max(start, at) - at], MARK if start >= at else ""]
            position = min(stop, end)
        # By itself too: joined to the text before, a secret may look like the end of a word.
        clean.append(redact_text("".join([*parts, text[position - at :]])))
        at = end
    return iter(clean)


def _redacted(value: Any) -> Any:
    """Any value as JSON data without secrets."""
    return value if value is None else redact_value(decode(encode(value)))
