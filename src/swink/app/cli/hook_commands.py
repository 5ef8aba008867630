"""`swink hooks`: the shell hooks of this directory, and what they answer to an event."""

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from swink.app.assistant.hookfiles import make_hooks, read_own_hooks
from swink.app.assistant.settings import load_settings
from swink.app.cli.directory import trust_without_person
from swink.app.cli.terminal import say, table
from swink.errors import MisuseError
from swink.messages.redact import redact_text
from swink.system.interrupts import raise_interrupts
from swink.system.oneline import strip_controls
from swink.system.threads import run_to_end

if TYPE_CHECKING:
    from swink.app.assistant.hookpolicies import TrustedHooks
    from swink.policies.hooks import Event, Hook, HookAnswer

_OF_CALLS = ("PreToolUse", "PostToolUse", "PermissionRequest")


def list_command(arguments: argparse.Namespace) -> int:
    """`swink hooks list`: the hooks of this directory."""
    hooks = _open_group().hooks
    if not hooks:
        say("no hooks; [[hooks]] in config.toml and .claude/settings.json of a trusted project name them")
        return 0
    rows: list[tuple[str, ...]] = [("EVENT", "MATCHER", "FROM", "COMMAND")]
    for hook in hooks:
        command = strip_controls(redact_text(hook.command)).replace("\n", "\\n")
        rows.append((hook.event, strip_controls(hook.matcher) or "*", hook.source, command))
    print(table(rows))
    return 0


def test_command(arguments: argparse.Namespace) -> int:
    """`swink hooks test`: run the hooks of an event; 1 if they block."""
    group, event = _open_group(), cast("Event", arguments.event)
    given = _read_input(arguments.input)
    if arguments.tool is None and event in _OF_CALLS:
        raise MisuseError(
            f'{event} is about a call: name a tool, e.g. --tool bash --input \'{{"command": "ls"}}\''
        )
    raise_interrupts()
    answers = run_to_end(_ask(group, event, arguments.tool, given))
    if not answers:
        say(f"no hook here is for {event}{'' if arguments.tool is None else f' of {arguments.tool}'}")
        return 0
    for hook, answer in answers:
        print(f"{strip_controls(redact_text(hook.command))}\n  {strip_controls(_describe(answer))}")
    return 1 if any(answer.decision == "deny" or answer.stop is not None for _, answer in answers) else 0


def _open_group() -> "TrustedHooks":
    """The hooks of the settings, and of this project if it is trusted."""
    from swink.app.assistant.hookpolicies import TrustedHooks

    settings, trust = load_settings(), trust_without_person()
    entries, problems = read_own_hooks(settings.hooks)
    if trust.is_trusted:
        entries += trust.brought.hooks
        problems += trust.brought.hook_notices
    hooks, wrong = make_hooks(entries)
    for problem in (*problems, *wrong, *filter(None, [trust.notice])):
        say(problem, "warning")
    group = TrustedHooks(Path(os.getcwd()), trust.project, dict, say)
    group.hooks, group.programs = tuple(hooks), dict(trust.brought.hook_programs)
    return group


def _read_input(text: str | None) -> dict[str, Any]:
    try:
        found: Any = json.loads(text or "{}")
    except ValueError as error:
        raise MisuseError(f"--input is no JSON: {error}") from error
    except RecursionError:
        raise MisuseError("--input is nested too deeply") from None
    if not isinstance(found, dict):
        raise MisuseError("--input is the JSON object of a tool's arguments")
    return cast("dict[str, Any]", found)


async def _ask(
    group: "TrustedHooks", event: "Event", tool: str | None, given: dict[str, Any]
) -> "list[tuple[Hook, HookAnswer]]":
    """What each hook answers; the input is in our names, or the fields of an event."""
    from swink.policies.hooks.hookgroup import HookedCall

    if tool is not None:
        response = {"tool_response": {"content": ""}} if event == "PostToolUse" else {}
        return await group.ask(event, HookedCall(tool, given), response)
    found = [hook for hook in group.hooks if hook.event == event]
    return [(hook, await group.run_one(hook, {"prompt": "", **given})) for hook in found]


def _describe(answer: "HookAnswer") -> str:
    words = {"deny": "blocks", "ask": "asks the person", "allow": "allows", None: "has no objection"}
    parts = [f"{words[answer.decision]}{f': {answer.reason}' if answer.reason else ''}"]
    parts += (
        [f"changes the input to {json.dumps(dict(answer.updated_input))}"] if answer.updated_input else []
    )
    parts += [f"tells the model: {answer.context}"] if answer.context else []
    parts += [f"stops the agent: {answer.stop}"] if answer.stop is not None else []
    parts += [f"failed: {answer.problem}"] if answer.problem else []
    return "; ".join(parts)
