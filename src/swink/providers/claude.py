"""Claude, wherever it is served: its versions, and how each is told to think."""

import re
from typing import Any

from swink.messages import ModelSpec
from swink.providers.efforts import refuse
from swink.providers.notices import Notices

LEAST_ANSWER = 1024
BUDGETS = {"minimal": 1024, "low": 2048, "medium": 5000, "high": 10_000, "extra_high": 20_000}
_VERSION = re.compile(r"(?<!\d)(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")


def claude_version(model_id: str) -> tuple[int, int]:
    """Major and minor version in a Claude model's name, wherever it stands; (0, 0) for anything else."""
    name = model_id.lower()
    if "claude" not in name:
        return (0, 0)
    if found := _VERSION.search(name):
        return int(found[1]), int(found[2] or 0)
    return (4, 7) if "mythos" in name else (0, 0)


def without_thinking(model: ModelSpec, version: tuple[int, int], notices: Notices) -> dict[str, Any]:
    """What turns thinking off: nothing before Claude 5, which thinks unless it is told not to."""
    if any(name in model.model_id.lower() for name in ("fable", "mythos")):
        return refuse(model, notices, "")
    return {"thinking": {"type": "disabled"}} if version >= (5, 0) else {}


def claude_effort(level: str, version: tuple[int, int], model_id: str) -> str:
    """The effort nearest to a thinking level that a Claude model takes."""
    if level == "extra_high":
        return "xhigh" if version >= (4, 7) else "max" if "opus" in model_id else "high"
    return "low" if level == "minimal" else level
