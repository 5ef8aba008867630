"""Scrubbing: a conversation without secrets, even those that are split over several deltas or blocks."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from swink.messages import clean
from swink.messages.codec import plain
from swink.messages.redact import MARK, redact_text, redact_value
from swink.stream import (
    AssistantMessageEvent,
    BlockAdded,
    Error,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    parse_arguments,
)

Secrets = Sequence[str]
Hide = Callable[[str], str]


def scrub(value: Any, secrets: Secrets = ()) -> Any:
    """A copy of JSON data without the `secrets` and without what looks like one, in values and names."""
    return redact_value(_each_text(value, lambda text: redact_text(clean(text), *secrets)))


def as_sent(value: Any) -> Any:
    """Any value of ours as plain JSON data, with text as providers are sent it: without lone surrogates."""
    return _each_text(msgspec.to_builtins(value, enc_hook=plain, str_keys=True), clean)


def scrub_messages(messages: Iterable[dict[str, Any]], secrets: Secrets = ()) -> list[dict[str, Any]]:
    """Messages as plain data without secrets, also those that are split over the texts of one message."""
    return [
        scrub({**message, "content": _scrub_jointly(message["content"], secrets)}, secrets)
        for message in messages
    ]


def scrub_events(
    events: Sequence[AssistantMessageEvent], secrets: Secrets = ()
) -> list[AssistantMessageEvent]:
    """A reply without secrets: as many events, of the same kinds."""
    scrubbed = [_scrub_event(event, secrets) for event in events]
    for kind in (TextDelta, ThinkingDelta):
        blocks = _by_block(events, kind)
        texts = ["".join(text for _, text in block) for block in blocks]
        for block, before, after in zip(blocks, texts, _redact_jointly(texts, secrets), strict=True):
            _put(scrubbed, block, _divide(before, after, [text for _, text in block]))
    for block in _by_block(events, ToolCallDelta):
        pieces = [text for _, text in block]
        _put(scrubbed, block, _divide("".join(pieces), _redact_arguments("".join(pieces), secrets), pieces))
    return scrubbed


def _scrub_event(event: AssistantMessageEvent, secrets: Secrets) -> AssistantMessageEvent:
    match event:
        case Error(message):
            return replace(event, message=scrub(message, secrets))
        case ToolCallStart(_, id, name):
            return replace(event, id=scrub(id, secrets), name=scrub(name, secrets))
        case ThinkingEnd(_, signature) | ToolCallEnd(_, signature) if signature is not None:
            return replace(event, signature=scrub(signature, secrets))
        case TextEnd() | BlockAdded():
            return msgspec.convert(scrub(as_sent(event), secrets), type(event))
        case _:
            return event


def _by_block(events: Sequence[AssistantMessageEvent], kind: type[Any]) -> list[list[tuple[int, str]]]:
    """For each block the places of its deltas among the events, with their texts."""
    blocks: dict[int, list[tuple[int, str]]] = {}
    for place, event in enumerate(events):
        if type(event) is kind:
            delta = cast(Any, event)
            blocks.setdefault(delta.index, []).append(
                (place, delta.json if kind is ToolCallDelta else delta.text)
            )
    return [blocks[index] for index in sorted(blocks)]


def _put(events: list[AssistantMessageEvent], block: list[tuple[int, str]], pieces: list[str]) -> None:
    for (place, before), text in zip(block, pieces, strict=True):
        if text != before:
            delta = cast(Any, events[place])
            events[place] = (
                replace(delta, json=text) if type(delta) is ToolCallDelta else replace(delta, text=text)
            )


def _redact_arguments(text: str, secrets: Secrets) -> str:
    """The JSON text of a call's arguments without secrets, still JSON if it was."""
    arguments = parse_arguments(text)
    if arguments is None:
        return redact_text(clean(text), *secrets)
    kept = scrub(arguments, secrets)
    return text if kept == arguments else msgspec.json.encode(kept).decode()


def _scrub_jointly(blocks: list[dict[str, Any]], secrets: Secrets) -> list[dict[str, Any]]:
    for kind in ("text", "thinking"):
        places = [
            place
            for place, block in enumerate(blocks)
            if block.get("type") == kind and isinstance(block.get(kind), str)
        ]
        texts = _redact_jointly([blocks[place][kind] for place in places], secrets)
        changed = {place: {**blocks[place], kind: text} for place, text in zip(places, texts, strict=True)}
        blocks = [changed.get(place, block) for place, block in enumerate(blocks)]
    return blocks


def _redact_jointly(texts: list[str], secrets: Secrets) -> list[str]:
    """The texts without secrets: first those that are split over several texts, then those within one."""
    whole = "".join(texts)
    divided = _divide(whole, redact_text(clean(whole), *secrets), texts) if len(texts) > 1 else texts
    return [redact_text(clean(text), *secrets) for text in divided]


def _divide(whole: str, hidden: str, pieces: list[str]) -> list[str]:
    """The redacted text, cut where the pieces were; a mark goes to the piece in which its secret began."""
    if hidden == whole:
        return pieces
    shared = _shared(whole, hidden)
    cuts = [
        0,
        *(_move(cut, shared, len(hidden)) for cut in list(accumulate(map(len, pieces)))[:-1]),
        len(hidden),
    ]
    return [hidden[start:end] for start, end in pairwise(cuts)]


def _shared(whole: str, hidden: str) -> list[tuple[int, int, int]]:
    """The stretches that both texts share: the start in `whole`, the start in `hidden`, and the length."""
    stretches: list[tuple[int, int, int]] = []
    before = after = 0
    *parts, last = hidden.split(MARK)
    for part in parts:
        found = whole.find(part, before) if part else before
        if found < 0:
            break
        stretches.append((found, after, len(part)))
        before, after = found + len(part) + 1, after + len(part) + len(MARK)
    if last and len(whole) - len(last) >= before and whole.endswith(last):
        stretches.append((len(whole) - len(last), len(hidden) - len(last), len(last)))
    return stretches


def _move(cut: int, shared: list[tuple[int, int, int]], end: int) -> int:
    """Where a cut through the whole text falls in the redacted one: behind the mark if it cuts a secret."""
    number = bisect_right(shared, cut, key=lambda stretch: stretch[0])
    if number:
        start, place, length = shared[number - 1]
        if cut <= start + length:
            return place + cut - start
    return shared[number][1] if number < len(shared) else end


def _each_text(value: Any, change: Hide) -> Any:
    match value:
        case str():
            return change(value)
        case Mapping():
            items = cast("Mapping[Any, Any]", value).items()
            return {
                change(name) if isinstance(name, str) else name: _each_text(item, change)
                for name, item in items
            }
        case list() | tuple():
            return [_each_text(item, change) for item in cast("Sequence[Any]", value)]
        case _:
            return value
