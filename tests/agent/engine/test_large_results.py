"""Huge results of tools: the event loop goes on while they are converted, and little of them is kept."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.counts import in_cells
from tests.scripted import make

from swink import ToolCall, ToolResult, tool
from swink.events import ToolExecutionEnd
from swink.memory import JsonlStore
from swink.tools import as_result, full_text
from swink.tools.toolresult import KEPT, is_large

HUGE: dict[str, Any] = {
    "texts": ["x" * 1000] * 20_000,
    "objects": [{"number": number, "none": None} for number in range(100_000)],
    "surrogates": ["a\ud800é" * 100] * 10_000,
    "a text with surrogates": "a\ud800é" * 1_000_000,
    "one text inside": {"rows": {"first": "é\udc00" * 2_000_000}},
    "nested": {"data": {"rows": [[number] * 10 for number in range(50_000)]}},
}


async def converted(value: Any, **options: Any) -> tuple[int, ToolResult]:
    """How often the event loop went round while the result was converted, and the result."""
    rounds: list[int] = [0]
    marks: list[int] = []

    @tool
    async def load() -> Any:
        """Load it."""
        marks.append(rounds[0])
        return value

    async def beat() -> None:
        while True:
            rounds[0] += 1
            await asyncio.sleep(0)

    agent, seen = make([ToolCall("c", "load", {}), "done"], tools=[load], **options)
    agent.subscribe(lambda event: marks.append(rounds[0]) if isinstance(event, ToolExecutionEnd) else None)
    beating = asyncio.create_task(beat())
    await agent.run("go")
    beating.cancel()
    return marks[1] - marks[0], next(
        event.result for event in seen.events if isinstance(event, ToolExecutionEnd)
    )


@in_cells("name", HUGE, every=3)
@pytest.mark.usefixtures("quick_turns")
async def test_the_event_loop_goes_on_while_a_huge_result_is_converted(name: str):
    rounds, result = await converted(HUGE[name])
    assert rounds > 10
    assert not result.is_error
    whole = full_text(result)
    assert whole is not None
    assert len(whole) < KEPT + 200
    assert "were not kept" in whole
    assert "were not kept" in result.text


async def test_a_session_keeps_a_huge_result_in_part(tmp_path: Path):
    async with JsonlStore(tmp_path) as store:
        session = await store.create()
        await converted(HUGE["texts"], session=session)
        assert (tmp_path / f"{session.id}.jsonl").stat().st_size < 2 * KEPT


async def test_an_abort_does_not_wait_for_the_conversion():
    @tool
    async def load() -> Any:
        """Load it."""
        asyncio.get_running_loop().call_soon(agent.abort)
        return HUGE["objects"]

    agent, _ = make([ToolCall("c", "load", {}), "done"], tools=[load])
    result = await agent.run("go")
    assert result.stop_reason == "aborted"
    assert "aborted" in agent.messages[2].text


async def test_what_has_no_json_form_in_a_large_result_is_told_to_the_model():
    _, result = await converted([*range(5_000), object()])
    assert result.is_error
    assert "object is not JSON-able" in result.text.replace("<", "").replace(">", "")


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "é"], "b": {}},
        [{"n": number} for number in range(3_000)],
        {"deep": [[[[number]]] for number in range(3_000)]},
        (float("inf"), *range(2_000)),
        {"$number": "inf", **{str(number): (number,) for number in range(2_000)}},
    ],
)
async def test_a_large_result_reads_like_a_small_one(value: Any):
    _, result = await converted(value)
    assert result.text == as_result(value).text


def test_an_object_that_holds_much_is_large():
    class Page:
        def __init__(self) -> None:
            self.rows = list(range(10_000))

    loop: list[Any] = []
    loop.append(loop)
    assert is_large(Page())
    assert is_large([["x" * 200_000]])
    assert is_large(loop)
    assert not is_large({"a": [1, "b", None]})
    assert not is_large(ToolResult("text", {"a": 1}))
