"""A research assistant: a plan, its questions looked up side by side on the web, and a report with sources.

python research_assistant.py "Why do cities plant trees?"     needs ANTHROPIC_API_KEY
"""

import asyncio
import sys
from dataclasses import dataclass

from swink import Agent
from swink.messages.providertools import WebSearch

MODEL = "anthropic:claude-sonnet-4-6"


@dataclass
class Plan:
    questions: list[str]


@dataclass
class Report:
    title: str
    text: str
    sources: list[str]


planner = Agent(MODEL, system_prompt="Split the topic into three questions to look up.", output=Plan)
researcher = Agent(
    MODEL, system_prompt="Answer from the web, with addresses.", hosted=[WebSearch(max_uses=3)]
)
writer = Agent(MODEL, system_prompt="Write a short report on the topic from the notes alone.", output=Report)


async def research(topic: str) -> Report:
    plan = await planner.run(topic)
    found = await asyncio.gather(*(researcher.copy().run(question) for question in plan.output.questions))
    notes = "\n\n".join(result.raise_for_error().text for result in found)
    return (await writer.run(f"Topic: {topic}\n\nNotes:\n{notes}")).output


if __name__ == "__main__":
    report = asyncio.run(research(" ".join(sys.argv[1:]) or "Why do cities plant trees?"))
    print(f"# {report.title}\n\n{report.text}", *report.sources, sep="\n- ")
