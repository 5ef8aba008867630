"""A service with FastAPI: streamed answers, abort, and calls that wait for a person.

uvicorn fastapi_service:app     needs ANTHROPIC_API_KEY

Then, with the ids that the first two answers hold:

curl -X POST localhost:8000/agent/conversations -d '{}' -H 'content-type: application/json'
curl -X POST localhost:8000/agent/conversations/ID/runs -d '{"input": "Refund order 7"}' -H ...
curl -N localhost:8000/agent/conversations/ID/runs/RUN/events             the answer as it is written
curl -X POST .../runs/RUN/approvals -d '{"call_id": "...", "approved": true}' -H ...      yes, do it
curl -X POST .../runs/RUN/abort                                                          or enough
"""

from contextlib import asynccontextmanager

from fastapi import FastAPI

from swink import Agent, tool
from swink.memory import SqliteStore
from swink.serve import AgentRequest, ServeLimits, agent_app


@tool(requires_approval=True)
async def refund(order: str) -> str:
    """Pay an order back."""
    return f"order {order} is paid back"


def make(request: AgentRequest) -> Agent:
    return Agent("anthropic:claude-sonnet-4-6", system_prompt="You answer customers.", tools=[refund])


@asynccontextmanager
async def lifespan(app: FastAPI):
    yield
    await agents.aclose()  # runs end their turn and are saved


agents = agent_app(make, store=SqliteStore("service.db"), limits=ServeLimits(approval_seconds=3600))
app = FastAPI(lifespan=lifespan)
app.mount("/agent", agents)
