"""Teams: agents as tools of agents, handoff of a conversation, and pipelines."""

from swink.teams.delegate import agent_tool
from swink.teams.flow import Flow, NestedStream
from swink.teams.member import NestedEvent
from swink.teams.pipelines import loop, parallel, sequential
from swink.teams.transfer import Team, transfer_tool

__all__ = [
    "Flow",
    "NestedEvent",
    "NestedStream",
    "Team",
    "agent_tool",
    "loop",
    "parallel",
    "sequential",
    "transfer_tool",
]
