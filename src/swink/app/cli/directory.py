"""Where a command works: its directory, and whether what is in it is trusted."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from swink.app.assistant.luggage import list_hooks, with_skipped
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.trust import Trust, TrustError, answer, decided, find_project, look_up
from swink.app.cli.terminal import ask_line, say
from swink.errors import MisuseError
from swink.system.oneline import strip_controls
from swink.system.startup import put_last

if TYPE_CHECKING:
    from swink.app.assistant.agentenvironment import AgentEnvironment
    from swink.app.assistant.worktrees import OpenedWorktree

_SANDBOX_OPTIONS = (("level", "sandbox"), ("network", "network"))
"""What may be chosen of the sandbox, and the option for it; not every command has them."""


def change_directory(arguments: argparse.Namespace) -> None:
    """Change to the directory that `-C` names."""
    if arguments.directory is not None:
        try:
            os.chdir(arguments.directory)
        except OSError as error:
            raise MisuseError(f"-C {arguments.directory}: {error.strerror}") from error
        put_last(os.getcwd())


def change_worktree(arguments: argparse.Namespace) -> "OpenedWorktree | None":
    """Change to the worktree that `-w` names, which is made if there is none; None without the option."""
    arguments.opened = None
    if arguments.worktree is not None:
        from swink.app.cli.worktree_commands import enter_worktree  # most work in the tree itself

        arguments.opened = enter_worktree(arguments.worktree)
    return arguments.opened


def open_environment(
    arguments: argparse.Namespace,
    settings: UserSettings | None = None,
    trust: Trust | None = None,
    *,
    directory: str | Path | None = None,
) -> "AgentEnvironment":
    """The environment of an agent, here or in another directory; what was not asked about is not trusted."""
    from swink.app.assistant.agentenvironment import AgentEnvironment

    here = _here() if directory is None else directory
    environment = AgentEnvironment(here, trust or known_trust(here), settings)
    if (opened := getattr(arguments, "opened", None)) is not None:
        environment.work_in_tree(opened.worktree)
        for notice in opened.notices:
            environment.notify(notice)
    further = [("writable", os.path.abspath(place)) for place in getattr(arguments, "add_dir", ())]
    chosen = [(name, getattr(arguments, option, None)) for name, option in _SANDBOX_OPTIONS]
    for name, value in (*chosen, *further):
        if value is not None:
            environment.shell.choose(name, value)
    return environment


def known_trust(directory: str | Path | None = None) -> Trust:
    """What is known about this directory, or another one."""
    here = _here() if directory is None else directory
    try:
        return look_up(here)
    except TrustError as error:
        say(str(error), "warning")
        return Trust(find_project(here), "refused")


def trust_without_person() -> Trust:
    """What is known about this directory; its notice names what is skipped for want of trust."""
    return with_skipped(known_trust(), Path(os.path.realpath(_here())))


def ask_trust() -> Trust:
    """What is known about this directory; if that leaves something to ask, ask on the terminal."""
    trust = known_trust()
    if trust.standing != "changed" and (trust.standing != "unasked" or not os.listdir()):
        return trust
    print(f"{strip_controls(str(trust.project))}\n{trust.question}")
    for line in trust.changes or list_hooks(trust.brought):
        print(f"  {line}")
    for key, meaning in trust.answers.items():
        print(f"  {key}  {meaning}")
    keys = [key for key in trust.answers if key != "n"]
    typed = ask_line(f"trust it? [{'/'.join(keys)}/N] ")
    if typed is None:
        return decided(trust, False)
    said = typed.lower()[:1]
    try:
        return answer(trust, said if said in keys else "n")
    except TrustError as error:
        say(str(error), "warning")
        return decided(trust, said in keys)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise MisuseError(f"the current directory is gone ({error.strerror}); go to another one") from error
