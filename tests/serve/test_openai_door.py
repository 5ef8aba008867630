"""An agent behind the OpenAI door, asked by OpenAI's own package over a socket."""

import asyncio
import base64
import json
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import BaseModel
from tests.counts import crossed, left_to_more
from tests.later import Later
from tests.serve.webscenes import ask_node

from swink import Agent, ExponentialBackoff, tool
from swink.errors import ContextWindowOverflow, ModelThrottled
from swink.memory import MemoryStore
from swink.messages import Image, Text, Thinking, ToolCall, Usage
from swink.serve.agentapp import AgentApp, agent_app
from swink.serve.asgi import serve_app
from swink.serve.hosting import Caller, ServeLimits
from swink.serve.web import WebRequest
from swink.stream import Error, Start, TextDelta, TextStart
from swink.teams import agent_tool
from swink.testing import ScriptedModel

openai, uvicorn = Later("openai"), Later("uvicorn")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
SCHEMA = {"type": "object", "properties": {"door": {"type": "integer"}}, "required": ["door"]}
DOOR: Any = {"name": "open_door", "description": "Open a door.", "parameters": SCHEMA}
CHAT_TOOL: Any = {"type": "function", "function": DOOR}
TOOL: Any = {"type": "function", "strict": False, **DOOR}
CALL = ToolCall("call_1", "open_door", {"door": 2})
HELLO: Any = [{"role": "user", "content": "Hello"}]


class City(BaseModel):
    name: str
    people: int


class Served:
    """A served agent, its model, and OpenAI's client."""

    def __init__(self, url: str, app: AgentApp, model: ScriptedModel, client: Any) -> None:
        self.url = url
        self.app = app
        self.model = model
        self.client = client

    async def chat(self, streamed: bool = False, **asked: Any) -> Any:
        """A completion, whole or put together by the package from its chunks."""
        asked = {"model": "agent", "messages": HELLO, **asked}
        if not streamed:
            return await self.client.chat.completions.create(**asked)
        async with self.client.chat.completions.stream(**asked) as stream:
            return await stream.get_final_completion()

    async def respond(self, streamed: bool = False, **asked: Any) -> Any:
        """A response, whole or put together by the package from its events."""
        asked = {"model": "agent", "input": "Hello", **asked}
        if not streamed:
            return await self.client.responses.create(**asked)
        async with self.client.responses.stream(**asked) as stream:
            return await stream.get_final_response()

    def asked(self, at: int = -1) -> list[Any]:
        """What the model was told: the texts of the messages."""
        return [(message.role, message.text) for message in self.model.calls[at].messages]


@asynccontextmanager
async def serving(
    replies: Any,
    *,
    limits: ServeLimits = ServeLimits(),
    authorize: Any = None,
    key: str = "none",
    **options: Any,
) -> AsyncGenerator[Served]:
    model = replies if callable(replies) else ScriptedModel(replies, usage=Usage(input=3, output=5))

    def make(request: Any) -> Agent:
        return Agent("test:m", stream_fn=model, **options)

    app = agent_app(
        make, store=MemoryStore(), protocols=("native", "openai"), limits=limits, authorize=authorize
    )
    async with serve_app(app) as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
        async with client:
            yield Served(url, app, model, client)
        await app.aclose()


TWICE = ExponentialBackoff(max_attempts=2, base_delay=0.01)
ONCE = ExponentialBackoff(max_attempts=1, base_delay=0.01)
both = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


# What is refused, and what fails


@both
async def test_a_model_that_fails_before_it_says_anything_is_a_status(streamed: bool):
    async with serving([ContextWindowOverflow("the input is too long")] * 4) as served:
        with pytest.raises(openai.BadRequestError) as refused:
            await served.chat(streamed)
        assert refused.value.code == "context_length_exceeded"
        with pytest.raises(openai.BadRequestError, match="too long"):
            await served.respond(streamed)


async def test_a_client_does_not_ask_again_by_itself_after_a_run_failed():
    async with serving([ModelThrottled("slow down")], retry=ONCE) as served:
        client = served.client.with_options(max_retries=2)
        with pytest.raises(openai.RateLimitError, match="slow down"):
            await client.chat.completions.create(model="agent", messages=HELLO)
        assert len(served.model.calls) == 1


