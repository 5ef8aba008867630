"""Answers of hooks: what exit codes, texts and JSON objects mean, and that what cannot be understood is closed."""

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried
from tests.strategies import json_objects, json_values

from swink.policies.hooks import EVENTS, GUARDS, Event, HookAnswer, HookOutcome, join_answers, read_answer

events = st.sampled_from(EVENTS)
OPEN: list[Event] = [event for event in EVENTS if event not in GUARDS]
FAILURES = [
    HookOutcome(failure="it could not be started: no shell"),
    HookOutcome(126, errors="bash: ./x: Permission denied"),
    HookOutcome(127, errors="bash: nothing: command not found"),
    HookOutcome(137),
    HookOutcome(143, output='{"decision": "approve"}'),
    HookOutcome(failure="it did not end within 1 s", output='{"decision": "approve"}'),
    HookOutcome(output='{"decision": "approve"'),
    HookOutcome(output='  {"decision": "approve"} and more'),
    HookOutcome(output='{"a": "…', is_cut=True),
    HookOutcome(output='{"hookSpecificOutput": {"permissionDecision": "perhaps"}}'),
    HookOutcome(output='{"hookSpecificOutput": {"permissionDecision": "deny"', code=0),
    HookOutcome(output='{"hookSpecificOutput": 5}'),
    HookOutcome(output='{"hookSpecificOutput": {"updatedInput": [1]}}'),
    HookOutcome(output="{" * 5000),
    HookOutcome(output='\ufeff{"decision": "approve"'),
]


def answer(event: Event, **fields: object) -> HookAnswer:
    return read_answer(event, HookOutcome(output=json.dumps(fields)))


@pytest.mark.parametrize("outcome", FAILURES, ids=range(len(FAILURES)))
def test_what_fails_blocks_where_a_hook_judges_and_is_reported_elsewhere(outcome: HookOutcome):
    for event in GUARDS:
        found = read_answer(event, outcome)
        assert found.decision == "deny", event
        assert "failed" in found.reason
    for event in OPEN:
        found = read_answer(event, outcome)
        assert found.decision is None, event
        assert found.problem


def test_an_answer_may_begin_with_a_byte_order_mark_and_one_behind_too_much_is_none():
    blocked = HookOutcome(output='\ufeff{"decision": "block", "reason": "no"}')
    assert read_answer("PreToolUse", blocked).decision == "deny"
    for event in GUARDS:
        assert read_answer(event, HookOutcome(output=" " * 100, is_cut=True)).decision == "deny"


@pytest.mark.parametrize("code", [1, 3, 64, 125, 255])
@pytest.mark.parametrize("event", EVENTS)
def test_another_exit_code_is_reported_and_blocks_nothing(event: Event, code: int):
    found = read_answer(event, HookOutcome(code, '{"decision": "block"}', "oops"))
    assert found == HookAnswer(problem=f"exit code {code}: oops")


@pytest.mark.parametrize(
    "event", ["PreToolUse", "PermissionRequest", "PostToolUse", "UserPromptSubmit", "Stop"]
)
def test_exit_2_blocks_and_standard_error_is_the_reason(event: Event):
    assert read_answer(event, HookOutcome(2, "unread", " no rm \n")) == HookAnswer("deny", "no rm")
    assert read_answer(event, HookOutcome(2)).decision == "deny"


@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd", "Notification"])
def test_exit_2_is_only_reported_where_nothing_can_be_blocked(event: Event):
    assert read_answer(event, HookOutcome(2, "", "late")) == HookAnswer(problem="late")


def test_a_text_is_context_for_two_events_alone():
    for event in EVENTS:
        is_context = event in ("SessionStart", "UserPromptSubmit")
        found = read_answer(event, HookOutcome(output=" it rains \n"))
        assert found == HookAnswer(context="it rains" if is_context else "")


def test_a_long_text_is_cut():
    found = read_answer("SessionStart", HookOutcome(output="x" * 50_000))
    assert len(found.context) < 11_000
    assert "40,000 more characters" in found.context


def test_every_field_of_the_published_form_is_read():
    found = answer(
        "PreToolUse",
        systemMessage="look",
        suppressOutput=True,
        hookSpecificOutput={
            "hookEventName": "PreToolUse",
            "permissionDecision": "ask",
            "permissionDecisionReason": "is that so?",
            "updatedInput": {"command": "ls"},
            "additionalContext": "it is late",
        },
    )
    assert found == HookAnswer("ask", "is that so?", "it is late", {"command": "ls"}, None, "look")
    assert answer("Stop", decision="block", reason="tests fail") == HookAnswer("deny", "tests fail")
    assert answer("PreToolUse", decision="approve") == HookAnswer("allow")
    assert answer("PostToolUse", **{"continue": False, "stopReason": "enough"}).stop == "enough"
    assert answer("PostToolUse", **{"continue": True}) == HookAnswer()
    decision = {"behavior": "deny", "message": "not today"}
    found = answer("PermissionRequest", hookSpecificOutput={"decision": decision})
    assert found == HookAnswer("deny", "not today")


def test_an_answer_for_another_event_is_none():
    special = {"hookEventName": "PostToolUse", "permissionDecision": "allow"}
    assert answer("PreToolUse", hookSpecificOutput=special).decision == "deny"


@tried(300, 1_000)
@given(events, st.integers(-1, 300), st.text(), st.text(max_size=50), st.booleans())
def test_whatever_a_command_writes_has_a_meaning(
    event: Event, code: int, output: str, errors: str, cut: bool
):
    found = read_answer(event, HookOutcome(code, output, errors, is_cut=cut))
    assert found.decision in (None, "deny") or output.strip().startswith("{")
    if code not in (0, 2) and event not in GUARDS:
        assert found.decision is None


@tried(300, 1_000)
@given(events, json_objects, json_values, json_values)
def test_no_object_allows_by_mistake(event: Event, fields: dict, decision: object, special: object):
    fields = {**fields, "decision": decision, "hookSpecificOutput": special}
    found = answer(event, **fields)
    assert found.decision in (None, "deny")
    if event in GUARDS and decision is not None:
        assert found.decision == "deny"


@tried(100, 1_000)
@given(events, st.sampled_from(["allow", "ask", "deny"]), st.integers(1, 60))
def test_half_an_answer_is_never_a_whole_one(event: Event, decision: str, cut: int):
    whole = json.dumps({"hookSpecificOutput": {"hookEventName": event, "permissionDecision": decision}})
    found = read_answer(event, HookOutcome(output=whole[: -min(cut, len(whole) - 1)]))
    assert found.decision == ("deny" if event in GUARDS else None)


def test_deny_beats_ask_beats_allow_in_every_order():
    given_answers = [
        HookAnswer("deny", "no"),
        HookAnswer("ask", "sure?"),
        HookAnswer("allow"),
        HookAnswer(context="c"),
    ]
    for order in permutations(given_answers):
        assert join_answers(order).decision == "deny"
        assert join_answers(order).reason == "no"
    for order in permutations(given_answers[1:]):
        assert join_answers(order).decision == "ask"
    assert join_answers(given_answers[2:]).decision == "allow"
    assert join_answers([]) == HookAnswer()
