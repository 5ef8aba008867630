"""Tool calls for people: in one line, and as what a person always allows in a session."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from swink.agent.policy import ApprovalRequest
from swink.app.assistant.callwords import call_summary
from swink.messages.redact.shown import show_arguments
from swink.stream import ToolSpec
from swink.system.shorten import clip
from swink.tools import InvalidArguments, Tool

_SUMMARY = 200


def json_line(value: Any) -> str:
    """A value as JSON in one line."""
    return msgspec.json.encode(value, enc_hook=repr).decode()


def format_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A call in one line, `name(city="Oslo", days=3)` or in words, secrets redacted."""
    shown = show_arguments(arguments)
    if (words := call_summary(name, shown)) is not None:
        return f"{name}: {words}"
    return f"{name}({', '.join([f'{key}={json_line(value)}' for key, value in shown.items()])})"


def format_request(request: ApprovalRequest) -> str:
    """The call that a request is about, in one short line."""
    if (words := call_summary(request.name, request.shown)) is not None:
        return clip(f"{request.name}: {words}", _SUMMARY)
    pieces: list[str] = []
    for key, value in request.shown.items():
        clipped = value[:_SUMMARY] if isinstance(value, str) else value
        pieces.append(f"{key}={json_line(clipped)[:_SUMMARY]}")
    return clip(f"{request.name}({', '.join(pieces)})", _SUMMARY)


def tool_of(request: ApprovalRequest) -> ToolSpec | None:
    """The tool that a request would run, if the agent has it."""
    return next((tool for tool in request.context.tools if tool.name == request.name), None)


def is_invalid(request: ApprovalRequest) -> bool:
    """Whether the loop will refuse the call for its arguments, by the very check that the loop makes."""
    tool = tool_of(request)
    try:
        if isinstance(tool, Tool):
            tool.prepare(request.arguments)
    except InvalidArguments:
        return True
    return False


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
    tool = tool_of(request)
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
