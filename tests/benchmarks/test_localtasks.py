"""The tasks for local models: what counts as solved, what is kept, and what the table says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.localtasks import (
    BEGIN,
    END,
    KEPT,
    KINDS,
    PAGE,
    ModelResult,
    Outcome,
    Task,
    Wait,
    do_task,
    do_tasks,
    figures,
    figures_file,
    lay_out,
    page_section,
    read_results,
    read_tasks,
    says,
    table,
    what_is_missing,
    with_section,
    write_results,
)
from msgspec.structs import replace

from swink.app.assistant.localfigures import FILE, read_figures
from swink.errors import StreamError
from swink.local import KNOWN
from swink.messages import ModelSpec, ToolCall
from swink.stream import LlmContext
from swink.testing import Pause, ScriptedModel

LARGE = ModelSpec("test", "large", context_window=200_000)
BOOK = read_tasks()
TASKS = {task.id: task for task in BOOK.tasks}


async def outcome_of(task: str, replies: Sequence[Any], tmp_path: Path, limit: float = 60.0) -> Outcome:
    """What a model that says these replies makes of a task."""
    return await do_task(BOOK, TASKS[task], tmp_path / "folder", LARGE, limit, ScriptedModel(replies))


def result(*outcomes: Outcome, **measured: Any) -> ModelResult:
    kept = {outcome.task: outcome for outcome in outcomes}
    return ModelResult("2 cores (aarch64), 1 thread(s)", "2026-01-31", 90.0, kept, **measured)


def outcome(task: str, missing: str = "", *, right: bool = True, first: float | None = 2.0) -> Outcome:
    wait = None if first is None else Wait(first, first / 4)
    return Outcome(task, missing, ("read_file",), right, wait, 4.0, "", 1.5)


# What counts as solved


async def test_an_answer_without_what_was_asked_for_is_not_solved(tmp_path: Path):
    found = await outcome_of("question-port", ["It listens on port 80."], tmp_path)
    assert found.missing == "the answer lacks 8471"
    assert found.calls == ()
    assert not found.has_right_call


async def test_reciting_the_whole_file_is_no_answer(tmp_path: Path):
    found = await outcome_of("question-port", ["8471, and 5433 for the database."], tmp_path)
    assert found.missing == "the answer has 5433 too"


async def test_a_question_is_solved_by_its_answer_and_the_call_of_a_right_tool_is_counted(tmp_path: Path):
    read = ToolCall("1", "read_file", {"path": "settings.ini"})
    found = await outcome_of("question-port", [read, "Port 8471."], tmp_path)
    assert found.missing == ""
    assert found.calls == ("read_file",)
    assert found.has_right_call
    assert found.first_token is not None


async def test_a_call_of_another_tool_is_not_counted(tmp_path: Path):
    read = ToolCall("1", "read_file", {"path": "hosts.txt"})
    found = await outcome_of("command-deploy", [read, "It deploys to 3 hosts."], tmp_path)
    assert found.missing == ""
    assert not found.has_right_call


async def test_an_edit_that_is_only_described_is_not_solved(tmp_path: Path):
    found = await outcome_of("edit-tax", ["I have set TAX to 0.21."], tmp_path)
    assert found.missing == "prices.py is not as it should be"


async def test_an_edit_that_breaks_another_place_is_not_solved(tmp_path: Path):
    write = ToolCall("1", "write_file", {"path": "prices.py", "content": "TAX = 0.21\n"})
    found = await outcome_of("edit-tax", [write, "Done."], tmp_path)
    assert found.missing == "prices.py is not as it should be"
    assert found.has_right_call


async def test_an_edit_is_solved_by_what_the_file_holds_then(tmp_path: Path):
    edits = [{"old": "TAX = 0.19", "new": "TAX = 0.21"}]
    edit = ToolCall("1", "edit_file", {"path": "prices.py", "edits": edits})
    assert (await outcome_of("edit-tax", [edit, "Done."], tmp_path)).missing == ""


async def test_a_file_that_is_gone_is_noticed_in_every_kind_of_task(tmp_path: Path):
    remove = ToolCall("1", "delete_file", {"path": "hosts.txt"})
    found = await outcome_of("question-workers", [remove, "It allows 6 workers."], tmp_path)
    assert found.missing == "hosts.txt is gone"


async def test_commands_run_without_a_question(tmp_path: Path):
    run = ToolCall("1", "bash", {"command": "sh watering.sh 17"})

    def read_aloud(context: LlmContext) -> str:
        return context.messages[-1].text

    script = ScriptedModel([run, read_aloud])
    found = await do_task(BOOK, TASKS["command-watering"], tmp_path / "folder", LARGE, 60.0, script)
    assert found.missing == ""
    assert found.has_right_call


async def test_a_task_that_takes_too_long_is_ended_and_not_solved(tmp_path: Path):
    found = await outcome_of("question-port", [["Port 8471", Pause(60), "."]], tmp_path, limit=0.5)
    assert found.missing == "not done within 0 s"
    assert found.answer == "Port 8471"


async def test_a_model_that_fails_is_an_outcome_too(tmp_path: Path):
    found = await outcome_of("question-port", [StreamError("it fell over")], tmp_path)
    assert "it fell over" in found.missing


@pytest.mark.parametrize(
    ("answer", "word", "is_said"),
    [
        ("17 workers", "7", False),
        ("2.3 hosts", "3", False),
        ("3.5 hosts", "3", False),
        ("It is train.py.", "rain.py", False),
        ("rain.pyc", "rain.py", False),
        ("They deploy to 3.", "3", True),
        ("`tools/rain.py`", "rain.py", True),
        ("READme.md", "README.md", True),
        ("1,250 requests", "250", False),
        ("1,250 requests", "1250", True),
        ("", "3", False),
    ],
)
def test_a_part_of_a_longer_word_is_not_the_word(answer: str, word: str, is_said: bool):
    assert says(answer, word) is is_said


# The tasks


def test_there_are_ten_tasks_of_each_kind_with_names_of_their_own():
    assert [sum(task.kind == kind for task in BOOK.tasks) for kind in KINDS] == [10, 10, 10, 10]
    assert len(TASKS) == 40


def test_the_kinds_take_turns():
    assert [task.kind for task in BOOK.in_turn()[:8]] == [*KINDS, *KINDS]
    assert {task.id for task in BOOK.in_turn()} == set(TASKS)


@pytest.mark.parametrize("task", BOOK.tasks, ids=lambda task: task.id)
def test_doing_nothing_solves_no_task_and_repeating_the_question_neither(task: Task, tmp_path: Path):
    lay_out(BOOK, task, tmp_path / "folder")
    assert what_is_missing(BOOK, task, "", tmp_path / "folder")
    assert what_is_missing(BOOK, task, task.prompt, tmp_path / "folder")


@pytest.mark.parametrize("task", BOOK.tasks, ids=lambda task: task.id)
def test_every_task_can_be_solved(task: Task, tmp_path: Path):
    """By the answer alone, or by changing the one place that there is."""
    folder = tmp_path / "folder"
    lay_out(BOOK, task, folder)
    if task.file:
        assert BOOK.folders[task.folder][task.file].count(task.old) == 1
        (folder / task.file).write_text(BOOK.expected_files(task)[task.file])
    else:
        assert task.answer
    assert what_is_missing(BOOK, task, " ".join(task.answer), folder) == ""


# What is kept


async def test_what_was_done_before_the_end_of_a_run_is_kept(tmp_path: Path):
    kept: list[str] = []
    todo = [TASKS["question-port"], TASKS["question-tax"]]

    def keep(outcome: Outcome) -> None:
        kept.append(outcome.task)
        if len(kept) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await do_tasks(BOOK, todo * 2, tmp_path / "folder", LARGE, 60.0, keep, ScriptedModel(["8471"] * 4))
    assert kept == ["question-port", "question-tax"]


async def test_only_the_first_task_of_a_process_is_after_a_start_and_may_take_longer(tmp_path: Path):
    kept: list[Outcome] = []
    todo = [TASKS["question-port"], TASKS["question-tax"]]
    script = ScriptedModel([[Pause(0.6), "8471"], [Pause(60), "0.19"]])
    await do_tasks(BOOK, todo, tmp_path / "folder", LARGE, 0.5, kept.append, script)
    assert [outcome.is_after_start for outcome in kept] == [True, False]
    assert [outcome.missing for outcome in kept] == ["", "not done within 0 s"]


async def test_a_folder_is_as_new_for_the_next_task(tmp_path: Path):
    lay_out(BOOK, TASKS["edit-tax"], tmp_path / "folder")
    (tmp_path / "folder" / "left.txt").touch()
    lay_out(BOOK, TASKS["find-job"], tmp_path / "folder")
    names = {str(path.relative_to(tmp_path / "folder")) for path in (tmp_path / "folder").rglob("*.*")}
    assert names == set(BOOK.folders["fleet"])


def test_results_are_read_as_they_were_written(tmp_path: Path):
    path = tmp_path / "deeper" / "results.json"
    assert read_results(path) == {}
    written = {"small": result(outcome("find-job", "the answer lacks app.log", first=None), memory=512.5)}
    write_results(path, written)
    assert read_results(path) == written


# The table


def test_what_was_not_measured_is_not_shown_as_a_figure():
    row = table({"small": result()}).splitlines()[2]
    assert row == (
        "| `local:small` | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 0 | – | – | – | – | – | – |"
    )


def test_the_table_counts_by_kind_and_leaves_what_is_after_a_start_out_of_later_prompts():
    done = [
        replace(outcome("question-port", first=50.0), is_after_start=True),
        outcome("question-tax", "the answer lacks 0.19", first=3.0),
        outcome("edit-tax", "not done within 90 s", right=False, first=None),
        outcome("command-total", first=5.0),
    ]
    starts = {"first_start": Wait(9.75, 3.5), "later_start": Wait(2.5, 1.0)}
    measured = {**starts, "reading": 31.25, "writing": 12.0, "memory": 540.4}
    row = table({"small": result(*done, **measured)}).splitlines()[2]
    assert row == (
        "| `local:small` | 2 of 4 | 1 of 2 | 0 of 0 | 0 of 1 | 1 of 1 | 3 of 4 "
        "| 9.8 s (3.5 s CPU) | 2.5 s (1.0 s CPU) | 4.0 s (1.0 s CPU) | 31.2 | 12.0 | 540 MB |"
    )


def test_the_page_says_on_what_it_was_measured_and_how_much_was_run():
    section = page_section({"small": result(outcome("edit-tax", "not done within 90 s"))}, 40)
    assert section.splitlines()[-1] == (
        "- `local:small`: 1 of 40 tasks were run on 2026-01-31; 1 of them ran out of time (90 s, after a start 600 s). "
        "The machine: 2 cores (aarch64), 1 thread(s), at a load average of 1.5 to 1.5."
    )


def test_a_page_without_the_marks_is_left_alone():
    with pytest.raises(SystemExit, match="has no"):
        with_section("# Local models\n", "new")
    with pytest.raises(SystemExit, match="has no"):
        with_section(f"{BEGIN}\n", "new")


def test_only_what_is_between_the_marks_changes():
    assert with_section(f"a\n{BEGIN}\nold\n{END}\nb\n", "new") == f"a\n{BEGIN}\nnew\n{END}\nb\n"


def test_the_page_shows_the_results_that_are_kept():
    page = PAGE.read_text("utf-8")
    assert page == with_section(page, page_section(read_results(KEPT), len(BOOK.tasks)))


def test_the_figures_that_the_package_brings_are_those_of_the_page():
    """`--write-docs` writes the kept results, the page and the package's figures together."""
    results = read_results(KEPT)
    assert FILE.read_bytes() == figures_file(results)
    shown = read_figures()
    assert [each.model for each in shown] == list(results)
    rows = PAGE.read_text("utf-8").partition(BEGIN)[2].splitlines()[3:]
    for row, each in zip(rows, shown, strict=False):
        assert row.startswith(f"| `local:{each.model}` | {each.solved} of {each.tasks} |")
        assert each.download == KNOWN[each.model].wheel_size


def test_figures_are_the_results_in_brief_and_what_was_not_measured_has_none():
    done = [
        replace(outcome("edit-tax", first=50.0), is_after_start=True),
        outcome("find-job", "no", first=3.0),
    ]
    brief = figures({"small": result(*done, first_start=Wait(50.0, 9.0), memory=540.44), "none": result()})
    assert (brief[0].solved, brief[0].tasks, brief[0].first_start, brief[0].later_prompts) == (
        1,
        2,
        50.0,
        3.0,
    )
    assert (brief[0].memory, brief[0].writing, brief[0].load) == (540.4, None, (1.5, 1.5))
    assert (brief[1].tasks, brief[1].first_start, brief[1].later_prompts) == (0, None, None)
