"""Code checks: what an agent produced is run in the sandbox, and nothing of it is left."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from swink.errors import InvalidInput
from swink.eval import Case, Evaluator, Metric, Trajectory
from swink.eval.scorers import score
from swink.eval.scorers.code import extract_code, run_python

FENCED = "Here you are:\n```python\ndef add(a, b):\n    return a + b\n```\nUse it like this:\n```\nadd(1, 2)\n```\n"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert not [path.name for path in place.iterdir() if path.name.startswith("swink-code-")]


async def checked(response: str, case: Case | None = None, **options: Any) -> Metric:
    use = (Evaluator("code", options={"sandbox": "none", **options}),)
    given = Case(id="a", evaluators=use, workspace=case.workspace if case else None)
    (metric,) = await score(given, Trajectory(response=response))
    return metric


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (FENCED, "def add(a, b):\n    return a + b\n"),
        ("print(1)", "print(1)"),
        ("```py\nx = 1\n```", "x = 1\n"),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("```bash\nls\n```", ""),
        ("```python\nx = 1", ""),
        ("```python\na\n```\n```python\nlonger\n```", "longer\n"),
    ],
)
def test_code_is_found_in_a_reply(text: str, code: str):
    assert extract_code(text) == code


async def test_code_that_passes_its_tests_passes():
    assert (await checked(FENCED, tests="assert add(1, 2) == 3")).passed


async def test_code_that_fails_its_tests_says_where():
    metric = await checked(FENCED, tests="assert add(1, 2) == 4")
    assert not metric.passed
    assert metric.error is None
    assert "AssertionError" in metric.why
    assert str(tempfile.gettempdir()) not in metric.why


async def test_code_that_exits_early_has_not_passed():
    metric = await checked("import os\nos._exit(0)", tests="assert False")
    assert not metric.passed
    assert "before its last line" in metric.why


async def test_no_code_is_no_pass():
    assert (await checked("```bash\nls\n```")).why == "there is no code in the response"


async def test_code_that_takes_too_long_is_ended():
    metric = await checked("while True: pass", timeout=0.3)
    assert (metric.passed, metric.why) == (False, "it took longer than 0.3 s")


async def test_the_output_can_be_checked():
    assert (await checked("print('hi')", expected_output="hi\n")).passed
    assert not (await checked("print('ho')", expected_output="hi")).passed


async def test_a_file_of_the_workspace_is_run(tmp_path: Path):
    tmp_path.joinpath("add.py").write_text("def add(a, b):\n    return a + b\n", "utf-8")
    case = Case(id="a", workspace=tmp_path)
    assert (await checked("", case, file="add.py", tests="assert add(1, 1) == 2")).passed
    assert (await checked("", case, file="none.py")).why == "none.py is empty"
    assert "not inside" in ((await checked("", case, file="../../etc/passwd")).error or "")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "1"])
async def test_a_timeout_is_a_number_of_seconds(timeout: Any):
    with pytest.raises(InvalidInput, match="seconds"):
        await run_python("", timeout=timeout)


async def test_files_beside_a_program_stay_inside():
    done = await run_python("print(open('data/a.txt').read())", files={"data/a.txt": "hi"}, sandbox="none")
    assert (done.passed, done.output) == (True, "hi")
    with pytest.raises(InvalidInput, match="not inside"):
        await run_python("", files={"../a": ""}, sandbox="none")


async def test_cancelling_ends_the_program():
    task = asyncio.ensure_future(run_python("import time; time.sleep(3600)", sandbox="none"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_sandbox_keeps_code_in_its_directory(tmp_path: Path):
    from swink.tools import SandboxUnavailable

    outside = tmp_path / "outside.txt"
    program = f"import pathlib\npathlib.Path('inside.txt').write_text('x')\npathlib.Path({str(outside)!r}).write_text('x')\n"
    try:
        done = await run_python(program)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    assert not outside.exists()
    assert "inside.txt" not in done.output
