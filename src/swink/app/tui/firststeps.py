"""First steps: the first look and welcome, what is asked once the screen stands, and how loading is told."""

import asyncio
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.worker import Worker

from swink import __version__
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.attachedfiles import said_text
from swink.app.assistant.luggage import list_hooks
from swink.app.assistant.modelchoice import parse_model
from swink.app.assistant.settings import UserSettings, line_in, load_settings
from swink.app.assistant.smallmodels import is_small_local
from swink.app.assistant.trust import Trust, TrustError, answer, decided, what_is_there
from swink.app.tui.approval import KeyGuard
from swink.app.tui.commands.commandtable import COMMANDS, CommandContext
from swink.app.tui.conversationdriver import ConversationDriver
from swink.app.tui.keys import keymap
from swink.app.tui.look import LOOKS, Look
from swink.app.tui.screens.trustquestion import TrustQuestion
from swink.app.tui.screens.wizard import Wizard
from swink.errors import AgentError
from swink.models import catalog
from swink.stream import LlmContext, StreamFn
from swink.system.threads import in_thread

if TYPE_CHECKING:
    from swink.local import LocalStreamFn


async def begin_work(
    context: CommandContext,
    environment: AgentEnvironment,
    taken_up: Worker[None] | None = None,
    prompt: str = "",
) -> None:
    """Show what the environment has to say, ask about trust and, on a first run, a model; then open it.

    A prompt is sent once a conversation that is resumed has been `taken_up` too.
    """
    loop = asyncio.get_running_loop()

    def tell() -> None:
        for notice in environment.take_notices():
            context.say(notice)

    def changed() -> None:
        loop.call_soon_threadsafe(tell)

    environment.changed = changed
    environment.hooks.events.reason = "prompt_input_exit"
    environment.hooks.ask_trust = lambda trust: ask_trust(context, trust, environment.trust)
    environment.hooks.blocked = lambda message: context.editor.put_back(said_text(message))
    context.driver.commands.sandbox = environment.sandbox
    saves = context.sessions is not None and context.sessions.saved_conversation is not None
    background = environment.sub_agents.work_in_background(
        environment.directory, context.driver.queue, environment.notify, saves=saves
    )
    background.conversation = lambda: context.driver.agent
    tell()
    if environment.needs_trust:
        environment.trust = await ask_trust(context, environment.trust)
    if environment.is_first_run:
        await choose_first_model(context)
        context.say(welcome(str(context.driver.agent.model)), "welcome")
    await environment.open()
    tell_unused(context, environment)
    if prompt.strip():
        if taken_up is not None:
            await taken_up.wait()
        context.driver.send(prompt)
    else:
        await load_ahead(context.driver, fetch=environment.is_first_run)


async def load_ahead(driver: ConversationDriver, *, fetch: bool = False) -> None:
    """Load the model of the conversation before it is asked, if it is a local one; another needs none.

    One that is not on this machine is left alone, unless `fetch`. A small one also reads the instructions of
    the agent, so that the first prompt waits for its own words only. It is done where loading is shown; what
    goes wrong is told when the model is asked.
    """
    model = driver.agent.model
    if catalog.registered("local") is None:
        return
    if model.provider != "local":
        if "swink.local.model" in sys.modules:  # the wizard has measured one that is not wanted now
            from swink.local import unload_all

            await in_thread(unload_all)
        return
    from swink.local import LocalStreamFn, locate

    function = catalog.stream_fn_for(model)
    with suppress(AgentError, OSError):
        is_here = fetch or await in_thread(locate, model.model_id) is not None
        if is_here and isinstance(function, LocalStreamFn):
            await function.ready(model.model_id)
            if is_small_local(model):
                await _read_ahead(driver, function)


async def _read_ahead(driver: ConversationDriver, function: "LocalStreamFn") -> None:
    def show(done: int, total: int) -> None:
        if not driver.is_running:  # a run tells itself how far it is
            driver.show_loading(f"reading the instructions, {100 * done // max(1, total)} %")

    try:
        context = LlmContext(await driver.system_prompt(), (), await driver.tools())
        await function.read_ahead(driver.agent.model, context, show)
    finally:
        if not driver.is_running:
            driver.show_loading("")


