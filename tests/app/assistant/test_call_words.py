"""Lists of tasks and questions are told in words wherever a call is shown; what is not understood stays JSON."""

from typing import Any

import pytest

from swink.app.assistant.callwords import call_lines, call_summary, result_lines, result_summary
from swink.app.assistant.toolcalls import format_call

TASKS = {
    "tasks": [
        {"text": "look\naround", "status": "done"},
        {"text": "write the tests", "status": "in_progress"},
        {"text": "run them"},
    ]
}
QUESTIONS = {
    "questions": [
        {"question": "Which colour?", "choices": ["red", "blue"], "several": True},
        {"question": "Why?"},
    ]
}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("todo", {"tasks": "none"}),
        ("todo", {"tasks": [{"text": "x", "status": "lost"}]}),
        ("todo", {"tasks": [{"text": "x", "command": "rm -rf /"}]}),
        ("todo", {"tasks": [], "more": 1}),
        ("ask_user", {"questions": [{"question": 3}]}),
        ("ask_user", {}),
        ("their_todo", TASKS),
        ("bash", {"command": "ls"}),
    ],
)
def test_what_the_tool_would_not_take_is_not_put_into_words(name: str, arguments: dict[str, Any]):
    assert call_lines(name, arguments) is None
    assert call_summary(name, arguments) is None
    assert format_call(name, arguments).startswith(f"{name}(")


def test_a_list_of_tasks_is_how_far_it_is_and_a_line_for_each():
    assert call_summary("todo", TASKS) == "1 of 3 done, now: write the tests"
    assert call_lines("todo", TASKS) == ["✓ look around", "▸ write the tests", "· run them"]
    assert call_summary("todo", {}) == "reads the list"
    assert call_lines("todo", {"tasks": []}) == ["no tasks"]
    assert format_call("todo", TASKS) == "todo: 1 of 3 done, now: write the tests"


def test_questions_are_the_first_of_them_and_a_line_for_each_with_its_choices():
    assert call_summary("ask_user", QUESTIONS) == "Which colour? (and 1 more question)"
    assert call_lines("ask_user", QUESTIONS) == [
        "Which colour?  (several may be taken)",
        "  1 red",
        "  2 blue",
        "Why?",
    ]


def test_the_result_has_the_signs_of_the_call_and_the_answers():
    told = "[x] look around\n[>] write the tests\n[ ] run them"
    assert result_lines("todo", told) == call_lines("todo", TASKS)
    assert result_summary("todo", told) == "1 of 3 done"
    assert result_lines("todo", "[no tasks]") == ["[no tasks]"]
    assert result_summary("ask_user", "Which?\n→ red; blue\nWhy?\n→ (no answer)") == "red; blue, (no answer)"
    assert result_lines("ask_user", "[x] a\n→ b") == ["[x] a", "→ b"]
