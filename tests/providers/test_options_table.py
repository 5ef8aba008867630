"""Every option, every adapter: it changes what is sent, or it is reported once, by name (S8)."""

import logging
from typing import Any

import pytest
from adapters import ADAPTERS, KEY, AdapterCase
from loopback import WEATHER, MemoryClient, read

from swink.providers.notices import ALL_OPTIONS
from swink.providers.openai import PRESETS, OpenAIStreamFn
from swink.stream import StreamOptions, Timeout

OTHERS: dict[str, Any] = {
    "temperature": 0.25,
    "max_tokens": 4321,
    "api_key": "another-key-1234",
    "session_id": "session-1",
    "tool_choice": "weather",
    "cache": False,
    "extra": {"acme": 1},
    "top_p": 0.5,
    "stop": ("END",),
    "seed": 7,
    "service_tier": "auto",
    "verbosity": "low",
    "parallel_tool_calls": False,
}
BEHAVIOUR: dict[str, Any] = {
    "timeout": Timeout(connect=7),
    "on_raw_payload": print,
    "http": None,
    "transport": "auto",
    "headers": {},
}
"""Options that show in no request: tested where they act."""

FUNCTIONS: dict[str, Any] = {
    **{
        name: lambda adapter=adapter: adapter.make("https://p.example", KEY)
        for name, adapter in ADAPTERS.items()
    },
    **{name: lambda name=name: OpenAIStreamFn(preset=name, api_key=KEY) for name in PRESETS},
}


def adapter_of(name: str) -> AdapterCase:
    return ADAPTERS.get(name, ADAPTERS["openai"])


async def sent(fn: Any, name: str, **options: Any) -> tuple[dict[str, str], Any]:
    client = MemoryClient(b"")
    await read(fn, adapter_of(name).model, tools=[WEATHER], options=StreamOptions(http=client, **options))
    headers = {key: value for key, value in client.requests[0].headers.items() if key != "x-amz-date"}
    return headers, client.sent


def test_every_option_is_in_one_of_the_tables():
    assert {*OTHERS, *BEHAVIOUR} == ALL_OPTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_an_option_is_sent_or_reported_once(name: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "swink.providers")
    fn = FUNCTIONS[name]()
    plain = await sent(fn, name)
    assert [record.getMessage() for record in caplog.records] == []
    for option, value in OTHERS.items():
        for _ in range(2):
            chosen = await sent(fn, name, **{option: value})
        reports = [
            record.getMessage() for record in caplog.records if f"option '{option}'" in record.getMessage()
        ]
        assert (chosen != plain) != bool(reports) or (chosen != plain and option == "tool_choice"), option
        assert len(reports) <= 1, option
        if option not in fn.honours:
            assert reports, option


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_a_protocol_that_no_adapter_speaks_is_reported_once(
    name: str, caplog: pytest.LogCaptureFixture
):
    fn = FUNCTIONS[name]()
    for transport in ("sse", "auto", "websocket", "websocket"):
        await sent(fn, name, transport=transport)
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == [
        "option 'transport' is ignored"
    ]
