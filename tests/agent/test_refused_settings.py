"""What cannot work is refused where it is written, with what to change, and the agent goes on as if nothing was said."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from swink import (
    Agent,
    AgentError,
    Approved,
    ExponentialBackoff,
    Image,
    Inject,
    ModelSpec,
    Policy,
    Rejected,
    Replace,
    Rewrite,
    StreamOptions,
    Text,
    UserMessage,
)
from swink.agent.config import AgentContext, AgentLoopConfig
from swink.agent.context.compaction import Summary
from swink.agent.context.windows import SlidingWindow
from swink.errors import InvalidInput, MisuseError
from swink.memory import JsonlStore
from swink.memory.exports.document import read_export
from swink.testing import EventCollector, ScriptedModel

NAN, INF = float("nan"), float("inf")


class Sound(Policy):
    pass


class HalfRetry:
    def should_retry(self, error: Any, attempt: int) -> bool:
        return False


class Mute:
    """A session that cannot be written."""

    messages: tuple[Any, ...] = ()
    state: dict[str, Any] = {}


class Blank:
    """A session that cannot be read."""

    async def append(self, messages: Any) -> None: ...


class Whole(Mute):
    async def append(self, messages: Any) -> None: ...


async def no_reply(model: Any, context: Any, options: Any) -> Any:
    if options:
        raise AssertionError("nothing may be asked")
    yield


def made(**options: Any) -> Agent:
    return Agent(**{"model": "test:m", "stream_fn": ScriptedModel(["fine", "fine"]), **options})


CONSTRUCTION: list[tuple[str, Any, str]] = [
    ("model", 5, "provider:model"),
    ("model", "claude", "provider:model"),
    ("stream_fn", 5, "stream_fn is a function, not int"),
    ("system_prompt", 5, "str or a function that returns one, not int"),
    ("system_prompt", None, "str or a function that returns one"),
    ("system_prompt", b"x", "str or a function that returns one"),
    ("tools", [5], "5 is not a tool: pass a typed function"),
    ("tools", 5, r"tools is a list of tools; write \[\.\.\.\]"),
    ("tools", "bash", "tools is a list of tools"),
    ("tools", None, "tools is a list of tools"),
    ("messages", ["x"], "wrap text in UserMessage"),
    ("messages", "x", "messages is a list of messages"),
    ("messages", 5, "messages is a list of messages"),
    ("messages", UserMessage("x"), "messages is a list of messages"),
    ("options", {}, "options takes StreamOptions, not dict"),
    ("options", None, "options takes StreamOptions"),
    ("retry", 5, r"retry is a strategy such as ExponentialBackoff\(max_attempts=5\), not 5"),
    ("retry", None, "retry is a strategy"),
    ("retry", ExponentialBackoff, "retry is a strategy"),
    ("retry", HalfRetry(), "retry is a strategy"),
    ("fallback_models", "x:y", "fallback_models is a list of models"),
    ("fallback_models", ["nope"], "provider:model"),
    ("fallback_models", [5], "provider:model"),
    ("fallback_models", [("x:y", 5)], "the stream function of x:y is a function, not int"),
    ("fallback_models", [("x:y",)], "pairs of a model and its stream function"),
    ("policies", [Sound], r"write Sound\(\.\.\.\) instead of"),
    ("policies", Sound(), "policies is a list of policy objects"),
    ("policies", [5], "write a Policy instead of 5"),
    ("policies", 5, "policies is a list"),
    ("approve", True, "approve is a function of the request"),
    ("approval_mode", "always", "'on', 'smart', 'off', not 'always'"),
    ("approval_mode", None, "'on', 'smart', 'off', not None"),
    (
        "transform_context",
        5,
        "transform_context is 'window', 'prune', 'summary', a function, or a list of those, not 5",
    ),
    (
        "transform_context",
        "abc",
        "transform_context is 'window', 'prune', 'summary', a function, or a list of those, not 'abc'",
    ),
    ("transform_context", [5], "transform_context is a function, not int"),
    ("transform_context", [None, None], "transform_context is a function, not NoneType"),
    ("convert_to_llm", 5, "convert_to_llm is a function, not int"),
    ("get_api_key", "sk", "get_api_key is a function, not str"),
    ("steering_mode", "some", "'one_at_a_time', 'all', not 'some'"),
    ("follow_up_mode", None, "'one_at_a_time', 'all', not None"),
    (
        "tool_execution",
        "parallel",
        "'sequential', 'priority' or a function that groups the calls, not 'parallel'",
    ),
    ("tool_execution", None, "'concurrent'"),
    ("tool_timeout", "3", "tool_timeout is a finite number of seconds, not '3'"),
    ("tool_timeout", NAN, "finite number of seconds, not nan"),
    ("tool_timeout", 0, "seconds above 0, or None"),
    ("tool_timeout", -1.5, "seconds above 0, or None"),
    ("session", 5, r"with messages, state and an async append\(messages\), not int"),
    ("session", Mute(), "async append"),
    ("session", Blank(), "with messages, state"),
    ("session", Whole, "not the class Whole"),
    ("state", [1], "state is a dict of JSON data, not list"),
    ("state", "x", "state is a dict of JSON data, not str"),
    ("state", 0, "state is a dict of JSON data, not int"),
    ("state", {"db": object()}, "pass other objects as deps="),
]


@pytest.mark.parametrize(("keyword", "value", "words"), CONSTRUCTION)
def test_the_constructor_refuses_and_says_what_to_change(keyword: str, value: Any, words: str):
    with pytest.raises(AgentError, match=words) as caught:
        made(**{keyword: value})
    assert isinstance(caught.value, MisuseError)


@pytest.mark.parametrize(
    ("keyword", "value", "words"), [case for case in CONSTRUCTION if case[0] not in ("session", "stream_fn")]
)
async def test_a_copy_refuses_the_same_and_the_original_stays_usable(keyword: str, value: Any, words: str):
    agent = made()
    with pytest.raises(AgentError, match=words):
        agent.copy(**{keyword: value})
    assert (await agent.run("x")).text == "fine"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("steering_mode", "some", "'one_at_a_time', 'all', not 'some'"),
        ("follow_up_mode", 5, "'one_at_a_time', 'all', not 5"),
        ("thinking_level", "very", "'off', 'minimal', 'low', 'medium', 'high', 'extra_high', not 'very'"),
        ("thinking_level", None, "'off', 'minimal'"),
        ("system_prompt", 5, "str or a function that returns one, not int"),
        ("tools", [5], "5 is not a tool"),
        ("tools", 5, "tools is a list"),
        ("messages", ["x"], "wrap text in UserMessage"),
        ("messages", 5, "messages is a list"),
        ("model", "x", "provider:model"),
        ("model", 5, "provider:model"),
        ("model", "nope:x", "unknown provider 'nope'|scripted"),
    ],
)
async def test_an_attribute_refuses_and_keeps_what_it_was(name: str, value: Any, words: str):
    agent = made() if value != "nope:x" else Agent("anthropic:claude-sonnet-4-6")
    before = getattr(agent, name)
    with pytest.raises(AgentError, match=words):
        setattr(agent, name, value)
    assert getattr(agent, name) == before
    if value != "nope:x":
        assert (await agent.run("x")).text == "fine"


RUNS: list[tuple[dict[str, Any], str]] = [
    ({"deadline": NAN}, "deadline is a finite number of seconds, not nan"),
    ({"deadline": INF}, "not inf"),
    ({"deadline": -INF}, "not -inf"),
    ({"deadline": "5"}, "not '5'"),
    ({"deadline": True}, "not True"),
    ({"deadline": 10**400}, "deadline is a finite number of seconds"),
    ({"deadline": 1e300}, "deadline is a finite number of seconds"),
    ({"max_output_retries": -1, "output": int}, "max_output_retries is -1; pass a whole number, 0 or more"),
    ({"max_output_retries": -1}, "max_output_retries is -1"),
    ({"max_output_retries": True}, "max_output_retries is True"),
    ({"max_output_retries": 1.5}, "max_output_retries is 1.5"),
    ({"output": object}, "object cannot be described in JSON Schema .*use str, int"),
    ({"output": asyncio.Future}, "cannot be described in JSON Schema"),
    ({"output": 5}, "is not a type; pass one"),
    ({"output": "City"}, "is not a type; pass one"),
    ({"output": lambda: 1}, "is not a type; pass one"),
    ({"output": {"type": "nope"}}, "not a usable JSON Schema"),
    ({"output": int, "validate": 5}, "validate is 5; pass a function"),
    ({"validate": print}, "say of which type with output="),
    ({"policies": [Sound]}, r"write Sound\(\.\.\.\)"),
    ({"policies": Sound()}, "policies is a list of policy objects"),
    ({"policies": 5}, "policies is a list"),
    ({"timeout": 5}, "a run has no option 'timeout'; it has output, .*deadline"),
    ({"input": 5}, "a str, a message, or a list of messages"),
    ({"input": ["x", 5]}, "a str, a message, or a list of messages"),
    ({"input": ""}, "the input is empty"),
    ({"input": []}, "the input is empty"),
    ({"input": " \n"}, "the input is empty"),
    ({"input": None}, "give the first run an input"),
]


@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize(("options", "words"), RUNS)
async def test_a_run_refuses_before_anything_starts(options: dict[str, Any], words: str, way: str):
    agent, collector = made(), EventCollector()
    agent.subscribe(collector)
    tasks = asyncio.all_tasks()
    with pytest.raises(AgentError, match=words) as caught:
        if way == "run":
            await agent.run(**{"input": "x", **options})
        else:
            agent.stream(**{"input": "x", **options})
    assert isinstance(caught.value, MisuseError)
    assert collector.events == []
    assert not agent.is_running
    assert list(agent.messages) == []
    assert asyncio.all_tasks() == tasks, "no run goes on unseen"
    assert (await agent.run("x")).text == "fine"


@pytest.mark.parametrize(("options", "words"), RUNS)
def test_run_sync_refuses_the_same(options: dict[str, Any], words: str):
    agent = made()
    with pytest.raises(AgentError, match=words):
        agent.run_sync(**{"input": "x", **options})
    assert agent.run_sync("x").text == "fine"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Image("/x.png"), r"write Image\.from_file\(path\)"),
        (lambda: Image(None), "an image has a source"),
        (lambda: Image.from_file(5), "from_file.* takes str or Path"),
        (lambda: Image.from_url("/x.png"), "http, https or data URL"),
        (lambda: Image.from_bytes("x"), "takes bytes"),
        (lambda: Image.from_bytes(b"x"), "media_type="),
        (lambda: Text(5), r"Text\(text\) takes str, not int"),
        (lambda: Text(None), "takes str, not NoneType"),
        (lambda: UserMessage(5), "content takes"),
        (lambda: UserMessage([5]), "content takes"),
        (lambda: Inject(5), "takes a str, a message"),
        (lambda: Rewrite(None), r"Rewrite\(arguments\) takes dict"),
        (lambda: Replace("x"), r"Replace\(message\) takes UserMessage"),
        (lambda: Approved("yes"), r"Approved\(arguments\) takes dict or None"),
        (lambda: Approved(note=5), r"Approved\(note\) takes str"),
        (lambda: Rejected(5), r"Rejected\(reason\) takes str or None"),
        (lambda: Summary(budget="x"), "budget takes int or None, not str"),
        (lambda: Summary(length="x"), "length takes int, not str"),
        (lambda: SlidingWindow(anchor="x"), "anchor takes int, not str"),
        (lambda: SlidingWindow(budget="x"), "budget takes int or None, not str"),
        (lambda: SlidingWindow(overflow_budget="x"), "overflow_budget takes int or None, not str"),
        (lambda: JsonlStore(3), r"JsonlStore\(\) takes str or PathLike or None, not int"),
        (lambda: read_export(3), r"read_export\(\) takes str or bytes, not int"),
        (lambda: ModelSpec("x", "y", thinking_level="very"), "'extra_high', not 'very'"),
        (lambda: ExponentialBackoff(max_attempts=0), "1 for no retries"),
        (lambda: ExponentialBackoff(base_delay=NAN), "number of seconds, 0 or more"),
        (lambda: Agent.restore(None), r"what checkpoint\(\) returned, a dict, not NoneType"),
        (lambda: Agent.restore({}), "this has no version"),
        (lambda: Agent.restore([]), "a dict, not list"),
        (lambda: Agent.restore({"version": 1}), "not a checkpoint"),
        (lambda: Agent.restore({"version": 1, "model": {}, "messages": [5]}), "not a checkpoint"),
        (lambda: made().subscribe(None), "a subscriber is a function"),
        (lambda: made().steer(5), "a str, a message"),
        (lambda: made().follow_up(None), "a str, a message"),
        (lambda: made().append_messages(5), "a str, a message"),
        (lambda: made().copy(modle="x:y"), "no keyword 'modle'; write model="),
        (lambda: AgentContext(5), "str or a function"),
        (lambda: AgentLoopConfig(model=5, stream_fn=no_reply), 'write "provider:model"'),
        (lambda: AgentLoopConfig(model=ModelSpec("a", "b"), stream_fn=5), "stream_fn is a function"),
        (
            lambda: AgentLoopConfig(model=ModelSpec("a", "b"), stream_fn=no_reply, options={}),
            "options takes StreamOptions",
        ),
    ],
)
def test_values_are_refused_where_they_are_made(make: Callable[[], Any], words: str):
    with pytest.raises(AgentError, match=words) as caught:
        make()
    assert isinstance(caught.value, MisuseError)


def test_what_is_refused_is_also_a_type_error_and_a_value_error():
    with pytest.raises(InvalidInput) as caught:
        made(retry=5)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


def test_every_value_that_is_right_is_still_taken():
    agent = made(
        system_prompt=lambda context: "x",
        tools=(),
        messages=(UserMessage("a"),),
        options=StreamOptions(temperature=0.0),
        retry=ExponentialBackoff(1),
        fallback_models=["test:b", ("test:c", ScriptedModel([])), ModelSpec("test", "d")],
        policies=(Sound(),),
        approve=lambda request: True,
        approval_mode="on",
        transform_context=[lambda messages, overflow: messages],
        convert_to_llm=lambda message: message,
        get_api_key=lambda provider: None,
        steering_mode="all",
        follow_up_mode="all",
        tool_execution=lambda calls: [[index] for index in range(len(calls))],
        tool_timeout=1,
        session=Whole(),
        state={"a": [1]},
        deps=object(),
    )
    assert agent.run_sync("x", deadline=5, max_output_retries=0, policies=[Sound()]).text == "fine"
    assert agent.run_sync("x", deadline=0).stop_reason == "aborted"


async def test_an_agent_that_runs_is_refused_a_second_run_a_reset_and_a_compaction():
    agent = made()
    async with agent.stream("x") as run:
        for call in (lambda: agent.run("y"), agent.compact):
            with pytest.raises(MisuseError, match=r"already running|idle agent"):
                await call()
        with pytest.raises(MisuseError, match="idle agent"):
            agent.reset()
        with pytest.raises(MisuseError, match="already running"):
            agent.stream("y")
        assert (await run.result()).text == "fine"
