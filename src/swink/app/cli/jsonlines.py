"""JSON of the commands: every event of a run as a line, the last line of type "result"."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from swink.agent.agentresult import AgentResult
from swink.events import AgentEvent
from swink.events.eventlines import complete, encode_event
from swink.messages import Cost, StopReason, Usage
from swink.messages.jsondata import encode


class RunResult(Struct, frozen=True, tag="result", tag_field="type"):
    """The last line of `swink run --json`."""

    text: str
    stop_reason: StopReason
    usage: Usage = Usage()
    cost: Cost | None = None
    error: str | None = None
    error_kind: str | None = None
    reason: str | None = None
    session: str | None = None
    output: Any = None


class JsonPrinter:
    """Every event as a line of JSON, and one result as the last one, however the run ends."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._ended = False
        self.session: Callable[[], str | None] = lambda: None
        """The id of the session that the run is saved in."""

    def print_event(self, event: AgentEvent) -> None:
        self._write(encode_line(event))

    def print_result(self, result: AgentResult) -> None:
        """Write the last line; only the first result counts."""
        if self._ended:
            return
        self._ended = True
        shared = ("text", "stop_reason", "usage", "cost", "error", "error_kind", "reason")
        values = {name: getattr(result, name) for name in shared}
        output = None if result.value is UNSET else result.value
        self._write(encode_line(RunResult(**values, session=self.session(), output=output)))

    def give_up(self) -> None:
        """Report a run that ends with the process, unless there is a result already."""
        self.print_result(AgentResult((), "aborted"))


def encode_line(event: AgentEvent | RunResult) -> bytes:
    """An event or the result as one line of JSON; what has no JSON form is shown as text."""
    if not isinstance(event, RunResult):
        return encode_event(event) + b"\n"
    return msgspec.json.encode(complete(msgspec.json.decode(encode(event)))) + b"\n"
