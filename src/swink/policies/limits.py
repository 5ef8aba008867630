"""Limits on a run: how many model calls, and which tools."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from swink.errors import MisuseError
from swink.messages import ToolCall
from swink.policy import Policy, PolicyContext, Skip, Stop, Verdict
from swink.structured import NAME as FINAL_OUTPUT

Pattern = str | re.Pattern[str]
"""A tool's exact name, a glob (`fs_*`), or a compiled regular expression that must match the whole name."""


class MaxTurns(Policy):
    """At most `limit` model calls in a run: every request counts, also one that failed and is sent again or to a fallback.

    A sub-agent's run counts by itself.

    >>> agent = Agent(model, policies=[MaxTurns(20)])
    """

    fail_closed = True

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise MisuseError(f"MaxTurns({limit}) would stop every run; give at least 1")
        self.limit = limit

    def pre_turn(self, ctx: PolicyContext) -> Verdict:
        """Stop once the calls are used up."""
        made = max(ctx.turn, ctx.requests)
        return Stop(f"max turns: {made} of {self.limit} model calls made") if made >= self.limit else None

    def pre_retry(self, ctx: PolicyContext) -> Verdict:
        """As before a turn."""
        return self.pre_turn(ctx)


class ToolDenyList(Policy):
    """Tools that must not be called, by exact name, glob or regular expression; the model is told.

    >>> agent = Agent(model, policies=[ToolDenyList("bash", "fs_write_*", re.compile(r"db_(drop|delete)_.+"))])
    """

    fail_closed = True

    def __init__(self, *patterns: Pattern | Iterable[Pattern]) -> None:
        self.patterns = _flat(patterns)

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Verdict:
        """Skip a listed tool."""
        if any(matches(pattern, call.name) for pattern in self.patterns):
            return Skip(f"tool call not run: {call.name!r} is not allowed here; do without it")
        return None


class ToolAllowList(Policy):
    """The only tools that may be called, by exact name, glob or regular expression; the model is told.

    The tool through which structured output is given (`run(output=…)`) is always allowed: it does nothing else.

    >>> agent = Agent(model, policies=[ToolAllowList("read_file", "search_*")])
    """

    fail_closed = True

    def __init__(self, *patterns: Pattern | Iterable[Pattern]) -> None:
        self.patterns = _flat(patterns)

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Verdict:
        """Skip a tool that is not listed."""
        if call.name == FINAL_OUTPUT or any(matches(pattern, call.name) for pattern in self.patterns):
            return None
        allowed = (
            ", ".join(pattern if isinstance(pattern, str) else pattern.pattern for pattern in self.patterns)
            or "none"
        )
        return Skip(f"tool call not run: {call.name!r} is not allowed here; allowed: {allowed}")


def matches(pattern: Pattern, name: str) -> bool:
    """Whether a tool's name is meant by a pattern."""
    if isinstance(pattern, re.Pattern):
        return pattern.fullmatch(name) is not None
    return pattern == name or (any(char in pattern for char in "*?[") and fnmatchcase(name, pattern))


def _flat(patterns: Iterable[Pattern | Iterable[Pattern]]) -> tuple[Pattern, ...]:
    flat: list[Pattern] = []
    for pattern in patterns:
        flat.extend([pattern] if isinstance(pattern, str | re.Pattern) else pattern)
    return tuple(flat)