@both
async def test_a_reply_that_breaks_off_fails_and_says_why(streamed: bool):
    broken = [Start(), TextStart(0), TextDelta(0, "The sun"), Error("the connection was lost", "network")]
    async with serving([broken, broken], retry=ONCE) as served:
        with pytest.raises(openai.APIError, match="the connection was lost"):
            await served.chat(streamed)
        if streamed:
            events = [event async for event in await stream_of(served)]
            assert events[-1].type == "response.failed"
            assert "the connection was lost" in events[-1].response.error.message


async def test_a_second_attempt_that_differs_ends_the_stream_with_an_error():
    broken = [Start(), TextStart(0), TextDelta(0, "The sun"), Error("the connection was lost", "network")]
    async with serving([broken, "The moon"], retry=TWICE) as served:
        with pytest.raises(openai.APIError, match="ask again"):
            await served.chat(streamed=True)


async def test_a_second_attempt_that_differs_is_the_whole_reply():
    broken = [Start(), TextStart(0), TextDelta(0, "The sun"), Error("the connection was lost", "network")]
    async with serving([broken, "The moon"], retry=TWICE) as served:
        completion = await served.chat()
        assert completion.choices[0].message.content == "The moon"


@crossed(
    path=["/v1/chat/completions", "/v1/responses"],
    body=[b"{", b"[]", b"7", b'{"messages": 7, "input": 7}', b"\xff"],
)
async def test_a_body_that_is_no_request_gets_an_error_in_the_form_of_openai(path: str, body: bytes):
    async with serving([]) as served, aiohttp.ClientSession() as session:
        sent = session.post(served.url + path, data=body, headers={"content-type": "application/json"})
        async with sent as answer:
            assert answer.status in (400, 422)
            error = (await answer.json())["error"]
            assert error["type"] == "invalid_request_error"
            assert error["message"]


async def test_a_caller_who_is_not_let_in_is_told_in_the_form_of_openai():
    def authorize(request: WebRequest) -> str | None:
        return "ada" if request.token == "right" else None

    async with serving(["Hello Ada."], authorize=authorize, key="wrong") as served:
        with pytest.raises(openai.AuthenticationError) as refused:
            await served.chat()
        assert refused.value.body["type"] == "authentication_error"
        served.client.api_key = "right"
        assert (await served.chat()).choices[0].message.content == "Hello Ada."


async def test_responses_of_another_caller_are_not_there():
    async with serving(["Hello Ada."], authorize=lambda request: request.token) as served:
        served.client.api_key = "ada"
        first = await served.respond()
        served.client.api_key = "bob"
        with pytest.raises(openai.NotFoundError):
            await served.respond(previous_response_id=first.id)


@pytest.mark.parametrize(
    "id", ["resp_1", "resp_none_3", "chatcmpl-1", "resp__", "resp_x_²", "resp_../../x_1"]
)
async def test_a_response_that_is_not_stored_cannot_be_continued(id: str):
    async with serving([]) as served:
        with pytest.raises((openai.NotFoundError, openai.BadRequestError)):
            await served.respond(previous_response_id=id)


async def test_a_stream_ends_with_an_error_when_the_server_shuts_down():
    async with serving(Endless(), limits=ServeLimits(shutdown_seconds=0.05)) as served:
        stream = await served.client.chat.completions.create(model="m", messages=HELLO, stream=True)
        await served.model.has_begun.wait()
        _, failed = await asyncio.gather(served.app.aclose(), last_of(stream), return_exceptions=True)
        assert isinstance(failed, openai.APIError)
        assert "shutting down" in str(failed)


async def last_of(stream: Any) -> None:
    async for _ in stream:
        pass


# What is said


async def test_the_agent_is_the_one_model_there_is():
    async with serving([]) as served:
        assert [model.id async for model in served.client.models.list()] == ["agent"]
        assert (await served.client.models.retrieve("agent")).id == "agent"
        with pytest.raises(openai.NotFoundError, match="the model here is agent"):
            await served.client.models.retrieve("gpt-5")


