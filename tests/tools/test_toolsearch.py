"""Deferred tools: found, called by call_tool, and seen by everybody as what they are."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swink import Agent, ModelSpec, tool
from swink.agent.policy import Policy, Rewrite, Skip
from swink.errors import InvalidTool
from swink.events import ApprovalRequested, CustomEvent, MessageEnd, ToolExecutionEnd, ToolExecutionStart
from swink.events.transcript import Transcript
from swink.memory import JsonlStore
from swink.messages import AssistantMessage, ToolCall, ToolResultMessage
from swink.stream import LlmContext
from swink.testing import EventCollector, ScriptedModel
from swink.tools import Tool, TurnContext, prepared
from swink.tools.bm25 import WordIndex, described, words_of
from swink.tools.toolsearch import ToolSearch, describe_unknown, tool_search


@tool(deferred=True)
async def send_letter(person: str, text: str = "") -> str:
    """Post a letter to a person."""
    return f"sent to {person}"


@tool(deferred=True, requires_approval=True)
async def burn_letter(person: str) -> str:
    """Destroy all letters of a person."""
    return f"burnt those of {person}"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


TOOLS = [add, send_letter, burn_letter]


def call(name: str, arguments: Any = None, id: str = "c1") -> ToolCall:
    given = {} if arguments is None else {"arguments": arguments}
    return ToolCall(id, "call_tool", {"name": name, **given})


def make(*script: Any, **options: Any) -> tuple[Agent, ScriptedModel, EventCollector]:
    model = ScriptedModel([*script, "done"])
    agent = Agent("test:m", stream_fn=model, **{"tools": TOOLS, **options})
    seen = EventCollector()
    agent.subscribe(seen)
    return agent, model, seen


def results(agent: Agent) -> list[ToolResultMessage]:
    return [message for message in agent.messages if isinstance(message, ToolResultMessage)]


def sent(context: LlmContext) -> list[str]:
    return [tool.name for tool in context.tools]


# what fails


async def test_an_unknown_name_is_told_with_the_nearest_names():
    many = [Tool.raw(f"mail_{n}", "Mail.", {"type": "object"}, lambda *_: "") for n in range(40)]
    agent, _, _ = make([call("send_leter", {})], tools=[*TOOLS, *many])
    await agent.run("go")
    (result,) = results(agent)
    assert result.is_error
    assert "no tool named 'send_leter'" in result.text
    assert "send_letter" in result.text
    assert "find_tools" in result.text
    assert len(result.text) < 300


async def test_arguments_that_the_real_tool_does_not_take_are_told_as_its_violations():
    agent, _, _ = make([call("send_letter", {"text": "x"})])
    await agent.run("go")
    assert results(agent)[0].is_error
    assert "person" in results(agent)[0].text


@pytest.mark.parametrize(
    "arguments", [{}, {"name": 3}, {"name": "add", "arguments": [1]}, {"name": "add", "arguments": "{"}]
)
async def test_a_call_tool_that_names_no_tool_is_told_what_it_takes(arguments: Any):
    agent, _, _ = make([ToolCall("c1", "call_tool", arguments)])
    await agent.run("go")
    assert results(agent)[0].is_error
    assert "invalid arguments" in results(agent)[0].text


async def test_call_tool_does_not_call_itself():
    agent, _, _ = make([call("call_tool", {"name": "send_letter", "arguments": {"person": "Ada"}})])
    await agent.run("go")
    assert results(agent)[0].is_error
    assert "not itself" in results(agent)[0].text


async def test_arguments_nested_too_deeply_are_refused_and_the_run_goes_on():
    deep = '{"a":' * 2000 + "1" + "}" * 2000
    agent, _, _ = make([call("send_letter", deep)])
    assert (await agent.run("go")).text == "done"
    assert results(agent)[0].is_error


async def test_a_policy_that_denies_the_real_tool_denies_it_through_call_tool():
    class Deny(Policy):
        async def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Skip("not that one") if call.name == "send_letter" else None

    agent, _, seen = make([call("send_letter", {"person": "Ada"})], policies=[Deny()])
    await agent.run("go")
    assert results(agent)[0].text == "not that one"
    assert not [event for event in seen.events if isinstance(event, ToolExecutionStart)]


async def test_a_rewrite_of_a_policy_changes_the_arguments_of_the_real_tool():
    class Other(Policy):
        async def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            assert call.name == "send_letter"
            return Rewrite({"person": "Bob"})

    agent, _, _ = make([call("send_letter", {"person": "Ada"})], policies=[Other()])
    await agent.run("go")
    assert results(agent)[0].text == "sent to Bob"


async def test_a_tool_that_is_not_among_those_of_the_turn_is_neither_found_nor_called():
    readers = prepared(TOOLS, lambda _, tool: tool if tool.name != "burn_letter" else None)
    agent, _, _ = make(
        [ToolCall("f", "find_tools", {"query": "destroy letters"}), call("burn_letter", {"person": "Ada"})],
        tools=[readers],
        approval_mode="off",
    )
    await agent.run("go")
    found, called = results(agent)
    assert "burn_letter" not in found.text
    assert "no tool named 'burn_letter'" in called.text


async def test_a_tool_that_is_gone_at_the_next_turn_is_unknown_there():
    here = [TOOLS]

    class Changing:
        def tools(self) -> Any:
            return here[0]

    async def take_away(context: Any) -> None: ...

    model = ScriptedModel(
        [[call("send_letter", {"person": "Ada"})], [call("send_letter", {"person": "Ada"}, "c2")], "done"]
    )
    agent = Agent("test:m", stream_fn=model, tools=[Changing()])

    def leave(event: Any) -> None:
        if isinstance(event, ToolExecutionEnd):
            here[0] = [add, burn_letter]

    agent.subscribe(leave)
    await agent.run("go")
    assert [result.is_error for result in results(agent)] == [False, True]


async def test_an_abort_ends_a_call_and_gives_it_a_result_with_its_real_name():
    began = asyncio.Event()

    @tool(deferred=True)
    async def wait() -> None:
        """Wait for ever."""
        began.set()
        await asyncio.Event().wait()

    agent, _, _ = make([call("wait")], tools=[wait])
    run = asyncio.create_task(agent.run("go"))
    await began.wait()
    agent.abort()
    await run
    assert [(result.tool_name, result.is_error) for result in results(agent)] == [("wait", True)]


def test_a_tool_of_ones_own_with_a_reserved_name_is_refused_beside_deferred_ones():
    @tool
    def find_tools(query: str) -> str:
        """Mine."""
        return query

    with pytest.raises(InvalidTool, match="find_tools"):
        Agent("test:m", stream_fn=ScriptedModel([]), tools=[find_tools, send_letter])
    Agent("test:m", stream_fn=ScriptedModel([]), tools=[find_tools, add])


# what holds


async def test_a_deferred_tool_is_not_sent_and_two_fixed_tools_are():
    agent, model, _ = make()
    await agent.run("go")
    assert sent(model.calls[0]) == ["add", "find_tools", "call_tool"]


async def test_without_deferred_tools_nothing_is_added():
    agent, model, _ = make(tools=[add])
    await agent.run("go")
    assert sent(model.calls[0]) == ["add"]


async def test_find_tools_gives_the_schemas_of_the_best():
    agent, _, _ = make([ToolCall("f", "find_tools", {"query": "mail a letter to somebody"})])
    await agent.run("go")
    text = results(agent)[0].text
    assert text.startswith('{"name":"send_letter"')
    assert '"person"' in text
    assert "add" not in [line.split('"')[3] for line in text.splitlines()]


async def test_find_tools_says_when_nothing_fits():
    agent, _, _ = make([ToolCall("f", "find_tools", {"query": "zebra"})])
    await agent.run("go")
    assert "No tool fits" in results(agent)[0].text


async def test_everybody_sees_the_real_call_and_only_the_model_its_own():
    seen_by_policy: list[tuple[str, Any]] = []

    class Look(Policy):
        async def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            seen_by_policy.append((call.name, dict(call.arguments)))

    agent, model, seen = make([call("send_letter", {"person": "Ada"})], policies=[Look()])
    await agent.run("go")
    assert seen_by_policy == [("send_letter", {"person": "Ada"})]
    started = next(event for event in seen.events if isinstance(event, ToolExecutionStart))
    ended = next(event for event in seen.events if isinstance(event, ToolExecutionEnd))
    assert (started.name, started.arguments) == ("send_letter", {"person": "Ada"})
    assert ended.name == "send_letter"
    assert results(agent)[0].tool_name == "send_letter"
    reply = next(message for message in agent.messages if isinstance(message, AssistantMessage))
    assert reply.tool_calls[0].name == "call_tool"
    assert reply.tool_calls[0].resolved.name == "send_letter"
    assert model.calls[1].messages[1].tool_calls[0] == call("send_letter", {"person": "Ada"})


async def test_a_transcript_shows_the_real_call_from_events_and_from_messages():
    live = Transcript()
    agent, _, _ = make([call("send_letter", {"person": "Ada"})])
    agent.subscribe(live.take)
    await agent.run("go")
    told = Transcript()
    for message in agent.messages:
        told.take(MessageEnd(message))
    for transcript in (live, told):
        (block,) = [block for block in transcript.blocks if type(block).__name__ == "ToolBlock"]
        assert (block.name, dict(block.arguments), block.state) == ("send_letter", {"person": "Ada"}, "done")


async def test_arguments_that_are_json_in_a_text_are_taken():
    agent, _, _ = make([call("send_letter", '{"person": "Ada"}')])
    await agent.run("go")
    assert results(agent)[0].text == "sent to Ada"


async def test_a_deferred_tool_that_is_called_by_its_own_name_runs():
    agent, _, _ = make([ToolCall("c", "send_letter", {"person": "Ada"})])
    await agent.run("go")
    assert results(agent)[0].text == "sent to Ada"


async def test_a_tool_that_is_not_deferred_may_be_called_through_call_tool():
    agent, _, _ = make([call("add", {"a": 1, "b": 2})])
    await agent.run("go")
    assert results(agent)[0].text == "3"


async def test_calls_through_call_tool_run_concurrently():
    both = asyncio.Barrier(2)

    @tool(deferred=True)
    async def meet(n: int) -> int:
        """Wait for the other."""
        async with asyncio.timeout(60):
            await both.wait()
        return n

    agent, _, _ = make([call("meet", {"n": 1}, "a"), call("meet", {"n": 2}, "b")], tools=[meet])
    await agent.run("go")
    assert [result.text for result in results(agent)] == ["1", "2"]


async def test_an_approval_is_asked_for_the_real_call():
    asked: list[Any] = []

    async def approve(request: Any) -> bool:
        asked.append((request.name, request.arguments))
        return False

    agent, _, seen = make([call("burn_letter", {"person": "Ada"})], approve=approve)
    await agent.run("go")
    assert asked == [("burn_letter", {"person": "Ada"})]
    assert [event.name for event in seen.events if isinstance(event, ApprovalRequested)] == ["burn_letter"]
    assert "rejected" in results(agent)[0].text


async def test_a_call_that_was_begun_before_a_crash_is_not_run_again(tmp_path: Path):
    ran: list[str] = []
    crashed = asyncio.Event()

    @tool(deferred=True)
    async def pay(amount: int) -> str:
        """Pay somebody."""
        ran.append(f"{amount}")
        crashed.set()
        await asyncio.Event().wait()
        return "paid"

    store = JsonlStore(tmp_path)
    session = await store.create()
    agent = Agent(
        "test:m", stream_fn=ScriptedModel([[call("pay", {"amount": 5})]]), tools=[pay], session=session
    )
    run = asyncio.create_task(agent.run("go"))
    await crashed.wait()
    copied = tmp_path / "copy"
    copied.mkdir()
    for file in tmp_path.glob("*.jsonl*"):
        (copied / file.name).write_bytes(file.read_bytes())  # as a kill at this moment leaves it
    agent.abort()
    await run
    again = await JsonlStore(copied).open(session.id)
    taken_up = Agent("test:m", stream_fn=ScriptedModel(["fine"]), tools=[pay], session=again)
    await taken_up.run()
    assert ran == ["5"]
    assert results(taken_up)[0].tool_name == "pay"
    assert results(taken_up)[0].is_error


async def test_the_list_of_tools_and_the_prefix_stay_over_thirty_turns():
    class Server:
        """Offers new objects at every turn, and other deferred tools."""

        turn = 0

        def tools(self) -> Any:
            self.turn += 1
            return [replace(add), replace(send_letter), *([replace(burn_letter)] if self.turn % 2 else [])]

    script: list[Any] = []
    for n in range(30):
        script.append(
            [
                ToolCall(f"f{n}", "find_tools", {"query": "letter"}),
                call("send_letter", {"person": f"P{n}"}, f"c{n}"),
            ]
        )
    agent, model, seen = make(*script, tools=[Server()])
    await agent.run("go")
    told = [
        [(tool.name, tool.description, tool.parameters_schema) for tool in context.tools]
        for context in model.calls
    ]
    assert len(told) == 31
    assert all(each == told[0] for each in told)
    assert not [
        event
        for event in seen.events
        if isinstance(event, CustomEvent) and event.name == "cache_prefix_broken"
    ]
    assert not [result for result in results(agent) if result.is_error]


@pytest.mark.parametrize(("window", "is_deferred"), [(4_000, True), (1_000_000, False)])
async def test_auto_defers_what_takes_more_than_a_twentieth_of_the_window(window: int, is_deferred: bool):
    tools = [
        Tool.raw(
            f"big_{n}", "A tool of a server. " * 10, {"type": "object"}, lambda *_: "ok", deferred="auto"
        )
        for n in range(20)
    ]
    model = ScriptedModel(["done"])
    agent = Agent(ModelSpec("test", "m", context_window=window), stream_fn=model, tools=[add, *tools])
    await agent.run("go")
    assert sent(model.calls[0]) == (
        ["add", "find_tools", "call_tool"] if is_deferred else ["add", *[tool.name for tool in tools]]
    )


async def test_auto_is_decided_again_when_the_model_changes():
    big = [
        Tool.raw(f"big_{n}", "x " * 200, {"type": "object"}, lambda *_: "", deferred="auto") for n in range(9)
    ]
    model = ScriptedModel(["a", "b"])
    agent = Agent(ModelSpec("test", "m", context_window=1_000_000), stream_fn=model, tools=big)
    await agent.run("go")
    agent.model = ModelSpec("test", "small", context_window=2_000)
    await agent.run("go")
    assert [len(sent(context)) for context in model.calls] == [9, 2]


async def test_a_provider_with_its_own_search_is_sent_all_tools():
    model = ScriptedModel([[ToolCall("c", "send_letter", {"person": "Ada"})], "done"])
    agent = Agent("test:m", stream_fn=_native(model), tools=TOOLS)
    await agent.run("go")
    assert sent(model.calls[0]) == ["add", "send_letter", "burn_letter"]
    assert results(agent)[0].text == "sent to Ada"


async def test_an_output_type_goes_with_deferred_tools():
    model = ScriptedModel(
        [[call("send_letter", {"person": "Ada"})], [ToolCall("o", "final_output", {"value": 3})]]
    )
    agent = Agent("test:m", stream_fn=model, tools=TOOLS)
    assert (await agent.run("go", output=int)).output == 3
    assert sent(model.calls[0])[-1] == "final_output"


async def test_the_final_output_is_not_given_through_call_tool():
    model = ScriptedModel(
        [[call("final_output", {"value": 3})], [ToolCall("o", "final_output", {"value": 4})]]
    )
    agent = Agent("test:m", stream_fn=model, tools=TOOLS)
    assert (await agent.run("go", output=int)).output == 4


def test_a_source_with_a_reserved_name_loses_that_tool_once_and_with_a_warning(
    caplog: pytest.LogCaptureFixture,
):
    mine = Tool.raw("find_tools", "Mine.", {"type": "object"}, lambda *_: "")
    warned: list[str] = []
    for _ in range(2):
        found = tool_search([mine, send_letter], (), None, warned)
        assert isinstance(found, ToolSearch)
        assert [tool.name for tool in found.tools] == ["send_letter", "find_tools", "call_tool"]
    assert len(caplog.records) == 1


def test_a_query_that_is_a_name_finds_that_tool_first():
    found = tool_search(TOOLS, (), None, [])
    assert found is not None
    assert found.find("burn_letter")[0].name == "burn_letter"
    assert found.find("") == []


def test_few_tools_are_all_named_where_one_is_unknown():
    assert describe_unknown("x", [add]) == "error: there is no tool named 'x'; available: add"
    assert describe_unknown("x", []) == "error: there is no tool named 'x'; available: none"


def test_of_very_many_tools_the_nearest_are_those_that_share_most_words():
    others = [replace(add, name=f"github_tool{number}") for number in range(1_000)]
    said = describe_unknown("mcp__github__create_issue", [*others, replace(add, name="github_create_issue")])
    assert "the nearest are github_create_issue" in said


def test_words_of_names_are_apart_and_have_no_endings():
    assert words_of("createPullRequest list_commits running") == [
        "creat",
        "pull",
        "request",
        "list",
        "commit",
        "run",
    ]


def test_a_rare_word_counts_for_more_than_a_common_one():
    index = WordIndex(
        [described("x", "file read"), described("y", "file write"), described("z", "file zebra")]
    )
    assert index.search("zebra file")[0] == 2
    assert index.search("nothing") == []
    assert WordIndex([]).search("x") == []


def test_a_word_of_like_meaning_finds_and_counts_for_less():
    index = WordIndex([described("create_directory", ""), described("folder_list", "")])
    assert index.search("folder") == [1, 0]
    assert index.search("make a folder") == [0, 1]


def test_of_names_that_fit_the_shorter_comes_first():
    index = WordIndex([described("get_pull_request_status", ""), described("get_pull_request", "")])
    assert index.search("get the pull request") == [1, 0]
    assert index.search("get the status of the pull request") == [0, 1]


def test_a_context_of_a_turn_does_not_show_its_dependencies():
    assert "secret" not in repr(TurnContext(deps="secret"))


def _native(model: ScriptedModel) -> Any:
    async def stream(spec: Any, context: Any, options: Any) -> Any:
        async for event in model(spec, context, options):
            yield event

    stream.native_search = lambda spec: True  # type: ignore[attr-defined]
    return stream
