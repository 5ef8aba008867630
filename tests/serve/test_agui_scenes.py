"""The scenes over the AG-UI door in Python: AG-UI publishes no client there, so requests and events are those of its
types, and this client keeps the history as they say."""

import asyncio
import json
from typing import Any

import pytest
from tests.counts import left_to_more
from tests.later import Later
from tests.serve.served import Client
from tests.serve.webscenes import DOOR_TOOL, SCENES, serving_scenes

core, pydantic = Later("ag_ui.core"), Later("pydantic")


class Thread:
    """One conversation as a program sees it: messages, events of the last run, what waits for an answer."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self.messages: list[Any] = []
        self.events: list[Any] = []
        self.runs = 0

    async def step(self, step: dict[str, Any]) -> None:
        if step.get("forget"):
            self.messages = []
        asked = core.RunAgentInput(
            thread_id=f"python.{self.name}",
            run_id=f"run-{self.runs}",
            messages=[*self.messages, *self._said(step)],
            tools=[core.Tool(**DOOR_TOOL)] if SCENES[self.name].client_tools else [],
            resume=self._answers(step),
        )
        self.messages, self.runs = asked.messages, self.runs + 1
        sent = asked.model_dump_json(by_alias=True, exclude_none=True)
        answer = await self.client.post("/ag-ui", content=sent, headers={"Content-Type": "application/json"})
        assert answer.status_code == 200, answer.text
        adapter = pydantic.TypeAdapter(core.Event)
        lines = [line[6:] for line in answer.text.split("\n\n") if line.startswith("data: ")]
        self.events = [adapter.validate_json(line) for line in lines]
        for event in self.events:
            assert not event.model_extra, event
            self._take(event)

    def _said(self, step: dict[str, Any]) -> list[Any]:
        id = f"said-{self.runs}"
        if "result" in step:
            (call,) = self.messages[-1].tool_calls
            return [core.ToolMessage(id=id, tool_call_id=call.id, content=step["result"])]
        if "image" in step:
            source = core.DataSource(value=step["image"], mime_type="image/png")
            parts = [core.TextPart(text=step["say"]), core.ImagePart(source=source)]
            return [core.UserMessage(id=id, content=parts)]
        return [core.UserMessage(id=id, content=step["say"])] if "say" in step else []

    def _answers(self, step: dict[str, Any]) -> list[Any] | None:
        if "approve" not in step:
            return None
        given = {"status": "resolved", "payload": {"approved": step["approve"]}}
        return [
            core.ResumeEntry(interrupt_id=each.id, **given) for each in self.events[-1].outcome.interrupts
        ]

    def _take(self, event: Any) -> None:
        """What an event changes of the history; what a sub-agent does is none of it."""
        if getattr(event, "subagent_run_id", None) is not None:
            return
        match event.type.value:
            case "MESSAGES_SNAPSHOT":
                self.messages = list(event.messages)
            case "TEXT_MESSAGE_START":
                self._reply(event.message_id)
            case "TEXT_MESSAGE_CONTENT":
                reply = self._reply(event.message_id)
                reply.content = (reply.content or "") + event.delta
            case "TOOL_CALL_START":
                reply = self._reply(event.parent_message_id or event.tool_call_id)
                function = core.FunctionCall(name=event.tool_call_name, arguments="")
                call = core.ToolCall(id=event.tool_call_id, function=function)
                reply.tool_calls = [*(reply.tool_calls or []), call]
            case "TOOL_CALL_ARGS":
                calls = [call for each in self.messages for call in getattr(each, "tool_calls", None) or []]
                next(
                    call for call in calls if call.id == event.tool_call_id
                ).function.arguments += event.delta
            case "TOOL_CALL_RESULT":
                result = {"id": event.message_id, "tool_call_id": event.tool_call_id}
                self.messages.append(core.ToolMessage(**result, content=event.content))
            case _:
                pass

    def _reply(self, id: str) -> Any:
        found = next((each for each in self.messages if each.id == id), None)
        if found is None:
            found = core.AssistantMessage(id=id)
            self.messages.append(found)
        return found


async def played(name: str) -> Thread:
    async with serving_scenes(["ag-ui"]) as client:
        thread = Thread(client, name)
        for step in SCENES[name].steps:
            await thread.step(step)
        return thread


@left_to_more
@pytest.mark.parametrize("name", list(SCENES))
def test_a_program_of_the_published_types_plays_every_scene(name: str):
    thread = asyncio.run(played(name))
    texts = [each.content for each in thread.messages if each.role == "assistant" and each.content]
    assert texts == SCENES[name].texts
    results = [each.content for each in thread.messages if each.role == "tool"]
    end = thread.events[-1]
    match name:
        case "tools":
            assert sorted(results) == ["one", "two"]
        case "approved":
            assert results == ["deleted a.txt"]
        case "rejected":
            assert "rejected" in results[0]
        case "error":
            assert (end.type.value, end.code) == ("RUN_ERROR", "model_retired")
        case "aborted":
            assert end.outcome.type == "cancelled"
        case "structured":
            assert end.result == {"name": "Paris", "people": 2_000_000}
        case "images":
            assert [part.type for part in results[0]] == ["text", "image"]
        case "subagents":
            kinds = [event.type.value for event in thread.events]
            assert {"SUBAGENT_STARTED", "SUBAGENT_FINISHED"} <= {*kinds}
        case "client_tools":
            (call,) = thread.messages[1].tool_calls
            assert json.loads(call.function.arguments) == {"door": 2}
        case _:
            assert end.outcome is None or end.outcome.type == "success"
