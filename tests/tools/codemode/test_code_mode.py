"""Programs that call tools: each call is a call of the run, and nothing of a program is left when it ends."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.patience import until

from swink import (
    Agent,
    Approved,
    Policy,
    PolicyContext,
    Rejected,
    Rewrite,
    Skip,
    Stop,
    ToolCall,
    ToolContext,
    Transfer,
    defer,
    tool,
)
from swink.errors import InvalidTool, MisuseError
from swink.events import (
    ApprovalRequested,
    ToolExecutionEnd,
    ToolExecutionStart,
    decode_agent_event,
    encode_agent_event,
)
from swink.memory import JsonlStore
from swink.messages import ToolResult, ToolResultMessage
from swink.testing import EventCollector, ScriptedModel, history_problems
from swink.tools import CodeLimits, Tool, code_mode, narrowed

QUICK = CodeLimits(seconds=0.3, memory=20_000_000, calls=20, printed=10_000)


class Diary:
    """Tools that write down that they ran."""

    def __init__(self) -> None:
        self.ran: list[Any] = []
        self.running = 0
        self.most = 0
        self.gate = asyncio.Event()
        self.gate.set()

        @tool(read_only=True)
        async def look(name: str) -> dict[str, int]:
            """Look at something."""
            self.ran.append(("look", name))
            await self._take_time()
            return {"size": len(name)}

        @tool
        async def write(name: str, text: str = "x") -> str:
            """Write something."""
            self.ran.append(("write", name))
            await self._take_time()
            if name == "bad":
                raise ValueError("the disk is full")
            return f"wrote {name}"

        @tool(requires_approval=True)
        async def send(to: str) -> str:
            """Send something."""
            self.ran.append(("send", to))
            await self._take_time()
            return f"sent to {to}"

        self.tools = [look, write, send]

    async def _take_time(self) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.01)
            await self.gate.wait()
        finally:
            self.running -= 1

    def agent(self, *programs: str, limits: CodeLimits = QUICK, **options: Any) -> Agent:
        replies = [
            [ToolCall(f"c{number}", "run_code", {"code": code})] for number, code in enumerate(programs)
        ]
        tools = options.pop("tools", None) or [code_mode(self.tools, limits)]
        return Agent("test:m", stream_fn=ScriptedModel([*replies, "done"]), tools=tools, **options)


def result_of(agent: Agent, number: int = 0) -> ToolResultMessage:
    return [message for message in agent.messages if isinstance(message, ToolResultMessage)][number]


async def told(code: str, **options: Any) -> str:
    """What a model is told of a program."""
    agent = Diary().agent(code, **options)
    await agent.run("go")
    return result_of(agent).text


def children() -> set[str]:
    """The processes that this one has started and that still run the machine."""
    found: set[str] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = status.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == "monty" and int(rest.split()[1]) == os.getpid() and rest.split()[0] != "Z":
            found.add(status.parent.name)
    return found


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert children() == set()


# What a program says


async def test_an_endless_loop_is_ended_with_a_word():
    assert "it computed for more than 0.3 s" in await told("while True:\n    pass")


@pytest.mark.parametrize(
    "code", ["x = 'a' * 10**10", "x = []\nwhile True:\n    x.append('a' * 10**6)", "10**10**10"]
)
async def test_gigabytes_are_refused_with_the_line(code: str):
    text = await told(code)
    assert "memory limit exceeded" in text
    assert "line " in text


async def test_printing_without_end_is_ended():
    assert "limit" in await told("while True:\n    print('x' * 1000)")


@pytest.mark.parametrize(
    ("code", "line", "text"),
    [
        ("x = 1\ny = = 2", "line 2", "SyntaxError"),
        ("x = 1\n1 / 0", "line 2: 1 / 0", "ZeroDivisionError"),
        ("def f():\n    yield 1\nf()", "line 2", "does not yet support yield"),
        ("import numpy", "line 1", "No module named 'numpy'"),
        ("\nopen('/etc/passwd').read()", "line 2", "PermissionError"),
        ("import os\nos.environ['HOME']", "line 2", "not supported"),
        ("import socket", "line 1", "No module named 'socket'"),
        ("nobody()", "line 1", "there is no function 'nobody'; those of tools: look, write, send"),
        ("look()", "line 1", "invalid arguments"),
        ("look('a', 'b')", "line 1", "takes at most 1 argument"),
        ("look('a', name='b')", "line 1", "two values for 'name'"),
        ("write('bad')", "line 1", "ValueError: the disk is full"),
        ("def deep():\n    write('bad')\ndeep()", "line 3: deep()\nline 2, in deep", "the disk is full"),
    ],
)
async def test_what_goes_wrong_is_told_with_its_line(code: str, line: str, text: str):
    shown = await told(code)
    assert line in shown
    assert text in shown


async def test_a_program_catches_what_a_tool_raises():
    code = "try:\n    write('bad')\nexcept RuntimeError as error:\n    print('caught', error)\nwrite('b')"
    assert await told(code) == "caught error: ValueError: the disk is full\nwrote b"


async def test_more_calls_than_allowed_are_refused():
    diary = Diary()
    agent = diary.agent("for i in range(100):\n    look(str(i))")
    await agent.run("go")
    assert len(diary.ran) == 20
    assert "at most 20 calls" in result_of(agent).text


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("look('abc')['size'] + 1", "4"),
        ("x = look('abc')\ny = await look('abcd')\nx['size'] + y['size']", "7"),
        ("import asyncio\nawait asyncio.gather(look('a'), look('bb'))", '[{"size":1},{"size":2}]'),
        (
            "import asyncio\njobs = [look(n) for n in ['a', 'bb']]\n[r['size'] for r in await asyncio.gather(*jobs)]",
            "[1,2]",
        ),
        (
            "import asyncio\njobs = []\nfor n in 'ab':\n    jobs.append(look(n))\nlen(await asyncio.gather(*jobs))",
            "2",
        ),
        (
            "import asyncio\nasync def both():\n    return await look('a'), look('bb')\nasyncio.run(both())",
            '[{"size":1},{"size":2}]',
        ),
        ("def size(n):\n    return look(n)['size']\nsum(size(n) for n in ['ab', 'c'])", "3"),
        ("sizes = [look(n)['size'] for n in ['ab', 'c']]\nprint(sizes)", "[2, 1]"),
        ("print(len(look('a')))\nx = await write('é')\nx", "1\nwrote é"),
        ("write(text='t', name='n')", "wrote n"),
        ("return 5", "5"),
        ("import asyncio\nn = look('ab')\nlen(await asyncio.gather(*[look(k) for k in n]))", "1"),
        (
            "import asyncio\nt = {'a': look('a')}\nx = await asyncio.gather(*[t[k] for k in t])\nx[0]['size']",
            "1",
        ),
        ("f = look\nf('ab')", '{"size":2}'),
    ],
)
async def test_functions_are_called_plainly_awaited_or_gathered(code: str, value: str):
    assert await told(code) == value


async def test_gathered_calls_run_concurrently():
    diary = Diary()
    diary.gate.clear()
    agent = diary.agent("import asyncio\nawait asyncio.gather(look('a'), look('b'), look('c'))")
    run = asyncio.ensure_future(agent.run("go"))
    await until(lambda: diary.running == 3)
    diary.gate.set()
    await run


@pytest.mark.parametrize("options", [{"tool_execution": "sequential"}, {"alone": True}])
async def test_calls_that_run_alone_do_so_in_a_program_too(options: dict[str, Any]):
    diary = Diary()
    if options.pop("alone", False):

        @tool(sequential=True)
        async def alone() -> None:
            """Run alone."""

        diary.tools.append(alone)
    await diary.agent("import asyncio\nawait asyncio.gather(look('a'), look('b'))", **options).run("go")
    assert diary.most == 1
    assert len(diary.ran) == 2


async def test_the_clock_and_chance_are_the_same_when_it_is_run_again():
    diary = Diary()
    chance = "write(f'{random.random()} {time.time()} {random.randint(1, 10**9)}')"
    agent = diary.agent(f"import random, time\n{chance}\nsend('bob')\n{chance}", approve=defer)
    await agent.run("go")
    await agent.run(approvals={"c0.2": True})
    first, sent, second = diary.ran
    assert sent == ("send", "bob")
    assert first != second
    assert result_of(agent).text == f"wrote {second[1]}"


# Its calls are calls of the run


async def test_calls_have_ids_of_their_own_and_stay_out_of_the_history():
    diary, heard = Diary(), EventCollector()
    agent = diary.agent("look('a')\nwrite('b')\nNone")
    agent.subscribe(heard)
    await agent.run("go")
    heard.check()
    starts = [(event.call_id, event.name, event.outer) for event in heard.of(ToolExecutionStart)][1:]
    assert starts == [("c0.1", "look", "c0"), ("c0.2", "write", "c0")]
    ends = [(event.call_id, event.outer) for event in heard.of(ToolExecutionEnd)][:-1]
    assert ends == [("c0.1", "c0"), ("c0.2", "c0")]
    assert [message.role for message in agent.messages] == ["user", "assistant", "tool_result", "assistant"]
    assert history_problems(agent.messages) == []
    for event in heard.events:
        assert decode_agent_event(encode_agent_event(event)) == event
    assert b'"outer":"c0"' in encode_agent_event(heard.of(ToolExecutionStart)[1])
    assert b"outer" not in encode_agent_event(heard.of(ToolExecutionStart)[0])


class Judge(Policy):
    """Says what it is told to say of some calls."""

    def __init__(self, **verdicts: Any) -> None:
        self.verdicts = verdicts
        self.seen: list[tuple[str, str]] = []

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Any:
        self.seen.append((call.id, call.name))
        verdict = self.verdicts.get(call.name)
        return None if isinstance(verdict, Rewrite) and call.arguments == verdict.arguments else verdict


async def test_policies_judge_each_call():
    judge, diary = Judge(write=Skip("not here")), Diary()
    agent = diary.agent("look('a')\nwrite('b')", policies=[judge])
    await agent.run("go")
    assert judge.seen == [("c0", "run_code"), ("c0.1", "look"), ("c0.2", "write")]
    assert diary.ran == [("look", "a")]
    assert "line 2" in result_of(agent).text
    assert "not here" in result_of(agent).text


async def test_a_policy_rewrites_the_arguments_of_a_call():
    diary = Diary()
    agent = diary.agent("look('a')", policies=[Judge(look=Rewrite({"name": "long"}))])
    await agent.run("go")
    assert diary.ran == [("look", "long")]
    assert result_of(agent).text == '{"size":4}'


async def test_a_policy_that_stops_the_run_ends_the_program():
    diary, heard = Diary(), EventCollector()
    agent = diary.agent(
        "look('a')\ntry:\n    write('b')\nexcept Exception:\n    pass\nlook('c')",
        policies=[Judge(write=Stop("enough"))],
    )
    agent.subscribe(heard)
    result = await agent.run("go")
    heard.check()
    assert diary.ran == [("look", "a")]
    assert result.reason == "enough"
    assert "enough" in result_of(agent).text
    assert history_problems(agent.messages) == []


async def test_a_transfer_inside_ends_the_run_and_refuses_later_calls():
    @tool
    async def hand_over() -> Transfer:
        """Hand over."""
        return Transfer("billing")

    diary = Diary()
    diary.tools.append(hand_over)
    agent = diary.agent("hand_over()\nwrite('b')")
    result = await agent.run("go")
    assert result.stop_reason == "transfer"
    assert diary.ran == []


@pytest.mark.parametrize(
    ("answer", "text", "ran"),
    [
        (True, "sent to bob", ["bob"]),
        (Approved({"to": "eve"}), "sent to eve", ["eve"]),
        (False, "rejected by the user", []),
        (Rejected("no mail"), "rejected: no mail", []),
    ],
)
async def test_a_person_is_asked_about_a_call(answer: Any, text: str, ran: list[str]):
    diary, asked, heard = Diary(), [], EventCollector()

    async def approve(request: Any) -> Any:
        asked.append((request.call_id, request.name, request.arguments))
        return answer

    agent = diary.agent("send('bob')", approve=approve)
    agent.subscribe(heard)
    await agent.run("go")
    assert asked == [("c0.1", "send", {"to": "bob"})]
    assert [event.outer for event in heard.of(ApprovalRequested)] == ["c0"]
    assert text in result_of(agent).text
    assert diary.ran == [("send", name) for name in ran]


async def test_who_is_asked_about_a_call_finds_its_tool_among_those_known():
    diary, known = Diary(), []

    class Looking(Policy):
        def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> None:
            known.append([tool.name for tool in ctx.tools])

    async def approve(request: Any) -> bool:
        known.append([tool.name for tool in request.context.tools])
        return True

    await diary.agent("send('bob')", approve=approve, policies=[Looking()]).run("go")
    assert known == [["run_code"], *[["look", "write", "send"]] * 2]


async def test_questions_come_one_at_a_time():
    diary, open_questions, most = Diary(), 0, 0

    async def approve(request: Any) -> bool:
        nonlocal open_questions, most
        open_questions += 1
        most = max(most, open_questions)
        await asyncio.sleep(0.01)
        open_questions -= 1
        return True

    await diary.agent("import asyncio\nawait asyncio.gather(send('a'), send('b'))", approve=approve).run("go")
    assert most == 1
    assert len(diary.ran) == 2


async def test_only_the_tools_inside_are_known():
    diary = Diary()
    agent = diary.agent("write('b')", tools=[code_mode(diary.tools[:1]), diary.tools[1]])
    await agent.run("go")
    assert diary.ran == []
    assert "there is no function 'write'" in result_of(agent).text


async def test_narrowed_tools_narrow_what_a_program_may_call():
    diary = Diary()
    kept = narrowed([code_mode(diary.tools), diary.tools[1]], lambda tool: tool.read_only)
    assert [tool.name for tool in kept] == ["run_code"]
    assert "def look(" in kept[0].description
    assert "def write(" not in kept[0].description
    agent = diary.agent("look('a')\nwrite('b')", tools=kept)
    await agent.run("go")
    assert diary.ran == [("look", "a")]


# Ends from outside


async def test_an_abort_ends_a_program_that_computes():
    agent = Diary().agent("while True:\n    pass", limits=CodeLimits(seconds=60))
    run = agent.stream("go")
    async with run:
        while not children():
            await asyncio.sleep(0.005)
        agent.abort()
    assert "aborted" in result_of(agent).text


@pytest.mark.parametrize("how", ["abort", "timeout", "steering"])
async def test_what_ends_the_program_ends_its_calls(how: str):
    diary, heard = Diary(), EventCollector()
    diary.gate.clear()

    @tool
    async def quick() -> str:
        """Be quick, and bring steering."""
        agent.steer("stop that")
        return "quick"

    diary.tools.append(quick)
    code = "import asyncio\nawait asyncio.gather(look('a'), write('b'){})".format(
        ", quick()" * (how == "steering")
    )
    agent = diary.agent(code, tool_timeout=0.3 if how == "timeout" else None)
    agent.subscribe(heard)
    async with agent.stream("go") as run:
        while how == "abort" and diary.running < 2:
            await asyncio.sleep(0.005)
        if how == "abort":
            agent.abort()
        async for _ in run:
            pass
    heard.check()
    assert diary.running == 0
    ends = {event.call_id: event.result.text for event in heard.of(ToolExecutionEnd)}
    assert ends.pop("c0.3", "quick") == "quick"
    assert set(ends) == {"c0", "c0.1", "c0.2"}
    word = {"abort": "aborted", "timeout": "timed out after 0.3 s", "steering": "steering interrupt"}[how]
    assert all(word in text for text in ends.values()), ends
    assert history_problems(agent.messages) == []


# Taken up again


async def test_a_deferred_approval_ends_the_run_and_the_program_goes_on_with_the_answer(tmp_path: Path):
    store, diary, heard = JsonlStore(tmp_path), Diary(), EventCollector()
    session = await store.create()
    agent = diary.agent("a = write('a')\nb = send('bob')\nwrite('c')\n(a, b)", session=session, approve=defer)
    agent.subscribe(heard)
    result = await agent.run("go")
    heard.check()
    assert result.reason == "approval"
    assert [(pending.call_id, pending.name) for pending in result.pending] == [("c0.2", "send")]
    assert diary.ran == [("write", "a")]
    other = Agent(
        session=await store.open(session.id),
        stream_fn=ScriptedModel(["done"]),
        tools=[code_mode(diary.tools)],
    )
    assert (await other.run(approvals={"c0.2": True})).text == "done"
    assert diary.ran == [("write", "a"), ("send", "bob"), ("write", "c")]
    assert result_of(other).text == '["wrote a","sent to bob"]'
    assert history_problems(other.messages) == []


async def test_two_deferred_calls_are_answered_one_after_the_other():
    diary = Diary()
    code = "import asyncio\nawait asyncio.gather(send('a'), write('w'), send('b'))"
    agent = diary.agent(code, approve=defer)
    assert [pending.call_id for pending in (await agent.run("go")).pending] == ["c0.1", "c0.3"]
    assert [pending.call_id for pending in (await agent.run(approvals={"c0.1": True})).pending] == ["c0.3"]
    assert (await agent.run(approvals={"c0.3": False})).text == "done"
    assert diary.ran == [("write", "w"), ("send", "a")]
    assert "rejected by the user" in result_of(agent).text


async def test_a_new_message_instead_of_an_approval_says_what_has_run():
    diary = Diary()
    agent = diary.agent("write('a')\nsend('bob')", approve=defer)
    await agent.run("go")
    await agent.run("never mind")
    assert "have taken effect" in result_of(agent).text
    assert history_problems(agent.messages) == []


async def test_a_program_that_goes_another_way_is_not_run_on():
    """Its tools may have changed meanwhile: what a call came to is never given to another call."""
    diary = Diary()
    agent = diary.agent("write('a')\nsend('bob')", approve=defer)
    await agent.run("go")
    saved = agent.checkpoint()
    for key in saved["open"]["made"]:
        saved["open"]["made"][key] = "another"
    other = Agent.restore(saved, stream_fn=ScriptedModel(["done"]), tools=[code_mode(diary.tools)])
    await other.run(approvals={"c0.2": True})
    assert diary.ran == [("write", "a")]
    assert "its calls were others than before" in result_of(other).text


async def test_after_a_crash_what_had_ended_is_not_run_again_and_the_rest_is_unknown(tmp_path: Path):
    store, diary = JsonlStore(tmp_path / "live"), Diary()
    session = await store.create()
    caught = "try:\n    write('b')\nexcept RuntimeError as error:\n    print(error)\n"
    agent = diary.agent(f"x = look('l')\ny = write('a')\n{caught}write('c')\n(x, y)", session=session)

    def crash(event: Any) -> None:
        if isinstance(event, ToolExecutionStart) and event.call_id == "c0.3":
            shutil.copytree(tmp_path / "live", tmp_path / "crashed")

    agent.subscribe(crash)
    await agent.run("go")
    diary.ran.clear()
    left = await JsonlStore(tmp_path / "crashed").open(session.id)
    other = Agent(session=left, stream_fn=ScriptedModel(["done"]), tools=[code_mode(diary.tools)])
    await other.run()
    assert diary.ran == [("write", "c")]
    assert "outcome unknown" in result_of(other).text
    assert '[{"size":1},"wrote a"]' in result_of(other).text


# Making one


def test_a_program_is_no_function_of_another():
    with pytest.raises(InvalidTool, match="run_code"):
        code_mode([code_mode([])])


def test_limits_are_numbers_above_nought():
    with pytest.raises(MisuseError, match="seconds"):
        CodeLimits(seconds=0)


async def test_odd_names_become_functions():
    async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        return ToolResult(str(arguments), details={"structured": arguments})

    schema = {"type": "object", "properties": {"user-id": {"type": "integer"}, "a": {"type": "string"}}}
    tools: Sequence[Tool] = [
        Tool.raw(name, "Does it.", schema, execute) for name in ("get-it", "get_it", "class", "2nd", "list")
    ]
    made = code_mode(tools, QUICK)
    for name in ("get_it", "get_it_2", "class_", "_2nd", "list_"):
        assert f"def {name}(" in made.description
    code = "get_it_2(a='x', **{'user-id': 3})['user-id']"
    agent = Agent(
        "test:m", stream_fn=ScriptedModel([[ToolCall("c", "run_code", {"code": code})], "done"]), tools=[made]
    )
    await agent.run("go")
    assert result_of(agent).text == "3"


async def test_the_environment_and_the_path_do_not_choose_the_program(monkeypatch: Any, tmp_path: Path):
    fake = tmp_path / "monty"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("MONTY_BIN", str(fake))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await told("1 + 1") == "2"
