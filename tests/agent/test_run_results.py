"""What a run came to: the output or the reason why there is none, and how loudly it says so."""

import asyncio
import dataclasses
import pickle
import threading
from typing import Any, Literal

import msgspec
import pytest

from swink import (
    Aborted,
    Agent,
    AgentError,
    AgentResult,
    AssistantMessage,
    AuthError,
    Cost,
    ModelError,
    NetworkError,
    PendingApproval,
    Policy,
    RunStopped,
    Stop,
    StructuredOutputFailed,
    Text,
    ToolCall,
    ToolError,
    Usage,
    UserMessage,
    tool,
)
from swink.agent.structured import NAME
from swink.events import ToolExecutionStart
from swink.testing import Pause, ScriptedModel, history_problems

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@dataclasses.dataclass
class City:
    name: str
    people: int


class Refusal(msgspec.Struct):
    reason: str


TOKYO = {"name": "Tokyo", "people": 14}


def give(value: Any, id: str = "1") -> list[Any]:
    return [ToolCall(id, NAME, value)]


def agent_on(*script: Any, **options: Any) -> Agent:
    return Agent("test:m", stream_fn=ScriptedModel(list(script)), **options)


class StopAt(Policy):
    def __init__(self, slot: str, error: AgentError | None = None, *, expected: bool = False) -> None:
        self.slot = slot
        self.stop = Stop("enough", error, expected)

    def pre_turn(self, ctx: Any) -> Any:
        return self.stop if self.slot == "pre_turn" else None

    def pre_dispatch(self, ctx: Any, call: Any) -> Any:
        return self.stop if self.slot == "pre_dispatch" else None

    def post_turn(self, ctx: Any, turn: Any) -> Any:
        return self.stop if self.slot == "post_turn" else None

    def post_loop(self, ctx: Any) -> Any:
        return self.stop if self.slot == "post_loop" else None


@tool
def look() -> str:
    """Look around."""
    return "nothing"


def call(name: str) -> list[Any]:
    return [ToolCall("1", name, {})]


# There is no output


async def test_the_output_of_a_failed_run_raises_its_error_with_what_the_stream_function_raised():
    broken = LookupError("no such thing")
    result = await agent_on(broken).run("q", output=City)
    assert result.stop_reason == "error"
    for ask in (lambda: result.output, result.raise_for_error):
        with pytest.raises(AgentError, match="no such thing") as caught:
            ask()
        assert caught.value is result.exception
        assert caught.value.__cause__ is broken


async def test_the_cause_of_an_error_that_a_stream_function_raised_itself_is_kept():
    error = AuthError("wrong key")
    error.__cause__ = OSError("below")
    result = await agent_on(error).run("q")
    with pytest.raises(AuthError, match="test:m: wrong key") as caught:
        result.raise_for_error()
    assert isinstance(caught.value.__cause__, OSError)
    assert error.model == "", "the one that was raised is not changed"


async def test_an_error_class_of_somebody_else_is_a_failed_reply_however_it_is_made():
    class Unpayable(ModelError):
        def __init__(self, code: int, detail: dict[str, Any]) -> None:
            super().__init__(f"code {code}")
            self.code, self.detail = code, detail

    agent = agent_on(Unpayable(402, {"a": 1}), "fine")
    result = await agent.run("q")
    assert result.stop_reason == "error"
    with pytest.raises(Unpayable, match="test:m: code 402") as caught:
        result.raise_for_error()
    assert caught.value.code == 402
    assert (await agent.run("q")).text == "fine"


async def test_the_output_of_an_aborted_run_raises_aborted_with_the_reason():
    agent = agent_on([Pause(10), *give(TOKYO)])
    task = asyncio.create_task(agent.run("q", output=City))
    await asyncio.sleep(0.01)
    agent.abort()
    result = await task
    assert result.stop_reason == "aborted"
    with pytest.raises(Aborted, match="the run was aborted"):
        result.output  # noqa: B018


