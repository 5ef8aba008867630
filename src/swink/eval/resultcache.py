"""The result cache: results of earlier runs that came to their end, passed or not; one file for each.

They are found by the case, the first request as it would be sent, the agent's options, and the code of
agent, tools and scorers.
"""

import hashlib
import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

import swink
from swink import Agent
from swink.eval.case import Case
from swink.eval.fingerprint import NotTold, fingerprint
from swink.eval.result import CaseResult
from swink.messages.jsondata import decode, encode
from swink.system.files import write_whole

log = logging.getLogger("swink.eval")


def find_result(directory: Path, key: str) -> CaseResult | None:
    """The result of that key; one that cannot be read is none."""
    try:
        return decode((directory / key[:2] / f"{key}.json").read_bytes(), CaseResult)
    except (OSError, msgspec.DecodeError):
        return None


def keep_result(directory: Path, result: CaseResult) -> None:
    """Keep a result, if its attempt came to its end; a directory that cannot be written to is logged."""
    path = directory / result.key[:2] / f"{result.key}.json"
    try:
        if is_kept(result):
            write_whole(path, encode(result), durable=False, make_parents=True)
    except OSError as error:
        log.warning("the result cache cannot be written to: %s", error)


def is_kept(result: CaseResult) -> bool:
    """Whether a result says something about the agent: nothing failed and nothing was cut short."""
    is_whole = result.error is None and result.stop_reason not in ("error", "aborted")
    return bool(result.key) and is_whole and all(metric.error is None for metric in result.metrics)


def key_of(
    case: Case, repeat: int, agent: Agent[Any, Any], request: tuple[Any, ...], used: Sequence[Any]
) -> str:
    """What an attempt is known by; empty if there is something that cannot be told from another one.

    `request` is the first one, as it is about to be sent: model, context, options and stream function. `used`
    is what else decides on the result: factory, scorers, judges.
    """
    config = agent._config  # pyright: ignore[reportPrivateUsage]
    settings = [getattr(config, name) for name in _SETTINGS]
    attached = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in case.attachments]
    given = [settings, agent.system_prompt, agent.tools]
    told = [swink.__version__, repeat, attached, case, request, given, used]
    try:
        parts = [fingerprint(item, case.workspace) for item in told]
    except NotTold as error:
        _say(f"attempts are not cached: {error}")
        return ""
    return hashlib.sha256("".join(parts).encode()).hexdigest()


_SETTINGS = (
    "options", "retry", "fallbacks", "policies", "approve", "approval_mode", "transform_context",
    "convert_to_llm", "tool_execution", "tool_timeout", "hosted", "deps", "output",
)  # fmt: skip


@lru_cache(64)
def _say(text: str) -> None:
    """Tell it once in a process, not for every attempt."""
    log.warning("%s", text)