@both
async def test_text_and_thinking_and_usage_reach_the_client(streamed: bool):
    async with serving([[Thinking("hm"), "Good ", "day."]] * 2) as served:
        completion = await served.chat(
            streamed, **({"stream_options": {"include_usage": True}} if streamed else {})
        )
        (choice,) = completion.choices
        assert (choice.message.content, choice.finish_reason) == ("Good day.", "stop")
        assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (3, 5)
        response = await served.respond(streamed)
        assert [item.type for item in response.output] == ["reasoning", "message"]
        assert (response.output[0].summary[0].text, response.output_text) == ("hm", "Good day.")
        assert response.usage.total_tokens == 8


async def test_thinking_is_streamed_under_the_name_that_clients_read():
    async with serving([[Thinking("hm"), "Good day."]]) as served:
        stream = await served.client.chat.completions.create(model="m", messages=HELLO, stream=True)
        chunks = [chunk async for chunk in stream]
        assert [chunk.choices[0].delta.reasoning_content for chunk in chunks[1:2]] == ["hm"]
        assert not any(chunk.usage for chunk in chunks)


@both
async def test_parallel_tools_of_the_agent_run_and_stay_inside(streamed: bool):
    ran: list[int] = []

    @tool
    async def look(room: int) -> str:
        """Look into a room."""
        ran.append(room)
        return f"the secret of room {room}"

    calls = [ToolCall(f"call_{room}", "look", {"room": room}) for room in (1, 2, 3)]
    async with serving([["Looking.", *calls], "Three rooms."] * 2, tools=[look]) as served:
        completion = await served.chat(streamed)
        assert completion.choices[0].message.content == "Looking.\n\nThree rooms."
        assert not completion.choices[0].message.tool_calls
        response = await served.respond(streamed)
        assert [item.content[0].text for item in response.output] == ["Looking.", "Three rooms."]
        assert sorted(ran) == [1, 1, 2, 2, 3, 3]


@both
async def test_what_a_sub_agent_says_stays_inside(streamed: bool):
    helper = Agent("test:m", stream_fn=ScriptedModel(["between us"] * 2), name="helper")
    inside = agent_tool(helper, name="ask_helper", description="Ask the helper.")
    replies = [ToolCall("call_1", "ask_helper", {"prompt": "?"}), "It knows."] * 2
    async with serving(replies, tools=[inside]) as served:
        assert (await served.chat(streamed)).choices[0].message.content == "It knows."
        assert (await served.respond(streamed)).output_text == "It knows."


# The client's own tools


@both
async def test_a_tool_of_the_client_is_handed_back_to_it_and_the_agent_goes_on_with_its_result(
    streamed: bool,
):
    async with serving([["One moment.", CALL], "It is open."]) as served:
        completion = await served.chat(streamed, tools=[CHAT_TOOL])
        (choice,) = completion.choices
        (call,) = choice.message.tool_calls
        assert choice.finish_reason == "tool_calls"
        assert (call.id, call.function.name, json.loads(call.function.arguments)) == (
            "call_1",
            "open_door",
            {"door": 2},
        )
        said = {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [call.model_dump(include={"id", "type", "function"})],
        }
        result = {"role": "tool", "tool_call_id": call.id, "content": "creaks"}
        completion = await served.chat(streamed, tools=[CHAT_TOOL], messages=[*HELLO, said, result])
        assert completion.choices[0].message.content == "It is open."
        assert served.asked() == [("user", "Hello"), ("assistant", "One moment."), ("tool_result", "creaks")]


@both
async def test_a_stored_response_goes_on_with_the_results_of_the_clients_tools(streamed: bool):
    second = ToolCall("call_2", "open_door", {"door": 3})
    async with serving([["One moment.", CALL, second], "Both are open."]) as served:
        response = await served.respond(streamed, tools=[TOOL])
        calls = [item for item in response.output if item.type == "function_call"]
        assert [call.call_id for call in calls] == ["call_1", "call_2"]
        results: Any = [
            {"type": "function_call_output", "call_id": call.call_id, "output": f"creaks {at}"}
            for at, call in enumerate(calls)
        ]
        response = await served.respond(
            streamed, tools=[TOOL], input=results, previous_response_id=response.id
        )
        assert response.output_text == "Both are open."
        assert [text for role, text in served.asked() if role == "tool_result"] == ["creaks 0", "creaks 1"]


