"""Where a command works: its directory, and whether what is in it is trusted."""

import argparse
import os
from typing import TYPE_CHECKING

from swink.assistant.keeping import Keeper
from swink.assistant.settings import UserSettings
from swink.assistant.trust import ANSWERS, QUESTION, Trust, TrustError, answer, find_project, look_up
from swink.cli.terminal import say
from swink.errors import MisuseError
from swink.interrupts import Terminated

if TYPE_CHECKING:
    from swink.assistant.snapshots.policy import Snapshots
    from swink.assistant.workshop import Workshop


def change_directory(arguments: argparse.Namespace) -> None:
    """Go where `-C` says."""
    if arguments.directory is not None:
        try:
            os.chdir(arguments.directory)
        except OSError as error:
            raise MisuseError(f"-C {arguments.directory}: {error.strerror}") from error


def open_workshop(settings: UserSettings | None = None, trust: Trust | None = None) -> "Workshop":
    """What an agent has to work with here; a folder that nobody was asked about is not trusted."""
    from swink.assistant.workshop import Workshop

    return Workshop(_here(), trust or known_trust(), settings)


def open_snapshots(workshop: "Workshop", keeper: Keeper | None, settings: UserSettings) -> "Snapshots | None":
    """The snapshots of what tools do to files, if the conversation is saved."""
    from swink.assistant.snapshots.policy import Snapshots
    from swink.assistant.snapshots.survey import Limits

    if keeper is None:
        return None
    limits = Limits(new=settings.snapshot_megabytes << 20, files=settings.snapshot_files)
    return Snapshots(workshop.directory, keeper, limits=limits)


def known_trust() -> Trust:
    """What is known about this directory."""
    try:
        return look_up(_here())
    except TrustError as error:
        say(str(error), "warning")
        return Trust(find_project(_here()), "refused")


def ask_trust() -> Trust:
    """What is known about this directory; if nothing is and there is something in it, ask on the terminal."""
    trust = known_trust()
    if trust.standing != "unasked" or not os.listdir():
        return trust
    print(f"{trust.project}\n{QUESTION}")
    for key, meaning in ANSWERS.items():
        print(f"  {key}  {meaning}")
    try:
        said = input("trust it? [y/a/N] ").strip().lower()[:1]
    except Terminated:
        raise
    except (EOFError, KeyboardInterrupt):
        print()
        return Trust(trust.project, "refused")
    try:
        return answer(trust.project, said if said in ANSWERS else "n")
    except TrustError as error:
        say(str(error), "warning")
        return Trust(trust.project, "trusted" if said in ("y", "a") else "refused")


def _here() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise MisuseError(f"the current directory is gone ({error.strerror}); go to another one") from error
