"""First steps: what is asked once the screen stands, before the assistant's surroundings are read."""

from swink.assistant.choice import parse_model
from swink.assistant.firstrun import is_first_run
from swink.assistant.trust import Trust, TrustError, answer, what_is_there
from swink.assistant.workshop import Workshop
from swink.errors import AgentError
from swink.threads import in_thread
from swink.tui.approval.answers import Guard
from swink.tui.commands.registry import Desk
from swink.tui.screens.trust import TrustQuestion
from swink.tui.screens.wizard import Wizard


async def take_first_steps(desk: Desk, workshop: Workshop) -> None:
    """Ask about trust and, on a first run, for a model; then read instructions, commands and servers."""
    if workshop.trust.standing == "unasked" and workshop.is_coding:
        workshop.trust = await ask_trust(desk, workshop.trust)
    if workshop.wants_model and is_first_run(workshop.settings, None):
        await choose_first_model(desk)
    await workshop.open()


async def ask_trust(desk: Desk, trust: Trust) -> Trust:
    """Ask whether a project is trusted, and remember the answer."""
    found = await in_thread(what_is_there, trust.project)
    key = await desk.ask(TrustQuestion(trust.project, found, Guard(desk.conductor.clock)))
    if key is None:
        return Trust(trust.project, "refused")
    try:
        return await in_thread(answer, trust.project, key)
    except TrustError as error:
        desk.say(str(error), "error")
        return Trust(trust.project, "refused" if key == "n" else "trusted")


async def choose_first_model(desk: Desk) -> None:
    """Show the wizard, and go on with the model that was chosen."""
    model = await desk.ask(Wizard())
    try:
        if model is not None and str(desk.conductor.agent.model) != model:
            desk.conductor.switch(parse_model(model))
    except AgentError as error:
        desk.say(str(error), "error")
