"""What hooks answer, as published: by an exit code, a text, or one JSON object on standard output.

exit 0                 the output is a text, or a JSON object
exit 2                 blocks; standard error is the reason
cannot start, is killed, times out, broken JSON
                       blocks where the event fails closed, else is a problem to report
any other exit code    a problem to report; blocks nothing
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from swink.policies.hooks.hook import GUARDS, Event

Decision = Literal["allow", "ask", "deny"]
MOST_CONTEXT = 10_000
"""Characters of a text that the model gets to see."""
_RANKED: tuple[Decision, ...] = ("deny", "ask", "allow")
_TEXT_IS_CONTEXT: tuple[Event, ...] = ("SessionStart", "UserPromptSubmit")
_BLOCK, _CANNOT_START, _SIGNALS = 2, (126, 127), range(129, 193)
_CANNOT_BLOCK: tuple[Event, ...] = ("SessionStart", "SessionEnd", "Notification")


class HookOutcome(Struct, frozen=True):
    """How the command of a hook ended."""

    code: int = 0
    output: str = ""
    errors: str = ""
    failure: str = ""
    """Why it did not end by itself, or never started."""
    is_cut: bool = False
    """Whether there was more output than is kept."""


class HookAnswer(Struct, frozen=True):
    """What a hook wants."""

    decision: Decision | None = None
    reason: str = ""
    context: str = ""
    """What the model is to read."""
    updated_input: Mapping[str, Any] | None = None
    stop: str | None = None
    """Why the agent is to stop altogether."""
    message: str = ""
    """What the person is to read."""
    problem: str = ""
    """What went wrong, where it blocks nothing."""


class _Broken(ValueError):
    """An answer that cannot be understood."""


def read_answer(event: Event, outcome: HookOutcome) -> HookAnswer:
    """What the command of a hook meant by the way it ended."""
    failure = outcome.failure or _find_failure(outcome.code)
    if failure:
        return _failed(event, f"{failure}{_tail(outcome.errors)}")
    if outcome.code == _BLOCK:
        reason = _clip(outcome.errors.strip()) or "a hook blocked it without a reason"
        return HookAnswer(problem=reason) if event in _CANNOT_BLOCK else HookAnswer("deny", reason)
    if outcome.code != 0:
        return HookAnswer(problem=f"exit code {outcome.code}{_tail(outcome.errors)}")
    text = outcome.output.lstrip("\ufeff").strip()
    if outcome.is_cut and event in GUARDS:
        return _failed(event, "its output is too long for an answer")
    if not text.startswith("{"):
        return HookAnswer(context=_clip(text) if event in _TEXT_IS_CONTEXT else "")
    try:
        return _read_object(event, text, outcome.is_cut)
    except _Broken as error:
        return _failed(event, str(error))


def join_answers(answers: Iterable[HookAnswer]) -> HookAnswer:
    """What several hooks want together: deny beats ask beats allow, and the first changed input counts."""
    found = list(answers)
    given = {answer.decision for answer in found}
    decision: Decision | None = next((one for one in _RANKED if one in given), None)
    deciding = [answer for answer in found if answer.decision == decision and decision is not None]
    return HookAnswer(
        decision,
        "\n".join(dict.fromkeys(answer.reason for answer in deciding if answer.reason)),
        "\n".join(answer.context for answer in found if answer.context),
        next((answer.updated_input for answer in found if answer.updated_input is not None), None),
        next((answer.stop for answer in found if answer.stop is not None), None),
        "\n".join(answer.message for answer in found if answer.message),
        "\n".join(answer.problem for answer in found if answer.problem),
    )


def _find_failure(code: int) -> str:
    if code in _CANNOT_START:
        return f"it could not be started (exit code {code})"
    return f"it was killed by signal {code - 128}" if code in _SIGNALS else ""


def _failed(event: Event, why: str) -> HookAnswer:
    if event in GUARDS:
        return HookAnswer("deny", f"a hook that has to judge this failed: {why}")
    return HookAnswer(problem=why)


def _read_object(event: Event, text: str, is_cut: bool) -> HookAnswer:
    if is_cut:
        raise _Broken("its output is too long for an answer")
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Broken(f"its output begins as a JSON object and is none ({error})") from error
    fields = _table(found, "the answer")
    special = _table(fields.get("hookSpecificOutput") or {}, "hookSpecificOutput")
    if special.get("hookEventName", event) != event:
        raise _Broken(f"its answer is one for {special['hookEventName']!r}, not for {event}")
    decision, reason = _read_decision(fields, special)
    updated = special.get("updatedInput")
    request = _table(special.get("decision") or {}, "decision")
    if request:
        decision, reason = _read_behavior(request)
        updated = request.get("updatedInput", updated)
    stop = None
    if fields.get("continue", True) is False:
        stop = _text(fields, "stopReason") or "a hook stopped the agent"
    return HookAnswer(
        decision,
        _clip(reason),
        _clip(_text(special, "additionalContext")),
        None if updated is None else _table(updated, "updatedInput"),
        stop,
        _clip(_text(fields, "systemMessage")),
    )


def _read_decision(fields: Mapping[str, Any], special: Mapping[str, Any]) -> tuple[Decision | None, str]:
    """The decision and its reason; that of the event comes before the older one for all events."""
    match special.get("permissionDecision"):
        case None:
            pass
        case "allow" | "ask" | "deny" as decision:
            return decision, _text(special, "permissionDecisionReason") or _text(fields, "reason")
        case other:
            raise _Broken(f"there is no permissionDecision {other!r}")
    match fields.get("decision"):
        case None:
            return None, ""
        case "block":
            return "deny", _text(fields, "reason") or "a hook blocked it without a reason"
        case "approve":
            return "allow", _text(fields, "reason")
        case other:
            raise _Broken(f"there is no decision {other!r}")


def _read_behavior(request: Mapping[str, Any]) -> tuple[Decision, str]:
    """The decision about a PermissionRequest."""
    match request.get("behavior"):
        case "allow" | "deny" as behavior:
            return behavior, _text(request, "message")
        case other:
            raise _Broken(f"there is no behavior {other!r}")


def _table(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Broken(f"{what} is no JSON object")
    return cast("dict[str, Any]", value)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise _Broken(f"{name} is no text")
    return (value or "").strip()


def _tail(errors: str) -> str:
    shown = _clip(errors.strip(), 500)
    return f": {shown}" if shown else ""


def _clip(text: str, most: int = MOST_CONTEXT) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[… {len(text) - most:,} more characters]"