async def test_the_output_after_a_deadline_says_so():
    result = await agent_on([Pause(10), *give(TOKYO)]).run("q", output=City, deadline=0.01)
    with pytest.raises(Aborted, match=r"^test:m: deadline of 0\.01 s passed \(.*deadline=.*model"):
        result.output  # noqa: B018
    assert result.reason == "deadline of 0.01 s passed"


@pytest.mark.parametrize("slot", ["pre_turn", "post_turn"])
async def test_the_output_of_a_run_that_a_policy_stopped_names_the_reason(slot: str):
    result = await agent_on("words", "more").run("q", output=City, policies=[StopAt(slot)])
    assert result.stop_reason == "stop"
    with pytest.raises(RunStopped, match="enough") as raised:
        result.output  # noqa: B018
    assert raised.value.reason == "enough"
    assert raised.value.result is result
    with pytest.raises(RunStopped, match="enough"):
        result.raise_for_error()


async def test_the_output_is_there_although_a_policy_stopped_the_turn_that_gave_it():
    result = await agent_on(give(TOKYO)).run("q", output=City, policies=[StopAt("post_turn")])
    assert result.output == City("Tokyo", 14)
    assert result.reason == "enough"


async def test_the_output_of_a_run_that_was_paused_says_so():
    @tool
    async def look() -> str:
        agent.pause()
        return "seen"

    agent = agent_on([ToolCall("1", "look")], give(TOKYO), tools=[look])
    result = await agent.run("q", output=City)
    with pytest.raises(StructuredOutputFailed, match="paused"):
        result.output  # noqa: B018


async def test_used_up_attempts_are_an_error_of_the_result_and_of_the_agent():
    agent = agent_on("words", give({"name": "x"}))
    result = await agent.run("q", output=City, max_output_retries=1)
    assert (result.stop_reason, result.error_kind) == ("error", "structured_output_failed")
    assert agent.error == result.error
    with pytest.raises(StructuredOutputFailed, match="after 2 attempts") as caught:
        result.output  # noqa: B018
    assert caught.value.attempts == 2


async def test_without_a_type_the_output_is_none_also_when_the_run_failed():
    assert (await agent_on("words").run("q")).output is None
    failed = await agent_on(AuthError("no")).run("q")
    assert failed.output is None
    with pytest.raises(AuthError):
        failed.raise_for_error()


async def test_an_output_that_is_none_is_an_output():
    result = await agent_on(give({"value": None})).run("q", output=City | None)
    assert result.output is None
    assert result.raise_for_error() is result


@pytest.mark.parametrize("slot", ["pre_turn", "pre_dispatch"])
async def test_a_run_that_a_policy_stopped_before_its_answer_raises_and_is_logged_once(
    slot: str, caplog: pytest.LogCaptureFixture
):
    result = await agent_on(call("look"), "words", name="scout", tools=[look], policies=[StopAt(slot)]).run(
        "q"
    )
    with pytest.raises(RunStopped, match="stopped before its answer: enough"):
        result.raise_for_error()
    assert result.stop_reason != "error"
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "scout was stopped before its answer: enough" in record.getMessage()


@pytest.mark.parametrize("slot", ["post_turn", "post_loop"])
async def test_a_policy_that_stops_after_the_answer_takes_nothing_away(
    slot: str, caplog: pytest.LogCaptureFixture
):
    result = await agent_on("words", "more", policies=[StopAt(slot)]).run("q")
    assert result.raise_for_error().text == "words"
    assert result.reason == "enough"
    assert not caplog.records


async def test_an_ending_that_is_expected_is_none_to_raise(caplog: pytest.LogCaptureFixture):
    result = await agent_on("words", policies=[StopAt("pre_turn", expected=True)]).run("q")
    assert result.raise_for_error() is result
    assert not caplog.records


async def test_a_run_that_was_paused_deferred_or_closed_is_not_stopped():
    agent = agent_on(call("look"), "words", tools=[look])
    async with agent.stream("q") as run:
        async for event in run:
            if isinstance(event, ToolExecutionStart):
                agent.pause()
        result = await run.result()
    assert result.reason == "paused"
    assert result.raise_for_error() is result


