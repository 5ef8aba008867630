"""`improve`: what a search refuses, what it keeps, what it accepts, and how it goes on."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.counts import MORE
from tests.eval.improving import CITIES, Caller, Reader, Writer, calling, everything, rounds_in, suite_of

from swink import Agent
from swink.errors import AuthError, InvalidInput, MissingKey, MisuseError
from swink.eval.cassettes import recording
from swink.eval.improve import NothingToImprove, improve
from swink.eval.improve.bettertexts import SearchTrouble, split_cases
from swink.eval.improve.candidates import TextCandidate, best_of, choose_parent, difference, front
from swink.eval.resultfile import BadResults, OtherRun
from swink.messages import Usage


async def test_a_target_of_no_kind_is_refused(tmp_path: Path):
    with pytest.raises(
        InvalidInput, match="the target is 'prompt'; write system_prompt, tool:NAME or skill:NAME"
    ):
        await improve(Writer(), suite_of(), "prompt", output=tmp_path / "o")
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("tool:lok", "the agent has no tool 'lok'; did you mean 'look'"),
        ("tool:find", "the agent has no tool 'find'; it has look"),
        ("skill:pdf", "the agent has no skills; give it some"),
    ],
)
async def test_a_target_that_the_agent_does_not_have_is_named(tmp_path: Path, target: str, said: str):
    with pytest.raises(NothingToImprove, match=said):
        await improve(Caller(), calling(), target, output=tmp_path / "o")


async def test_a_skill_that_the_agent_does_not_have_is_named(tmp_path: Path):
    with pytest.raises(NothingToImprove, match="the agent has no skill 'towns'; it has cities"):
        await improve(Reader(tmp_path / "skills"), suite_of(), "skill:towns", output=tmp_path / "o")


async def test_a_prompt_that_a_function_makes_or_that_every_case_brings_cannot_be_improved(tmp_path: Path):
    def made(case: Any) -> Agent[Any, Any]:
        agent = Writer()(case)
        agent.system_prompt = lambda ctx: "now"
        return agent

    with pytest.raises(NothingToImprove, match="made by a function"):
        await improve(made, suite_of(), "system_prompt", output=tmp_path / "o")
    suite = suite_of()
    own = replace(suite, cases=tuple(replace(case, system_prompt="mine") for case in suite.cases))
    with pytest.raises(NothingToImprove, match="every case has a system_prompt of its own"):
        await improve(Writer(), own, "system_prompt", output=tmp_path / "o")


async def test_too_few_cases_cannot_be_split(tmp_path: Path):
    with pytest.raises(
        InvalidInput, match="there are only 3 cases, and 4 are the least: some must be held out"
    ):
        await improve(Writer(), suite_of(3), "system_prompt", output=tmp_path / "o")


async def test_without_a_failure_there_is_nothing_to_improve(tmp_path: Path):
    with pytest.raises(NothingToImprove, match="all 6 training cases pass: there is nothing to improve"):
        await improve(Writer(known=everything()), suite_of(), "system_prompt", output=tmp_path / "o")


async def test_a_model_that_answers_nonsense_ends_the_search_after_three_rounds(tmp_path: Path):
    found = await improve(Writer(None), suite_of(), "system_prompt", output=tmp_path / "o")
    assert not found.accepted
    assert found.stopped.startswith("3 rounds in a row gave no candidate: the model gave no text")
    assert found.diff == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  ", "the model gave an empty text"),
        ("Name:  oslo\n", "the model gave the text as it is"),
        ("x" * 50_001, "the model gave a text of 50,001 characters"),
    ],
)
async def test_a_text_that_is_no_candidate_is_told_and_never_tried(tmp_path: Path, text: str, said: str):
    writer, told = Writer(text), list[str]()
    await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o", rounds=1, tell=told.append)
    assert any(said in line for line in told)
    assert writer.asked == 6  # the training cases, once


async def test_a_provider_that_refuses_is_trouble_and_the_search_can_be_gone_on_with(tmp_path: Path):
    writer = Writer(AuthError("no credit"))
    with pytest.raises(SearchTrouble, match=r"the model that writes texts cannot be asked: .*no credit"):
        await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o")
    asked = writer.asked
    writer.proposals = [everything()]
    found = await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o", resume=True)
    assert found.accepted
    assert len(writer.prompts) == 2
    assert writer.asked > asked


async def test_cases_that_the_provider_failed_are_no_failures_of_the_text(tmp_path: Path):
    class Broken(Writer):
        def said(self, context: Any) -> Any:
            return AuthError("no credit")

    with pytest.raises(SearchTrouble, match=r"6 of 6 attempts could not be judged \(.*no credit"):
        await improve(Broken(), suite_of(), "system_prompt", output=tmp_path / "o")


async def test_a_missing_key_is_told_as_one_and_not_as_a_failure(tmp_path: Path):
    class Keyless(Writer):
        def said(self, context: Any) -> Any:
            return MissingKey("no API key for openai")

    with pytest.raises(MisuseError, match=r"no attempt could be made \(.*no API key for openai"):
        await improve(Keyless(), suite_of(), "system_prompt", output=tmp_path / "o")


async def test_the_budget_ends_the_search_and_a_larger_one_goes_on(tmp_path: Path):
    writer = Writer("Name: oslo bergen", "Name: oslo lima", everything())
    writer.usage = Usage(0, 500_000)  # a dollar
    options = {"output": tmp_path / "o", "concurrency": 1}
    found = await improve(writer, suite_of(), "system_prompt", budget=3.5, **options)
    assert found.stopped == "the budget of 3.5 $ is spent"
    assert not found.accepted
    assert writer.asked == 4
    again = await improve(writer, suite_of(), "system_prompt", budget=100, resume=True, **options)
    assert again.accepted
    assert again.cost > found.cost


async def test_a_text_is_accepted_if_the_cases_held_out_pass_more_often(tmp_path: Path):
    writer = Writer(everything())
    found = await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o")
    assert found.accepted
    assert (found.training, found.holdout) == (6, 4)
    assert (found.holdout_after, found.text) == (1.0, everything())
    assert found.p is not None
    assert found.diff.splitlines()[:2] == ["--- system_prompt", "+++ system_prompt (improved)"]
    assert f"+{everything()}" in found.diff
    assert found.why == "It named too few."
    assert (tmp_path / "o" / "improved.txt").read_text() == everything()
    assert json.loads((tmp_path / "o" / "improvement.json").read_text())["accepted"] is True


async def test_a_text_that_only_knows_the_training_cases_is_not_accepted(tmp_path: Path):
    training, _ = split_cases(suite_of().cases, 0.4, 0)
    learned = "Name: " + " ".join(case.id for case in training)
    found = await improve(Writer(learned, known="Name:"), suite_of(), "system_prompt", output=tmp_path / "o")
    assert not found.accepted
    assert (found.training_after, found.holdout_before, found.holdout_after) == (1.0, 0.0, 0.0)
    assert found.candidate == 1


async def test_no_candidate_and_no_model_that_writes_sees_a_case_held_out(tmp_path: Path):
    _, held = split_cases(suite_of().cases, 0.4, 0)
    writer = Writer("Name: nobody", "Name: somebody", "Name: none", known="Name:")
    await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o", rounds=3)
    assert len(writer.prompts) == 3
    assert not [case.id for case in held for prompt in writer.prompts if case.id in prompt]
    assert not (tmp_path / "o" / "runs" / "holdout-before").exists()


async def test_the_model_that_writes_reads_what_was_said_expected_and_missed(tmp_path: Path):
    writer = Writer("Name: nobody")
    await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o", rounds=1)
    [prompt] = writer.prompts
    for text in ("Name: oslo", "I do not know.", "Where? ", "does not contain", "The mark is ==="):
        assert text in prompt


async def test_a_text_that_is_no_better_where_its_parent_failed_is_not_tried_on_the_rest(tmp_path: Path):
    writer = Writer("Name: nobody")
    found = await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o", rounds=1)
    assert writer.asked == 6 + 4
    assert found.candidate == 0


async def test_the_description_of_a_tool_can_be_improved(tmp_path: Path):
    found = await improve(Caller("Look always."), calling(), "tool:look", output=tmp_path / "o")
    assert found.accepted
    assert found.diff.splitlines()[-2:] == ["-Looks.", "+Look always."]


async def test_the_instructions_of_a_skill_can_be_improved(tmp_path: Path):
    reader = Reader(tmp_path / "skills", everything())
    found = await improve(reader, suite_of(), "skill:cities", output=tmp_path / "o")
    assert found.accepted
    assert (tmp_path / "skills" / "cities" / "SKILL.md").read_text().endswith("Name: oslo\n")  # it stays


async def test_a_finished_search_is_read_and_asks_nobody(tmp_path: Path):
    found = await improve(Writer(everything()), suite_of(), "system_prompt", output=tmp_path / "o")
    silent = Writer(AssertionError())
    again = await improve(silent, suite_of(), "system_prompt", output=tmp_path / "o", resume=True)
    assert again == found
    assert silent.asked == 0


async def test_a_search_that_was_cancelled_at_any_request_comes_to_the_same(tmp_path: Path):
    texts = ["Name: oslo bergen rome", "Name: oslo bergen rome cairo", everything()]
    whole = await improve(
        Writer(*texts), suite_of(), "system_prompt", output=tmp_path / "whole", concurrency=1
    )
    for last in range(1, 40) if MORE else (9,):
        writer, count = Writer(*texts), 0
        answer = writer.answer

        async def stopping(*asked: Any, _answer: Any = answer, _last: int = last) -> Any:
            nonlocal count
            count += 1
            if count == _last:
                task.cancel()
                await asyncio.Event().wait()
            async for event in _answer(*asked):
                yield event

        writer.answer = stopping  # type: ignore[method-assign]
        output = tmp_path / str(last)
        options: dict[str, Any] = {"output": output, "concurrency": 1}
        task = asyncio.ensure_future(improve(writer, suite_of(), "system_prompt", **options))
        try:
            found = await task
        except asyncio.CancelledError:
            rest = Writer(*texts[len(rounds_in(output)) if (output / "rounds.jsonl").exists() else 0 :])
            found = await improve(rest, suite_of(), "system_prompt", resume=True, **options)
        assert found == whole, last


async def test_a_line_that_a_crash_cut_short_is_asked_for_again(tmp_path: Path):
    texts = ["Name: oslo bergen rome", everything()]
    found = await improve(Writer(*texts), suite_of(), "system_prompt", output=tmp_path / "o")
    path = tmp_path / "o" / "rounds.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    again = await improve(Writer(texts[1]), suite_of(), "system_prompt", output=tmp_path / "o", resume=True)
    assert again == found


@pytest.mark.parametrize(
    "changed",
    [{"text": None}, {"number": 7}, {"cases": []}, {"problem": "none"}],
    ids=["text", "number", "cases", "problem"],
)
async def test_a_round_that_is_none_of_the_search_is_refused(tmp_path: Path, changed: dict[str, Any]):
    writer, rounds = Writer("Name: oslo bergen"), tmp_path / "o" / "rounds.jsonl"
    await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o", rounds=1)
    rounds.write_text(json.dumps({**json.loads(rounds.read_text()), **changed}) + "\n")
    with pytest.raises(BadResults, match="line 1 is no round of this search"):
        await improve(writer, suite_of(), "system_prompt", output=tmp_path / "o", rounds=1, resume=True)


async def test_a_directory_is_gone_on_with_only_for_the_same_search(tmp_path: Path):
    await improve(Writer("Name: nobody"), suite_of(), "system_prompt", output=tmp_path / "o", rounds=1)
    with pytest.raises(MisuseError, match="has files already"):
        await improve(Writer(), suite_of(), "system_prompt", output=tmp_path / "o")
    with pytest.raises(OtherRun, match="another training, holdout, seed: resume it with the same one"):
        await improve(Writer(), suite_of(), "system_prompt", output=tmp_path / "o", resume=True, seed=1)
    with pytest.raises(OtherRun, match="another text of the target"):
        await improve(Writer(known="x"), suite_of(), "system_prompt", output=tmp_path / "o", resume=True)
    (tmp_path / "o" / "rounds.jsonl").write_text("{}\n")
    with pytest.raises(BadResults, match=r"rounds\.jsonl cannot be read"):
        await improve(Writer(), suite_of(), "system_prompt", output=tmp_path / "o", resume=True)


async def test_a_search_is_replayed_from_a_cassette_without_any_model(tmp_path: Path):
    with recording(tmp_path / "c.jsonl", "record"):
        found = await improve(Writer(everything()), suite_of(), "system_prompt", output=tmp_path / "a")
    silent = Writer(AssertionError())
    with recording(tmp_path / "c.jsonl", "replay"):
        again = await improve(silent, suite_of(), "system_prompt", output=tmp_path / "b")
    assert (again.accepted, again.text, again.p) == (True, found.text, found.p)
    assert silent.asked == 0


def candidate(number: int, *scores: float) -> TextCandidate:
    named = dict(zip(CITIES, scores, strict=False))
    failed = tuple(city for city, score in named.items() if score < 1)
    return TextCandidate(number=number, text=str(number), scores=named, failed=failed)


def test_the_front_keeps_what_is_best_in_one_case_though_it_is_worse_on_average():
    candidates = [candidate(0, 0, 0, 1), candidate(1, 1, 1, 0), candidate(2, 1, 0, 0)]
    assert front(candidates) == {0: 1, 1: 2}


def test_of_equal_candidates_the_front_keeps_one():
    assert list(front([candidate(0, 1, 0), candidate(1, 1, 0)])) == [0]


def test_a_parent_is_one_of_the_front_that_still_fails_somewhere():
    from random import Random

    candidates = [candidate(0, 0, 0, 1), candidate(1, 1, 1, 0), candidate(2, 0.5, 0, 0)]
    chosen = {choose_parent(candidates, Random(seed)).number for seed in range(30)}
    assert chosen == {0, 1}
    assert best_of(candidates).number == 1


def test_a_text_without_a_line_end_makes_a_diff_of_whole_lines():
    assert difference("a\nb", "a\nc", "x").splitlines()[-2:] == ["-b", "+c"]
    assert difference("a", "a", "x") == ""
