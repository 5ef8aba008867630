"""Limits on a run: how many model calls, and which tools."""

import re
from collections.abc import Iterable
from contextvars import ContextVar
from fnmatch import fnmatchcase
from weakref import WeakKeyDictionary

from msgspec import Struct

from swink.agent.policy import CallVerdict, Policy, PolicyContext, RetryVerdict, RunKey, Skip, Stop
from swink.agent.structured import NAME as FINAL_OUTPUT
from swink.errors import InvalidInput
from swink.messages import ToolCall
from swink.policies.inputs import check_number
from swink.tools import FIND_TOOLS

Pattern = str | re.Pattern[str]
"""A tool's exact name, a glob (`fs_*`), or a compiled regular expression that must match the whole name."""


class MaxTurns(Policy):
    """At most `limit` model calls in a run; a request that is retried, or sent to a fallback, counts again.

    A sub-agent that has this very object counts with the run that started it; others count by themselves.

    >>> agent = Agent(model, policies=[MaxTurns(20)])
    """

    fail_closed = True

    def __init__(self, limit: int) -> None:
        check_number("limit", limit, 1, whole=True)
        self.limit = limit
        self._of_run: WeakKeyDictionary[RunKey, _Calls] = WeakKeyDictionary()

    def pre_turn(self, ctx: PolicyContext) -> RetryVerdict:
        """Stop once the calls are used up; otherwise the next one is counted before it is made."""
        made = self._calls(ctx).count(max(ctx.turn, ctx.requests), self.limit)
        return Stop(f"max turns: {made} of {self.limit} model calls made") if made >= self.limit else None

    def pre_retry(self, ctx: PolicyContext) -> RetryVerdict:
        """Count a request that is sent again."""
        return self.pre_turn(ctx)

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> None:
        """Begin to count: a turn that is taken up later begins with its calls, which may start sub-agents."""
        self._calls(ctx)

    def _calls(self, ctx: PolicyContext) -> "_Calls":
        """Those of this run; a run seen for the first time is counted with the run it was started in."""
        known = None if ctx.run is None else self._of_run.get(ctx.run)
        if known is None:
            around = next((total for policy, total in _totals.get() if policy is self), None)
            known = _Calls(around or _Total())
            if ctx.run is not None:
                self._of_run[ctx.run] = known
                _totals.set((*_totals.get(), (self, known.total)))
        return known


class _Total(Struct):
    """Model calls of a run and of those inside it, made or about to be made."""

    calls: int = 0


class _Calls(Struct):
    """Model calls of one run, as a part of a total."""

    total: _Total
    counted: int = 0

    def count(self, made: int, limit: int) -> int:
        """The total, once this run has made so many; below the limit the next call is counted already."""
        so_far = self.total.calls + made - self.counted
        is_next = so_far < limit
        self.total.calls, self.counted = so_far + is_next, made + is_next
        return so_far


_totals: ContextVar[tuple[tuple[MaxTurns, _Total], ...]] = ContextVar("swink.max_turns", default=())
"""What the enclosing runs, and this one, count with."""


class ToolDenyList(Policy):
    """Tools that must not be called, by exact name, glob or regular expression; the model is told.

    Args:
        patterns: names of tools, with * for any part

    >>> denied = ToolDenyList("bash", "fs_write_*", re.compile(r"db_(drop|delete)_.+"))
    >>> agent = Agent(model, policies=[denied])
    """

    fail_closed = True

    def __init__(self, *patterns: Pattern | Iterable[Pattern]) -> None:
        self.patterns = _flatten(patterns)
        if not self.patterns:
            raise InvalidInput("ToolDenyList() denies nothing: name tools, or leave the policy out")

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
        """Refuse a call of one of these."""
        if any(matches(pattern, call.name) for pattern in self.patterns):
            return Skip(f"tool call not run: {call.name!r} is not allowed here; do without it")
        return None


class ToolAllowList(Policy):
    """The only tools that may be called, by exact name, glob or regular expression; the model is told.

    The tools that take structured output (`run(output=…)`) and find deferred tools are always allowed.

    Args:
        patterns: names of tools, with * for any part

    >>> agent = Agent(model, policies=[ToolAllowList("read_file", "search_*")])
    """

    fail_closed = True

    def __init__(self, *patterns: Pattern | Iterable[Pattern]) -> None:
        self.patterns = _flatten(patterns)

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
        """Refuse a call of any other tool."""
        if call.name in (FINAL_OUTPUT, FIND_TOOLS) or any(
            matches(pattern, call.name) for pattern in self.patterns
        ):
            return None
        names = [pattern if isinstance(pattern, str) else pattern.pattern for pattern in self.patterns]
        allowed = ", ".join(names) or "none"
        return Skip(f"tool call not run: {call.name!r} is not allowed here; allowed: {allowed}")


def matches(pattern: Pattern, name: str) -> bool:
    """Whether a pattern matches the name of a tool."""
    if isinstance(pattern, re.Pattern):
        return pattern.fullmatch(name) is not None
    return pattern == name or (any(char in pattern for char in "*?[") and fnmatchcase(name, pattern))


def _flatten(patterns: Iterable[Pattern | Iterable[Pattern]]) -> tuple[Pattern, ...]:
    flat: list[Pattern] = []
    for pattern in patterns:
        if isinstance(pattern, Iterable) and not isinstance(pattern, str):
            flat.extend(pattern)
        else:
            flat.append(pattern)
    for pattern in flat:
        if not isinstance(pattern, str | re.Pattern) or pattern == "":
            raise InvalidInput(f"{pattern!r} names no tool: give its name, a glob or a compiled pattern")
    return tuple(flat)
