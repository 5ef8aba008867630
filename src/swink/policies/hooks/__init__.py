"""Shell hooks in the form that Claude Code made common: commands that judge, change or add to what happens.

    Hook ──payload on standard input──▶ its command ──exit code, output──▶ HookAnswer
    HookGroup: those that match run concurrently; deny beats ask beats allow

`ShellHook` in `swink.policies` runs them for an agent.
"""

from swink.policies.hooks.hook import EVENTS, GUARDS, Event, Hook
from swink.policies.hooks.hookanswers import HookAnswer, HookOutcome, join_answers, read_answer
from swink.policies.hooks.hookgroup import HookGroup
from swink.policies.hooks.hookprocess import run_hook

__all__ = [
    "EVENTS",
    "GUARDS",
    "Event",
    "Hook",
    "HookAnswer",
    "HookGroup",
    "HookOutcome",
    "join_answers",
    "read_answer",
    "run_hook",
]
