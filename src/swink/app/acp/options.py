"""What a person can change of a session in the editor: its mode, its model, how hard the model thinks.

plan            look and plan; then the plan is carried out, if the person says so
on, smart, …    carry out, and ask about calls in this way: the approval modes of the terminal
execute         carry out as before the plan (taken, not listed: it is one of those above)
"""

from collections.abc import Sequence
from typing import Any

from swink.app.assistant.approvalmodes import MEANINGS, ApprovalWord
from swink.app.assistant.modellist import model_rows, recall
from swink.messages import ModelSpec
from swink.messages.modelspec import THINKING_LEVELS

PLAN, EXECUTE_MODE = "plan", "execute"
MODEL, THINKING = "model", "thinking"
_NAMES: dict[ApprovalWord, str] = {
    "on": "Ask always",
    "smart": "Ask when needed",
    "edits": "Accept edits",
    "sandboxed": "Accept edits and sandboxed commands",
    "off": "Ask nothing",
    "deny": "Refuse what would ask",
}
_MOST_MODELS = 200


def mode_state(current: str) -> dict[str, Any]:
    """The modes, and the one that holds."""
    plan = {"id": PLAN, "name": "Plan", "description": "look and plan, change nothing"}
    others = [{"id": word, "name": _NAMES[word], "description": told} for word, told in MEANINGS.items()]
    return {"currentModeId": current, "availableModes": [plan, *others]}


def offered_models(current: ModelSpec) -> list[dict[str, Any]]:
    """The models to choose from: those taken last, then those that can be asked; blocking."""
    rows = model_rows(str(current), recall())
    usable = [row for row in rows if not row.group.endswith(": no key")]
    return [{"value": row.name, "name": row.name, "description": row.group} for row in usable[:_MOST_MODELS]]


def config_options(current: ModelSpec, models: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The options of a session with their values."""
    named = str(current)
    listed = (
        [*models]
        if any(model["value"] == named for model in models)
        else [{"value": named, "name": named}, *models]
    )
    levels = [{"value": level, "name": level.replace("_", " ")} for level in THINKING_LEVELS]
    return [
        _select(MODEL, "Model", "model", named, listed),
        _select(THINKING, "Thinking", "thought_level", current.thinking_level, levels),
    ]


def as_word(mode: str) -> ApprovalWord | None:
    """The approval mode of an id, if it is one."""
    return mode if mode in MEANINGS else None


def _select(
    id: str, name: str, category: str, value: str, options: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": id,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": value,
        "options": options,
    }
