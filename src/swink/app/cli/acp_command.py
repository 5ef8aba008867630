"""`swink acp`: the coding agent for an editor, on standard input and output."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swink.app.acp import Connection, EditorServer, OpenedConversation
from swink.app.assistant.awaitedreports import AwaitReports
from swink.app.assistant.modelchoice import choose_model
from swink.app.assistant.modellist import has_key
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.assistant.settings import load_settings
from swink.app.cli.agentsetup import make_chat_agent, use_local_models
from swink.app.cli.directory import change_directory, open_environment
from swink.app.cli.terminal import say
from swink.errors import AgentError, MissingKey
from swink.memory.store import SyncStore
from swink.models.keys.store import key_places
from swink.system.interrupts import interruptible
from swink.system.linepipes import LinePipes, claimed_descriptors
from swink.system.threads import run_to_end
from swink.tools.coding.workspace import Workspace


def acp_command(arguments: argparse.Namespace) -> int:
    """Serve the editor that started this program, until it leaves."""
    change_directory(arguments)
    if sys.stdin.isatty():
        say("an editor starts swink acp and talks to it on standard input and output; Ctrl-C leaves", "dim")
    load_settings()  # what is wrong in them is said now
    with claimed_descriptors() as pipes:
        return run_to_end(_serve(arguments, *pipes))


async def _serve(arguments: argparse.Namespace, source: int, sink: int) -> int:
    connection = Connection(LinePipes(source, sink))
    opening = ConversationOpening(arguments)
    server = EditorServer(connection, opening, _store(), opening.check_login)
    with interruptible(connection.end) as interruption:
        await server.serve()
    return 0 if interruption.signal is None else interruption.exit_code


def _store() -> SyncStore | None:
    if not load_settings().save:
        return None
    try:
        return open_store()
    except (AgentError, OSError) as error:
        say(f"conversations are not saved: {error}", "warning")
        return None


class ConversationOpening:
    """Makes the agents of an editor's sessions, as the arguments and settings say."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments

    def check_login(self) -> None:
        """Raise `MissingKey` if the model that is asked first has no key."""
        use_local_models()
        model = choose_model(self._arguments.model).model
        if not has_key(model.provider, key_places()):
            raise MissingKey(f"there is no key for {model}; swink keys set {model.provider} stores one")

    def __call__(
        self,
        directory: Path,
        saved: SavedConversation | None,
        servers: Mapping[str, Any],
        further: tuple[str, ...],
        *,
        has_forms: bool,
    ) -> OpenedConversation:
        """The agent of a conversation in a directory, with what the editor brings along; blocking."""
        settings = load_settings()
        environment = open_environment(self._arguments, settings, directory=directory)
        environment.further_servers = servers
        if environment.is_own:
            for place in further:
                environment.shell.choose("writable", place)
        elif further:
            environment.notify(f"{directory} is not trusted: commands do not write to further directories")
        permissions = Permissions(
            self._arguments.approve or settings.approve,
            workspace=Workspace(environment.directory),
            servers=environment.servers.owners,
            tell=environment.notify,
        )
        if has_forms:
            environment.fill_in = permissions.forms.ask
        environment.attend(permissions)
        waiting = AwaitReports(
            environment.sub_agents, environment.directory, environment.notify, saves=saved is not None
        )
        arguments = argparse.Namespace(**vars(self._arguments))
        if saved is not None and saved.is_resumed:
            arguments.model = arguments.thinking = None  # those of the session hold
        agent, snapshots = make_chat_agent(
            arguments, environment, permissions, saved, environment.notify, policies=[waiting]
        )
        return OpenedConversation(environment, permissions, agent, saved, snapshots)
