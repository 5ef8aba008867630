"""The same work on the OpenAI Agents SDK."""

from collections.abc import AsyncIterator
from typing import Any

import work
from agents import Agent, Model, Runner, function_tool, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

set_tracing_disabled(True)
EMPTY: dict[str, Any] = {
    "id": "r",
    "created_at": 0,
    "model": "m",
    "object": "response",
    "output": [],
    "tools": [],
}


class Scripted(Model):
    """A model that replays the script; its events are not validated, which an adapter would do."""

    async def get_response(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("the work is streamed")

    async def stream_response(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        kind, items = await work.next_step()
        reply = Response.model_construct(**EMPTY, tool_choice="auto", parallel_tool_calls=False)
        yield ResponseCreatedEvent.model_construct(type="response.created", response=reply, sequence_number=0)
        output: list[Any] = []
        if kind == "text":
            place: dict[str, Any] = {"content_index": 0, "item_id": "i", "output_index": 0, "logprobs": []}
            for number, text in enumerate(items):
                yield ResponseTextDeltaEvent.model_construct(
                    type="response.output_text.delta", delta=text, sequence_number=number, **place
                )
            whole = ResponseOutputText(type="output_text", text="".join(items), annotations=[], logprobs=[])
            output.append(
                ResponseOutputMessage(
                    id="i", role="assistant", type="message", status="completed", content=[whole]
                )
            )
        else:
            for id, name, written in items:
                call = {"id": "i", "call_id": id, "name": name, "arguments": written}
                output.append(ResponseFunctionToolCall(type="function_call", **call))
        for index, item in enumerate(output):
            yield ResponseOutputItemDoneEvent.model_construct(
                type="response.output_item.done", item=item, output_index=index, sequence_number=0
            )
        done = reply.model_copy(update={"output": output})
        yield ResponseCompletedEvent.model_construct(
            type="response.completed", response=done, sequence_number=0
        )


agent = Agent(name="a", model=Scripted(), tools=[function_tool(work.noop), function_tool(work.slow)])


async def run(old: Any) -> int:
    count = 0
    async for event in Runner.run_streamed(agent, "go", max_turns=1000).stream_events():
        count += event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    return count
