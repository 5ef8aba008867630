"""The result cache: results of earlier runs that came to their end, passed or not; one file for each.

They are found by the content of case, prompt, tools, model and code.
"""

import hashlib
import inspect
import logging
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import msgspec

import swink
from swink import Agent
from swink.eval.case import Case
from swink.eval.result import CaseResult
from swink.messages.jsondata import decode, encode
from swink.system.files import write_whole
from swink.tools import Tool

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


def key_of(case: Case, repeat: int, agent: Agent[Any, Any], used: Iterable[Any]) -> str:
    """What an attempt is known by; `used` is what else decides on its result: factory, scorers, judges."""
    prompt, tools = agent.system_prompt, agent.tools
    code = [*used, *tools, *([] if isinstance(prompt, str) else [prompt])]
    parts = {
        "case": msgspec.structs.replace(case, workspace=None, place=None),
        "files": [_digest(path) for path in case.attachments],
        "repeat": repeat,
        "prompt": prompt if isinstance(prompt, str) else "",
        "tools": [
            (tool.name, tool.description, tool.parameters_schema) for tool in tools if isinstance(tool, Tool)
        ],
        "model": agent.model,
        "messages": agent.messages,
        "code": [_code(item) for item in code],
        "version": swink.__version__,
    }
    return hashlib.sha256(encode(parts)).hexdigest()


def _code(item: Any) -> tuple[str, str]:
    """The name of something, and a digest of the file that it is written in."""
    if isinstance(item, str):
        return item, ""
    item = getattr(item, "func", item)  # of a partial
    item = getattr(item, "function", None) or item  # of a tool, or of a scorer
    named = cast(Any, item if hasattr(item, "__qualname__") else type(item))
    try:
        path = inspect.getsourcefile(inspect.unwrap(named))
    except TypeError:  # it is not written in Python
        path = None
    return f"{named.__module__}.{named.__qualname__}", _digest(path)


def _digest(path: str | None) -> str:
    try:
        status = Path(path or "").stat()
        return _file_digest(path or "", status.st_mtime_ns, status.st_size)
    except OSError:
        return ""


@lru_cache(1024)
def _file_digest(path: str, changed: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