async def test_a_stopped_run_that_its_policy_calls_an_error_raises_that():
    result = await agent_on("words", policies=[StopAt("pre_turn", NetworkError("down"))]).run("q")
    with pytest.raises(NetworkError, match="down"):
        result.raise_for_error()


def test_a_stop_can_be_copied_and_sent_on():
    error = RunStopped("enough", AgentResult((), "stop", stopped=True))
    assert pickle.loads(pickle.dumps(error)).reason == "enough"


async def test_a_good_result_is_given_back_for_one_line():
    assert (await agent_on("words").run("q")).raise_for_error().text == "words"


def test_a_result_made_by_hand_raises_by_its_kind():
    with pytest.raises(NetworkError, match="down"):
        AgentResult((), "error", error="down", error_kind="network").raise_for_error()
    with pytest.raises(AgentError, match="error"):
        AgentResult((), "error").raise_for_error()
    with pytest.raises(AgentError, match="why"):
        AgentResult((), "aborted", reason="why").raise_for_error()


async def test_a_hook_that_fails_is_raised_and_no_result():
    async def key(provider: str) -> str:
        raise LookupError("vault closed")

    agent = agent_on("words", get_api_key=key)
    with pytest.raises(LookupError, match="vault closed"):
        await agent.run("q", output=City)
    assert agent.error == "LookupError: vault closed"


# Results are values


async def test_results_compare_and_survive_pickling_with_and_without_output_and_error():
    for script, output in [
        (["words"], None),
        ([give(TOKYO)], City),
        ([give({"value": {"reason": "no"}})], City | Refusal),
        ([AuthError("no", model="x:y")], City),
        ([NetworkError("down", retry_after=1.0)], None),
        ([give({})], City),
        ([LookupError("a hook's")], None),
    ]:
        result = await agent_on(*script).run("q", output=output, max_output_retries=0)
        again = pickle.loads(pickle.dumps(result))
        assert again == result
        assert again.value == result.value
        assert type(again.exception) is type(result.exception)
        assert str(again.exception) == str(result.exception)
        if result.value is msgspec.UNSET:
            with pytest.raises(type(result.exception or StructuredOutputFailed(0, ""))):
                again.output  # noqa: B018


async def test_results_of_the_same_conversation_are_equal_and_others_are_not():
    first = await agent_on("words").run("q")
    assert first == await agent_on("words").run("q")
    assert first != await agent_on("others").run("q")
    assert first != "words"
    failed = AgentResult((), "error", error="x", exception=AuthError("x"))
    assert failed == AgentResult((), "error", error="x", exception=AuthError("x")), (
        "whichever exception object"
    )
    assert failed != AgentResult((), "error", error="y", exception=AuthError("x"))
    assert AgentResult((UserMessage("a"),), value=1) != AgentResult((UserMessage("a"),), value=2)


def test_a_result_can_be_a_key():
    assert len({AgentResult((UserMessage("a"),)), AgentResult((UserMessage("a"),))}) == 1


async def test_a_result_with_tool_calls_can_be_a_key():
    result = await agent_on(give(TOKYO)).run("q", output=City)
    assert {result: 1}[result] == 1


# Unions


@pytest.mark.parametrize(
    ("value", "expected"),
    [(TOKYO, City("Tokyo", 14)), ({"reason": "there is none"}, Refusal("there is none"))],
)
async def test_a_union_gives_the_member_that_the_model_chose(value: Any, expected: Any):
    result = await agent_on(give({"value": value})).run("q", output=City | Refusal)
    assert result.output == expected
    assert type(result.output) is type(expected)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (int | str, 5),
        (int | str, "five"),
        (list[int] | None, None),
        (list[int] | None, [1, 2]),
        (Literal["a", "b"], "b"),
        (dict[str, int] | bool, {"a": 1}),
        (dict[str, int] | bool, False),
    ],
)
async def test_unions_of_other_things_work_too(output: Any, value: Any):
    result = await agent_on(give({"value": value})).run("q", output=output)
    assert result.output == value
    assert type(result.output) is type(value)


