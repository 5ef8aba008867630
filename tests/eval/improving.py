"""Agents of which a text decides what passes, and a model that writes others; nothing of it needs a key."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from swink import Agent, ToolCall, tool
from swink.eval import Case, ExpectedCall, ExpectedResponse, Suite
from swink.messages import Usage
from swink.stream import AssistantMessageEvent
from swink.testing.scripted import Pause, script
from swink.tools.skills.skilltools import skill_tools

CITIES = ("oslo", "bergen", "lima", "cairo", "rome", "perth", "tokyo", "quebec", "bern", "turin")


def suite_of(count: int = 10, **fields: Any) -> Suite:
    """Cases that pass if the answer names their own city."""
    cases = [
        Case(id=city, user_messages=(f"Where? {city}",), expected_response=ExpectedResponse(contains=city))
        for city in CITIES[:count]
    ]
    return Suite(name="cities", cases=tuple(cases), **fields)


class Writer:
    """A model: it answers with the cities that its prompt names, and with texts where one is asked for.

    A proposal is a text, an exception, or None for an answer that is no text at all.
    """

    def __init__(self, *proposals: Any, known: str = "Name: oslo", target: str = "system_prompt") -> None:
        self.proposals = list(proposals)
        self.prompts: list[str] = []
        self.asked = 0
        self.known = known
        self.target = target
        self.usage = Usage(10, 5)

    def __call__(self, case: Case) -> Agent[Any, Any]:
        return Agent("openai:gpt-5-mini", system_prompt=self.known, stream_fn=self.answer)

    async def answer(self, model: Any, context: Any, options: Any) -> AsyncIterator[AssistantMessageEvent]:
        if context.system_prompt.startswith("You improve"):
            reply = self.proposal(context)
        else:
            self.asked += 1
            reply = self.said(context)
        if isinstance(reply, BaseException):
            raise reply
        for event in script(reply, self.usage):
            if not isinstance(event, Pause | BaseException):
                yield event

    def said(self, context: Any) -> Any:
        city = context.messages[0].text.rpartition(" ")[2]
        return city if city in context.system_prompt else "I do not know."

    def proposal(self, context: Any) -> Any:
        if not any(message.role == "user" for message in context.messages[1:]):
            self.prompts.append(context.messages[0].text)
        text = self.proposals[0] if len(self.proposals) == 1 else self.proposals.pop(0)
        if text is None:
            return "I would rather not."
        if isinstance(text, BaseException):
            return text
        return ToolCall("1", context.tools[-1].name, {"why": "It named too few.", "text": text})


class Caller(Writer):
    """Calls a tool only if its description says when."""

    def __call__(self, case: Case) -> Agent[Any, Any]:
        @tool(description="Looks.")
        def look(city: str) -> str:
            return f"a look at {city}"

        return Agent("openai:gpt-5-mini", tools=[look], stream_fn=self.answer)

    def said(self, context: Any) -> Any:
        if len(context.messages) > 1:
            return context.messages[-1].text
        city = context.messages[0].text.rpartition(" ")[2]
        return ToolCall("1", "look", {"city": city}) if "always" in context.tools[0].description else "no"


class Reader(Writer):
    """Enters a skill and says what it says."""

    def __init__(self, folder: Path, *proposals: Any) -> None:
        super().__init__(*proposals)
        self.folder = folder
        (folder / "cities").mkdir(parents=True, exist_ok=True)
        (folder / "cities" / "SKILL.md").write_text(
            "---\nname: cities\ndescription: Names.\n---\nName: oslo\n"
        )

    def __call__(self, case: Case) -> Agent[Any, Any]:
        return Agent("openai:gpt-5-mini", tools=skill_tools(self.folder), stream_fn=self.answer)

    def said(self, context: Any) -> Any:
        if len(context.messages) == 1:
            return ToolCall("1", "skill", {"name": "cities"})
        city = context.messages[0].text.rpartition(" ")[2]
        return city if city in context.messages[-1].text else "I do not know."


def calling(count: int = 10) -> Suite:
    """Cases that pass if the tool is called."""
    return Suite(
        name="calls",
        cases=tuple(
            Case(id=city, user_messages=(f"Where? {city}",), expected_trajectory=(ExpectedCall("look"),))
            for city in CITIES[:count]
        ),
    )


def everything() -> str:
    """A text that passes all cases."""
    return "Name: " + " ".join(CITIES)


def rounds_in(directory: Path) -> list[dict[str, Any]]:
    """What the journal says of the rounds."""
    return [json.loads(line) for line in (directory / "rounds.jsonl").read_text().splitlines()]
