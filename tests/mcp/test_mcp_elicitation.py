"""What MCP servers ask of the person: who is asked, which answers fit, and what a bad server cannot do."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_servers import bare, call, leftovers, results
from tests.counts import tried

from swink.app.assistant.elicitations import DECLINE, OPEN, SEND, SKIP, answer
from swink.app.assistant.forms import NOBODY, Form
from swink.errors import InvalidInput
from swink.mcp import ElicitForm, ElicitUrl, McpServers
from swink.mcp.elicitation import read_form
from swink.tools import ToolError

GIVEN = {"name": "Ada", "color": "b"}


async def said(tool: str, on_elicit: Any, **options: Any) -> Any:
    async with McpServers([bare("asking", **options)], on_elicit=on_elicit) as servers:
        (result,) = await results(servers, call(f"bare_{tool}"))
    assert leftovers() == []
    return result.text if result.is_error else json.loads(result.text)


ANSWERS: list[tuple[Any, Any]] = [
    (GIVEN, {"action": "accept", "content": {"name": "Ada", "age": 30, "color": "b", "news": False}}),
    (
        {**GIVEN, "age": 7, "sizes": ["S"]},
        {
            "action": "accept",
            "content": {"name": "Ada", "age": 7, "color": "b", "news": False, "sizes": ["S"]},
        },
    ),
    (False, {"action": "decline"}),
    (None, {"action": "cancel"}),
    (True, {"action": "cancel"}),  # the name has no default
    ({**GIVEN, "age": 200}, {"action": "cancel"}),
    ({**GIVEN, "other": 1}, {"action": "cancel"}),
    ("nonsense", {"action": "cancel"}),
    (ValueError("a bug"), {"action": "cancel"}),
]


async def test_the_answer_reaches_the_server_with_its_defaults_and_only_if_it_fits():
    given: Any = None

    def on_elicit(asked: ElicitForm) -> Any:
        assert (asked.server, asked.message, asked.fields[0].title) == ("bare", "Who are you?", "Your name")
        if isinstance(given, Exception):
            raise given
        return given

    async with McpServers([bare("asking")], on_elicit=on_elicit) as servers:
        for given, expected in ANSWERS:
            (result,) = await results(servers, call("bare_form"))
            assert json.loads(result.text) == expected, given


async def test_a_page_is_opened_only_with_a_yes_and_only_if_a_browser_should():
    asked: list[ElicitUrl] = []

    async def on_elicit(one: ElicitUrl) -> bool:
        asked.append(one)
        return True

    async with McpServers([bare("asking")], on_elicit=on_elicit) as servers:
        page, script, nested, capable = [
            json.loads((await results(servers, call(f"bare_{name}")))[0].text)
            for name in ("page", "script", "nested", "capabilities")
        ]
    assert page == {"action": "accept"}
    assert capable["elicitation"] == {"form": {}, "url": {}}
    assert asked == [ElicitUrl("bare", "Pay here.", "https://pay.example/?id=7")]
    assert asked[0].host == "pay.example"
    assert "only https:// and http://" in script["message"]
    assert "neither text" in nested["message"]
    assert len(asked) == 1


async def test_where_nobody_can_answer_servers_are_told_so():
    async with McpServers([bare("asking")]) as servers:
        capable, asked, needed = [
            (await results(servers, call(f"bare_{name}")))[0] for name in ("capabilities", "form", "required")
        ]
    assert "elicitation" not in json.loads(capable.text)
    assert "not supported" in json.loads(asked.text)["message"]
    assert "nobody can be asked" in needed.text


async def test_a_call_that_needs_a_page_first_says_so():
    assert "the user was sent to pay.example for it: call it again" in await said(
        "required", lambda asked: True
    )
    assert "did not want to open" in await said("required", lambda asked: False)


async def test_a_server_that_asks_without_end_is_declined():
    asked: list[Any] = []
    answers = await said("flood", lambda one: asked.append(one))
    assert len(asked) == 20
    assert [one["action"] for one in answers] == ["cancel"] * 20 + ["decline"] * 5


async def test_what_is_asked_when_the_call_is_over_is_withdrawn_and_cancelled_runs_free_the_person():
    started, ended = asyncio.Event(), asyncio.Event()

    async def on_elicit(asked: Any) -> None:
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    async with McpServers([bare("asking")], on_elicit=on_elicit) as servers:
        task = asyncio.create_task(results(servers, call("bare_form")))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), 30)
    assert leftovers() == []


async def test_a_server_cannot_ask_between_calls():
    asked: list[Any] = []

    async def on_elicit(one: Any) -> None:
        asked.append(one)
        await asyncio.sleep(600)

    async with McpServers([bare("asking")], on_elicit=on_elicit) as servers:
        assert (await results(servers, call("bare_leave")))[0].text == '"gone"'
        for _ in range(500):
            (answered,) = await results(servers, call("bare_answered"))
            if "left" in answered.text:
                break
        assert json.loads(answered.text)[0]["result"]["action"] in ("decline", "cancel")
    assert leftovers() == []


FIELDS = {
    "text": {"type": "string"},
    "email": {"type": "string", "format": "email"},
    "day": {"type": "string", "format": "date"},
    "count": {"type": "integer", "minimum": 1},
    "share": {"type": "number", "maximum": 1},
    "sure": {"type": "boolean"},
    "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["Alpha", "Beta"]},
    "many": {
        "type": "array",
        "items": {"anyOf": [{"const": "x", "title": "Ex"}, {"const": "y", "title": "Why"}]},
    },
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", " as it is ", " as it is "),
        ("email", "a@b.cd", "a@b.cd"),
        ("email", "ab.cd", None),
        ("day", "2026-01-31", "2026-01-31"),
        ("day", "31.1.2026", None),
        ("count", "3", 3),
        ("count", "0", None),
        ("count", "3.5", None),
        ("share", "0.5", 0.5),
        ("share", "nan", None),
        ("share", "2", None),
        ("sure", "Yes", True),
        ("sure", "perhaps", None),
        ("old", "Beta", "b"),
        ("old", "a", "a"),
        ("old", "c", None),
        ("many", "Ex; Why", ["x", "y"]),
        ("many", "Zed", None),
    ],
)
def test_what_somebody_types_becomes_the_value_that_is_meant(name: str, text: str, value: Any):
    (field,) = read_form("s", "m", {"properties": {name: FIELDS[name]}}).fields
    if value is None:
        with pytest.raises(InvalidInput):
            field.parse(text)
    else:
        assert field.parse(text) == value
        assert type(field.parse(text)) is type(value)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "properties", "enum", "oneOf", "const", "items", "default", "required", "format", "minLength", "title"]),
        inner | st.sampled_from(["string", "array", "number", "boolean", "integer"]),
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@tried(25, 1_000)
@given(
    st.dictionaries(st.text(max_size=4), ANY, max_size=4),
    st.dictionaries(st.text(max_size=4), ANY, max_size=3),
)
def test_any_schema_is_a_form_or_refused_and_what_is_filled_in_fits(properties: Any, values: Any):
    try:
        form = read_form("s", "m", {"properties": properties, "required": list(properties)[:1]})
        filled = form.fill(values)
    except InvalidInput:
        return
    for field in form.fields:
        if field.name in filled:
            field.check(filled[field.name])


# In the assistant's form

SCHEMA = {
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer", "default": 30},
        "news": {"type": "boolean"},
    },
    "required": ["name"],
}


def filling(*replies: list[str] | None) -> tuple[Any, list[Form]]:
    shown: list[Form] = []

    async def fill_in(form: Form) -> list[str] | None:
        shown.append(form)
        return replies[len(shown) - 1]

    return fill_in, shown


async def test_the_person_fills_in_a_form_and_is_asked_again_for_what_does_not_fit():
    fill_in, shown = filling(["A", "x", SKIP, SEND], ["Ada", "31", SEND])
    assert await answer(read_form("shop", "Who?", SCHEMA), fill_in) == {"name": "Ada", "age": 31}
    first, second = shown
    assert first.asker == "the MCP server shop"
    assert first.items[0].question.startswith("Who?\n\nname")
    assert [item.choices for item in first.items] == [(), ("30", SKIP), ("yes", "no", SKIP), (SEND, DECLINE)]
    assert "at least 2" in second.items[0].question


async def test_the_person_may_decline_dismiss_or_not_be_there():
    form = read_form("shop", "Who?", SCHEMA)
    assert await answer(form, filling(["Ada", "30", "yes", DECLINE])[0]) is False
    assert await answer(form, filling(None)[0]) is None
    page = ElicitUrl("shop", "Pay.", "https://pay.example/x")
    assert await answer(page, filling([DECLINE])[0]) is False
    assert await answer(page, filling(None)[0]) is None

    async def nobody(form: Form) -> list[str] | None:
        raise ToolError(NOBODY)

    assert await answer(form, nobody) is None


async def test_a_page_is_shown_with_its_whole_address_before_it_is_opened(monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr("swink.app.assistant.elicitations.open_browser", opened.append)
    fill_in, shown = filling([OPEN])
    assert await answer(ElicitUrl("shop", "Pay.", "https://pay.example/x?y"), fill_in) is True
    assert (
        shown[0]
        .items[0]
        .question.startswith(
            "It asks you to open a page of pay.example:\nhttps://pay.example/x?y\n\nIt says: "
        )
    )
    assert opened == ["https://pay.example/x?y"]


HUGE = 10**400


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "default": HUGE},
        {"type": "number", "minimum": HUGE, "maximum": -HUGE, "default": 1},
        {"type": "array", "items": {"enum": ["a"]}, "default": [["a"], {}]},
        {"type": "string", "format": "uri", "default": "http://["},
    ],
)
def test_a_default_or_a_limit_that_nobody_can_mean_is_left_out(schema: dict[str, Any]):
    (field,) = read_form("s", "m", {"properties": {"x": schema}}).fields
    assert field.default in (None, 1)
    assert not field.limits.keys() & {"minimum", "maximum"}


@pytest.mark.parametrize(
    ("schema", "typed"),
    [({"type": "integer"}, "9" * 400), ({"type": "string", "format": "uri"}, "http://[")],
)
def test_an_answer_that_cannot_be_meant_is_asked_for_again(schema: dict[str, Any], typed: str):
    (field,) = read_form("s", "m", {"properties": {"x": schema}}).fields
    with pytest.raises(InvalidInput):
        field.parse(typed)