def tell_unused(context: CommandContext, environment: AgentEnvironment) -> None:
    """Say which commands of the user's own have a name that swink has for one of its own."""
    for own in environment.commands.values():
        if own.name in COMMANDS:
            context.say(f"{own.path} is not used: swink has a command {own.name}; give the file another name")


def apply_settings(context: CommandContext, settings: UserSettings) -> None:
    """Let what the settings say about the screen hold from now on."""
    context.view.thinking = settings.thinking
    environment = context.environment
    context.status_line.is_trusted = lambda: environment is not None and environment.trust.is_trusted
    context.status_line.use(settings)
    if settings.editor is not None:
        os.environ["EDITOR"] = settings.editor  # where the external editor, and git, look for it
    keys, wrong = keymap(settings.keys)
    context.set_keymap(keys)
    if wrong:
        with suppress(OSError, UnicodeDecodeError):  # it was read a moment ago; without it there is no line
            text = settings.path.read_text("utf-8")
            wrong = {name: f"line {line_in(text, 'keys', name)}: {told}" for name, told in wrong.items()}
    for problem in wrong.values():
        context.say(f"{settings.path}, {problem}", "error")


async def ask_trust(context: CommandContext, trust: Trust, before: Trust | None = None) -> Trust:
    """Ask whether a project is trusted, or what has changed in it; remember the answer.

    Without one it stays as it was `before`, if it was asked about already, else untrusted for now.
    """
    found = [*await in_thread(what_is_there, trust.project), *await in_thread(list_hooks, trust.brought)]
    escape = "decides later" if before is None else "leaves it as it is"
    key = await context.ask(TrustQuestion(trust, found, KeyGuard(context.driver.clock), escape))
    if key is None:
        return before or decided(trust, False)
    try:
        return await in_thread(answer, trust, key)
    except TrustError as error:
        context.say(str(error), "error")
        return decided(trust, key != "n")


async def choose_first_model(context: CommandContext) -> None:
    """Show the wizard, and go on with the model that was chosen."""
    model = await context.ask(Wizard())
    try:
        if model is not None and str(context.driver.agent.model) != model:
            context.driver.switch(parse_model(model))
    except AgentError as error:
        context.say(str(error), "error")


def first_look(settings: UserSettings | None) -> Look:
    """The look of the settings, or what fits the terminal; without colours where the user wants none."""
    if os.environ.get("NO_COLOR"):
        return LOOKS["plain"]
    if settings is not None and settings.theme != "auto":
        return LOOKS[settings.theme]
    if "256color" not in os.environ.get("TERM", "") and not os.environ.get("COLORTERM"):
        return LOOKS["ansi"]
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return LOOKS["light" if background in ("7", "15") else "dark"]


def welcome(model: str) -> str:
    """What an empty conversation shows."""
    home, here = os.path.expanduser("~"), os.getcwd()
    if here == home or here.startswith(f"{home}/"):
        here = f"~{here[len(home) :]}"
    return f"""swink {__version__}
{model}  /model takes another
{here}
? or /help shows keys and commands, @ names a file, ! runs a command, Shift+Tab plans"""


def show_loading(driver: ConversationDriver) -> None:
    """Let local models tell the driver how far they are."""

    def make() -> StreamFn:
        from swink.local import Downloading, Failed, Loading, LocalStreamFn, State, megabytes

        def show(state: State) -> None:
            match state:
                case Downloading(model, done, total, step="downloading") if total:
                    told = f"fetching {model} {100 * done // total} % of {megabytes(total)}"
                case Downloading(model):
                    told = f"fetching {model}"
                case Loading(model):
                    told = f"loading {model}"
                case Failed() | _:
                    told = ""
            driver.show_loading(told)

        return LocalStreamFn(progress=show, gpu_layers=load_settings().local.gpu_layers)

    catalog.register_provider("local", make)
