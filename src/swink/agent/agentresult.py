"""What a run came to: its messages, output, cost, and why it ended."""

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Generic, cast

from msgspec import UNSET, Struct, UnsetType

from swink.agent.config import T
from swink.errors import AgentError, RunStopped, StructuredOutputFailed, error_for, plainly
from swink.events import final_text
from swink.messages import AssistantMessage, Cost, Message, StopReason, Usage
from swink.messages.records import PendingApproval
from swink.messages.redact import redact_text
from swink.system.shorten import short_repr

log = logging.getLogger("swink")


class AgentResult(Struct, Generic[T], frozen=True, eq=False):
    """What a run came to. A model failure is a result with `stop_reason="error"`, not an exception.

    Args:
        messages: what the run added to the history
        stop_reason: how the last reply ended: "stop", "length", "tool_use", "error" or "aborted"
        usage: tokens of all its requests, sub-agents' included
        cost: what they cost; None if that is unknown
        error: what went wrong, in words; None if nothing did
        error_kind: the kind of the error, such as "rate_limit"
        reason: why a policy, a deadline or a pause ended the run
        exception: the error itself, whose `__cause__` is what a stream function or a server raised
        value: the output; UNSET if one was asked for and there is none
        pending: the calls that wait for an approval, if the run ended with `reason="approval"`
        stopped: whether a policy ended the run early; if there is no answer, `raise_for_error` raises then
    """

    messages: tuple[Message, ...]
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    cost: Cost | None = None
    error: str | None = None
    error_kind: str | None = None
    reason: str | None = None
    exception: AgentError | None = None
    value: T | UnsetType | None = None
    pending: tuple[PendingApproval, ...] = ()
    stopped: bool = False

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        fields = [name for name in self.__struct_fields__ if name != "exception"]
        return all(getattr(self, name) == getattr(other, name) for name in fields)

    def __hash__(self) -> int:
        return hash((self.messages, self.stop_reason, self.error, self.reason))

    def __repr__(self) -> str:
        wrong = "reason" if self.error is None else "error"
        shown = {
            "text": redact_text(final_text(self.messages)[:1_000]),
            wrong: redact_text((self.error or self.reason or "")[:1_000]),
            "pending": [call.name for call in self.pending],
            "output": "" if self.value is None or self.value is UNSET else type(self.value).__name__,
            "stop_reason": self.stop_reason,
            "messages": len(self.messages),
            "tokens": self.usage.total,
            "cost": None if self.cost is None else round(self.cost.total, 6),
        }
        return short_repr("AgentResult", {key: value for key, value in shown.items() if value})

    @property
    def text(self) -> str:
        """The text of the last reply."""
        if self.pending:
            names = ", ".join([call.name for call in self.pending])
            _warn_waiting(names, ", ".join([f"{call.call_id!r}: True" for call in self.pending]))
        return final_text(self.messages)

    @property
    @plainly
    def output(self) -> T:
        """The value of the type asked for; if there is none, this raises the run's error."""
        if self.value is UNSET:
            self.raise_for_error()
            replies = [each for each in self.messages if isinstance(each, AssistantMessage)]
            model = f"{replies[-1].provider}:{replies[-1].model}" if replies else ""
            why = f"the run ended before there was one ({self.reason or self.stop_reason})"
            raise StructuredOutputFailed(0, why, model)
        return cast(T, self.value)

    @plainly
    def raise_for_error(self) -> "AgentResult[T]":
        """The result itself, unless the run failed, was aborted, or stopped before its answer."""
        if self.stopped and (self.value is UNSET or not is_answered(self.messages)):
            raise RunStopped(self.reason or "a policy stopped it", self)
        if self.stop_reason not in ("error", "aborted"):
            return self
        raise self.exception or error_for(self.error_kind, self.error or self.reason or self.stop_reason)


@lru_cache(1024)
def _warn_waiting(names: str, answers: str) -> None:
    """Say once that a text is no answer yet."""
    text = "the run waits for an approval of %s, so its text is no answer yet; go on with run(approvals={%s})"
    log.warning(text, names, answers)


def is_answered(messages: Sequence[Message]) -> bool:
    """Whether the last word is a whole reply that calls no tool."""
    last = messages[-1] if messages else None
    return isinstance(last, AssistantMessage) and not last.failed and not last.tool_calls
