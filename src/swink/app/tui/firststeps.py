"""First steps: what is asked once the screen stands, before the assistant's surroundings are read."""

import asyncio
import os

from swink.app.assistant.choice import parse_model
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.trust import Trust, TrustError, answer, decided, what_is_there
from swink.app.assistant.workshop import Workshop
from swink.app.tui.approval.answers import KeyGuard
from swink.app.tui.beginning import welcome
from swink.app.tui.commands.registry import Desk
from swink.app.tui.keys import keymap
from swink.app.tui.screens.trust import TrustQuestion
from swink.app.tui.screens.wizard import Wizard
from swink.errors import AgentError
from swink.system.threads import in_thread


async def begin_work(desk: Desk, workshop: Workshop) -> None:
    """Show what the workshop has to say, ask what it has to know, and open it.

    Trust is asked about and, on a first run, a model; then instructions, commands and servers are read.
    """
    loop = asyncio.get_running_loop()

    def tell() -> None:
        for notice in workshop.take_notices():
            desk.say(notice)

    def changed() -> None:
        loop.call_soon_threadsafe(tell)

    workshop.changed = changed
    desk.conductor.commands.sandbox = workshop.sandbox
    tell()
    standing = workshop.trust.standing
    if standing == "changed" or (standing == "unasked" and workshop.is_coding):
        workshop.trust = await ask_trust(desk, workshop.trust)
    if workshop.is_first_run:
        await choose_first_model(desk)
        desk.say(welcome(str(desk.conductor.agent.model)), "welcome")
    await workshop.open()


def apply_settings(desk: Desk, settings: UserSettings) -> None:
    """Let what the settings say about the screen hold from now on."""
    desk.view.thinking = settings.thinking
    if settings.editor is not None:
        os.environ["EDITOR"] = settings.editor  # where the external editor, and git, look for it
    keys, wrong = keymap(settings.keys)
    desk.set_keymap(keys)
    for problem in wrong:
        desk.say(f"{settings.path}: {problem}", "error")


async def ask_trust(desk: Desk, trust: Trust) -> Trust:
    """Ask whether a project is trusted, or what has changed in it; remember the answer."""
    found = await in_thread(what_is_there, trust.project)
    key = await desk.ask(TrustQuestion(trust, found, KeyGuard(desk.conductor.clock)))
    if key is None:
        return decided(trust, False)
    try:
        return await in_thread(answer, trust, key)
    except TrustError as error:
        desk.say(str(error), "error")
        return decided(trust, key != "n")


async def choose_first_model(desk: Desk) -> None:
    """Show the wizard, and go on with the model that was chosen."""
    model = await desk.ask(Wizard())
    try:
        if model is not None and str(desk.conductor.agent.model) != model:
            desk.conductor.switch(parse_model(model))
    except AgentError as error:
        desk.say(str(error), "error")