async def test_a_tool_of_the_client_may_not_have_the_name_of_one_of_the_agents():
    @tool
    async def open_door(door: int) -> str:
        """Open a door."""
        return "open"

    async with serving([], tools=[open_door]) as served:
        with pytest.raises(openai.BadRequestError, match="another name"):
            await served.chat(tools=[CHAT_TOOL])


@both
async def test_a_call_that_needs_approval_is_refused_and_the_agent_is_told_why(streamed: bool):
    ran: list[int] = []

    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        """Pay money."""
        ran.append(amount)
        return "paid"

    async with serving([ToolCall("call_1", "pay", {"amount": 7}), "I may not."] * 2, tools=[pay]) as served:
        assert (await served.chat(streamed)).choices[0].message.content == "I may not."
        assert (await served.respond(streamed)).output_text == "I may not."
        assert not ran
        assert "nobody can be asked for an approval here" in served.asked()[-1][1]


async def test_an_approval_of_the_applications_own_still_counts():
    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        """Pay money."""
        return "paid"

    async def approve(request: Any) -> bool:
        return True

    async with serving(
        [ToolCall("call_1", "pay", {"amount": 7}), "Done."], tools=[pay], approve=approve
    ) as served:
        await served.chat()
        assert served.asked()[-1] == ("tool_result", "paid")


# Structured output, images, options


FORMAT: Any = {"type": "json_schema", "name": "city", "schema": City.model_json_schema()}
CHAT_FORMAT: Any = {
    "type": "json_schema",
    "json_schema": {"name": "city", "schema": City.model_json_schema()},
}


@both
async def test_a_structured_output_is_the_text_of_the_reply(streamed: bool):
    said = ["Let me see.", Text('{"name": "Oslo", "people": 700000}')]
    async with serving([said, said]) as served:
        completion = await served.chat(streamed, response_format=CHAT_FORMAT if not streamed else City)
        assert City.model_validate_json(completion.choices[0].message.content) == City(
            name="Oslo", people=700_000
        )
        asked: Any = {"text_format": City} if streamed else {"text": {"format": FORMAT}}
        response = await served.respond(streamed, **asked)
        assert City.model_validate_json(response.output_text) == City(name="Oslo", people=700_000)


@both
async def test_a_structured_output_of_the_agents_own_is_said_although_it_is_a_call(streamed: bool):
    call = ToolCall("call_1", "final_output", {"name": "Oslo", "people": 700_000})
    async with serving([["Let me see.", call], call], output=City) as served:
        completion = await served.chat(streamed)
        before, json_text = completion.choices[0].message.content.split("\n\n")
        assert before == "Let me see."
        assert City.model_validate_json(json_text) == City(name="Oslo", people=700_000)
        response = await served.respond(streamed)
        assert City.model_validate_json(response.output_text) == City(name="Oslo", people=700_000)


async def test_a_structured_output_that_the_model_never_gives_is_an_error():
    async with serving(["no", "no", "no", "no"]) as served:
        with pytest.raises(openai.InternalServerError):
            await served.chat(response_format=CHAT_FORMAT)


async def test_images_reach_the_model_by_both_protocols():
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    async with serving(["A cat.", "A cat."]) as served:
        await served.chat(
            messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
        )
        shown: Any = [{"type": "input_image", "image_url": url, "detail": "auto"}]
        await served.respond(input=[{"role": "user", "content": shown}])
        for call in served.model.calls:
            assert call.messages[0].content == (Image.from_bytes(PNG),)


