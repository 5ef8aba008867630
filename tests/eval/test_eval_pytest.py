"""The pytest plugin: cassettes in tests, and one test for each case."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from _pytest.pytester import SysModulesSnapshot

from swink.errors import AuthError, InvalidInput
from swink.eval import Case, pytest_cases
from swink.models import catalog
from swink.testing import ScriptedModel

pytest_plugins = "pytester"

ASKED: list[str] = []


def pretend() -> Any:
    """A provider that answers what it is asked."""

    async def stream(model: Any, context: Any, options: Any) -> Any:
        city = context.messages[-1].text.split()[-1]
        ASKED.append(city)
        async for event in ScriptedModel([f"Wear a jacket in {city}"])(model, context, options):
            yield event

    stream.base_url = "https://provider.test"  # pyright: ignore[reportFunctionMemberAccess]
    return stream


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run pytest with the plugin alone, in this process."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setitem(catalog._registered, "pretend", pretend)
    ASKED.clear()

    def forget(snapshot: Any) -> None:
        """Only modules of the inner tests: a second copy of a module of ours would have classes of its own."""
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").startswith(str(pytester.path)):
                del sys.modules[name]

    monkeypatch.setattr(SysModulesSnapshot, "restore", forget)

    def run(*arguments: str) -> pytest.RunResult:
        plugins = ("-p", "swink.app.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:faulthandler")
        return pytester.runpytest_inprocess(*plugins, *arguments)

    return run


TEST = """
from swink import Agent
def test_block(replay):
    with replay("oslo"):
        assert "jacket" in Agent("pretend:m").run_sync("to Oslo").raise_for_error().text
def test_stream(replay):
    assert "jacket" in Agent("pretend:m", stream_fn=replay()).run_sync("to Oslo").raise_for_error().text
"""


def test_a_cassette_is_recorded_once_and_then_replayed_without_asking(pytester: pytest.Pytester, run: Any):
    pytester.makepyfile(test_clothes=TEST)
    missing = run()
    missing.assert_outcomes(failed=2)
    missing.stdout.fnmatch_lines(
        ["*there is no cassette at *oslo.jsonl; record it with: pytest test_clothes.py::test_block --record*"]
    )
    run("--record").assert_outcomes(passed=2)
    assert sorted(file.name for file in (pytester.path / "cassettes").iterdir()) == [
        "oslo.jsonl",
        "test_stream.jsonl",
    ]
    assert ASKED == ["Oslo", "Oslo"]
    run().assert_outcomes(passed=2)
    run("--replay").assert_outcomes(passed=2)
    assert ASKED == ["Oslo", "Oslo"]


def test_a_drifted_request_fails_with_the_difference(pytester: pytest.Pytester, run: Any):
    pytester.makepyfile(test_clothes=TEST)
    run("--record").assert_outcomes(passed=2)
    pytester.makepyfile(test_clothes=TEST.replace("to Oslo", "to Bergen"))
    drifted = run()
    drifted.assert_outcomes(failed=2)
    drifted.stdout.fnmatch_lines(["*to Oslo*", "*to Bergen*"])


def test_a_test_that_fails_keeps_the_old_cassette(pytester: pytest.Pytester, run: Any):
    pytester.makepyfile(test_clothes=TEST)
    run("--record").assert_outcomes(passed=2)
    kept = {file: file.read_text() for file in (pytester.path / "cassettes").iterdir()}
    pytester.makepyfile(test_clothes=TEST.replace('"jacket" in', '"coat" in').replace("to Oslo", "to Bergen"))
    run("--record").assert_outcomes(failed=2)
    assert {file: file.read_text() for file in (pytester.path / "cassettes").iterdir()} == kept


CASES = """
model: pretend:m
cases:
  - {id: oslo, user_messages: to Oslo, expected_response: {contains: jacket}, tags: [cold]}
  - {id: cairo, user_messages: to Cairo, expected_response: {contains: hat}}
