"""Printing a run: the reply as plain text while it arrives, or every event as a line of JSON.

text    the reply on stdout; tool calls, retries and thinking on stderr
json    one event a line on stdout; the last line is of type "result"
"""

import sys
from collections.abc import Callable
from typing import Any, Protocol, TextIO

import msgspec
from msgspec.structs import replace

from swink.agent.config import AgentResult
from swink.app.assistant.toolcalls import format_call
from swink.app.cli.explain import strip_advice
from swink.app.cli.terminal import add_style, say, say_in_passing
from swink.events import AgentEvent, CustomEvent, MessageEnd, MessageUpdate
from swink.events.transcript import Block, Compacted, Discarded, NoticeBlock, Retrying, ToolBlock, Transcript
from swink.messages import AssistantMessage, Cost, StopReason, Usage, text_of
from swink.messages.jsondata import encode
from swink.stream import TextDelta, ThinkingDelta
from swink.system.oneline import shorten, strip_controls

_LONG_PROMPT = 128
"""Tokens from which on it takes a while to read."""


class Printer(Protocol):
    """Prints the events of one run, then its result."""

    def print_event(self, event: AgentEvent) -> None: ...
    def print_result(self, result: AgentResult) -> None: ...


class TextPrinter:
    """The reply on one stream as it arrives, everything else on stderr."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._on_screen = self._stream.isatty()
        self._open = ""
        self._transcript = Transcript()
        self._version = 0
        self._states: dict[str, str] = {}

    def print_event(self, event: AgentEvent) -> None:
        match event:
            case CustomEvent(name="prompt_progress", data={"done": int() as done, "total": int() as total}):
                reading = done < total and total >= _LONG_PROMPT
                say_in_passing(f"swink: reading the prompt: {done} of {total} tokens" if reading else "")
            case MessageUpdate(delta=TextDelta(text=text)):
                self._write(text)
            case MessageUpdate(delta=ThinkingDelta(text=text)):
                self._think(text)
            case MessageEnd(message=AssistantMessage()):
                self._close_line()
            case _:
                pass
        self._transcript.take(event)
        if not isinstance(event, MessageUpdate):
            changes = self._transcript.since(self._version)
            self._version = changes.version
            for block in changes.blocks.values():
                self._print_block(block)

    def print_result(self, result: AgentResult) -> None:
        say_in_passing("")
        self._close_line()

    def _print_block(self, block: Block) -> None:
        """A block that is new, or has changed: what of it is worth a line."""
        match block:
            case ToolBlock():
                if self._states.get(block.id) != block.state:
                    self._states[block.id] = block.state
                    self._print_call(block)
            case NoticeBlock(notice=Discarded() as notice):
                self._warn(replace(notice, reason=strip_advice(notice.reason)))
            case NoticeBlock(notice=Retrying() as notice):
                self._warn(replace(notice, error=strip_advice(notice.error)))
            case NoticeBlock(notice=Compacted(dropped)) if block.is_passing:
                why = "the conversation is longer than the model's window"
                say(f"{why}: {dropped} older messages are left out", "dim")
            case _:
                pass

    def _print_call(self, call: ToolBlock) -> None:
        if call.state == "running":
            arguments = call.arguments if call.ran_with is None else call.ran_with
            self._note(f"→ {format_call(call.name, arguments)}")
        elif call.is_settled and call.state != "done":
            self._note(f"✗ {call.name}: {text_of(call.content)}")

    def _warn(self, notice: Discarded | Retrying) -> None:
        self._close_line()
        say(str(notice), "warning")

    def _write(self, text: str) -> None:
        if self._open == "thinking":
            self._close_line()
        self._stream.write(strip_controls(text) if self._on_screen else text)
        self._stream.flush()
        self._open = "" if text.endswith("\n") else "text"

    def _think(self, text: str) -> None:
        """Thinking is for a user who watches, never part of the output."""
        if sys.stderr.isatty():
            if self._open == "text":
                self._close_line()
            sys.stderr.write(add_style(strip_controls(text), "dim", sys.stderr))
            sys.stderr.flush()
            self._open = "" if text.endswith("\n") else "thinking"

    def _note(self, text: str) -> None:
        self._close_line()
        print(add_style(shorten(text), "dim", sys.stderr), file=sys.stderr, flush=True)

    def _close_line(self) -> None:
        if self._open:
            stream = self._stream if self._open == "text" else sys.stderr
            self._open = ""
            stream.write("\n")
            stream.flush()


def encode_line(value: Any) -> bytes:
    """A value as one line of JSON; what has no JSON form is shown as text."""
    return encode(value) + b"\n"


class RunResult(msgspec.Struct, frozen=True, tag="result", tag_field="type"):
    """The last line of `--output json`."""

    text: str
    stop_reason: StopReason
    usage: Usage = Usage()
    cost: Cost | None = None
    error: str | None = None
    error_kind: str | None = None
    reason: str | None = None
    session: str | None = None


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
        self._write(encode_line(RunResult(**values, session=self.session())))

    def give_up(self) -> None:
        """Report a run that ends with the process, unless there is a result already."""
        self.print_result(AgentResult((), "aborted"))
