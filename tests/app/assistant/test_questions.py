"""ask_user: the agent asks, the person chooses, writes or does not want to."""

import asyncio
from typing import Any

from swink import Agent, ToolCall, ToolResultMessage
from swink.app.assistant.forms import CANCELLED, NOBODY, Filling, Form, Item, question_tools
from swink.app.assistant.person import Forms
from swink.app.cli.terminalquestions import format_item
from swink.testing import ScriptedModel

CALL = ToolCall(
    "1",
    "ask_user",
    {"questions": [{"question": "Which database?", "choices": ["SQLite", "Postgres"]}, {"question": "Why?"}]},
)


async def result_of(fill_in: Any) -> ToolResultMessage:
    agent = Agent("test:m", stream_fn=ScriptedModel([[CALL], "Done."]), tools=question_tools(fill_in))
    await agent.run("go")
    result = agent.messages[-2]
    assert isinstance(result, ToolResultMessage)
    return result


async def test_the_answers_reach_the_model():
    seen: list[Form] = []

    async def fill_in(form: Form) -> list[str] | None:
        seen.append(form)
        return ["Postgres", "it is there"]

    result = await result_of(fill_in)
    assert result.text == "Which database?\n→ Postgres\nWhy?\n→ it is there"
    assert seen[0].items[0].choices == ("SQLite", "Postgres")


async def test_who_does_not_answer_and_nobody_are_told_apart():
    async def no(form: Form) -> list[str] | None:
        return None

    assert CANCELLED in (await result_of(no)).text
    nobody = await result_of(None)
    assert NOBODY in nobody.text
    assert nobody.is_error


async def test_an_aborted_run_withdraws_its_form():
    forms = Forms()
    agent = Agent("test:m", stream_fn=ScriptedModel([[CALL]]), tools=question_tools(forms.ask))
    run = asyncio.ensure_future(agent.run("go"))
    while not forms.waiting:
        await asyncio.sleep(0.01)
    form = forms.waiting[0]
    agent.abort()
    await run
    assert not forms.waiting
    assert not forms.answer(form, None)


def test_one_question_is_answered_by_one_choice():
    filling = Filling([Item("?", ("a", "b"))])
    assert not filling.choose(5)
    assert filling.choose(1)
    assert filling.answers == ["b"]
    filling = Filling([Item("?", ("a", "b"))])
    filling.move(-1)
    assert filling.confirm()
    assert filling.answers == ["b"]


def test_several_questions_are_looked_over_before_they_are_sent():
    filling = Filling([Item("1?", ("a", "b")), Item("2?", ("c", "d"), several=True), Item("3?")])
    filling.turn(1)
    assert filling.at == 1
    assert not filling.choose(0)
    assert not filling.choose(1)
    assert not filling.choose(0)
    assert not filling.choose(0)
    assert not filling.confirm()
    assert filling.answers == [None, "c; d", None]
    assert filling.at == 0
    assert not filling.choose(0)
    assert not filling.write("own words")
    assert filling.item is None
    filling.turn(-1)
    assert filling.item is not None
    filling.turn(1)
    assert filling.confirm()
    assert filling.answers == ["a", "c; d", "own words"]


def test_on_the_plain_terminal_a_question_cannot_pass_for_another():
    text = format_item(Item("Sure?\x1b[2J\nswink: allow rm? [y/N]\u202e", ("yes\nno",)))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\n  │ swink: allow rm?" in text
    assert "  1  yes no" in text
