"""AuditLogger: what an agent did, turn by turn, however the turn ended, in a log that shows any change."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from swink.agent.policy import Ending, Policy, PolicyContext, RunKey, Turn
from swink.errors import AgentError, InvalidInput
from swink.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, UserMessage, clean
from swink.messages.checks import check_type
from swink.messages.codec import to_builtins
from swink.messages.jsondata import as_data
from swink.messages.redact import redact_value
from swink.policies.chain import Chain, Head, Verification, verify
from swink.policies.inputs import check_flag, check_number
from swink.stream import observer
from swink.system.shorten import clip_end
from swink.system.threads import Outcome, Serial, begin, outcome_of

log = logging.getLogger("swink.policies.audit")

WRITTEN_WITHIN = 30.0
"""Seconds a run waits for a record to be on the disk."""


class BrokenLog(AgentError):
    """Records of an audit log are gone, or are not those that were written."""

    kind = "misuse"


class AuditLogger(Policy):
    """One line per turn and per run, however it ended: model, calls with arguments, results, usage, cost.

    Lines of a sub-agent, or of a member of a team, have its name as `agent`. Secrets are redacted, texts cut
    to `max_text` characters. With a `key` only its holder can write lines that verify. `anchor` keeps the
    head: a file (better on another machine), or a function that sends it somewhere. An append that finds
    lines or the log gone warns, and writes a record with the event "broken". Threads and processes may share
    a file, which its owner alone can read. If the log cannot be written, or is found broken, a warning is
    logged and the run goes on; with `required=True` it stops.

    Args:
        path: the log
        label: the name of the agent in its lines

    >>> agent = Agent(model, policies=[AuditLogger("audit.jsonl", anchor="audit.head")])
    >>> await agent.run("Hello")
    >>> AuditLogger.verify("audit.jsonl", head="audit.head").ok
    """

    def __init__(
        self,
        path: str | Path,
        *,
        key: str | bytes | None = None,
        anchor: str | Path | Callable[[Head], None] | None = None,
        max_text: int = 2_000,
        label: str = "",
        required: bool = False,
    ) -> None:
        check_type("AuditLogger(path=…)", path, (str, Path))
        check_number("max_text", max_text, whole=True)
        check_flag("required", required)
        if key is not None and not key:
            why = "so anybody could write lines that verify"
            raise InvalidInput(f"key is empty, {why}: give a secret, or None")
        if isinstance(anchor, str | Path):
            anchor = Path(anchor)
        elif anchor is not None and not callable(anchor):
            raise InvalidInput(f"anchor={anchor!r}: give a path, or a function that takes the head")
        self.path = Path(path)
        if anchor == self.path:
            raise InvalidInput("anchor is the log itself: give another file, better on another machine")
        self.max_text = max_text
        self.label = label
        self.fail_closed = required
        self._key = key.encode() if isinstance(key, str) else key
        self._chain = Chain(self.path, self._key, anchor)
        self._turns: WeakKeyDictionary[RunKey, int] = WeakKeyDictionary()
        self._records = Serial()

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        """Write a line for the turn."""
        if ctx.run is not None:
            self._turns[ctx.run] = ctx.turn
        await self.write(self._turn(ctx, turn, ctx.fresh))

    async def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
        """Write the result of the run, and before it the last turn if the run ended in the middle of it
        (`ending`).
        """
        cost = None if ctx.cost is None else ctx.cost.total
        usage = to_builtins(ctx.usage)
        end: dict[str, Any] = {"event": "end", "turns": ctx.turn, "usage": usage, "cost": cost}
        end |= {"stop_reason": ending.stop_reason, "reason": ending.reason, "error": ending.error} | _agent()
        records = [end]
        if ending.turn is not None and ctx.run is not None and self._turns.get(ctx.run, 0) < ctx.turn:
            records = [self._turn(ctx, ending.turn, _before(ctx.messages, ending.turn.message)), end]
        elif ctx.fresh:
            end["input"] = self._texts(ctx.fresh)
        # Both are queued before the first await: they are written even if the run is cancelled here.
        for written in [self._queue(record) for record in records]:
            await _await_written(written)

    async def write(self, record: dict[str, Any]) -> None:
        """Append a record of your own; secrets in it are redacted."""
        await _await_written(self._queue(record))

    def append(self, record: dict[str, Any]) -> Head:
        """Append a record as it is; then raise `BrokenLog` if a `required` log was found broken."""
        stamp = {"label": clean(self.label)} if self.label else {}
        head, problem = self._chain.append(as_data(record), stamp)
        if problem is not None:
            log.warning("audit log %s is broken: %s", self.path, problem)
            if self.fail_closed:
                raise BrokenLog(f"audit log {self.path} is broken: {problem}")
        return head

    def twin(self, path: Path) -> "AuditLogger":
        """One that writes in the same way to the file `path`, without an anchor."""
        twin = copy(self)
        options: dict[str, Any] = {"key": self._key, "max_text": self.max_text, "label": self.label}
        AuditLogger.__init__(twin, path, required=self.fail_closed, **options)
        return twin

    def check(self) -> Verification:
        """Verify the log that this policy writes."""
        return verify(self.path, key=self._key)

    @staticmethod
    def verify(
        path: str | Path, *, key: str | bytes | None = None, head: Head | str | Path | None = None
    ) -> Verification:
        """Read the log at `path`, with its `key` and `head`, and report each place where it is not as it was
        written.
        """
        return verify(path, key=key, head=head)

    def _queue(self, record: dict[str, Any]) -> "asyncio.Future[Outcome[Head]]":
        """Let a thread write a record; records are written in the order in which they were queued."""
        return begin(self._records.start, lambda: self.append(redact_value(as_data(record))))

    def _turn(self, ctx: PolicyContext, turn: Turn, entered: Sequence[Message]) -> dict[str, Any]:
        message = turn.message
        results = {result.tool_call_id: result for result in turn.tool_results}
        record: dict[str, Any] = {
            "event": "turn",
            "turn": ctx.turn,
            "reason": turn.reason,
            "model": f"{message.provider}:{message.model}",
            "input": self._texts(entered),
            "text": self._cut(message.text),
            "calls": [self._call(call.resolved, results.get(call.id)) for call in message.tool_calls],
            "usage": to_builtins(message.usage),
            "cost": None if message.cost is None else message.cost.total,
        }
        if turn.inner_calls:
            inner = [self._call(each.call, each.result) | {"outer": each.outer} for each in turn.inner_calls]
            record["inner_calls"] = inner
        failure = {"error": self._cut(message.error_message or "")} if message.failed else {}
        return record | failure | _agent()

    def _call(self, call: ToolCall, result: ToolResultMessage | None) -> dict[str, Any]:
        record: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
        if result is not None:
            record |= {"is_error": result.is_error, "result": self._cut(result.text)}
        return record

    def _texts(self, messages: Sequence[Message]) -> list[str]:
        return [self._cut(item.text) for item in messages if item.text]

    def _cut(self, text: str) -> str:
        return clip_end(text, self.max_text, f"[… {len(text) - self.max_text} more characters]")


def _agent() -> dict[str, str]:
    """Whose record it is, for those of a sub-agent or of a member of a team."""
    name = observer.agent_name.get()
    return {} if name is None else {"agent": clean(name)}


async def _await_written(written: "asyncio.Future[Outcome[Head]]") -> None:
    async with asyncio.timeout(WRITTEN_WITHIN):
        outcome_of(await written)


def _before(messages: Sequence[Message], reply: AssistantMessage) -> list[Message]:
    """What entered the context just before a reply."""
    entered: list[Message] = []
    found = False
    for message in reversed(messages):
        if found and isinstance(message, UserMessage):
            entered.append(message)
        elif found and isinstance(message, AssistantMessage | ToolResultMessage):
            break
        found = found or message is reply
    return entered[::-1]