async def test_what_is_no_member_of_a_union_is_sent_back():
    agent = agent_on(give({"value": {"nope": 1}}), give({"value": {"reason": "x"}}, "2"))
    assert (await agent.run("q", output=City | Refusal)).output == Refusal("x")
    assert agent.messages[2].is_error


# Validators


async def test_a_validator_may_replace_the_value_and_none_keeps_it():
    def shout(city: City) -> City | None:
        return City(city.name.upper(), city.people) if city.name.islower() else None

    low, high = {"name": "oslo", "people": 1}, {"name": "OSLO", "people": 1}
    assert (await agent_on(give(low)).run("q", output=City, validate=shout)).output.name == "OSLO"
    assert (await agent_on(give(high)).run("q", output=City, validate=shout)).output.name == "OSLO"


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_error_of_a_validator_is_the_models_to_answer_and_counts(is_async: bool):
    seen: list[str] = []

    def check(city: City) -> None:
        seen.append(city.name)
        raise ToolError(f"{city.name} is no capital")

    async def check_later(city: City) -> None:
        await asyncio.sleep(0)
        check(city)

    agent = agent_on(give({"name": "A", "people": 1}), give({"name": "B", "people": 1}, "2"))
    result = await agent.run(
        "q", output=City, validate=check_later if is_async else check, max_output_retries=1
    )
    assert seen == ["A", "B"]
    assert [message.text for message in agent.messages if message.role == "tool_result"] == [
        "A is no capital",
        "B is no capital",
    ]
    assert "after 2 attempts; the last problem: B is no capital" in (result.error or "")
    assert history_problems(agent.messages) == []


async def test_another_error_of_a_validator_is_an_attempt_and_the_cause_of_the_failure():
    broken = LookupError("the map is missing")

    def check(city: City) -> None:
        raise broken

    agent = agent_on(give(TOKYO), give(TOKYO, "2"))
    result = await agent.run("q", output=City, validate=check, max_output_retries=1)
    assert "the map is missing" in agent.messages[2].text
    with pytest.raises(StructuredOutputFailed, match="the map is missing") as caught:
        result.output  # noqa: B018
    assert caught.value.__cause__ is broken


async def test_a_validator_that_may_block_does_not_block_the_event_loop():
    threads: list[int] = []
    ticks = 0

    def check(city: City) -> None:
        threads.append(threading.get_ident())
        import time

        time.sleep(0.05)

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.005)

    ticking = asyncio.create_task(tick())
    await agent_on(give(TOKYO)).run("q", output=City, validate=check)
    ticking.cancel()
    assert threads[0] != threading.get_ident()
    assert ticks > 3


async def test_an_object_with_an_async_call_is_a_validator():
    class Check:
        async def __call__(self, city: City) -> City:
            await asyncio.sleep(0)
            return City("Kyoto", city.people)

    assert (await agent_on(give(TOKYO)).run("q", output=City, validate=Check())).output.name == "Kyoto"


@pytest.mark.parametrize("how", ["abort", "cancel", "deadline"])
async def test_a_validator_is_cancelled_in_the_middle_and_nothing_is_accepted(how: str):
    entered, ended = asyncio.Event(), asyncio.Event()

    async def check(city: City) -> City:
        entered.set()
        try:
            await asyncio.sleep(10)
        finally:
            ended.set()
        return city

    agent = agent_on(give(TOKYO), "later")
    deadline = 0.02 if how == "deadline" else None
    task = asyncio.create_task(agent.run("q", output=City, validate=check, deadline=deadline))
    await entered.wait()
    if how == "abort":
        agent.abort()
    elif how == "cancel":
        task.cancel()
    if how == "cancel":
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        with pytest.raises(Aborted):
            (await task).output  # noqa: B018
    assert ended.is_set()
    assert not agent.is_running
    assert history_problems(agent.messages) == []
    assert (await agent.run("q")).text == "later"