async def test_the_clients_system_prompt_and_options_go_with_those_of_the_agent():
    async with serving(["Hello."] * 2, system_prompt="You are a porter.") as served:
        await served.chat(messages=[{"role": "system", "content": "Be brief."}, *HELLO], temperature=0.2)
        await served.respond(instructions="Be brief.", temperature=0.2, max_output_tokens=9)
        for call, options in zip(served.model.calls, served.model.options, strict=True):
            assert call.system_prompt == "You are a porter.\n\nBe brief."
            assert options.temperature == 0.2
        assert served.model.options[-1].max_tokens == 9


async def test_fields_that_change_nothing_are_told_once_in_the_log(caplog: pytest.LogCaptureFixture):
    async with serving(["Hello."] * 2) as served:
        for _ in range(2):
            await served.chat(logit_bias={"50256": -100})
        told = [record.getMessage() for record in caplog.records if "ignores" in record.getMessage()]
        assert told == ["the OpenAI door ignores these fields of requests: 'logit_bias'"]


# Histories


async def test_chat_completions_know_nothing_but_the_clients_history():
    async with serving(["One.", "Two."]) as served:
        await served.chat()
        history: Any = [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]
        await served.chat(messages=[*history, {"role": "user", "content": "C"}])
        assert served.asked() == [("user", "A"), ("assistant", "B"), ("user", "C")]
        assert not await served.app.host.list(Caller("local"))


@both
async def test_a_response_continues_the_stored_conversation(streamed: bool):
    async with serving(["Hello Ada.", "Ada.", "Tea."]) as served:
        first = await served.respond(streamed, input="I am Ada.")
        second = await served.respond(streamed, input="Who am I?", previous_response_id=first.id)
        await served.respond(streamed, input="What do I drink?", previous_response_id=second.id)
        assert [text for _, text in served.asked()] == [
            "I am Ada.",
            "Hello Ada.",
            "Who am I?",
            "Ada.",
            "What do I drink?",
        ]
        assert len(await served.app.host.list(Caller("local"))) == 1


async def test_an_earlier_response_can_be_continued_another_way():
    async with serving(["Hello Ada.", "Ada.", "Tea.", "Coffee."]) as served:
        first = await served.respond(input="I am Ada.")
        second = await served.respond(input="Who am I?", previous_response_id=first.id)
        other = await served.respond(input="What do I drink?", previous_response_id=first.id)
        assert [text for _, text in served.asked()] == ["I am Ada.", "Hello Ada.", "What do I drink?"]
        await served.respond(input="Sure?", previous_response_id=other.id)
        assert [text for _, text in served.asked()][2:] == ["What do I drink?", "Tea.", "Sure?"]
        assert second.output_text == "Ada."


async def test_a_response_that_begins_with_a_history_can_be_continued():
    history: Any = [
        {"role": "user", "content": "A"},
        {"role": "assistant", "content": "B"},
        {"role": "user", "content": "C"},
    ]
    async with serving(["D", "F"]) as served:
        first = await served.respond(input=history)
        assert first.output_text == "D"
        await served.respond(input="E", previous_response_id=first.id)
        assert [text for _, text in served.asked()] == ["A", "B", "C", "D", "E"]


async def test_a_response_that_is_not_to_be_stored_is_not():
    async with serving(["Hello."]) as served:
        response = await served.respond(store=False)
        assert not await served.app.host.list(Caller("local"))
        with pytest.raises(openai.NotFoundError, match="send the whole history"):
            await served.respond(previous_response_id=response.id)


async def test_a_result_for_a_call_that_does_not_wait_is_refused():
    async with serving(["Hello."]) as served:
        first = await served.respond()
        result: Any = [{"type": "function_call_output", "call_id": "call_9", "output": "42"}]
        with pytest.raises(openai.BadRequestError, match="call_9"):
            await served.respond(input=result, tools=[TOOL], previous_response_id=first.id)


# Clients that leave


@both
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_client_that_leaves_ends_its_run(streamed: bool, path: str):
    async with serving(Endless()) as served:
        await leave(served.url + path, served.model, streamed)


