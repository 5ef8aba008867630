"""Conversations in the page: the transcript of an attempt as rows, without secrets, cut to the room there is.

["system" | "prompt" | "thinking" | "reply" | "note" | "failed" | "usage", text]
["tool", name, gist, state, seconds or null, [[argument, text], …], result, diff]
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from swink.eval.result import CaseResult
from swink.events.transcript import (
    Block,
    Compacted,
    Custom,
    Ended,
    NoticeBlock,
    PromptBlock,
    ReplyBlock,
    Spent,
    ThinkingBlock,
    ToolBlock,
    Transcript,
)
from swink.events.transcript.blockkinds import json_of
from swink.memory.exports.clean import clean_message
from swink.memory.exports.facts import NAMES, STATES, gist_of
from swink.messages import AssistantMessage, Base64Source, Image, Message, Text, UrlSource
from swink.messages.jsondata import decode, encode
from swink.messages.records import saved
from swink.messages.redact import redact_text, redact_value

Row = list[Any]

_LONGEST = 8_000  # characters of one text, however much room there is
_SHORTEST = 240
"""Characters of one text that are worth showing; with less room for each, rows in the middle are left out."""
_WHOLE = "the whole text is in results.jsonl"


def conversation(attempt: CaseResult, room: int) -> list[Row]:
    """The rows of an attempt, in about `room` characters."""
    seconds = {call.id: call.duration for call in attempt.calls if call.ran}
    blocks = Transcript.of([saved(_joined(m), n) for n, m in enumerate(attempt.transcript)]).blocks
    rows = [["system", attempt.system_prompt]] if attempt.system_prompt else []
    rows += [row for block in blocks for row in _rows(block, seconds)]
    most = max(4, room // _SHORTEST)
    if len(rows) > most:
        left_out = len(rows) - most
        note = f"… {left_out:,} more steps are left out here; all of them are in results.jsonl …"
        rows = [*rows[: most // 2], ["note", note], *rows[-(most - most // 2) :]]
    level = _level([len(text) for row in rows for text in _texts(row)], room)
    return [_cut_row(row, max(80, min(level, _LONGEST))) for row in rows]


def _joined(message: Message) -> Message:
    """A secret may begin in one text of a reply and end in the next: such replies are redacted whole."""
    if isinstance(message, AssistantMessage) and sum(isinstance(part, Text) for part in message.content) > 1:
        return clean_message(message)
    return message


def _rows(block: Block, seconds: Mapping[str, float]) -> Iterator[Row]:
    match block:
        case PromptBlock():
            yield ["prompt", block.text]
            yield from _images(block.images)
        case ReplyBlock():
            if block.text.strip():
                yield ["reply", block.text]
            yield from _images(block.images)
        case ThinkingBlock():
            if block.text.strip():
                yield ["thinking", block.text]
        case ToolBlock():
            yield _tool(block, seconds)
            yield from _images(block.images)
        case NoticeBlock(notice=Spent() as spent):
            yield ["usage", f"{spent.model} · {spent}"]
        case NoticeBlock(notice=Custom(name, data) as custom) if data is not None and not custom.text:
            yield ["note", f"{NAMES.get(name, name)}: {json_of(redact_value(decode(encode(data))))}"]
        case NoticeBlock(notice=Compacted(summary=summary) as compacted) if summary:
            yield ["note", f"{compacted}\n\n{summary}"]
        case NoticeBlock(notice=Ended(stop_reason="error") as ended):
            yield ["failed", str(ended)]
        case NoticeBlock(notice=notice):
            yield ["note", str(notice)]


def _tool(call: ToolBlock, seconds: Mapping[str, float]) -> Row:
    arguments: Mapping[str, Any] = redact_value(decode(encode(dict(call.arguments))))
    told = [[name, item if isinstance(item, str) else json_of(item)] for name, item in arguments.items()]
    if call.partial is not None:
        told = [["as they arrived", call.partial]]
    told, changed = (told, "") if call.diff is None else ([], call.diff.unified)
    duration = round(seconds[call.call_id], 3) if call.call_id in seconds else None
    shown = call.name, redact_text(gist_of(call)), STATES[call.state]
    return ["tool", *shown, duration, told, call.text, changed]


def _images(images: Iterable[Image]) -> Iterator[Row]:
    for image in images:
        match image.source:
            case UrlSource(url) if not url.startswith("data:"):
                yield ["note", f"image: {url}"]
            case Base64Source(data, media_type):
                yield ["note", f"image ({media_type}, {len(data) * 3 // 4:,} bytes): see results.jsonl"]
            case _:
                yield ["note", "image: see results.jsonl"]


def _texts(row: Row) -> Iterator[str]:
    """The texts of a row that may be long."""
    if row[0] != "tool":
        yield row[1]
        return
    yield from (text for _, text in row[5])
    yield from row[6:]


def _cut_row(row: Row, most: int) -> Row:
    if row[0] != "tool":
        return [row[0], _cut(row[1], most)]
    arguments = [[name, _cut(text, most)] for name, text in row[5]]
    return [row[0], *row[1:5], arguments, _cut(row[6], most), _cut(row[7], most)]


def _cut(text: str, most: int) -> str:
    """The text without secrets; a long one's beginning and end.

    More of it than is kept is looked through: half of a secret at the edge would not be known as one.
    """
    if len(text) <= most:
        return redact_text(text)
    head, tail = most * 2 // 3, most // 3
    first = redact_text(text[: 2 * head + 1_000])[:head]
    last = redact_text(text[-(2 * tail + 1_000) :])[-tail:]
    return f"{first}\n\n… {len(text) - head - tail:,} characters left out; {_WHOLE} …\n\n{last}"


def _level(lengths: Sequence[int], room: int) -> int:
    """The length to cut texts to so that all fit: short ones stay whole and leave room to others."""
    left = room
    for index, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - index)
        if length > share:
            return share
        left -= length
    return room
