"""Calls in words: the agent's list of tasks and its questions to the user, which nobody reads as JSON.

todo        1 of 3 done, now: write the tests      ✓ look around   ▸ write the tests   · run them
ask_user    Which colour? (and 1 more question)    Which colour?     1 red     2 blue
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from swink.app.assistant.forms import ASK_USER, Item
from swink.events.transcript.blockkinds import counted
from swink.tools.coding.todo import STATE_KEY, Task

TODO = STATE_KEY
"""The name of the tool is that of its list."""
WORDED = (TODO, ASK_USER)
_SIGNS = {"done": "✓", "in_progress": "▸", "pending": "·"}
_MARKS = {"[x] ": "✓ ", "[>] ": "▸ ", "[ ] ": "· "}
_T = TypeVar("_T")


def call_lines(name: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """All that such a call says; None for another call, and for one that is not as its tool takes it."""
    if (tasks := _read(name, arguments, TODO, "tasks", Task)) is not None:
        return [f"{_SIGNS[task.status]} {_in_line(task.text)}" for task in tasks] or ["no tasks"]
    if (items := _read(name, arguments, ASK_USER, "questions", Item)) is not None:
        return [line for item in items for line in _item_lines(item)]
    return None


def call_summary(name: str, arguments: Mapping[str, Any]) -> str | None:
    """What such a call is about, in a line; None as in `call_lines`."""
    if name == TODO and not arguments:
        return "reads the list"
    if (tasks := _read(name, arguments, TODO, "tasks", Task)) is not None:
        now = next((f", now: {_in_line(task.text)}" for task in tasks if task.status == "in_progress"), "")
        return f"{sum(task.status == 'done' for task in tasks)} of {len(tasks)} done{now}"
    if items := _read(name, arguments, ASK_USER, "questions", Item):
        more = f" (and {counted(len(items) - 1, 'more question')})" if len(items) > 1 else ""
        return _in_line(items[0].question) + more
    return None


def result_lines(name: str, result: str) -> list[str]:
    """What such a call answered, a list of tasks with the same signs as in the call."""
    lines = result.split("\n")
    return [_MARKS.get(line[:4], line[:4]) + line[4:] for line in lines] if name == TODO else lines


def result_summary(name: str, result: str) -> str:
    """What such a call answered, in a line; nothing of what its summary says."""
    lines = result_lines(name, result)
    if name == ASK_USER:
        return ", ".join([line.removeprefix("→ ") for line in lines if line.startswith("→ ")])
    signs = [line[:2] for line in lines if line[:2] in _MARKS.values()]
    return f"{signs.count('✓ ')} of {len(signs)} done"


def _read(
    name: str, arguments: Mapping[str, Any], tool: str, argument: str, kind: type[_T]
) -> list[_T] | None:
    """The values of the only argument of a tool; None if it is another call or has anything else."""
    if name != tool or list(arguments) != [argument]:
        return None
    try:
        return msgspec.convert(arguments[argument], list[kind])
    except msgspec.ValidationError:
        return None


def _item_lines(item: Item) -> list[str]:
    several = "  (several may be taken)" if item.several else ""
    choices = [f"  {number} {_in_line(choice)}" for number, choice in enumerate(item.choices, 1)]
    return [_in_line(item.question) + several, *choices]


def _in_line(text: str) -> str:
    return " ".join(text.split())
