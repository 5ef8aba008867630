"""Nothing fails silently: one warning per failed run, one traceback per raising tool, a missing key at once."""

import asyncio
import gc
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.counts import crossed

from swink import (
    Agent,
    AgentError,
    AuthError,
    ContextWindowOverflow,
    ExponentialBackoff,
    NetworkError,
    Policy,
    Stop,
    StreamOptions,
    ToolCall,
    ToolError,
    tool,
)
from swink.agent.structured import NAME
from swink.errors import MissingKey, MisuseError
from swink.models import catalog
from swink.models.catalog import PROVIDERS
from swink.models.keys.accounts import ACCOUNTS
from swink.providers.anthropic import AnthropicStreamFn
from swink.providers.openai import OpenAIStreamFn
from swink.stream import Error
from swink.teams import agent_tool, parallel, sequential
from swink.testing import EventCollector, Pause, ScriptedModel

NO_RETRY = ExponentialBackoff(max_attempts=1)
SECRET = "sk-ant-api03-" + "Zx9" * 20


def check_key(agent: Agent) -> None:
    config = agent._config
    config.check_key(*config.routes()[0])


class Heard(logging.Handler):
    """What a program with ordinary logging hears."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def lines(self) -> list[str]:
        return [f"{record.levelname} {record.name} {record.getMessage()}" for record in self.records]

    def about_runs(self) -> list[str]:
        return [line for line in self.lines if line.startswith("WARNING swink ")]


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    logging.getLogger("swink").addHandler(handler)
    yield handler
    logging.getLogger("swink").removeHandler(handler)


def agent_on(*script: Any, **options: Any) -> Agent:
    return Agent(
        **{"model": "test:m", "stream_fn": ScriptedModel(list(script)), "retry": NO_RETRY, **options}
    )


# A failed run


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([AuthError("wrong key")], "test:m: wrong key"),
        ([LookupError("bug in the stream function")], "bug in the stream function"),
        ([["par", NetworkError("cut off")]], "cut off"),
        ([ContextWindowOverflow("too long")], "too long"),
    ],
)
@pytest.mark.parametrize("way", ["run", "stream", "detached"])
async def test_a_failed_run_logs_exactly_one_warning(script: Any, words: str, way: str, heard: Heard):
    agent = agent_on(*script)
    if way == "run":
        await agent.run("q")
    elif way == "stream":
        async with agent.stream("q") as run:
            async for _ in run:
                pass
            await run.result()
    else:
        agent.stream("q").detach()
        await agent.wait_for_idle()
    assert len(heard.lines) == 1, heard.lines
    assert heard.lines[0].startswith("WARNING swink the run failed: ")
    assert words in heard.lines[0]


def test_a_failed_run_sync_logs_it_too(heard: Heard):
    agent_on(AuthError("wrong key")).run_sync("q")
    assert len(heard.about_runs()) == 1


def test_a_program_that_configures_no_logging_sees_it_on_stderr():
    program = (
        "from swink import Agent, AuthError; from swink.testing import ScriptedModel\n"
        "print(Agent('test:m', stream_fn=ScriptedModel([AuthError('wrong key')])).run_sync('q').text)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines() == [
        "the run failed: test:m: wrong key (check the API key, its permissions and the account's credit)"
    ]


async def test_what_was_retried_and_worked_is_no_failure(heard: Heard):
    down = NetworkError("down")
    agent = agent_on(down, down, "fine", retry=ExponentialBackoff(3, 0, 0), fallback_models=["test:b"])
    assert (await agent.run("q")).text == "fine"
    assert heard.lines == []


async def test_attempts_and_fallbacks_that_all_fail_are_one_failure(heard: Heard):
    script = [NetworkError(f"down {number}") for number in range(4)]
    agent = agent_on(*script, retry=ExponentialBackoff(2, 0, 0), fallback_models=["test:b"])
    await agent.run("q")
    assert len(heard.lines) == 1
    assert "down 3" in heard.lines[0]


async def test_an_output_that_never_came_is_one_failure(heard: Heard):
    result = await agent_on("words", "more").run("q", output=int, max_output_retries=1)
    assert result.stop_reason == "error"
    assert len(heard.about_runs()) == 1
    assert "no valid output after 2 attempts" in heard.lines[0]


async def test_a_model_failure_of_a_run_with_an_output_is_one_failure(heard: Heard):
    await agent_on(AuthError("wrong key")).run("q", output=int)
    assert len(heard.lines) == 1


async def test_every_failed_run_of_an_agent_is_logged_again(heard: Heard):
    agent = agent_on(AuthError("first"), AuthError("second"))
    await agent.run("q")
    await agent.run("q")
    assert len(heard.lines) == 2


@pytest.mark.parametrize("how", ["abort", "cancel", "deadline", "close", "drop"])
@pytest.mark.parametrize("output", [None, int])
async def test_a_run_that_somebody_ended_is_no_failure(how: str, output: Any, heard: Heard):
    agent = agent_on(["par", Pause(10)])
    if how in ("close", "drop"):
        stream = agent.stream("q", output=output)
        await stream.__aenter__()
        await asyncio.sleep(0.01)
        if how == "close":
            await stream.aclose()
        del stream
    else:
        task = asyncio.create_task(
            agent.run("q", output=output, deadline=0.01 if how == "deadline" else None)
        )
        await asyncio.sleep(0.005)
        if how == "abort":
            agent.abort()
        elif how == "cancel":
            task.cancel()
        await asyncio.wait([task])
    await agent.wait_for_idle()
    assert heard.lines == []


@pytest.mark.parametrize("output", [None, int])
async def test_a_run_that_a_policy_stopped_or_that_was_paused_is_no_failure(output: Any, heard: Heard):
    class Halt(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> Any:
            return Stop("enough")

    assert (await agent_on("a").run("q", output=output, policies=[Halt()])).reason == "enough"
    assert heard.lines == []


async def test_in_a_pipeline_one_warning_per_agent_that_failed(heard: Heard):
    good, bad = agent_on("fine"), agent_on(AuthError("no"))
    result = await sequential(good, bad, agent_on("unused")).run("q")
    assert result.stop_reason == "error"
    assert len(heard.lines) == 1, heard.lines
    heard.records.clear()
    await parallel(agent_on(AuthError("one")), agent_on(AuthError("two")), agent_on("fine")).run("q")
    assert sorted(line[-3:] for line in heard.about_runs()) == sorted(line[-3:] for line in heard.lines)
    assert len(heard.lines) == 2, heard.lines


async def test_a_sub_agent_that_fails_is_one_warning_and_its_caller_goes_on(heard: Heard):
    helper = agent_tool(agent_on(AuthError("no")), "helper", "Helps.")
    outer = agent_on([ToolCall("1", "helper", {"task": "x"})], "I do it myself", tools=[helper])
    assert (await outer.run("q")).text == "I do it myself"
    assert len(heard.lines) == 1, heard.lines


async def test_a_sub_agent_whose_output_fails_is_one_warning(heard: Heard):
    helper = agent_tool(agent_on(*["words"] * 4), "helper", "Helps.", output=int)
    outer = agent_on([ToolCall("1", "helper", {"task": "x"})], "I do it myself", tools=[helper])
    await outer.run("q")
    assert len(heard.lines) == 1, heard.lines


# A hook that fails


async def failing_key(provider: str) -> str:
    raise LookupError(f"vault closed, token={SECRET}")


async def test_a_hooks_exception_is_raised_and_not_logged_besides(heard: Heard):
    agent = agent_on("a", get_api_key=failing_key)
    with pytest.raises(LookupError):
        await agent.run("q")
    with pytest.raises(LookupError):
        await agent.stream("q").result()
    assert heard.lines == []


async def test_a_detached_run_whose_hook_fails_is_logged_without_secrets(heard: Heard):
    agent = agent_on("a", get_api_key=failing_key)
    agent.stream("q").detach()
    await agent.wait_for_idle()
    assert len(heard.about_runs()) == 1
    assert "a detached run failed: LookupError: vault closed" in heard.lines[0]
    assert SECRET not in "".join(heard.lines)


async def test_a_run_that_failed_before_it_was_detached_is_logged_too(heard: Heard):
    agent = agent_on("a", get_api_key=failing_key)
    stream = agent.stream("q")
    await stream.__aenter__()
    await agent.wait_for_idle()
    assert heard.lines == []
    stream.detach()
    assert len(heard.about_runs()) == 1


async def test_a_stream_that_is_left_before_its_hooks_failure_was_read_logs_it(heard: Heard):
    agent = agent_on("a", get_api_key=failing_key)
    async with agent.stream("q"):
        await agent.wait_for_idle()
    assert len(heard.about_runs()) == 1, "nobody else will hear of it"
    async with agent.stream("q") as run:
        with pytest.raises(LookupError):
            await run.result()
    assert len(heard.about_runs()) == 1, "who has caught it has heard of it"


async def test_a_stream_that_is_dropped_after_its_hook_failed_logs_it(heard: Heard):
    agent = agent_on("a", get_api_key=failing_key)
    stream = agent.stream("q")
    await stream.__aenter__()
    await agent.wait_for_idle()
    del stream
    gc.collect()
    assert len(heard.about_runs()) == 1


async def test_a_session_that_does_not_save_is_raised_and_logged_with_its_traceback(heard: Heard):
    class Full:
        messages: tuple[Any, ...] = ()
        state: dict[str, Any] = {}

        async def append(self, messages: Any) -> None:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await agent_on("a", session=Full()).run("q")
    assert len(heard.lines) == 1
    assert "Traceback" in heard.records[0].getMessage()


# A tool that raises


async def test_a_tool_that_raises_logs_its_traceback_once_without_secrets(heard: Heard):
    def deeper() -> None:
        raise LookupError(f"api_key={SECRET} was refused")

    @tool
    async def fetch() -> str:
        """Fetch."""
        try:
            deeper()
        except LookupError as error:
            raise ValueError("outer") from error
        return "unreachable"

    agent = agent_on([ToolCall("1", "fetch")], "done", tools=[fetch])
    result = await agent.run("q")
    assert result.text == "done"
    assert len(heard.lines) == 1, heard.lines
    (line,) = heard.lines
    assert line.startswith("WARNING swink.tool tool 'fetch' raised")
    assert "in deeper" in line
    assert "ValueError: outer" in line
    assert line.count("Traceback (most recent call last)") == 2, "with the cause"
    assert SECRET not in line
    assert agent.messages[2].text == "error: ValueError: outer"


async def test_a_tool_in_a_thread_that_raises_is_logged_the_same(heard: Heard):
    @tool
    def fetch() -> str:
        """Fetch."""
        raise LookupError("in a thread")

    await agent_on([ToolCall("1", "fetch")], "done", tools=[fetch]).run("q")
    assert len(heard.lines) == 1
    assert "in fetch" in heard.lines[0]


async def test_two_calls_that_raise_are_two_tracebacks(heard: Heard):
    @tool
    async def fetch(n: int) -> str:
        """Fetch."""
        raise LookupError(f"number {n}")

    calls = [ToolCall(str(n), "fetch", {"n": n}) for n in (1, 2)]
    await agent_on(calls, "done", tools=[fetch]).run("q")
    assert len(heard.lines) == 2


async def test_what_a_tool_says_to_the_model_on_purpose_is_not_logged(heard: Heard):
    @tool
    async def fetch(n: int) -> str:
        """Fetch."""
        raise ToolError("there is no such page")

    calls = [ToolCall("1", "fetch", {"n": 1}), ToolCall("2", "fetch", {"n": "x"}), ToolCall("3", "nope")]
    await agent_on(calls, "done", tools=[fetch]).run("q")
    assert heard.lines == []


async def test_a_tool_that_is_cancelled_or_times_out_is_not_logged(heard: Heard):
    @tool(timeout=0.01)
    async def slow() -> str:
        """Wait."""
        await asyncio.sleep(10)
        return "never"

    agent = agent_on([ToolCall("1", "slow")], "done", tools=[slow])
    await agent.run("q")
    agent = agent_on([ToolCall("1", "slow")], "done", tools=[slow])
    await agent.run("q", deadline=0.005)
    assert heard.lines == []


async def test_an_exception_that_cannot_say_what_it_is_is_logged_all_the_same(heard: Heard):
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @tool
    async def fetch() -> str:
        """Fetch."""
        raise Mute

    agent = agent_on([ToolCall("1", "fetch")], "done", tools=[fetch])
    assert (await agent.run("q")).text == "done"
    assert len(heard.lines) == 1


async def test_a_validator_that_raises_is_logged_like_a_tool(heard: Heard):
    def check(value: int) -> None:
        raise LookupError("bug")

    await agent_on([ToolCall("1", NAME, {"value": 1})]).run(
        "q", output=int, validate=check, max_output_retries=0
    )
    assert [line.split(" ", 2)[1] for line in heard.lines] == ["swink.tool", "swink"]


# A missing key


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A home without keys, and an environment without any of the variables that hold one."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN", "_BASE_URL")) or name.startswith(
            ("AWS_", "AZURE_", "OLLAMA_", "GOOGLE_", "CLOUDSDK_", "KUBERNETES_", "K_SERVICE", "GAE_")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    monkeypatch.setenv("SWINK_PROXY_URL", "https://proxy.example")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")


LOCAL = ("local", "ollama", "vllm", "llamacpp", "lmstudio", "sglang")
REMOTE = [name for name in PROVIDERS if name not in LOCAL]


@pytest.mark.usefixtures("no_keys")
def test_without_a_key_run_sync_raises_before_the_run_starts_and_names_the_variable_and_the_command(
    heard: Heard,
):
    agent, collector = Agent("anthropic:claude-sonnet-4-6"), EventCollector()
    agent.subscribe(collector)
    with pytest.raises(MissingKey) as caught:
        agent.run_sync("hi")
    assert "ANTHROPIC_API_KEY" in str(caught.value)
    assert "swink keys set anthropic" in str(caught.value)
    assert isinstance(caught.value, AuthError)
    assert isinstance(caught.value, MisuseError)
    assert collector.events == []
    assert list(agent.messages) == []
    assert not agent.is_running
    assert heard.lines == [], "who gets an exception needs no log"


@pytest.mark.usefixtures("no_keys")
@crossed(provider=REMOTE, way=["run", "stream", "result", "iterate"])
async def test_every_provider_that_needs_a_key_says_so_at_once(provider: str, way: str):
    agent, collector = Agent(f"{provider}:some-model"), EventCollector()
    agent.subscribe(collector)
    with pytest.raises(MissingKey) as caught:
        if way == "run":
            await agent.run("hi")
        elif way == "stream":
            async with agent.stream("hi"):
                pass
        elif way == "result":
            await agent.stream("hi").result()
        else:
            async for _ in agent.stream("hi"):
                pass
    said = str(caught.value)
    account = ACCOUNTS[provider]
    assert any(variable in said for variable in account.variables)
    assert f"swink keys set {account.key_name}" in said
    assert collector.events == []
    assert not agent.is_running


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize("provider", [name for name in LOCAL if name != "local"])
async def test_a_server_on_this_machine_needs_none(provider: str):
    agent = Agent(f"{provider}:some-model")
    check_key(agent)


@pytest.mark.usefixtures("no_keys")
async def test_an_empty_or_blank_variable_is_no_key(monkeypatch: pytest.MonkeyPatch):
    for blank in ("", "  "):
        monkeypatch.setenv("OPENAI_API_KEY", blank)
        with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
            await Agent("openai:gpt-5").run("hi")


@pytest.mark.usefixtures("no_keys")
async def test_a_key_may_come_from_the_options_the_callback_the_environment_or_the_store(
    monkeypatch: pytest.MonkeyPatch,
):
    from swink.models.keys import store

    monkeypatch.setattr(store, "open_keychain", lambda: None)
    model = "anthropic:claude-sonnet-4-6"
    check_key(Agent(model, options=StreamOptions(api_key="k")))
    check_key(Agent(model, get_api_key=lambda provider: "k"))
    agent = Agent(model)
    with pytest.raises(MissingKey):
        check_key(agent)
    store.store_key("anthropic", "k")
    check_key(agent)
    store.remove_key("anthropic")
    with pytest.raises(MissingKey):
        check_key(agent)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    check_key(agent)


@pytest.mark.usefixtures("no_keys")
async def test_a_callback_that_has_none_is_an_auth_error_of_the_result(heard: Heard):
    async def none(provider: str) -> None:
        return None

    result = await Agent("anthropic:claude-sonnet-4-6", get_api_key=none).run("hi")
    assert (result.stop_reason, result.error_kind) == ("error", "auth")
    with pytest.raises(AuthError, match="ANTHROPIC_API_KEY"):
        result.raise_for_error()
    assert len(heard.about_runs()) == 1


@pytest.mark.usefixtures("no_keys")
async def test_a_fallback_without_a_key_is_an_auth_error_of_the_result(heard: Heard):
    fallback = ("anthropic:claude-sonnet-4-6", AnthropicStreamFn())
    agent = agent_on(NetworkError("down"), fallback_models=[fallback])
    result = await agent.run("hi")
    assert (result.stop_reason, result.error_kind) == ("error", "auth")
    with pytest.raises(AuthError, match="swink keys set anthropic"):
        result.raise_for_error()
    assert len(heard.lines) == 1


@pytest.mark.usefixtures("no_keys")
async def test_a_model_without_a_key_from_a_later_turn_on_is_an_auth_error_of_the_result(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(catalog._registered, "anthropic", AnthropicStreamFn)

    @tool
    async def switch() -> None:
        agent.model = "anthropic:claude-sonnet-4-6"

    agent = agent_on([ToolCall("1", "switch")], "unused", tools=[switch])
    result = await agent.run("hi")
    assert (result.stop_reason, result.error_kind) == ("error", "auth")
    assert "ANTHROPIC_API_KEY" in (result.error or "")
    with pytest.raises(MissingKey):
        await agent.run("hi")


@pytest.mark.usefixtures("no_keys")
async def test_a_key_that_is_there_for_another_provider_does_not_hide_the_cause():
    error = AuthError("not yours")
    error.__cause__ = OSError("below")
    first = ScriptedModel([NetworkError("down")])
    agent = Agent(
        "first:m",
        stream_fn=first,
        retry=NO_RETRY,
        options=StreamOptions(api_key="k"),
        fallback_models=[("second:m", ScriptedModel([error]))],
    )
    result = await agent.run("hi")
    with pytest.raises(AuthError, match="was given for first") as caught:
        result.raise_for_error()
    assert isinstance(caught.value.__cause__, OSError)


async def test_what_the_http_client_raised_is_the_cause():
    agent = Agent(
        "openai:gpt-5", stream_fn=OpenAIStreamFn(base_url="http://127.0.0.1:1/v1", api_key=""), retry=NO_RETRY
    )
    result = await agent.run("hi")
    with pytest.raises(NetworkError) as caught:
        result.raise_for_error()
    assert isinstance(caught.value.__cause__, OSError)


def test_the_cause_is_no_part_of_an_error_event():
    raised = NetworkError("down", retry_after=2.0)
    raised.__cause__ = OSError("below")
    event = Error.of(raised)
    assert event == Error("down", "network", 2.0)
    assert event.cause is raised.__cause__
    assert "below" not in repr(event)
    assert msgspec.json.decode(msgspec.json.encode(event), type=Error) == event
    assert pickle.loads(pickle.dumps(event)) == event
    assert Error("down").cause is None


@pytest.mark.usefixtures("no_keys")
async def test_a_member_of_a_team_without_a_key_raises_what_to_do():
    with pytest.raises(MissingKey, match="swink keys set anthropic"):
        await sequential(agent_on("fine"), Agent("anthropic:claude-sonnet-4-6")).run("q")


@pytest.mark.usefixtures("no_keys")
async def test_a_key_that_is_set_later_is_found(monkeypatch: pytest.MonkeyPatch):
    agent = Agent("anthropic:claude-sonnet-4-6")
    with pytest.raises(AgentError):
        await agent.run("hi")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    check_key(agent)
