"""A case may begin in the middle of a conversation: what was said before stands in its history."""

from pathlib import Path
from typing import Any

import pytest

from swink import Agent
from swink.eval.case import Case, PriorMessage, SimulatedUser
from swink.eval.casefile import BadCases, load_suite
from swink.eval.importers import BadRows, import_cases, write_cases
from swink.eval.runner import evaluate
from swink.eval.simulation import STOP, Simulation
from swink.messages.jsondata import encode
from swink.testing import ScriptedModel

HISTORY = (PriorMessage("user", "Hello"), PriorMessage("assistant", "Hi! Where are you?"))
SPOKEN = [("user", "Hello"), ("assistant", "Hi! Where are you?"), ("user", "In Oslo.")]


def bfcl(path: Path, *messages: tuple[str, Any]) -> Path:
    said = [{"role": role, "content": content} for role, content in messages]
    function = {"name": "weather", "parameters": {"type": "dict", "properties": {}}}
    row = {"id": "live_irrelevance_0", "question": [said], "function": [function]}
    path.write_bytes(encode(row))
    return path


def asked(model: ScriptedModel, number: int = 0) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in model.calls[number].messages]


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ("Hello", "history must be a list"),
        ([{"role": "system", "content": "x"}], "user"),
        ([{"role": "user"}], "content"),
        ([{"role": "user", "content": ""}], "content"),
    ],
)
def test_a_history_of_another_shape_is_refused(tmp_path: Path, history: Any, told: str):
    file = tmp_path / "cases.json"
    file.write_bytes(encode([{"id": "one", "user_messages": "x", "history": history}]))
    with pytest.raises(BadCases, match=told):
        load_suite(file)


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([("user", "Hello"), ("assistant", "Hi")], "asks nothing at the end"),
        ([("user", "Hello"), ("tool", "4")], "not a text of"),
        ([("user", None)], "not a text of"),
        ([], "asks nothing"),
    ],
)
def test_a_row_of_bfcl_that_asks_nothing_or_that_others_speak_in_is_no_case(
    tmp_path: Path, messages: Any, told: str
):
    with pytest.raises(BadRows, match=told):
        import_cases("bfcl", bfcl(tmp_path / "BFCL_v4_live_irrelevance.json", *messages))


def test_a_row_of_bfcl_with_replies_keeps_them_as_history(tmp_path: Path):
    path = bfcl(tmp_path / "BFCL_v4_live_irrelevance.json", ("system", "Be brief."), *SPOKEN)
    suite = import_cases("bfcl", path)
    (case,) = suite.cases
    assert (case.system_prompt, case.history, case.user_messages) == ("Be brief.", HISTORY, ("In Oslo.",))
    write_cases(suite, tmp_path / "cases.json")
    assert load_suite(tmp_path / "cases.json").cases[0].history == HISTORY


async def test_the_agent_begins_with_the_history_and_the_transcript_shows_it():
    model = ScriptedModel(["A jacket."])
    case = Case(id="one", history=HISTORY, user_messages=("In Oslo.",))
    run = await evaluate(lambda case: Agent("test:m", stream_fn=model), [case])
    assert asked(model) == SPOKEN
    assert [message.text for message in run.cases[0].transcript] == [
        *(text for _, text in SPOKEN),
        "A jacket.",
    ]
    assert run.cases[0].turns == 1


async def test_a_simulated_user_knows_the_history_from_its_own_side():
    model = ScriptedModel(["In Oslo.", "A jacket.", STOP])
    agent = Agent("test:m", stream_fn=model)
    case = Case(id="one", history=HISTORY, simulated_user=SimulatedUser("What to wear"))
    await Simulation(agent, case).converse()
    said = asked(model)
    assert said[1:] == [("assistant", "Hello"), ("user", "Hi! Where are you?")]
