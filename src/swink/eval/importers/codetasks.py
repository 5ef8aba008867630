"""HumanEval and MBPP: programs to write, whose tests are run in the sandbox.

{"task_id": "HumanEval/0", "prompt": "def f(…): …", "entry_point": "f", "test": "def check(f): …"}
{"task_id": 2, "text": "Write a function …", "test_list": ["assert …"], "test_setup_code": ""}

The prompts around them are our own, so that scores compare with each other rather than with published ones.
"""

import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from swink.eval.case import Case, Evaluator
from swink.eval.importers.rows import BadRows, BenchmarkRow, make_cases, read_rows, row_of
from swink.eval.result import Score
from swink.eval.scorers.coderun import run_python
from swink.eval.scorers.registry import scorer
from swink.eval.scorers.values import fenced_blocks
from swink.eval.trajectory import Trajectory
from swink.tools.coding.sandbox import Level

_ASK = "Complete this Python function. Answer with the whole function in one Python code block.\n\n"
_CALLED = re.compile(r"(?<![\w.])(\w+)\(")


def read_humaneval(path: Path) -> Iterator[Case | BadRows]:
    """The functions of HumanEval.jsonl, also compressed."""
    return make_cases(read_rows(path), _function)


def read_mbpp(path: Path) -> Iterator[Case | BadRows]:
    """The tasks of mbpp.jsonl, or of the sanitized list."""
    return make_cases(read_rows(path), _task)


def _function(number: int, row: BenchmarkRow) -> Case:
    prompt = row.text("prompt")
    told = {"prompt": prompt, "test": row.text("test"), "entry_point": row.text("entry_point")}
    return _case("humaneval", row, f"{_ASK}```python\n{prompt.rstrip()}\n```", told)


def _task(number: int, row: BenchmarkRow) -> Case:
    tests = row.texts("test_list")
    if not tests:
        raise row.problem("'test_list' holds no tests")
    setup = row.data.get("test_setup_code") or "\n".join(row.texts("test_imports"))
    prompt = row.text("text", "prompt").strip()
    prompt += "\n\nThese tests show how it is called, and must pass:\n\n```python\n" + "\n".join(tests)
    prompt += "\n```\n\nAnswer with all of the code in one Python code block, without the tests."
    told = {"setup": setup, "tests": tests, "challenge_tests": row.texts("challenge_test_list")}
    return _case("mbpp", row, prompt, told)


@scorer("humaneval")
async def humaneval(
    case: Case, trajectory: Trajectory, *, timeout: float = 10.0, sandbox: Level = "workspace"
) -> Score:
    """Whether the function passes `check`; an answer that only continues the prompt is put after it."""
    told = row_of(case, "humaneval", "prompt", "test", "entry_point")
    prompt, entry = str(told["prompt"]), str(told["entry_point"])
    code = find_code(trajectory.response, entry)
    if not code.strip():
        return Score(0.0, "there is no code in the response")
    defined = re.search(rf"^\s*(?:async\s+)?def\s+{re.escape(entry)}\b", code, re.MULTILINE)
    # What the prompt says before the function itself: imports, helpers.
    before = re.split(rf"^(?:async\s+)?def\s+{re.escape(entry)}\b", prompt, maxsplit=1, flags=re.MULTILINE)
    written = f"{before[0]}\n{code}" if defined else f"{prompt}{code}"
    program = f"{written}\n\n{told['test']}\n\ncheck({entry})\n"
    done = await run_python(program, timeout=timeout, sandbox=sandbox)
    return Score(float(done.passed), done.why)


@scorer("mbpp")
async def mbpp(
    case: Case,
    trajectory: Trajectory,
    *,
    timeout: float = 10.0,
    challenge: bool = False,
    sandbox: Level = "workspace",
) -> Score:
    """Whether the code passes every test of the list; with `challenge`, the harder ones too."""
    told = row_of(case, "mbpp", "setup", "tests")
    harder: list[str] = told.get("challenge_tests", []) if challenge else []
    tests: list[str] = [*told["tests"], *harder]
    code = find_code(trajectory.response, called_function(told["tests"]))
    if not code.strip():
        return Score(0.0, "there is no code in the response")
    program = "\n\n".join([str(told["setup"]), code, "\n".join(tests)])
    done = await run_python(f"{program}\n", timeout=timeout, sandbox=sandbox)
    return Score(float(done.passed), done.why)


def find_code(text: str, function: str | None) -> str:
    """The last code block that defines the function, else the longest one; without blocks, all of it."""
    if "[BEGIN]" in text:  # how MBPP's own prompt has code marked
        return text.split("[BEGIN]")[-1].split("[DONE]")[0].strip("\n")
    blocks = [body for _, body in fenced_blocks(text)]
    if not blocks:
        return "" if "```" in text else text
    defining = [body for body in blocks if function and re.search(rf"\bdef\s+{re.escape(function)}\b", body)]
    return defining[-1] if defining else max(blocks, key=len)


def _case(name: str, row: BenchmarkRow, prompt: str, told: dict[str, Any]) -> Case:
    task = row.data.get("task_id")
    if not isinstance(task, str | int):
        raise row.problem("there is no 'task_id'")
    return Case(
        id=f"{name}-{str(task).rpartition('/')[2]}",
        user_messages=(prompt,),
        evaluators=(Evaluator(name),),
        metadata={name: told},
        tags=(name,),
        place=row.place,
    )


def called_function(tests: list[str]) -> str | None:
    """The function that the first test calls."""
    names = _CALLED.findall(tests[0])
    return next((name for name in names if not hasattr(builtins, name)), None)
