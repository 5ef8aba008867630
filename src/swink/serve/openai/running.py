"""A run that a client of OpenAI waits for: its reply whole or as a stream, its failure, and its end if the
client leaves."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from msgspec import Struct

from swink.agent.agentresult import is_answered
from swink.errors import AgentError
from swink.events import (
    AgentEnd,
    AgentEvent,
    MessageUpdate,
    TextDelta,
    ThinkingDelta,
    ToolExecutionStart,
)
from swink.messages import AssistantMessage
from swink.messages.jsondata import encode
from swink.messages.redact import redact_text
from swink.serve.hosting import HostedRun
from swink.serve.openai.asked import AskedOfAgent
from swink.serve.openai.spoken import (
    MessageSpoken,
    ReplyRestarted,
    RunOutcome,
    Speech,
    Spoken,
    SpokenText,
    WholeSpeech,
)
from swink.serve.openaiwire import failure
from swink.serve.web import Exchange, StreamWriter
from swink.serve.web.eventsource import SILENT
from swink.tools.definition import FINAL_OUTPUT

_STATUS = {
    "context_window_exceeded": 400,
    "content_filtered": 400,
    "misuse": 400,
    "throttled": 429,
    "shutdown": 503,
}
ONCE = {"x-should-retry": "false"}
"""Tells OpenAI's clients not to ask again by themselves: the tools of the agent may have run."""


SHUTDOWN = "the server is shutting down; ask again soon"


class StreamedReply(Protocol):
    """Writes one reply as server-sent events."""

    def start(self) -> list[bytes]: ...
    def write(self, piece: Speech) -> list[bytes]: ...
    def finish(self, outcome: RunOutcome) -> list[bytes]: ...
    def fail(self, message: str, kind: str | None) -> list[bytes]: ...


class RunFailure(Struct, frozen=True):
    """Why there is no reply."""

    message: str
    kind: str | None = None


async def send_whole(
    exchange: Exchange,
    run: HostedRun,
    write: Callable[[Sequence[Speech], RunOutcome], dict[str, Any]],
    asked: AskedOfAgent,
) -> None:
    """Wait for the run and send its reply as one object."""
    last: AgentEvent | None = None
    said = WholeSpeech()
    try:
        exchange.watch()
        async with aclosing(run.events()) as events:
            async for numbered in events:
                last = numbered.event
                said.take(last)
    finally:
        _abandon(run)
    match ended := _outcome(run, last, asked):
        case RunFailure():
            await _send_failure(exchange, ended)
        case RunOutcome():
            said.pieces.extend(_own_answer(ended))
            await exchange.send_json(200, write(said.pieces, ended))


async def send_stream(
    exchange: Exchange, run: HostedRun, reply: StreamedReply, asked: AskedOfAgent, silence: float
) -> None:
    """Send the reply while the run goes on. What fails before there is anything to show gets a status."""
    spoken, lines = Spoken(), reply.start()
    writer: StreamWriter | None = None
    last: AgentEvent | None = None
    try:
        exchange.watch()
        async with aclosing(run.log.batches(0, silence)) as batches:
            async for batch in batches:
                for numbered in batch:
                    last = numbered.event
                    if (piece := spoken.take(last)) is not None:
                        lines += reply.write(piece)
                if writer is None and (not batch or any(_shows(each.event) for each in batch)):
                    writer = await exchange.stream()
                if writer is not None and (lines or not batch):
                    await writer.write(b"".join(lines) or SILENT)
                    lines = []
        ended = _outcome(run, last, asked)
    except ReplyRestarted as error:
        ended = RunFailure(str(error), "reply_restarted")
    finally:
        _abandon(run)
    if isinstance(ended, RunFailure) and writer is None:
        await _send_failure(exchange, ended)
        return
    writer = writer or await exchange.stream()
    match ended:
        case RunFailure(message, kind):
            lines += reply.fail(message, kind)
        case RunOutcome():
            lines += [line for piece in _own_answer(ended) for line in reply.write(piece)]
            lines += reply.finish(ended)
    await writer.write(b"".join(lines))


def _shows(event: AgentEvent) -> bool:
    """Whether it takes long from here on, or something was said: the client gets the head of its answer."""
    match event:
        case ToolExecutionStart() | MessageUpdate(TextDelta() | ThinkingDelta()):
            return True
        case _:
            return False


def _abandon(run: HostedRun) -> None:
    """End a run that nobody waits for any more."""
    if not run.is_over:
        run.abort()


def _outcome(run: HostedRun, last: AgentEvent | None, asked: AskedOfAgent) -> RunOutcome | RunFailure:
    """How a run has ended."""
    if not isinstance(last, AgentEnd) or (run.is_pausing and not _is_complete(run)):
        return RunFailure(SHUTDOWN, "shutdown")
    if (result := run.result) is None and last.stop_reason == "aborted":
        return RunFailure(SHUTDOWN, "shutdown")
    if result is None:
        return RunFailure(redact_text(last.reason or "the run ended before its answer"))
    if run.client_calls:
        return RunOutcome(run.client_calls, usage=result.usage)
    if result.pending:
        names = ", ".join(call.name for call in result.pending)
        return RunFailure(
            f"the agent waits for an approval of {names}, which this protocol cannot give", "misuse"
        )
    replies = [message for message in result.messages if isinstance(message, AssistantMessage)]
    by_call = bool(replies) and any(call.name == FINAL_OUTPUT for call in replies[-1].tool_calls)
    try:
        result.raise_for_error()
        json = encode(result.output).decode() if by_call or asked.output is not None else None
    except AgentError as error:
        return RunFailure(redact_text(str(error)), error.kind)
    is_cut = bool(replies) and replies[-1].stop_reason == "length"
    if asked.output is None:
        return RunOutcome((), is_cut, result.usage, own=json)
    return RunOutcome((), is_cut, result.usage, json)


def _own_answer(outcome: RunOutcome) -> list[Speech]:
    """A structured output that the agent gave by a call, which the client has not seen."""
    return [] if outcome.own is None else [SpokenText(outcome.own), MessageSpoken()]


def _is_complete(run: HostedRun) -> bool:
    """Whether the run came to its answer although the server is shutting down."""
    return bool(run.client_calls) or (run.result is not None and is_answered(run.result.messages))


async def _send_failure(exchange: Exchange, failed: RunFailure) -> None:
    status = _STATUS.get(failed.kind or "", 500)
    kind = (
        "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    )
    await exchange.send_json(status, failure(failed.message, failed.kind, kind), ONCE)
