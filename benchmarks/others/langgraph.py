"""The same work on LangChain's agent, which is a graph of LangGraph."""

from collections.abc import AsyncIterator
from typing import Any

import work
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool


class Scripted(BaseChatModel):
    """A model that replays the script."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("the work is streamed")

    async def _astream(self, messages: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        kind, items = await work.next_step()
        if kind == "text":
            for text in items:
                yield ChatGenerationChunk(message=AIMessageChunk(content=text))
            return
        for index, (id, name, written) in enumerate(items):
            for chunk in ({"id": id, "name": name, "args": ""}, {"id": None, "name": None, "args": written}):
                part = AIMessageChunk(content="", tool_call_chunks=[{"index": index, **chunk}])
                yield ChatGenerationChunk(message=part)


agent = create_agent(Scripted(), [tool(work.noop), tool(work.slow)])


async def run(old: Any) -> int:
    count = 0
    asked = {"messages": [HumanMessage("go")]}
    async for chunk, _ in agent.astream(asked, {"recursion_limit": 100_000}, stream_mode="messages"):
        count += type(chunk) is AIMessageChunk and bool(chunk.content)
    return count
