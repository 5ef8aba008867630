"""An agent in a FastAPI application, for callers with a token: `uvicorn serve_fastapi:app`."""

from contextlib import asynccontextmanager

from fastapi import FastAPI

from swink import Agent
from swink.memory import SqliteStore
from swink.serve import AgentRequest, WebRequest, agent_app
from swink.testing import ScriptedModel


def make(request: AgentRequest) -> Agent:
    return Agent("test:scripted", stream_fn=ScriptedModel([["Hello ", request.caller.name, "."]]))


def authorize(request: WebRequest) -> str | None:
    callers = {"token-of-ada": "ada", "token-of-bob": "bob"}  # yours: a cookie, a JWT, a database
    return callers.get(request.token)


@asynccontextmanager
async def lifespan(app: FastAPI):
    yield
    await agents.aclose()  # runs end their turn and are saved


agents = agent_app(make, store=SqliteStore("agents.db"), authorize=authorize, protocols=("native", "openai"))
app = FastAPI(lifespan=lifespan)
app.mount("/agents", agents)
