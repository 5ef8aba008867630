"""An agent in a Starlette application, beside a page of its own: `uvicorn serve_starlette:app`.

Another program asks it with nothing but HTTP: begin a conversation, start a run, read its events.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from swink import Agent, ToolCall, tool
from swink.memory import SqliteStore
from swink.serve import AgentRequest, agent_app
from swink.testing import ScriptedModel


@tool
async def stock(item: str) -> int:
    """How many of an item there are."""
    return 12


def make(request: AgentRequest) -> Agent:
    """Each run has an agent of its own; the conversation is the store's."""
    replies = [ToolCall("call_1", "stock", {"item": "apples"}), "There are 12 apples."]
    return Agent("test:scripted", stream_fn=ScriptedModel(replies), tools=[stock])


agents = agent_app(make, store=SqliteStore("agents.db"))  # without authorize: for this machine alone


async def front_page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("The shop is open.")


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[None]:
    yield
    await agents.aclose()  # runs end their turn and are saved


app = Starlette(routes=[Route("/", front_page), Mount("/agents", agents)], lifespan=lifespan)
