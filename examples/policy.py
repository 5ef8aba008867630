"""A policy of your own: stop a run that asks for the same thing twice."""

from swink import Agent, Policy, Stop, ToolCall, tool
from swink.agent.policy import CallVerdict, PolicyContext
from swink.testing import ScriptedModel


class NoRepeats(Policy):
    """Stop when a call is made again with the same arguments."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
        key = (call.name, repr(sorted(call.arguments.items())))
        if key in self.seen:
            # Without `expected`, raise_for_error() would raise RunStopped: there is no answer.
            return Stop(f"{call.name} was asked for the same thing twice", expected=True)
        self.seen.append(key)
        return None


@tool
async def search(query: str) -> str:
    """Search."""
    return "nothing found"


script = [
    [ToolCall("1", "search", {"query": "swink"})],
    [ToolCall("2", "search", {"query": "swink"})],
    "never said",
]
agent = Agent("test:scripted", stream_fn=ScriptedModel(script), tools=[search], policies=[NoRepeats()])
result = agent.run_sync("Find it").raise_for_error()
print(result.reason)
