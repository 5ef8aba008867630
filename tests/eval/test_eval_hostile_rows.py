"""Hostile data of benchmarks: what is wrong with a row is told, and the good rows beside it stay."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.eval.test_eval_agentdojo import USERS, package
from tests.eval.test_eval_importers import TRIANGLE, question, write
from tests.eval.test_eval_tau import domain

from swink.eval.casefile import load_suite
from swink.eval.importers import BadRows, import_cases, write_cases
from swink.eval.importers.dojodata import environment

__all__ = ["package"]
ANSWER = {"ground_truth": [{"geometry.area": {"base": [10]}}]}


def with_parameters(**changed: Any) -> dict[str, Any]:
    return {**TRIANGLE, "parameters": {**TRIANGLE["parameters"], **changed}}


@pytest.mark.parametrize("language", ["python", "java", "javascript"])
@pytest.mark.parametrize(
    "function",
    [
        {**TRIANGLE, "name": " "},
        with_parameters(required=7),
        with_parameters(required=[[[]]]),
        with_parameters(required=None),
        with_parameters(properties={"base": None}),
        with_parameters(properties={"base": "float"}),
    ],
)
def test_a_function_that_is_none_is_told_and_the_case_file_can_be_read(
    tmp_path: Path, function: Any, language: str
):
    rows = [
        question(f"simple_{language}_{at}", each, **ANSWER) for at, each in enumerate([function, TRIANGLE])
    ]
    suite = import_cases("bfcl", write(tmp_path / "rows.jsonl", *rows))
    write_cases(suite, tmp_path / "cases.json")
    assert [case.id for case in load_suite(tmp_path / "cases.json").cases] == [f"simple_{language}_1"]
    assert len(suite.skipped) == 1


def test_a_description_that_is_no_text_and_items_that_are_no_object_end_in_no_error(tmp_path: Path):
    odd = with_parameters(properties={"base": {"type": "string", "description": [1]}}, required=[])
    listed = with_parameters(properties={"base": {"type": "ArrayList", "items": 7}}, required=[])
    rows = [question("simple_python_0", odd, **ANSWER), question("simple_java_1", listed, **ANSWER)]
    suite = import_cases("bfcl", write(tmp_path / "rows.jsonl", *rows))
    assert [case.id for case in suite.cases] == ["simple_java_1"]
    assert "no JSON Schema" in suite.skipped[0]


def test_an_archive_with_a_broken_middle_is_named(tmp_path: Path):
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
    (tmp_path / "rows.jsonl.gz").write_bytes(head + b"\xff" + zlib.compress(b"{}"))
    with pytest.raises(BadRows, match="cannot be read"):
        import_cases("gsm8k", tmp_path / "rows.jsonl.gz")


@pytest.mark.parametrize(
    "text",
    [
        "Task(instruction={[]: 1})",
        r"Task(instruction='\ud800', actions=[])",
        "Task(instruction='x', actions=[Action(name='a', kwargs={'x': 1j})])",
    ],
)
def test_a_task_whose_values_json_has_not_is_told_and_the_others_stay(tmp_path: Path, text: str):
    root = domain(tmp_path / "shop")
    (root / "tasks.json").unlink()
    (root / "tasks_test.py").write_text(f"TASKS = [{text}, Task(instruction='Cancel', actions=[])]")
    suite = import_cases("tau", root)
    write_cases(suite, tmp_path / "cases.json")
    assert len(suite.cases) == len(suite.skipped) == 1


def test_rules_that_are_no_text_are_named(tmp_path: Path):
    root = domain(tmp_path / "shop")
    (root / "wiki.md").write_bytes(b"\xff")
    with pytest.raises(BadRows, match=r"wiki\.md: cannot be read"):
        import_cases("tau", root)


@pytest.mark.parametrize("name", ["../../../../../secret.txt", "SECRET", "link.txt", "absent.txt"])
def test_an_environment_reads_no_file_outside_of_its_package(package: Path, name: str):
    """A data set may come from anybody, and what tools read of it is sent to a model."""
    secret = package.parent / "secret.txt"
    secret.write_text("the key")
    folder = package / "data" / "suites" / "banking"
    (folder / "link.txt").symlink_to(secret)
    name = name.replace("SECRET", str(secret))
    (folder / "environment.yaml").write_text(f"bank_account: !include {name}\n")
    with pytest.raises(BadRows, match=r"not in the package|cannot be read"):
        environment(package, "banking")
    suite = import_cases("agentdojo", package)
    assert "the key" not in json.dumps(suite.skipped)


@pytest.mark.parametrize("name", ["environment.yaml", "injection_vectors.yaml"])
def test_a_package_without_its_data_is_told(package: Path, name: str):
    (package / "data" / "suites" / "banking" / name).unlink()
    assert any(name in problem for problem in import_cases("agentdojo", package).skipped)


@pytest.mark.parametrize(
    "text",
    [
        f"{USERS}class UserTask{'1' * 5000}:\n PROMPT = 'x'\n",
        USERS + r"class UserTask7:" + "\n PROMPT = '\\ud800'\n def ground_truth(self):\n  return []\n",
        USERS + "A0 = 'aaaa'\n" + "".join([f"A{n + 1} = A{n} + A{n}\n" for n in range(60)]),
        USERS + "A = 'a'" + " + 'a'" * 900 + "\n",
    ],
)
def test_tasks_that_would_fill_the_memory_or_the_stack_end_in_no_error(package: Path, text: str):
    (package / "default_suites" / "v1" / "banking" / "user_tasks.py").write_text(text)
    suite = import_cases("agentdojo", package)
    write_cases(suite, package.parent / "cases.json")
    assert "banking-user_task_2" in {case.id for case in suite.cases}


def test_a_file_that_is_nested_too_deeply_is_named(package: Path):
    (package / "default_suites" / "v1" / "banking" / "user_tasks.py").write_text("x = " + "-" * 20_000 + "1")
    with pytest.raises(BadRows, match=r"user_tasks\.py: cannot be read: "):
        import_cases("agentdojo", package)