"""


def test_each_case_of_an_eval_file_is_a_test(pytester: pytest.Pytester, run: Any):
    (pytester.path / "clothes.eval.yaml").write_text(CASES)
    missing = run()
    missing.assert_outcomes(failed=2)
    missing.stdout.fnmatch_lines(["*record it with: pytest clothes.eval.yaml::oslo --record*"])
    run("--record").assert_outcomes(passed=1, failed=1)
    again = run("-v")
    again.assert_outcomes(passed=1, failed=1)
    again.stdout.fnmatch_lines(
        [
            "*clothes.eval.yaml::oslo PASSED*",
            "*the case 'cairo' (*clothes.eval.yaml:5) failed*",
            "*response: 0 of 1*",
        ]
    )
    run("-k", "cold").assert_outcomes(passed=1, deselected=1)


def test_a_suite_with_one_cassette_is_recorded_as_a_whole(pytester: pytest.Pytester, run: Any):
    (pytester.path / "clothes.eval.yaml").write_text("cassette: all.jsonl\n" + CASES)
    run("--record").assert_outcomes(passed=1, failed=1)
    before = (pytester.path / "all.jsonl").read_text()
    assert before.count("\n") == 2
    run().assert_outcomes(passed=1, failed=1)
    part = run("--record", "-k", "cold")
    assert "record all of them" in part.stdout.str()
    assert (pytester.path / "all.jsonl").read_text() == before


def test_a_bad_case_file_is_an_error_of_the_collection_with_every_problem(
    pytester: pytest.Pytester, run: Any
):
    (pytester.path / "bad.eval.json").write_text('[{"id": "a",\n"prompt": "hi"}, {}]')
    found = run()
    found.assert_outcomes(errors=1)
    found.stdout.fnmatch_lines(
        [
            "*bad.eval.json:2: *has no id*",
            "*bad.eval.json:2: unknown key 'prompt'; did you mean 'user_messages'?*",
        ]
    )


def test_cases_are_parameters_of_a_test_of_ones_own(pytester: pytest.Pytester, run: Any):
    (pytester.path / "cases.yaml").write_text(CASES)
    pytester.makepyfile(
        test_cases="""
        import asyncio
        from swink import Agent
        from swink.eval import check_case, pytest_cases
        @pytest_cases("cases.yaml", tag="cold")
        def test_clothes(case, replay):
            with replay():
                asyncio.run(check_case(lambda case: Agent("pretend:m"), case))
        @pytest_cases("cases.yaml")
        def test_all(case):
            asyncio.run(check_case(lambda case: Agent("pretend:m"), case))
        """
    )
    found = run("--record")
    found.assert_outcomes(passed=2, failed=1)
    found.stdout.fnmatch_lines(["*CaseFailed: the case 'cairo' (*cases.yaml:5) failed*"])
    assert [file.name for file in Path(pytester.path / "cassettes").iterdir()] == ["test_clothes-oslo.jsonl"]


def test_a_failing_case_is_recorded_like_the_others_and_one_without_an_answer_is_not(
    pytester: pytest.Pytester, run: Any, monkeypatch: pytest.MonkeyPatch
):
    (pytester.path / "cases.yaml").write_text(CASES)
    pytester.makepyfile(
        test_cases="""
        import asyncio
        import pytest
        from swink import Agent
        from swink.eval import check_case, pytest_cases
        @pytest_cases("cases.yaml")
        def test_block(case, replay):
            with replay():
                asyncio.run(check_case(lambda case: Agent("pretend:m"), case))
        @pytest_cases("cases.yaml")
        def test_stream(case, replay):
            asyncio.run(check_case(lambda case: Agent("pretend:m", stream_fn=replay()), case))
        """
    )
    run("--record").assert_outcomes(passed=2, failed=2)
    recorded = {file.name for file in (pytester.path / "cassettes").iterdir()}
    assert recorded == {
        f"test_{how}-{city}.jsonl" for how in ("block", "stream") for city in ("oslo", "cairo")
    }
    asked = len(ASKED)
    again = run()
    again.assert_outcomes(passed=2, failed=2)
    again.stdout.no_fnmatch_line("*no cassette*")
    assert len(ASKED) == asked

    for file in (pytester.path / "cassettes").iterdir():
        file.unlink()
    monkeypatch.setitem(catalog._registered, "pretend", down)
    run("--record").assert_outcomes(failed=4)
    assert list((pytester.path / "cassettes").iterdir()) == []


def down() -> Any:
    """A provider that cannot be reached."""

    async def stream(model: Any, context: Any, options: Any) -> Any:
        raise AuthError("no such key")
        yield

    stream.base_url = "https://provider.test"  # pyright: ignore[reportFunctionMemberAccess]
    return stream


def test_a_test_that_looks_at_the_answer_alone_shows_how_the_request_has_drifted(
    pytester: pytest.Pytester, run: Any
):
    silent = TEST.replace(".raise_for_error()", "")
    pytester.makepyfile(test_clothes=silent)
    run("--record").assert_outcomes(passed=2)
    pytester.makepyfile(test_clothes=silent.replace("to Oslo", "to Bergen"))
    drifted = run()
    drifted.assert_outcomes(failed=2)
    shown = ["*assert*jacket*", "*the request that is not on the cassette*", "*to Oslo*", "*to Bergen*"]
    drifted.stdout.fnmatch_lines([*shown, *shown])


def test_a_test_run_that_uses_nothing_of_it_does_not_wait_for_it():
    code = "import sys, swink.app.pytest_plugin; print('swink.eval' in sys.modules or 'yaml' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(("cases", "tag"), [([], None), ([Case(id="a", tags=("smoke",))], "smok")])
def test_a_test_of_no_cases_is_refused_instead_of_skipped(cases: list[Case], tag: str | None):
    with pytest.raises(InvalidInput, match="no case"):
        pytest_cases(cases, tag=tag)
