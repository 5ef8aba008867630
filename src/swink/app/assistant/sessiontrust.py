"""What a person always allows in this session: a tool, or of a tool that runs commands one very call."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from swink.agent.policy import ApprovalRequest
from swink.app.assistant.calls import json_line
from swink.tools import InvalidArguments, Tool


class SessionTrust(Struct, frozen=True):
    """A tool, or a command of it with all its other arguments."""

    tool: str
    command: str | None = None
    others: str = ""
    """The other arguments as JSON, without those that say what the tool does anyway."""

    def __str__(self) -> str:
        if self.command is None:
            return self.tool
        return f"{self.tool}: {self.command}" + (f" {self.others}" if self.others else "")


def trust_of(request: ApprovalRequest) -> SessionTrust:
    """What "always" means for a call: the tool; of one that runs commands, this call with every argument."""
    command = request.arguments.get("command")
    if not isinstance(command, str):
        return SessionTrust(request.name)
    others = {name: value for name, value in _normal(request).items() if name != "command"}
    in_order = msgspec.to_builtins(others, order="sorted", enc_hook=repr)
    return SessionTrust(request.name, command, json_line(in_order) if others else "")


def _normal(request: ApprovalRequest) -> Mapping[str, Any]:
    """The arguments as the tool takes them, without those that are its defaults."""
    tool = next((tool for tool in request.context.tools if tool.name == request.name), None)
    if not isinstance(tool, Tool):
        return request.arguments
    try:
        taken = tool.prepare(request.arguments)
    except InvalidArguments:
        return request.arguments
    known = tool.parameters_schema.get("properties", {})
    return {
        name: value
        for name, value in taken.items()
        if "default" not in known.get(name, {}) or known[name]["default"] != value
    }
