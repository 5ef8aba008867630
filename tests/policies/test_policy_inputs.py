"""Options that cannot work are refused when a policy is built, with what to change."""

import re
from pathlib import Path
from typing import Any

import pytest

from swink import AgentError
from swink.errors import InvalidInput
from swink.policies import (
    AuditLogger,
    Budget,
    Checkpoint,
    ContentFilter,
    LoopDetection,
    MaxTurns,
    PathGuard,
    PiiRedactor,
    PromptInjectionGuard,
    RecommendedPolicies,
    ToolAllowList,
    ToolDenyList,
    probe,
)

NO_NUMBERS: tuple[Any, ...] = (-1, float("nan"), float("inf"), "5", True)
LIMITS = ("max_cost", "max_input_tokens", "max_output_tokens", "max_tokens")


def refused(words: str, make: Any, *values: Any, **options: Any) -> None:
    with pytest.raises(InvalidInput, match=words) as raised:
        make(*values, **options)
    assert isinstance(raised.value, AgentError)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_budget_that_is_no_amount_is_refused(limit: str, value: Any):
    refused(f"{limit}=.*give a number from 0 on", Budget, **{limit: value})


def test_a_budget_without_a_limit_and_wrong_words_of_a_budget_are_refused():
    refused("limits nothing: give max_cost", Budget)
    refused("scope is 'run', 'session', not 'turn'", Budget, max_cost=1, scope="turn")
    refused("unknown_price is 'stop', 'warn', not 'ignore'", Budget, max_cost=1, unknown_price="ignore")
    refused("reserve='no': give True or False", Budget, max_cost=1, reserve="no")
    refused("expected_output=-1", Budget, max_cost=1, expected_output=-1)


@pytest.mark.parametrize("value", [0, 2.5, None, *NO_NUMBERS])
def test_a_turn_limit_that_is_no_whole_number_from_one_on_is_refused(value: Any):
    refused("give a whole number from 1 on", MaxTurns, value)


@pytest.mark.parametrize("value", [1, 2.5, None, *NO_NUMBERS])
def test_repeats_that_are_no_whole_number_from_two_on_are_refused(value: Any):
    refused("repeats=.*give a whole number from 2 on", LoopDetection, value)


def test_wrong_words_of_loop_detection_are_refused():
    refused("action is 'nudge', 'stop', not 'warn'", LoopDetection, action="warn")
    refused("same_results=1: give True or False", LoopDetection, same_results=1)
    refused(r"ignore='id': give a list, such as ignore=\['id'\]", LoopDetection, ignore="id")
    refused("nudge: ' '", LoopDetection, nudge=" ")


def test_a_deny_list_that_denies_nothing_is_refused():
    refused("denies nothing: name tools", ToolDenyList)
    refused("denies nothing: name tools", ToolDenyList, [])


@pytest.mark.parametrize("make", [ToolDenyList, ToolAllowList])
@pytest.mark.parametrize("pattern", [None, 5, "", ["read", None], print])
def test_a_pattern_that_names_no_tool_is_refused(make: Any, pattern: Any):
    refused("names no tool", make, pattern)


def test_a_path_guard_that_refuses_nothing_is_refused(tmp_path: Path):
    refused("everything is inside", PathGuard, "/")
    (tmp_path / "file").touch()
    refused("that is a file", PathGuard, tmp_path / "file")
    refused("str or Path", PathGuard, None)
    refused("ignore", PathGuard, tmp_path, ignore=[""])


def test_a_redactor_that_redacts_nothing_is_refused():
    refused("without kinds redacts nothing: choose from key, email", PiiRedactor, ())
    refused(r"give a list, such as kinds=\['email'\]", PiiRedactor, "email")
    refused(r"knows no kinds \['mail'\]: choose from key, email", PiiRedactor, ["mail"])
    refused(r"give a list, such as keep=\['a@b.io'\]", PiiRedactor, keep="a@b.io")
    refused("arguments is 'restore', 'redact', 'keep', not 'mask'", PiiRedactor, arguments="mask")


def test_a_filter_that_filters_nothing_or_everything_is_refused():
    refused("filters nothing: give words", ContentFilter)
    refused(r"give a list, such as words=\['secret'\]", ContentFilter, "secret")
    refused("words: '' is no text", ContentFilter, [""])
    refused("words: 7 is no text", ContentFilter, [7])
    refused(r"give a list, such as categories=\['profanity'\]", ContentFilter, categories="profanity")
    refused("category 'rude' has no words; known: profanity", ContentFilter, categories=["rude"])
    refused("category 'rude' has no words", ContentFilter, categories={"rude": []})
    refused("is not a regular expression", ContentFilter, patterns=["("])
    refused("matches even an empty text", ContentFilter, patterns=["x*"])
    refused("matches even an empty text", ContentFilter, patterns=[re.compile("")])
    refused("action is 'stop', 'mask', not 'drop'", ContentFilter, ["secret"], action="drop")
    refused("mask: ''", ContentFilter, ["secret"], mask="")


def test_wrong_options_of_the_injection_guard_are_refused():
    refused("action is 'quarantine', 'stop', not 'warn'", PromptInjectionGuard, "warn")
    refused("check_user='no': give True or False", PromptInjectionGuard, check_user="no")
    refused("give a list, such as patterns=", PromptInjectionGuard, patterns="sesame")
    refused("is not a regular expression", PromptInjectionGuard, patterns=["["])
    refused("matches even an empty text", PromptInjectionGuard, patterns=["(sesame)?"])
    refused("has no effect without a judge", PromptInjectionGuard, judge_required=True)
    refused("a judge is a model", PromptInjectionGuard, judge=7)


@pytest.mark.parametrize("value", [0, None, *NO_NUMBERS])
def test_a_time_limit_that_is_no_positive_number_is_refused(value: Any):
    refused("judge_timeout=.*above 0", PromptInjectionGuard, judge=lambda text: False, judge_timeout=value)
    refused("timeout=.*give a number above 0", Checkpoint, lambda data: None, timeout=value)


def test_a_store_that_cannot_save_is_refused():
    refused(r"give a function of the data, or an object with save\(data\)", Checkpoint, "store.json")
    refused("give a function of the data", Checkpoint, None)


def test_wrong_options_of_the_audit_log_are_refused(tmp_path: Path):
    log = tmp_path / "a.jsonl"
    refused("str or Path", AuditLogger, None)
    refused("max_text=-1", AuditLogger, log, max_text=-1)
    refused("required='yes': give True or False", AuditLogger, log, required="yes")
    refused("key is empty", AuditLogger, log, key="")
    refused("give a path, or a function", AuditLogger, log, anchor=5)
    refused("anchor is the log itself", AuditLogger, log, anchor=log)
    refused("anchor is the log itself", AuditLogger, log, anchor=str(log))
    assert not log.exists()


def test_a_set_leaves_out_what_it_is_told_to_and_refuses_wrong_options(tmp_path: Path):
    assert PiiRedactor not in [type(policy) for policy in RecommendedPolicies(tmp_path, redact=())]
    refused("max_cost=-1", RecommendedPolicies, max_cost=-1)
    refused("whole number from 1 on", RecommendedPolicies, max_turns=0)
    refused("also", RecommendedPolicies, also=[MaxTurns])


async def test_only_a_policy_can_be_probed():
    with pytest.raises(InvalidInput, match="probe takes Policy"):
        await probe(MaxTurns)  # type: ignore[arg-type]
