"""Code mode: turns and tokens that five tasks take with direct calls, and as one program.

    python benchmarks/codemode.py [--write-docs]

The models are scripted: they do by calls, several in a turn where one could, what the program does. Tokens
are estimated as everywhere in swink, over all requests of a run: the definitions of the tools, the messages
that are sent again each time, and what the model writes.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from swink import Agent, ToolCall, tool
from swink.messages import AssistantMessage, ToolResultMessage
from swink.messages.tokens import size_of
from swink.stream import LlmContext
from swink.testing import ScriptedModel
from swink.tools import Tool, code_mode

PAGE = Path(__file__).parents[1] / "docs" / "guarantees" / "measured.md"
BEGIN, END = "<!-- benchmarks/codemode.py -->\n", "<!-- end -->\n"
PEOPLE = [f"person{number:02}" for number in range(20)]
LINE = "2026-11-18T10:00:00 INFO request served in 12 ms by worker 3 of pool main\n"


@tool(read_only=True)
async def people() -> list[str]:
    """List all people."""
    return PEOPLE


@tool(read_only=True)
async def expenses(person: str) -> list[dict[str, Any]]:
    """The expenses of a person in this quarter."""
    seed = PEOPLE.index(person)
    kinds = ("travel", "food", "books")
    paid = [(day, kinds[day % 3], seed * 7 + day) for day in range(12)]
    return [{"day": day, "kind": kind, "amount": amount, "note": "as agreed"} for day, kind, amount in paid]


@tool(read_only=True)
async def budget(person: str) -> int:
    """The budget of a person."""
    return 600 + PEOPLE.index(person) * 40


@tool(read_only=True)
async def read_log(day: int) -> str:
    """The log of a day."""
    return LINE * 40 + (f"2026-11-{day:02} ERROR disk full\n" if day % 3 == 0 else "") + LINE * 40


@tool
async def notify(person: str, text: str) -> str:
    """Send a message to a person."""
    return "sent"


TOOLS: list[Tool] = [people, expenses, budget, read_log, notify]


class Task(Struct, frozen=True):
    """A task: the turns of direct calls that it takes, and the program that does it."""

    name: str
    turns: Sequence[Sequence[tuple[str, dict[str, Any]]]]
    program: str


def each(name: str, many: Sequence[Any], key: str = "person") -> list[tuple[str, dict[str, Any]]]:
    return [(name, {key: value}) for value in many]


TASKS = [
    Task(
        "who is over budget, of 20 people",
        [[("people", {})], each("expenses", PEOPLE), each("budget", PEOPLE)],
        "import asyncio\nnames = people()\nspent = await asyncio.gather(*[expenses(n) for n in names])\n"
        "allowed = await asyncio.gather(*[budget(n) for n in names])\n"
        "[n for n, s, b in zip(names, spent, allowed) if sum(e['amount'] for e in s) > b]",
    ),
    Task(
        "tell those who are, one after the other",
        [[("people", {})], each("expenses", PEOPLE[:6]), each("budget", PEOPLE[:6])]
        + [[("notify", {"person": name, "text": "over budget"})] for name in PEOPLE[2:6]],
        "over = []\nfor n in people()[:6]:\n    total = sum(e['amount'] for e in expenses(n))\n"
        "    if total > 200:\n        notify(n, 'over budget')\n        over.append(n)\nover",
    ),
    Task(
        "errors in the logs of 10 days",
        [each("read_log", range(1, 11), "day")],
        "[line for day in range(1, 11) for line in read_log(day).splitlines() if 'ERROR' in line]",
    ),
    Task(
        "the first day with an error, day by day",
        [[("read_log", {"day": day})] for day in (1, 2, 3)],
        "for day in range(1, 30):\n    if 'ERROR' in read_log(day):\n        print(day)\n        break",
    ),
    Task("one look-up", [[("budget", {"person": "person03"})]], "budget('person03')"),
]


class Counted:
    """A scripted model, and what its requests would cost."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self._model = ScriptedModel(replies)
        self.turns = self.tokens = 0

    async def __call__(self, model: Any, context: LlmContext, options: Any) -> Any:
        self.turns += 1
        defined = [[tool.name, tool.description, tool.parameters_schema] for tool in context.tools]
        self.tokens += len(json.dumps(defined)) // 4 + sum(map(size_of, context.messages)) // 4
        async for event in self._model(model, context, options):
            yield event


async def measured(replies: Sequence[Any], tools: Sequence[Tool]) -> tuple[int, int]:
    """Turns and tokens of one run."""
    model = Counted([*replies, "Done."])
    agent = Agent("test:m", stream_fn=model, tools=tools)
    await agent.run("Do the task.")
    assert not any(isinstance(message, ToolResultMessage) and message.is_error for message in agent.messages)
    written = [message for message in agent.messages if isinstance(message, AssistantMessage)]
    return model.turns, model.tokens + sum(map(size_of, written)) // 4


async def main() -> None:
    """Print the table, and write it into the page if asked to."""
    lines = ["| task | turns | in a program | tokens | in a program | saved |", "|---|---|---|---|---|---|"]
    for task in TASKS:
        number = 0
        direct: list[list[ToolCall]] = []
        for calls in task.turns:
            direct.append([ToolCall(f"c{(number := number + 1)}", name, given) for name, given in calls])
        turns, tokens = await measured(direct, TOOLS)
        program = [[ToolCall("p", "run_code", {"code": task.program})]]
        fewer, less = await measured(program, [code_mode(TOOLS)])
        saved = f"{100 - 100 * less / tokens:.0f} %"
        lines.append(f"| {task.name} | {turns} | {fewer} | {tokens:,} | {less:,} | {saved} |")
    table = "\n".join(lines) + "\n"
    print(table)
    if "--write-docs" in sys.argv:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
