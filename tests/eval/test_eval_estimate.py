"""Estimates and the line that shows progress."""

import io

from swink import Agent, Price
from swink.eval import Case, CaseBudget, ExpectedCall
from swink.eval.estimate import REPLY, estimate
from swink.eval.progressbar import Progress, ProgressBar, clock, line
from swink.messages import ModelSpec
from swink.testing import ScriptedModel

MODEL = ModelSpec("test", "model", price=Price(input=0, output=1_000_000))


def factory(case: Case) -> Agent:
    if case.id == "broken":
        raise RuntimeError("no")
    return Agent(MODEL if case.id != "free" else "test:other", stream_fn=ScriptedModel([]))


async def test_an_estimate_asks_no_model_and_counts_expected_turns():
    calls = (ExpectedCall("a"), ExpectedCall("b"))
    case = Case(id="one", user_messages=("hi",), expected_trajectory=calls)
    found = await estimate(factory, [case], repeat=2)
    assert (found.attempts, found.requests, found.cost) == (2, 6, 6.0 * REPLY)
    capped = Case(id="two", user_messages=("hi",), expected_trajectory=calls, budget=CaseBudget(max_turns=1))
    assert (await estimate(factory, [capped])).requests == 1


async def test_an_unknown_price_and_a_factory_that_fails_are_said():
    found = await estimate(factory, [Case(id="free", user_messages=("hi",)), Case(id="broken")])
    assert found.cost is None
    assert found.problems == ("broken: the factory failed: RuntimeError: no",)


def test_a_line_of_progress_says_what_is_done_what_failed_what_it_cost_and_how_long_it_takes():
    progress = Progress(total=40, done=12, passed=10, failed=1, errors=1, cost=0.0123, left=65.0)
    assert line(progress) == "12/40  10 passed  1 failed  1 error  $0.0123  1:05 left"
    assert line(progress, bar=True).startswith("[#######.................] 12/40")
    assert "≥ $0.0123" in line(Progress(total=2, done=1, cost=0.0123, unpriced=1))
    assert "$" not in line(Progress(total=2, done=1, unpriced=1))
    assert [clock(seconds) for seconds in (7, 725, 3723)] == ["0:07", "12:05", "1:02:03"]


def test_a_terminal_has_one_line_and_a_file_has_whole_ones():
    terminal, file = io.StringIO(), io.StringIO()
    for stream, live in ((terminal, True), (file, False)):
        bar = ProgressBar(stream, live=live)
        bar(Progress(total=2, done=1, passed=1, left=100.0))
        bar(Progress(total=2, done=2, passed=2, elapsed=1.0))
        bar.close()
        bar.close()
    assert terminal.getvalue().count("\r") == 2
    assert terminal.getvalue().endswith("in 0:01             \n") or terminal.getvalue().endswith("\n")
    assert file.getvalue() == "2/2  2 passed  $0.0000  in 0:01\n"