@both
async def test_a_client_that_leaves_ends_its_run_under_a_server_that_cancels_nothing(streamed: bool):
    model = Endless()
    app = agent_app(
        lambda request: Agent("test:m", stream_fn=model), store=MemoryStore(), protocols=("openai",)
    )
    async with on_uvicorn(app) as url:
        await leave(f"{url}/v1/chat/completions", model, streamed)


async def leave(url: str, model: Any, streamed: bool) -> None:
    """Ask, leave once the model has begun, and wait until it is told to stop."""
    async with aiohttp.ClientSession() as session:
        body = {"model": "agent", "messages": HELLO, "input": "Hello", "stream": streamed}
        asking = asyncio.create_task(session.post(url, json=body))
        await model.has_begun.wait()
        if streamed:
            (await asking).close()
        else:
            asking.cancel()
        await asyncio.wait_for(model.has_ended.wait(), 20)
        await asyncio.gather(asking, return_exceptions=True)


@asynccontextmanager
async def on_uvicorn(app: AgentApp) -> AsyncGenerator[str]:
    """The application under uvicorn, which tells of a client that leaves and does nothing else."""
    config = uvicorn.Config(app, log_level="critical", lifespan="on")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve([listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


class Endless:
    """A model that says one word and never ends."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.has_ended = asyncio.Event()

    async def __call__(self, model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
        try:
            yield Start()
            yield TextStart(0)
            yield TextDelta(0, "word ")
            self.has_begun.set()
            await asyncio.Event().wait()
        finally:
            self.has_ended.set()


async def test_a_stream_says_that_it_is_there_while_a_tool_works():
    go_on = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await go_on.wait()
        return "waited"

    limits = ServeLimits(silence_seconds=0.05)
    async with serving([ToolCall("call_1", "wait", {}), "Done."], tools=[wait], limits=limits) as served:
        body = {"model": "agent", "messages": HELLO, "stream": True}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{served.url}/v1/chat/completions", json=body) as answer,
        ):
            lines: list[bytes] = []
            async for line in answer.content:
                lines.append(line)
                if line.startswith(b":"):
                    go_on.set()
        assert any(line.startswith(b":") for line in lines)
        assert b"Done." in b"".join(lines)


async def stream_of(served: Served) -> Any:
    return await served.client.responses.create(model="agent", input="Hello", stream=True)


# Programs


PROGRAM = """
from openai import OpenAI

client = OpenAI()
history = [{"role": "system", "content": "You are a friendly bot."}]
for line in ["My name is Ada.", "Who am I?"]:
    print("user:", line)
    history.append({"role": "user", "content": line})
    print("bot: ", end="")
    text = ""
    for chunk in client.chat.completions.create(model="gpt-5", messages=history, stream=True, temperature=0.7):
        piece = chunk.choices[0].delta.content or ""
        text += piece
        print(piece, end="")
    print()
    history.append({"role": "assistant", "content": text})
client.close()
"""


async def test_a_program_that_was_written_for_a_provider_works_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """It knows a base URL and a key, by the environment variables that the package reads."""
    async with serving([["Hello ", "Ada."], "You are Ada."]) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{served.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        await asyncio.to_thread(exec, PROGRAM, {})
    said = "user: My name is Ada.\nbot: Hello Ada.\nuser: Who am I?\nbot: You are Ada.\n"
    assert capsys.readouterr().out == said


# Node


@left_to_more
async def test_the_package_for_node_calls_its_tools_streams_and_goes_on_with_responses():
    modules = Path(sys.prefix, "node", "node_modules")
    if not (modules / "openai").exists():
        pytest.skip("the npm package openai is not installed; .ci/run brings it")
    async with serving([CALL, "It is open."] * 2) as served:
        asked = {"url": served.url, "modules": str(modules)}
        told = await ask_node("openai_judge.mjs", asked)
        assert (told["chat"], told["said"]) == ("It is open.", "It is open.")
        assert (json.loads(told["arguments"]), told["tokens"]) == ({"door": 2}, 8)
        assert told["refused"]["status"] == 400
        assert told["refused"]["type"] == "invalid_request_error"
        results = [[each.text for each in call.messages[-1:]] for call in served.model.calls[1::2]]
        assert results == [["door 2 creaks"], ["it creaks"]]