async def test_a_sync_validator_that_does_not_stop_is_abandoned():
    release = threading.Event()

    def check(city: City) -> None:
        release.wait(60)

    agent = agent_on(give(TOKYO), "later")
    try:
        result = await asyncio.wait_for(agent.run("q", output=City, validate=check, deadline=0.02), 20)
        assert result.stop_reason == "aborted"
        with pytest.raises(Aborted):
            result.output  # noqa: B018
        assert (await agent.run("q")).text == "later"
    finally:
        release.set()


async def test_steering_while_a_validator_works_is_no_attempt():
    async def check(city: City) -> None:
        if city.name == "Tokyo":
            agent.steer("a smaller one")
            await asyncio.sleep(10)

    @tool
    async def quick() -> str:
        await asyncio.sleep(0.01)
        return "ok"

    osaka = {"name": "Osaka", "people": 3}
    agent = agent_on([*give(TOKYO), ToolCall("2", "quick")], give(osaka, "3"), tools=[quick])
    result = await agent.run("q", output=City, validate=check, max_output_retries=0)
    assert result.output == City("Osaka", 3)


async def test_a_validated_value_of_a_union_is_the_member():
    kinds: list[type] = []

    def check(value: City | Refusal) -> City | Refusal | None:
        kinds.append(type(value))
        if isinstance(value, Refusal):
            raise ToolError("no excuses")
        return None

    agent = agent_on(give({"value": {"reason": "x"}}), give({"value": TOKYO}, "2"))
    assert (await agent.run("q", output=City | Refusal, validate=check)).output == City("Tokyo", 14)
    assert kinds == [Refusal, City]


def test_run_sync_gives_the_same():
    assert agent_on(give(TOKYO)).run_sync("q", output=City, validate=lambda city: None).output.people == 14
    with pytest.raises(AuthError):
        agent_on(AuthError("no")).run_sync("q", output=City).output  # noqa: B018


async def test_usage_and_cost_are_those_of_all_attempts():
    agent = Agent("test:m", stream_fn=ScriptedModel(["a", "b", give(TOKYO)], usage=Usage(input=2, output=1)))
    result = await agent.run([Text("q")], output=City)
    assert result.usage.total == 9
    assert result.cost is None


@pytest.mark.parametrize(
    "text", ["Oslo.", "word " * 5_000, "\n" * 400, "\x1b[2J" * 200, "\ud800" * 300, "\N{SNOWMAN}'\"" * 200]
)
def test_a_result_and_its_agent_fit_on_the_screen(text: str):
    usage = Usage(10**12, 10**12)
    result: AgentResult[Any] = AgentResult(
        (
            UserMessage((Text("secret plans"),)),
            AssistantMessage((Text(text),), model="m", stop_reason="stop"),
        ),
        "error",
        usage,
        Cost(1 / 3),
        text,
        reason=text,
        value=text,
        pending=tuple(PendingApproval(str(number), text[:100], {"a": text}, {}) for number in range(100)),
    )
    agent = Agent(f"test:{text or 'm'}", name=text, stream_fn=ScriptedModel([]))
    for shown in (str(result), str(agent), str(msgspec.structs.replace(result, error=None))):
        assert len(shown.split("\n")) <= 5, shown
        assert max(map(len, shown.split("\n"))) <= 110, shown
    assert "secret plans" not in repr(result)


def test_a_result_is_shown_by_what_people_look_for():
    message = AssistantMessage((Text("Oslo."),), model="m", stop_reason="stop")
    result: AgentResult[Any] = AgentResult((message,), "stop", Usage(12, 30), Cost(0.001, 0.0005))
    wanted = "AgentResult(text='Oslo.', stop_reason='stop', messages=1, tokens=42, cost=0.0015)"
    assert str(result) == wanted
    assert str(AgentResult(())) == "AgentResult(stop_reason='stop')"


def test_a_result_shows_no_key():
    message = AssistantMessage((Text(f"It is {KEY}"),), model="m", stop_reason="stop")
    assert KEY not in repr(AgentResult((message,), "error", error=f"refused {KEY}"))
