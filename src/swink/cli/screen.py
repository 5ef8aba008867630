"""`swink` on a terminal: the conversation in the terminal interface."""

import argparse
import importlib.util
import os
import sys

from swink.assistant.keeping import open_store
from swink.assistant.permissions import Permissions
from swink.cli.conversation import approval_word, make_agent
from swink.cli.resuming import keeper_of_chat
from swink.interrupts import raise_interrupts
from swink.tools.workspace import Workspace
from swink.transcript import Transcript


def why_plain(arguments: argparse.Namespace) -> str | None:
    """Why the line chat is used instead; None if there is no reason."""
    if arguments.plain or os.environ.get("SWINK_PLAIN"):
        return ""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "standard output is no terminal"
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return f"TERM={os.environ.get('TERM', '')} cannot show it"
    if importlib.util.find_spec("textual") is None:
        return 'Textual is not installed; pip install "swink[tui]" brings it'
    return None


def show_screen(arguments: argparse.Namespace) -> int:
    """Show the conversation that the arguments describe until the user leaves."""
    from swink.assistant.snapshots.policy import Snapshots
    from swink.tui import Conductor, Conversations, start

    raise_interrupts()
    keeper = keeper_of_chat(arguments)
    permissions = Permissions(approval_word(arguments), workspace=Workspace(os.getcwd()))
    snapshots = None if keeper is None else Snapshots(os.getcwd(), keeper)
    agent = make_agent(
        arguments,
        permissions if snapshots is None else snapshots.approving(permissions),
        None if keeper is None else keeper.session,
        () if snapshots is None else [snapshots],
    )
    conductor = Conductor(agent)
    if keeper is not None and keeper.is_resumed:
        conductor.adopt(agent, Transcript.of(keeper.session.conversation))
    store = None if keeper is None else open_store()
    return start(conductor, permissions, Conversations(conductor, store, keeper, snapshots=snapshots))
