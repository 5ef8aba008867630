"""What a request costs as a conversation grows: CPU from the call of a stream function to the bytes sent.

python benchmarks/requests.py [--rounds 5] [provider …]

Each turn adds a question, a tool call and its result to one history, as an agent does; a request costs what
is new in it where the ratio of turn 385 to turn 20 stays near 1. The last row is a whole turn of an agent
with the adapter `openai`: request, reply and tool, from one request to the next.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

from swink import Agent
from swink.errors import NetworkError
from swink.messages import AssistantMessage, ModelSpec, Text, ToolCall, ToolResultMessage, UserMessage
from swink.messages.history import History
from swink.models.catalog import stream_fn_for
from swink.models.keys.accounts import ACCOUNTS
from swink.stream import LlmContext, StreamOptions
from swink.tools import tool

EARLY, LATE = 20, 385
AROUND = 10
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4.1",
    "openai-responses": "gpt-5",
    "xai": "grok-4",
    "mistral": "mistral-large-latest",
    "deepseek": "deepseek-chat",
    "gemini": "gemini-2.5-flash",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama": "qwen3:8b",
    "proxy": "anthropic:claude-sonnet-4-5",
}
SETTINGS = {
    "AWS_REGION": "us-east-1",
    "SWINK_PROXY_URL": "https://proxy.example",
    **{name: "a-key-for-the-benchmark" for account in ACCOUNTS.values() for name in account.variables},
}


class Stopwatch:
    """An HTTP client that notes when a request arrives, and sends nothing."""

    at = 0.0
    size = 0

    async def send(self, request: Any, timeout: Any) -> Any:
        self.at, self.size = time.process_time(), len(request.body)
        raise NetworkError("measured")

    async def aclose(self) -> None:
        pass


@tool
async def weather(city: str) -> str:
    """Current weather."""
    return city


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("providers", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"| provider | turn {EARLY}, µs | turn {LATE}, µs | ratio | kB at turn {LATE} |")
    print("|---|---:|---:|---:|---:|")
    for name in options.providers or MODELS:
        rows = [asyncio.run(measure(name)) for _ in range(options.rounds)]
        early, late, size = (statistics.median(row[at] for row in rows) for at in range(3))
        print(f"| {name} | {early:.0f} | {late:.0f} | {late / early:.2f} | {size / 1e3:.0f} |")
    rows = [asyncio.run(measure_turns()) for _ in range(options.rounds)]
    early, late, size = (statistics.median(row[at] for row in rows) for at in range(3))
    print(f"| a whole turn | {early:.0f} | {late:.0f} | {late / early:.2f} | {size / 1e3:.0f} |")


async def measure(provider: str) -> tuple[float, float, float]:
    """CPU microseconds of a request around the early and the late turn, and the bytes of the last one."""
    model = ModelSpec(provider, MODELS[provider])
    stream_fn = made(model)
    history = History()
    watch = Stopwatch()
    asked = StreamOptions(http=watch)
    costs: list[float] = []
    gc.collect()
    for number in range(LATE + AROUND):
        id = f"call{number:05d}"
        history.append(UserMessage(f"Question {number}: " + "what is the weather like there? " * 6))
        call = ToolCall(id, "weather", {"city": f"City {number}"})
        history.append(AssistantMessage([Text("Let me look."), call], provider, model.model_id, "tool_use"))
        history.append(ToolResultMessage(id, "weather", "18 degrees and a light wind from the west. " * 10))
        context = LlmContext("Be brief.", history.snapshot(), [weather])
        began = time.process_time()
        async for _ in stream_fn(model, context, asked):
            pass
        costs.append((watch.at - began) * 1e6)
    return (
        statistics.median(costs[EARLY - AROUND : EARLY + AROUND]),
        statistics.median(costs[LATE - AROUND : LATE + AROUND]),
        watch.size,
    )


class Caller:
    """An HTTP client whose server calls the tool in every reply, and notes when it is asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.size = 0

    async def send(self, request: Any, timeout: Any) -> Any:
        self.asked.append(time.process_time())
        self.size = len(request.body)
        number = len(self.asked)
        call = {"index": 0, "id": f"call{number:05d}", "function": {"name": "weather", "arguments": "{}"}}
        delta: dict[str, Any] = {"content": "Done."}
        if number < LATE + AROUND:
            call["function"]["arguments"] = json.dumps({"city": f"City {number}"})
            delta = {"tool_calls": [call]}
        reason = "tool_calls" if "tool_calls" in delta else "stop"
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return Answer(f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n".encode())

    async def aclose(self) -> None:
        pass


class Answer:
    """A reply in one piece."""

    status = 200
    headers = {"content-type": "text/event-stream"}

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        pass


async def measure_turns() -> tuple[float, float, float]:
    """CPU microseconds of a turn around the early and the late one, and the bytes of the last request."""
    caller = Caller()
    model = ModelSpec("openai", MODELS["openai"])
    agent = Agent(model, stream_fn=made(model), tools=[weather], options=StreamOptions(http=caller))
    gc.collect()
    (await agent.run("Look at all cities.")).raise_for_error()
    turns = [(after - before) * 1e6 for before, after in pairwise(caller.asked)]
    return (
        statistics.median(turns[EARLY - AROUND : EARLY + AROUND]),
        statistics.median(turns[LATE - AROUND : LATE + AROUND]),
        caller.size,
    )


def made(model: ModelSpec) -> Any:
    """A stream function with a key that goes nowhere."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    return stream_fn_for(model)


if __name__ == "__main__":
    main()
