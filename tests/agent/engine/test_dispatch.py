"""Dispatch: one batch of calls, a result for each, whatever happens."""

import asyncio
import contextvars
import threading
import time
from typing import Any

import pytest

from swink import (
    Agent,
    Approved,
    Image,
    Policy,
    Rejected,
    Rewrite,
    Skip,
    Stop,
    Text,
    ToolCall,
    ToolContext,
    ToolError,
    ToolResult,
    tool,
)
from swink.events import (
    ApprovalRequested,
    ApprovalResolved,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
)
from swink.messages import Base64Source, ToolResultMessage
from swink.messages.redact.shown import show_arguments
from swink.policies import LoopDetection, PathGuard, PiiRedactor
from swink.stream import Done, Start, ToolCallDelta, ToolCallEnd, ToolCallStart
from swink.testing import EventCollector, ScriptedModel, history_problems


async def dispatch(
    calls: list[Any], tools: list[Any], **options: Any
) -> tuple[list[ToolResultMessage], EventCollector, Agent]:
    """One batch through a whole run; its results, events and agent."""
    run_options = {key: options.pop(key) for key in ("deadline",) if key in options}
    agent = Agent("test:m", stream_fn=ScriptedModel([calls, "end"]), tools=tools, **options)
    seen = EventCollector()
    agent.subscribe(seen)
    await agent.run("go", **run_options)
    seen.check()
    assert history_problems(agent.messages) == []
    return [message for message in agent.messages if isinstance(message, ToolResultMessage)], seen, agent


@tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


async def test_calls_of_a_turn_run_at_once():
    running = 0
    most = 0

    @tool
    async def count() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "ok"

    await dispatch([ToolCall(str(n), "count") for n in range(5)], [count])
    assert most == 5


async def test_results_are_committed_in_call_order_whatever_finishes_first():
    @tool
    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return str(seconds)

    results, seen, _ = await dispatch(
        [ToolCall("1", "wait", {"seconds": 0.02}), ToolCall("2", "wait", {"seconds": 0})], [wait]
    )
    assert [result.tool_call_id for result in results] == ["1", "2"]
    assert [event.call_id for event in seen.of(ToolExecutionEnd)] == ["2", "1"]


async def test_invalid_arguments_never_reach_the_tool_and_every_violation_is_listed_with_its_path():
    ran: list[Any] = []

    @tool
    async def place(city: str, days: list[int]) -> str:
        ran.append(city)
        return city

    results, seen, _ = await dispatch(
        [ToolCall("1", "place", {"city": 3, "days": [1, "x"], "extra": 1})], [place]
    )
    assert not ran
    assert results[0].is_error
    for words in ("$.city", "$.days[1]", "extra"):
        assert words in results[0].text
    assert not seen.of(ToolExecutionStart)
    assert len(seen.of(ToolExecutionEnd)) == 1


async def test_an_unknown_tool_gets_an_error_that_names_the_known_ones():
    results, seen, _ = await dispatch([ToolCall("1", "ehco", {})], [echo])
    assert "no tool named 'ehco'" in results[0].text
    assert "echo" in results[0].text
    assert not seen.of(ToolExecutionStart)


async def test_a_tool_that_raises_tells_the_model_and_the_batch_goes_on():
    @tool
    async def broken() -> str:
        raise KeyError("lost")

    @tool
    async def told() -> str:
        raise ToolError("try the other one", details={"code": 7})

    results, _, _ = await dispatch(
        [ToolCall("1", "broken"), ToolCall("2", "told"), ToolCall("3", "echo", {"text": "x"})],
        [broken, told, echo],
    )
    assert results[0].text == "error: KeyError: 'lost'"
    assert (results[1].text, results[1].details, results[1].is_error) == (
        "try the other one",
        {"code": 7},
        True,
    )
    assert results[2].text == "x"


async def test_a_tool_that_raises_cancelled_by_itself_is_just_an_error():
    @tool
    async def odd() -> str:
        raise asyncio.CancelledError

    results, _, agent = await dispatch(
        [ToolCall("1", "odd"), ToolCall("2", "echo", {"text": "x"})], [odd, echo]
    )
    assert results[0].is_error
    assert results[1].text == "x"
    assert agent.messages[-1].text == "end"


