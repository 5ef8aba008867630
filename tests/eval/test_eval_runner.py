"""The runner: cases in, results in a file."""

from pathlib import Path

from swink import Agent
from swink.eval import Case, ExpectedResponse
from swink.eval.evalrun import open_run
from swink.eval.runner import evaluate
from swink.testing import ScriptedModel


def polite(case: Case) -> Agent:
    return Agent("test:polite", stream_fn=ScriptedModel([f"hello {case.id}"]))


def cases(count: int) -> list[Case]:
    expected = ExpectedResponse(contains="hello")
    return [Case(id=f"c{n}", user_messages=("hi",), expected_response=expected) for n in range(count)]


async def test_every_case_has_a_result_for_each_repeat(tmp_path: Path):
    run = await evaluate(polite, cases(3), repeat=2, output=tmp_path / "run")
    assert [(result.case_id, result.repeat) for result in run.cases] == [
        ("c0", 0), ("c1", 0), ("c2", 0), ("c0", 1), ("c1", 1), ("c2", 1),
    ]  # fmt: skip
    assert [message.text for message in run.cases[0].transcript] == ["hi", "hello c0"]
    assert len(open_run(tmp_path / "run").cases) == 6
