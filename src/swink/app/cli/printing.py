"""Printing a run for people: the reply on stdout while it arrives; calls, retries and thinking on stderr."""

import sys
from io import StringIO
from typing import Protocol, TextIO

from msgspec import UNSET
from msgspec.structs import replace

from swink.agent.agentresult import AgentResult
from swink.app.assistant.toolcalls import format_call
from swink.app.cli.explain import strip_advice
from swink.app.cli.terminal import add_style, say, say_in_passing
from swink.events import AgentEvent, CustomEvent, MessageEnd, MessageUpdate
from swink.events.transcript import (
    Block,
    Compacted,
    Discarded,
    Fallback,
    NoticeBlock,
    Retrying,
    ToolBlock,
    Transcript,
)
from swink.events.transcript.blockkinds import counted
from swink.messages import AssistantMessage, text_of
from swink.messages.jsondata import encode
from swink.stream import TextDelta, ThinkingDelta
from swink.system.oneline import shorten, strip_controls

_LONG_PROMPT = 128
"""Tokens from which on it takes a while to read."""


class Printer(Protocol):
    """Prints the events of one run, then its result."""

    def print_event(self, event: AgentEvent) -> None: ...
    def print_result(self, result: AgentResult) -> None: ...


class OutputPrinter:
    """The output of a run alone as JSON, once it is there; everything but the reply on stderr."""

    def __init__(self) -> None:
        self._others = TextPrinter(StringIO())

    def print_event(self, event: AgentEvent) -> None:
        self._others.print_event(event)

    def print_result(self, result: AgentResult) -> None:
        self._others.print_result(result)
        if result.error is None and result.value is not UNSET:
            print(encode(result.value).decode())


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
            case NoticeBlock(notice=Fallback() as notice):
                self._warn(notice)
            case NoticeBlock(notice=Compacted(dropped)) if block.is_passing:
                why = "the conversation is longer than the model's window"
                are = "is" if dropped == 1 else "are"
                say(f"{why}: {counted(dropped, 'older message')} {are} left out", "dim")
            case _:
                pass

    def _print_call(self, call: ToolBlock) -> None:
        if call.state == "running":
            arguments = call.arguments if call.ran_with is None else call.ran_with
            self._note(f"→ {format_call(call.name, arguments)}")
        elif call.is_settled and call.state != "done":
            self._note(f"✗ {call.name}: {text_of(call.content)}")

    def _warn(self, notice: Discarded | Fallback | Retrying) -> None:
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
