"""Differences: where a request first differs from the recording that is nearest to it."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from swink.system.shorten import clip_end, clip_list

_PARTS = ("model", "system_prompt", "tools", "hosted", "output", "options")
_MOST_LINES = 40
_LONGEST_LINE = 300
_MOST_COMPARED = 20

Request = Mapping[str, Any]


def first_difference(asked: Request, recorded: Sequence[Request]) -> str:
    """What is the first thing that differs from the nearest of the recorded requests, as a short diff."""
    number, nearest = _nearest(asked, recorded)
    where, before, now = _first(nearest, asked)
    of = f"recording {number + 1} of {len(recorded)}"
    lines = difflib.unified_diff(_lines(before), _lines(now), "recorded", "asked", n=1, lineterm="")
    shown = clip_list(
        [clip_end(line, _LONGEST_LINE) for line in lines], _MOST_LINES, "… {} more lines differ"
    )
    return f"this request was not recorded; it first differs from {of} in {where}:\n" + "\n".join(shown)


def _nearest(asked: Request, recorded: Sequence[Request]) -> tuple[int, Request]:
    """The recording that shares the longest beginning of the conversation, then most of the rest."""
    ranks = [(_shared(request, asked), _same_parts(request, asked)) for request in recorded]
    best = max(ranks)
    candidates = [number for number, rank in enumerate(ranks) if rank == best][:_MOST_COMPARED]
    number = max(candidates, key=lambda number: _likeness(recorded[number], asked))
    return number, recorded[number]


def _shared(one: Request, other: Request) -> int:
    count = 0
    for mine, theirs in zip(_messages(one), _messages(other), strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _same_parts(one: Request, other: Request) -> int:
    return sum(one.get(part) == other.get(part) for part in _PARTS)


def _likeness(one: Request, other: Request) -> tuple[bool, float]:
    same_length = len(_messages(one)) == len(_messages(other))
    _, mine, theirs = _first(one, other)
    before, now = ("\n".join(_lines(value))[:2000] for value in (mine, theirs))
    return same_length, difflib.SequenceMatcher(None, before, now, autojunk=False).quick_ratio()


def _first(recorded: Request, asked: Request) -> tuple[str, Any, Any]:
    """The name of the first part that differs, as it was recorded and as it is now."""
    for part in _PARTS:
        if recorded.get(part) != asked.get(part):
            return _within(part, recorded.get(part), asked.get(part))
    before, now = _messages(recorded), _messages(asked)
    for number in range(max(len(before), len(now))):
        mine = before[number] if number < len(before) else None
        theirs = now[number] if number < len(now) else None
        if mine != theirs:
            return f"message {number + 1} of {len(now)} ({_kind(theirs or mine)})", mine, theirs
    return "the whole request", recorded, asked


def _within(part: str, before: Any, now: Any) -> tuple[str, Any, Any]:
    """The tool, or the field of the model and of the options, that differs."""
    if part == "tools":
        old, new = (
            {str(tool.get("name")): tool for tool in cast("list[dict[str, Any]]", tools or [])}
            for tools in (before, now)
        )
        if missing := [*(old.keys() - new.keys()), *(new.keys() - old.keys())]:
            return f"the tools: {', '.join(sorted(missing))}", "\n".join(old), "\n".join(new)
        for name in old:
            if old.get(name) != new.get(name):
                return f"the tool {name!r}", old.get(name), new.get(name)
        return "the order of the tools", list(old), list(new)
    if isinstance(before, dict) and isinstance(now, dict):
        mine, theirs = cast("dict[str, Any]", before), cast("dict[str, Any]", now)
        for name in sorted({*mine, *theirs}):
            if mine.get(name) != theirs.get(name):
                return f"{part}.{name}", mine.get(name), theirs.get(name)
    return f"the {part.replace('_', ' ')}", cast(Any, before), cast(Any, now)


def _kind(message: Any) -> str:
    role = {"user": "the user's", "assistant": "the model's"}.get(message.get("role"))
    return role or f"the result of {message.get('tool_name') or 'a tool'}"


def _messages(request: Request) -> list[Any]:
    return request.get("messages") or []


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines()
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1).decode().splitlines()
