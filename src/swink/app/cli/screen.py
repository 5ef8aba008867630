"""`swink` on a terminal: the conversation in the terminal interface."""

import argparse
import importlib.util
import os
import sys

from swink.app.assistant.firstrun import is_first_run
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.assistant.settings import load_settings
from swink.app.cli.agentsetup import make_chat_agent
from swink.app.cli.directory import open_environment
from swink.app.cli.resuming import saved_chat
from swink.events.transcript import Transcript
from swink.system.extras import install_command
from swink.system.interrupts import raise_interrupts
from swink.tools.coding.workspace import Workspace


def why_plain(arguments: argparse.Namespace) -> str | None:
    """Why the line chat is used instead; None if there is no reason."""
    if arguments.plain or os.environ.get("SWINK_PLAIN"):
        return ""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "standard output is no terminal"
    if os.environ.get("TERM", "") in ("", "dumb", "unknown") and sys.platform != "win32":
        return f"TERM={os.environ.get('TERM', '')} cannot show it"
    if importlib.util.find_spec("termios") is None:
        return "it needs the terminal of a POSIX system; use WSL on Windows"
    if importlib.util.find_spec("textual") is None:
        return f"Textual is not installed; install it with: {install_command('tui')}"
    return None


def show_screen(arguments: argparse.Namespace) -> int:
    """Show the conversation that the arguments describe until the user leaves."""
    from swink.app.tui import ConversationDriver, SessionSwitcher, SwinkApp, run_app
    from swink.app.tui.firststeps import show_loading

    raise_interrupts()
    settings = load_settings()
    is_choosing = arguments.resume == ""
    saved = SavedConversation(open_store()) if is_choosing else saved_chat(arguments)
    environment = open_environment(arguments, settings)
    resumed = saved is not None and saved.is_resumed
    environment.is_first_run = not resumed and is_first_run(settings, arguments.model)
    permissions = Permissions(
        arguments.approve or settings.approve,
        workspace=Workspace(environment.directory),
        servers=environment.servers.owners,
        tell=environment.notify,
    )
    environment.fill_in = permissions.forms.ask
    environment.attend(permissions)
    agent, snapshots = make_chat_agent(arguments, environment, permissions, saved, environment.notify)
    driver = ConversationDriver(agent)
    show_loading(driver)
    if saved is not None and resumed:
        driver.adopt(agent, Transcript.of(saved.session.conversation))
    if arguments.plan:
        driver.set_planning(True)
    sessions = SessionSwitcher(
        driver,
        None if saved is None else open_store(),
        saved,
        environment=environment,
        snapshots=snapshots,
        asks_title=settings.title == "model",
        is_choosing=is_choosing,
    )
    app = SwinkApp(driver, permissions, sessions=sessions, environment=environment, settings=settings)
    app.first_prompt = " ".join(arguments.prompt)
    return run_app(app)
