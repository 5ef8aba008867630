"""A service with FastAPI: streamed answers, abort, and calls that wait for a person.

uvicorn fastapi_service:app     needs ANTHROPIC_API_KEY; then in another shell, with curl and jq:

ALL=localhost:8000/agent/conversations JSON='content-type: application/json'
HERE=$ALL/$(curl -s $ALL -H "$JSON" -d '{}' | jq -r .id)
RUN=$HERE/runs/$(curl -s $HERE/runs -H "$JSON" -d '{"input": "Refund order 7"}' | jq -r .run_id)
curl -sN $RUN/events &                                          # the answer as it is written
CALL=$(curl -s $HERE/messages | jq '.pending[0].call_id')       # once it says approval_requested
curl $RUN/approvals -H "$JSON" -d '{"call_id": '$CALL', "approved": true}'     # yes, do it
curl -X POST $RUN/abort                                         # or: enough
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
