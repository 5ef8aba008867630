"""A key and headers given for one provider are sent to that one and to no other, whichever way a run gets there."""

from pathlib import Path
from typing import Any

import pytest

from swink import Agent, ExponentialBackoff, ModelSpec, NetworkError, StreamOptions
from swink.agent.config import AgentContext, AgentLoopConfig
from swink.agent.functions import agent_loop
from swink.errors import MissingKey
from swink.messages import UserMessage
from swink.providers.openai import OpenAIStreamFn
from swink.stream import Done, Error, Start, TextDelta, TextEnd, TextStart
from swink.stream.wrappers import cached, fallback, rate_limited, recorded
from swink.teams import agent_tool
from swink.teams.member import start_over

KEY = "zq-key-of-the-first-7f3e9b1c"
HEADERS = {"x-gateway-key": "zq-header-of-the-first-5d2a"}
NO_RETRY = ExponentialBackoff(max_attempts=1)


class Spy:
    """A stream function that notes which model got which key, and fails as often as it is told to."""

    def __init__(self, failures: int = 0, base_url: str | None = None) -> None:
        self.seen: list[tuple[str, str | None]] = []
        self.failures = failures
        if base_url is not None:
            self.base_url = base_url

    async def __call__(self, model: Any, context: Any, options: StreamOptions) -> Any:
        assert options.headers == (HEADERS if options.api_key == KEY else {})
        self.seen.append((str(model), options.api_key))
        yield Start()
        if self.failures:
            self.failures -= 1
            yield Error("down", "network")
            return
        yield TextStart(0)
        yield TextDelta(0, "ok")
        yield TextEnd(0)
        yield Done("stop")


def agent(model: str, spy: Spy, **keywords: Any) -> Agent:
    return Agent(
        model, stream_fn=spy, retry=NO_RETRY, options=StreamOptions(api_key=KEY, headers=HEADERS), **keywords
    )


async def test_a_fallback_of_another_provider_does_not_get_the_key():
    spy = Spy(2)
    result = await agent("first:a", spy, fallback_models=["second:b", ("third:c", spy)]).run("hi")
    assert result.text == "ok"
    assert spy.seen == [("first:a", KEY), ("second:b", None), ("third:c", None)]


async def test_a_fallback_of_the_same_provider_gets_it():
    spy = Spy(1)
    await agent("first:a", spy, fallback_models=["first:b"]).run("hi")
    assert spy.seen == [("first:a", KEY), ("first:b", KEY)]


async def test_the_two_apis_of_openai_share_a_key():
    spy = Spy(1)
    await agent("openai-responses:a", spy, fallback_models=[("openai:b", spy)]).run("hi")
    assert spy.seen == [("openai-responses:a", KEY), ("openai:b", KEY)]


async def test_another_model_does_not_get_the_key_and_the_first_has_it_again_after_a_reset():
    spy = Spy()
    talker = agent("first:a", spy)
    await talker.run("one")
    talker.model = "second:b"
    await talker.run("two")
    talker.thinking_level = "high"
    await talker.run("three")
    talker.reset()
    await talker.run("four")
    assert spy.seen == [("first:a", KEY), ("second:b", None), ("second:b", None), ("first:a", KEY)]


async def test_a_provider_without_a_key_of_its_own_does_not_get_the_one_of_another():
    spy = Spy(1)

    async def own_key(provider: str) -> str | None:
        return {"third": "key-of-the-third"}.get(provider)

    talker = agent("first:a", spy, fallback_models=["second:b"], get_api_key=own_key)
    await talker.run("hi")
    talker.model = "third:c"
    await talker.run("hi")
    assert spy.seen == [("first:a", KEY), ("second:b", None), ("third:c", "key-of-the-third")]


async def test_structured_output_and_copies_of_an_agent_keep_the_key_where_it_belongs():
    spy = Spy()
    talker = agent("first:a", spy)
    talker.model = "second:b"
    await talker.run("hi", output=int, max_output_retries=0)
    copy = start_over(talker)
    assert isinstance(copy, Agent)
    await copy.run("hi")
    copy.model = "first:a"
    await copy.run("hi")
    assert agent_tool(talker, "other", "Another.").name == "other"
    assert spy.seen == [("second:b", None), ("second:b", None), ("first:a", KEY)]


async def test_the_bare_loop_keeps_it_too():
    spy = Spy(1)
    config = AgentLoopConfig(
        model=ModelSpec("first", "a"),
        stream_fn=spy,
        options=StreamOptions(api_key=KEY, headers=HEADERS),
        retry=NO_RETRY,
        fallbacks=[(ModelSpec("second", "b"), spy)],
    )
    async with agent_loop([UserMessage("hi")], AgentContext(), config) as run:
        async for _ in run:
            pass
    config.model = ModelSpec("third", "c")
    async with agent_loop([UserMessage("hi")], AgentContext(), config) as run:
        async for _ in run:
            pass
    assert spy.seen == [("first:a", KEY), ("second:b", None), ("third:c", None)]


