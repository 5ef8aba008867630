"""Plays scenes with OpenAI's package for Python as openai_scenes_judge.mjs does with the one for Node."""

import asyncio
from typing import Any

from tests.later import Later

openai = Later("openai")


class Chat:
    """A client of chat completions, which keeps the history itself."""

    def __init__(self, client: Any, scene: dict[str, Any]) -> None:
        self._ask: Any = client.chat.completions
        self._history: list[Any] = []
        self._body: dict[str, Any] = {"model": "agent", "messages": self._history}
        if scene["schema"]:
            format = {"name": "town", "schema": scene["schema"]}
            self._body["response_format"] = {"type": "json_schema", "json_schema": format}
        if scene["tools"]:
            self._body["tools"] = [{"type": "function", "function": each} for each in scene["tools"]]

    def say(self, text: str, image: str | None) -> None:
        shown: list[Any] = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}]
        content: Any = [{"type": "text", "text": text}, *shown] if image else text
        self._history.append({"role": "user", "content": content})

    def bring(self, call: dict[str, Any], content: str) -> None:
        self._history.append({"role": "tool", "tool_call_id": call["id"], "content": content})

    async def whole(self, seen: dict[str, Any], leaves: bool) -> None:
        self._read(await self._ask.create(**self._body), seen)

    async def streamed(self, seen: dict[str, Any], leaves: bool) -> None:
        asked = {**self._body, "stream_options": {"include_usage": True}}
        thought = ""
        async with self._ask.stream(**asked) as stream:
            async for event in stream:
                if event.type == "chunk" and event.chunk.choices:
                    thought += getattr(event.chunk.choices[0].delta, "reasoning_content", None) or ""
                if event.type == "content.delta":
                    seen["text"] += event.delta
                    if leaves and seen["text"]:
                        return
            self._read(await stream.get_final_completion(), seen)
        seen["thinking"] = thought

    def _read(self, completion: Any, seen: dict[str, Any]) -> None:
        (choice,) = completion.choices
        message = choice.message
        calls: list[Any] = message.tool_calls or []
        seen["text"] = message.content or ""
        seen["thinking"] = getattr(message, "reasoning_content", None) or ""
        seen["calls"] = [
            {"id": each.id, "name": each.function.name, "arguments": each.function.arguments}
            for each in calls
        ]
        seen["finish"], seen["tokens"] = choice.finish_reason, completion.usage.total_tokens
        made: list[Any] = [
            {
                "id": each["id"],
                "type": "function",
                "function": {"name": each["name"], "arguments": each["arguments"]},
            }
            for each in seen["calls"]
        ]
        said: dict[str, Any] = {"role": "assistant", "content": message.content}
        self._history.append({**said, "tool_calls": made} if made else said)


class Responses:
    """A client of the Responses API, which goes on with `previous_response_id`."""

    def __init__(self, client: Any, scene: dict[str, Any]) -> None:
        self._ask: Any = client.responses
        self._body: dict[str, Any] = {"model": "agent", "input": []}
        if scene["schema"]:
            format = {"type": "json_schema", "name": "town", "schema": scene["schema"]}
            self._body["text"] = {"format": format}
        if scene["tools"]:
            self._body["tools"] = [{"type": "function", "strict": False, **each} for each in scene["tools"]]

    def say(self, text: str, image: str | None) -> None:
        picture = {
            "type": "input_image",
            "image_url": f"data:image/png;base64,{image}",
            "detail": "auto",
        }
        content: Any = [{"type": "input_text", "text": text}, *([picture] if image else [])]
        self._body["input"] = [{"role": "user", "content": content}]

    def bring(self, call: dict[str, Any], output: str) -> None:
        self._body["input"] = [{"type": "function_call_output", "call_id": call["id"], "output": output}]

    async def whole(self, seen: dict[str, Any], leaves: bool) -> None:
        self._read(await self._ask.create(**self._body), seen)

    async def streamed(self, seen: dict[str, Any], leaves: bool) -> None:
        async with self._ask.stream(**self._body) as stream:
            async for event in stream:
                if event.type == "response.failed":
                    raise openai.OpenAIError(event.response.error.message)
                if event.type == "response.output_text.delta":
                    seen["text"] += event.delta
                    if leaves and seen["text"]:
                        return
            self._read(await stream.get_final_response(), seen)

    def _read(self, response: Any, seen: dict[str, Any]) -> None:
        calls = [each for each in response.output if each.type == "function_call"]
        thought = [each for each in response.output if each.type == "reasoning"]
        seen["text"] = response.output_text
        seen["thinking"] = "".join([part.text for each in thought for part in each.summary])
        seen["calls"] = [
            {"id": each.call_id, "name": each.name, "arguments": each.arguments} for each in calls
        ]
        seen["finish"] = (
            "tool_calls" if calls else "stop" if response.status == "completed" else response.status
        )
        seen["tokens"] = response.usage.total_tokens
        self._body["previous_response_id"] = response.id


async def play_in_python(asked: dict[str, Any]) -> dict[str, Any]:
    """What the client saw of each scene, step by step."""
    played = await asyncio.gather(*[_play(asked["url"], scene) for scene in asked["scenes"]])
    return {scene["id"]: steps for scene, steps in zip(asked["scenes"], played, strict=True)}


async def _play(url: str, scene: dict[str, Any]) -> list[dict[str, Any]]:
    door, way, _ = scene["id"].split(".")
    kind = Chat if door == "chat" else Responses
    steps: list[dict[str, Any]] = []
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=scene["id"], max_retries=0) as client:
        talk = kind(client, scene)
        for step in scene["steps"]:
            if "approve" in step:
                continue  # there is no question: the agent was refused and went on
            if step.get("forget"):
                talk = kind(client, scene)
            if "result" in step:
                talk.bring(steps[-1]["calls"][0], step["result"])
            else:
                talk.say(step["say"], step.get("image"))
            seen: dict[str, Any] = {"text": "", "thinking": "", "calls": []}
            try:
                await getattr(talk, way)(seen, scene["leaves"])
            except openai.OpenAIError as error:
                seen["error"] = str(error)
                seen["status"] = getattr(error, "status_code", None)
            steps.append(seen)
    return steps