async def test_a_tool_that_exits_or_cancels_itself_is_an_error_of_its_own():
    @tool
    async def leaves() -> str:
        raise SystemExit(3)

    @tool
    async def cancels() -> str:
        raise asyncio.CancelledError

    results, _, agent = await dispatch([ToolCall("1", "leaves"), ToolCall("2", "cancels")], [leaves, cancels])
    assert "SystemExit" in results[0].text
    assert results[1].text == "error: the tool cancelled itself"
    assert agent.messages[-1].text == "end"


async def test_a_rewrite_does_not_slip_past_the_guards_before_it():
    class Guard(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Skip("guarded") if call.arguments["text"] == "bad" else None

    class Meddler(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Rewrite({"text": "bad"})

    class Restless(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Rewrite({"text": call.arguments["text"] + "x"})

    results, _, _ = await dispatch(
        [ToolCall("1", "echo", {"text": "good"})], [echo], policies=[Guard(), Meddler()]
    )
    assert results[0].text == "guarded"
    results, _, _ = await dispatch([ToolCall("1", "echo", {"text": "good"})], [echo], policies=[Restless()])
    assert "still rewrite" in results[0].text


async def test_secrets_in_an_exception_do_not_reach_the_model():
    @tool
    async def leaky() -> str:
        raise ValueError("401 for key sk-ant-api03-abcdefghijklmnop")

    results, _, _ = await dispatch([ToolCall("1", "leaky")], [leaky])
    assert "abcdefghijklmnop" not in results[0].text


async def test_sync_tools_run_off_the_event_loop_with_context_variables():
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    threads: list[int] = []

    @tool
    def sync(text: str) -> str:
        threads.append(threading.get_ident())
        return text + variable.get()

    results, _, _ = await dispatch([ToolCall("1", "sync", {"text": "x"})], [sync])
    assert results[0].text == "xset"
    assert threads != [threading.get_ident()]


async def test_a_sleeping_sync_tool_does_not_delay_a_heartbeat():
    @tool
    def sleepy() -> str:
        return "woken" if beaten.wait(60) else "never woken"

    beaten = threading.Event()

    async def heartbeat() -> None:
        for _ in range(10):
            await asyncio.sleep(0.001)
        beaten.set()

    task = asyncio.create_task(heartbeat())
    results, _, _ = await dispatch([ToolCall("1", "sleepy")], [sleepy])
    await task
    assert results[0].text == "woken"


async def test_updates_carry_id_and_name_and_precede_the_end_from_threads_too():
    @tool
    def sync_work(ctx: ToolContext) -> str:
        for n in range(50):
            ctx.update(n)
        return "ok"

    @tool
    async def async_work(ctx: ToolContext) -> str:
        for n in range(50):
            ctx.update(n)
            await asyncio.sleep(0)
        return "ok"

    _, seen, _ = await dispatch(
        [ToolCall("1", "sync_work"), ToolCall("2", "async_work")], [sync_work, async_work]
    )
    for id, name in (("1", "sync_work"), ("2", "async_work")):
        updates = [event for event in seen.of(ToolExecutionUpdate) if event.call_id == id]
        assert [(event.name, event.update) for event in updates] == [(name, n) for n in range(50)]


async def test_per_tool_and_default_timeouts_give_an_error_result():
    @tool(timeout=0.02)
    async def slow() -> str:
        await asyncio.sleep(5)
        return "never"

    @tool
    async def slower() -> str:
        await asyncio.sleep(5)
        return "never"

    results, _, _ = await dispatch(
        [ToolCall("1", "slow"), ToolCall("2", "slower")], [slow, slower], tool_timeout=0.03
    )
    assert "timed out after 0.02 s" in results[0].text
    assert "timed out after 0.03 s" in results[1].text


async def test_a_tool_that_ignores_cancellation_cannot_hold_the_run():
    released = asyncio.Event()

    @tool(timeout=0.02)
    async def stubborn() -> str:
        while not released.is_set():
            try:
                await asyncio.wait_for(released.wait(), 600)
            except asyncio.CancelledError:
                continue
        return "finally"

    results, _, _ = await dispatch([ToolCall("1", "stubborn")], [stubborn])
    assert "abandoned" in results[0].text
    assert "unknown" in results[0].text
    released.set()
    await asyncio.sleep(0.01)


async def test_a_sync_tool_that_ignores_cancellation_is_reported_as_abandoned():
    release = threading.Event()

    @tool(timeout=0.02)
    def stubborn() -> str:
        release.wait(5)
        return "late"

    results, _, agent = await dispatch([ToolCall("1", "stubborn")], [stubborn])
    release.set()
    assert "timed out" in results[0].text
    assert "its effect is unknown" in results[0].text
    assert agent.messages[-1].text == "end"


async def test_a_cooperative_sync_tool_sees_cancellation_at_once(monkeypatch: pytest.MonkeyPatch):
    for module in ("swink.tools.workers", "swink.agent.engine.dispatch"):
        monkeypatch.setattr(f"{module}.GRACE", 60.0)  # the thread may wait for a core
    saw: list[bool] = []

    @tool(timeout=0.02)
    def patient(ctx: ToolContext) -> str:
        began = time.monotonic()
        while not ctx.cancelled and time.monotonic() - began < 60:
            time.sleep(0.002)
        saw.append(ctx.cancelled)
        return "stopped early"

    results, _, _ = await dispatch([ToolCall("1", "patient")], [patient])
    assert saw == [True]
    assert results[0].text == "stopped early"


async def test_aborting_in_tools_ends_the_turn_once_with_all_results():
    @tool
    async def quick() -> str:
        return "done"

    @tool
    async def slow() -> str:
        await asyncio.sleep(5)
        return "never"

    results, seen, agent = await dispatch(
        [ToolCall("1", "quick"), ToolCall("2", "slow")], [quick, slow], deadline=0.05
    )
    assert [result.text for result in results] == ["done", "tool call cancelled: the run was aborted"]
    ends = seen.of(TurnEnd)
    assert [(end.reason, len(end.tool_results)) for end in ends] == [("aborted", 2)]
    assert seen.names.count("TurnStart") == 1


async def test_a_tool_that_declares_itself_sequential_runs_alone():
    running: set[str] = set()
    overlaps: list[set[str]] = []

    def work(name: str, **options: Any) -> Any:
        @tool(name=name, **options)
        async def body() -> str:
            running.add(name)
            overlaps.append(set(running))
            await asyncio.sleep(0.005)
            running.discard(name)
            return name

        return body

    tools = [work("a"), work("b"), work("alone", sequential=True), work("c")]
    await dispatch([ToolCall(str(n), name) for n, name in enumerate(["a", "b", "alone", "c"])], tools)
    assert {"a", "b"} in overlaps
    assert all(len(names) == 1 for names in overlaps if "alone" in names)


async def test_execution_can_be_sequential_or_by_priority():
    order: list[str] = []

    def work(name: str, priority: int) -> Any:
        @tool(name=name, priority=priority)
        async def body() -> str:
            order.append(name)
            await asyncio.sleep(0)
            order.append(name)
            return name

        return body

    tools = [work("low", 0), work("high", 9), work("mid", 5)]
    calls = [ToolCall(name, name) for name in ("low", "high", "mid")]
    await dispatch(calls, tools, tool_execution="sequential")
    assert order == ["low", "low", "high", "high", "mid", "mid"]
    order.clear()
    await dispatch(calls, tools, tool_execution="priority")
    assert order == ["high", "high", "mid", "mid", "low", "low"]


@pytest.mark.parametrize("partition", [[[0]], [[0, 0, 1]], [[0, 1, 2]], [[0], [5]], []])
async def test_an_invalid_partition_runs_nothing_and_settles_every_call(partition: list[list[int]]):
    ran: list[str] = []

    @tool
    async def work() -> str:
        ran.append("x")
        return "x"

    results, _, _ = await dispatch(
        [ToolCall("1", "work"), ToolCall("2", "work")], [work], tool_execution=lambda calls: partition
    )
    assert not ran
    assert all("invalid partition" in result.text for result in results)


async def test_a_partition_indexes_the_calls_that_are_left_after_policies():
    class SkipFirst(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Skip("no") if call.id == "1" else None

    sizes: list[int] = []

    def partition(calls: Any) -> list[list[int]]:
        sizes.append(len(calls))
        return [[1], [0]]

    calls = [ToolCall(id, "echo", {"text": id}) for id in "123"]
    results, _, _ = await dispatch(calls, [echo], policies=[SkipFirst()], tool_execution=partition)
    assert sizes == [2]
    assert [result.text for result in results] == ["no", "2", "3"]


async def test_pre_dispatch_stop_settles_every_unresolved_call_and_ends_the_run():
    class Halt(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Stop("enough") if call.id == "2" else None

    results, seen, agent = await dispatch(
        [ToolCall(id, "echo", {"text": id}) for id in "123"], [echo], policies=[Halt()]
    )
    assert [result.text for result in results] == ["tool call not run: enough"] * 3
    assert len(agent.messages) == 5
    assert not seen.of(ToolExecutionStart)


async def test_rewritten_arguments_are_validated_and_run_and_the_history_keeps_what_the_model_said():
    class Upper(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Rewrite({"text": call.arguments["text"].upper()})

    results, seen, agent = await dispatch(
        [ToolCall("1", "echo", {"text": "x"})], [echo], policies=[Upper(), Upper()]
    )
    assert results[0].text == "X"
    assert seen.of(ToolExecutionStart)[0].arguments == {"text": "X"}
    assert agent.messages[1].tool_calls[0].arguments == {"text": "x"}


# Approval


@tool(requires_approval=True)
async def danger(text: str) -> str:
    """Needs a word first."""
    return f"did {text}"


CALL = ToolCall("1", "danger", {"text": "it"})


async def test_without_an_approver_a_call_that_needs_one_is_rejected_with_the_reason():
    results, seen, _ = await dispatch([CALL], [danger])
    assert "needs approval and nobody can give it" in results[0].text
    assert not seen.of(ToolExecutionStart)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (True, "did it"),
        (False, "tool call rejected by the user"),
        (None, "tool call rejected by the user"),
        (Approved(), "did it"),
        (Rejected("too risky"), "tool call rejected: too risky"),
        (Approved({"text": "less"}), "did less"),
        (Approved({"text": 3}), "error: invalid arguments:"),
    ],
)
async def test_the_approvers_answer_decides(answer: Any, text: str):
    async def later(request: Any) -> Any:
        return answer

    for approve in (lambda request: answer, later):
        results, seen, _ = await dispatch([CALL], [danger], approve=approve)
        assert results[0].text.startswith(text)
        assert len(seen.of(ApprovalRequested)) == len(seen.of(ApprovalResolved)) == 1


@pytest.mark.parametrize("arguments", [None, {"text": "less"}, {"text": 3}])
async def test_the_model_reads_the_approvers_note_below_the_result(arguments: Any):
    answer = Approved(arguments, note="hunk 2 was refused")
    results, seen, _ = await dispatch([CALL], [danger], approve=lambda request: answer)
    first, note = results[0].content
    assert first.text.startswith("error: invalid" if arguments == {"text": 3} else "did")
    assert note == Text("\n\nnote from the user on this call: hunk 2 was refused")
    assert seen.of(ToolExecutionEnd)[0].result.content == results[0].content
    assert seen.of(ApprovalResolved)[0].reason == "hunk 2 was refused"


async def test_an_approver_that_raises_rejects():
    def approve(request: Any) -> Any:
        raise RuntimeError("dialog closed")

    results, seen, _ = await dispatch([CALL], [danger], approve=approve)
    assert "approval failed: RuntimeError" in results[0].text
    assert not seen.of(ApprovalResolved)[0].approved


async def test_approvals_are_asked_in_call_order_one_at_a_time():
    asked: list[str] = []

    async def approve(request: Any) -> bool:
        asked.append(f"ask {request.call_id}")
        await asyncio.sleep(0)
        asked.append(f"got {request.call_id}")
        return True

    await dispatch([ToolCall(id, "danger", {"text": id}) for id in "ab"], [danger], approve=approve)
    assert asked == ["ask a", "got a", "ask b", "got b"]


async def test_smart_mode_asks_only_where_the_tool_wants_it_and_on_asks_for_every_call():
    asked: list[str] = []

    def approve(request: Any) -> bool:
        asked.append(request.name)
        return True

    calls = [CALL, ToolCall("2", "echo", {"text": "x"})]
    await dispatch(calls, [danger, echo], approve=approve)
    assert asked == ["danger"]
    asked.clear()
    await dispatch(calls, [danger, echo], approve=approve, approval_mode="on")
    assert asked == ["danger", "echo"]
    asked.clear()
    await dispatch(calls, [danger, echo], approve=approve, approval_mode="off")
    assert asked == []


async def test_steering_ends_the_group_that_runs_and_no_later_group_begins():
    began: list[str] = []
    both = asyncio.Event()

    @tool
    async def work(name: str) -> str:
        began.append(name)
        if name == "a":
            await both.wait()
            agent.steer("stop that")
        else:
            both.set()
            await asyncio.sleep(60)
        return name

    model = ScriptedModel([[ToolCall(name, "work", {"name": name}) for name in "abc"], "end"])
    agent = Agent("test:m", stream_fn=model, tools=[work], tool_execution=lambda calls: [[0, 1], [2]])
    assert (await agent.run("go")).text == "end"
    assert began == ["a", "b"]
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert [result.is_error for result in results] == [False, True, True]
    assert results[1].text == results[2].text


async def test_a_rewrite_does_not_keep_later_policies_from_being_asked():
    class Always(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Rewrite({"text": "rewritten"})

    class NotThat(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Skip("not that") if call.arguments["text"] == "rewritten" else None

    results, _, _ = await dispatch(
        [ToolCall("1", "echo", {"text": "x"})], [echo], policies=[Always(), NotThat()]
    )
    assert results[0].text == "not that"


async def test_arguments_that_are_no_json_end_the_asking():
    asked: list[str] = []

    class Wrong(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Rewrite({"text": object()})

    class Later(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> None:
            asked.append(call.id)

    results, _, _ = await dispatch(
        [ToolCall("1", "echo", {"text": "x"})], [echo], policies=[Wrong(), Later()]
    )
    assert results[0].is_error
    assert "is not JSON-able" in results[0].text
    assert asked == []


async def test_no_policy_is_asked_after_one_has_aborted_the_run():
    asked: list[str] = []

    class Abort(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> None:
            agent.abort()

    class Later(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> None:
            asked.append(call.id)

    model = ScriptedModel([[ToolCall("1", "echo", {"text": "x"})], "never"])
    agent = Agent("test:m", stream_fn=model, tools=[echo], policies=[Abort(), Later()])
    assert (await agent.run("go")).stop_reason == "aborted"
    assert asked == []


async def test_new_arguments_from_the_approver_pass_the_policies_again():
    class NoRoot(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Skip("not that") if call.arguments["text"] == "rm -rf /" else None

    results, _, _ = await dispatch(
        [CALL], [danger], approve=lambda request: Approved({"text": "rm -rf /"}), policies=[NoRoot()]
    )
    assert results[0].text == "not that"


@tool(requires_approval=True)
async def login(password: str, note: str) -> str:
    return f"{password} {note}"


LOGIN = ToolCall("1", "login", {"password": "hunter2", "note": "key sk-proj-abcdefghijklmnop1"})


async def test_an_approver_gets_the_exact_arguments_and_a_view_without_secrets_for_people():
    requests: list[Any] = []

    def approve(request: Any) -> Any:
        requests.append(request)
        return Approved({**request.arguments, "note": "edited"})

    results, seen, _ = await dispatch([LOGIN], [login], approve=approve)
    assert results[0].text == "hunter2 edited"
    assert requests[0].arguments == LOGIN.arguments
    assert requests[0].shown == {"password": "[redacted]", "note": "key [redacted]"}
    assert "hunter2" not in repr(requests[0])
    assert seen.of(ApprovalRequested)[0].shown == requests[0].shown


async def test_an_approver_that_changes_the_request_changes_nothing():
    def approve(request: Any) -> bool:
        request.arguments["note"] = request.shown["note"] = "changed"
        return True

    results, _, _ = await dispatch([LOGIN], [login], approve=approve)
    assert results[0].text == "hunter2 key sk-proj-abcdefghijklmnop1"


async def test_an_approver_that_gives_back_the_redacted_view_rejects(caplog: pytest.LogCaptureFixture):
    results, seen, _ = await dispatch([LOGIN], [login], approve=lambda request: Approved(request.shown))
    assert results[0].is_error
    assert "redacted view" in results[0].text
    assert not seen.of(ApprovalResolved)[0].approved
    assert "edit the request's arguments" in caplog.text


async def test_cancelled_while_asking_resolves_the_request_and_aborts(caplog: pytest.LogCaptureFixture):
    async def never(request: Any) -> bool:
        await asyncio.sleep(10)
        return True

    def blocking(request: Any) -> bool:
        release.wait(2)
        return True

    for approve in (never, blocking):
        release = threading.Event()
        results, seen, agent = await dispatch([CALL], [danger], approve=approve, deadline=0.03)
        release.set()
        assert [event.approved for event in seen.of(ApprovalResolved)] == [False]
        assert agent.messages[-1].role == "tool_result"
        assert "aborted" in results[0].text
    assert not caplog.records, "nobody has given an answer that could be wrong"


# Results


async def test_a_large_result_is_cut_in_the_middle_and_kept_whole_in_details():
    @tool(max_result=100)
    async def big() -> str:
        return "a" * 500 + "b" * 500

    results, _, _ = await dispatch([ToolCall("1", "big")], [big])
    text = results[0].text
    assert text.startswith("a" * 50)
    assert text.endswith("b" * 50)
    assert "900 of 1000 characters cut" in text
    assert results[0].details == {"full_text": "a" * 500 + "b" * 500}


async def test_the_smallest_cut_still_cuts():
    @tool(max_result=1)
    async def big() -> Any:
        return ["a" * 1000, Image(Base64Source("aGk="))]

    results, _, _ = await dispatch([ToolCall("1", "big")], [big])
    assert results[0].text.count("a") < 20
    assert len(results[0].content) == 2


async def test_a_tool_may_return_blocks_values_and_results():
    image = Image(Base64Source("aGk="))

    def returning(name: str, value: Any) -> Any:
        @tool(name=name)
        async def body() -> Any:
            return value

        return body

    values = {
        "none": None,
        "json": {"a": [1, 2.5, None]},
        "blocks": [Text("t"), image],
        "result": ToolResult("r", {"d": 1}, True),
        "odd": object(),
    }
    results, _, _ = await dispatch(
        [ToolCall(name, name) for name in values], [returning(*item) for item in values.items()]
    )
    by_name = {result.tool_name: result for result in results}
    assert by_name["none"].content == ()
    assert by_name["json"].text == '{"a":[1,2.5,null]}'
    assert by_name["blocks"].content == (Text("t"), image)
    assert (by_name["result"].details, by_name["result"].is_error) == ({"d": 1}, True)
    assert by_name["odd"].is_error


async def test_a_tool_cannot_change_the_history_through_its_arguments():
    class Raw:
        name, description, parameters_schema = "raw", "Raw.", {"type": "object"}

        async def execute(self, call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
            arguments["list"].append("changed")
            return "ok"

    _, _, agent = await dispatch([ToolCall("1", "raw", {"list": [1]})], [Raw()])
    assert agent.messages[1].tool_calls[0].arguments == {"list": [1]}


async def test_two_calls_with_one_id_are_told_apart():
    results, _, _ = await dispatch(
        [ToolCall("x", "echo", {"text": "a"}), ToolCall("x", "echo", {"text": "b"})], [echo]
    )
    assert [result.text for result in results] == ["a", "b"]
    assert len({result.tool_call_id for result in results}) == 2


# Processes


@tool(isolation="process", timeout=0.8)
def uncooperative(path: str) -> str:
    """Ignore everything and go on writing."""
    import signal
    import time

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        with open(path, "a") as file:
            file.write("x")
        time.sleep(0.01)


@tool(isolation="process")
def in_a_process(n: int) -> dict[str, int]:
    """Say which process this is."""
    import os

    return {"pid": os.getpid(), "n": n}


async def test_an_isolated_tool_that_ignores_cancellation_is_killed(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.agent.engine.dispatch.GRACE", 30)  # a busy machine needs a while to kill it
    path = tmp_path / "alive"
    results, _, agent = await dispatch([ToolCall("1", "uncooperative", {"path": str(path)})], [uncooperative])
    assert "timed out" in results[0].text
    assert "abandoned" not in results[0].text
    assert agent.messages[-1].text == "end"
    size = path.stat().st_size if path.exists() else 0
    await asyncio.sleep(0.1)
    assert (path.stat().st_size if path.exists() else 0) == size


async def test_an_isolated_tool_gives_its_result():
    import json
    import os

    results, _, _ = await dispatch([ToolCall("1", "in_a_process", {"n": 7})], [in_a_process])
    value = json.loads(results[0].text)
    assert value["n"] == 7
    assert value["pid"] != os.getpid()


async def test_what_policies_make_of_an_edited_call_is_approved_before_it_runs():
    ran: list[str] = []
    asked: list[str] = []

    @tool(requires_approval=True)
    async def say(text: str) -> str:
        ran.append(text)
        return text

    class Shout(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            text = call.arguments["text"]
            return Rewrite({"text": text.upper()}) if text == "edited" else None

    async def approve(request: Any) -> Any:
        asked.append(request.arguments["text"])
        return Approved({"text": "edited"}) if len(asked) == 1 else True

    await dispatch([ToolCall("1", "say", {"text": "first"})], [say], approve=approve, policies=[Shout()])
    assert asked == ["first", "EDITED"]
    assert ran == ["EDITED"]


async def test_an_edited_call_that_policies_leave_alone_is_approved_once():
    asked: list[str] = []

    async def approve(request: Any) -> Any:
        asked.append(request.arguments["text"])
        return Approved({"text": "edited"})

    results, _, _ = await dispatch([CALL], [danger], approve=approve)
    assert len(asked) == 1
    assert "edited" in results[0].text


async def test_an_edited_call_that_policies_rewrite_and_then_skip_is_not_asked_about_again():
    asked: list[str] = []

    class Shout(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Rewrite({"text": "EDITED"}) if call.arguments["text"] == "edited" else None

    class Quiet(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Skip("too loud") if call.arguments["text"] == "EDITED" else None

    async def approve(request: Any) -> Any:
        asked.append(request.arguments["text"])
        return Approved({"text": "edited"})

    results, _, _ = await dispatch([CALL], [danger], approve=approve, policies=[Shout(), Quiet()])
    assert len(asked) == 1
    assert results[0].text == "too loud"


async def test_an_edited_call_that_policies_make_harmless_is_not_asked_about_again():
    asked: list[str] = []

    @tool(requires_approval=lambda arguments: arguments["text"] != "harmless")
    async def say(text: str) -> str:
        return text

    class Tame(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Rewrite({"text": "harmless"}) if call.arguments["text"] == "edited" else None

    async def approve(request: Any) -> Any:
        asked.append(request.arguments["text"])
        return Approved({"text": "edited"})

    results, _, _ = await dispatch(
        [ToolCall("1", "say", {"text": "first"})], [say], approve=approve, policies=[Tame()]
    )
    assert asked == ["first"]
    assert results[0].text == "harmless"


async def test_the_view_of_a_long_call_does_not_hold_up_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    @tool(requires_approval=True)
    async def say(text: str) -> str:
        return "said"

    threads: list[int] = []

    def show(arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return show_arguments(arguments)

    monkeypatch.setattr("swink.messages.redact.shown.show_arguments", show)
    results, _, _ = await dispatch(
        [ToolCall("1", "say", {"text": "PASSWORD=abc1 ls\n" * 2_000})], [say], approve=lambda request: True
    )
    assert results[0].text == "said"
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("depth", [600, 950, 5_000])
async def test_arguments_nested_without_end_cost_the_call_alone(depth: int):
    @tool(requires_approval=True)
    async def take(value: list[Any]) -> str:
        return "taken"

    text = '{"value":' + "[" * depth + "]" * depth + "}"
    call = [Start(), ToolCallStart(0, "1", "take"), ToolCallDelta(0, text), ToolCallEnd(0), Done("tool_use")]
    results, _, _ = await dispatch(
        call, [take], approve=lambda request: True, policies=[LoopDetection(), PathGuard("."), PiiRedactor()]
    )
    assert results[0].is_error
    assert "not a JSON object" in results[0].text