async def test_a_server_elsewhere_under_the_same_name_does_not_get_it():
    first, other, unknown = Spy(1, "https://api.first.example"), Spy(1, "https://elsewhere.example"), Spy()
    await agent("first:a", first, fallback_models=[("first:b", other), ("first:c", unknown)]).run("hi")
    assert (first.seen, other.seen, unknown.seen) == (
        [("first:a", KEY)],
        [("first:b", None)],
        [("first:c", KEY)],
    )


async def test_the_agents_own_server_is_asked_again_after_another_provider_was(
    monkeypatch: pytest.MonkeyPatch,
):
    """The key of a gateway went to the provider whose name its models bear."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    spy = Spy(1, "https://gateway.example")
    talker = agent("openai:a", spy, fallback_models=["openai:b"])
    await talker.run("hi")
    talker.model = "anthropic:c"
    talker.model = "openai:d"
    await talker.run("hi")
    talker.model = "anthropic:c"
    talker.reset()
    await talker.run("hi")
    assert spy.seen == [("openai:a", KEY), ("openai:b", KEY), ("openai:d", KEY), ("openai:a", KEY)]


async def test_without_a_key_of_its_own_another_provider_is_refused_before_the_run_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    talker = Agent("openai:gpt-5", options=StreamOptions(api_key=KEY, headers=HEADERS), retry=NO_RETRY)
    talker.model = "groq:llama-3.3-70b-versatile"
    with pytest.raises(MissingKey, match="set GROQ_API_KEY, or run: swink keys set groq") as raised:
        await talker.run("hi")
    assert KEY not in str(raised.value)
    assert not talker.messages


async def test_a_fallback_without_the_key_says_where_one_comes_from_and_why_it_was_not_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    model = "groq:llama-3.3-70b-versatile"
    spy = Spy(1, "https://api.openai.com/v1")
    result = await agent("openai:gpt-5", spy, fallback_models=[(model, OpenAIStreamFn(preset="groq"))]).run(
        "hi"
    )
    assert result.error_kind == "auth"
    assert "GROQ_API_KEY" in str(result.error)
    assert f"was given for openai and is not sent to {model}" in str(result.error)
    assert KEY not in str(result.error)


async def test_the_fallback_wrapper_gives_the_key_to_the_first_and_to_its_own_server_alone(tmp_path: Any):
    def chain(*spies: Spy) -> Any:
        wrapped = [recorded(cached(rate_limited(spy), tmp_path / "c"), tmp_path / "r") for spy in spies]
        return fallback(*wrapped)

    first, again, other, unknown = (
        Spy(1, "https://a.example/v1"),
        Spy(1, "https://A.example:443/v2"),
        Spy(1, "https://b.example/v1"),
        Spy(),
    )
    talker = Agent(
        "first:a",
        stream_fn=chain(first, again, other, unknown),
        options=StreamOptions(api_key=KEY, headers=HEADERS),
        retry=NO_RETRY,
    )
    assert (await talker.run("hi")).text == "ok"
    assert [spy.seen[0][1] for spy in (first, again, other, unknown)] == [KEY, KEY, None, None]


async def test_a_callers_own_server_under_a_name_of_its_own_gets_the_key_given_with_it():
    spy = Spy()
    await agent("myco:model", spy).run("hi")
    assert spy.seen == [("myco:model", KEY)]
    assert OpenAIStreamFn(base_url="https://myco.example/v1").base_url == "https://myco.example/v1"


async def test_a_wrapper_has_the_time_limits_and_the_address_of_what_it_wraps(tmp_path: Any):
    inner = OpenAIStreamFn(base_url="http://127.0.0.1:9/v1")
    for wrapper in (
        recorded(inner, tmp_path / "r"),
        cached(inner, tmp_path / "c"),
        rate_limited(inner),
        fallback(inner, Spy()),
    ):
        assert getattr(wrapper, "timeout", None) == inner.timeout
        assert getattr(wrapper, "base_url", None) == "http://127.0.0.1:9/v1"


async def test_what_fails_without_a_key_is_not_blamed_on_one():
    class Broken(Spy):
        async def __call__(self, model: Any, context: Any, options: StreamOptions) -> Any:
            raise NetworkError("down")
            yield Start()

    result = await agent("first:a", Broken()).run("hi")
    assert "get_api_key" not in str(result.error)
