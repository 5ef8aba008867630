"""Patterns: regular expressions of case files, in texts that a model wrote."""

import asyncio
import re
from functools import lru_cache

from swink.errors import AgentError, InvalidInput
from swink.tools import tool
from swink.tools.workers import run_in_process

PATIENCE = 10.0
"""Seconds that a pattern may take."""
_REPEATED_GROUP = re.compile(r"\)\s*[*+{]")
_OPEN_REPEAT = re.compile(r"[*+]|\{\d*,\}")
_BACKREFERENCE = re.compile(r"\\[1-9]|\(\?P=")


class PatternTooSlow(AgentError):
    """A regular expression takes too long."""

    kind = "misuse"


async def search(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text.

    One that might take forever is matched in a process, which can be killed: `re` holds the interpreter.
    """
    compiled = compile_pattern(pattern)
    if not _may_explode(pattern, len(text)):
        return compiled.search(text) is not None
    try:
        async with asyncio.timeout(PATIENCE):
            return bool(await run_in_process(__name__, "search_here", {"pattern": pattern, "text": text}))
    except TimeoutError:
        raise PatternTooSlow(
            f"the regular expression {pattern!r} takes longer than {PATIENCE:g} s: a repeat inside a repeat, "
            "as in (a+)+, can take forever; simplify it"
        ) from None


@lru_cache(1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A compiled pattern; one that cannot be compiled is `InvalidInput`."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{pattern!r} is no regular expression: {error}") from error


@tool(isolation="process")
def search_here(pattern: str, text: str) -> bool:
    """Whether the pattern is found, in this process."""
    return re.search(pattern, text) is not None


def _may_explode(pattern: str, length: int) -> bool:
    """Whether matching may take more than a moment, by the look of the pattern; rather too often than not."""
    if _REPEATED_GROUP.search(pattern) or _BACKREFERENCE.search(pattern):
        return True
    # Each open repeat may be tried from each place: the length to the power of their number.
    return float(max(length, 2)) ** min(len(_OPEN_REPEAT.findall(pattern)) + 1, 12) > 1e7
