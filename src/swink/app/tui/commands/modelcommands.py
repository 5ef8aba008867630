"""Commands about the model: which one, how much it thinks, what it is told, how full its context is."""

from contextlib import nullcontext
from typing import cast

from msgspec.structs import replace

from swink.app.assistant.fallbacks import obey_fallback
from swink.app.assistant.modelchoice import parse_model
from swink.app.assistant.modellist import note_taken
from swink.app.assistant.ownproviders import learn_models
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.app.tui.screens.modelpicker import ModelPicker
from swink.app.tui.screens.picker import Picker
from swink.errors import MisuseError
from swink.messages.checks import check_word
from swink.messages.modelspec import THINKING_LEVELS, ThinkingLevel
from swink.models import catalog
from swink.system.threads import in_thread


@command(
    "/model", "[NAME | fallback NAME…]", choices=lambda context: dict.fromkeys(map(str, catalog.models()))
)
async def model(context: CommandContext, rest: str) -> None:
    """take another model; the conversation goes on"""
    agent = context.driver.agent
    if (told := obey_fallback(agent, rest)) is not None:
        context.say(told)
        return
    if not rest:
        for problem in await learn_models():
            context.say(problem, "warning")
        rest = await context.ask(ModelPicker(str(agent.model)))
    if rest:
        context.driver.switch(replace(parse_model(rest), thinking_level=agent.thinking_level))
        await in_thread(note_taken, str(agent.model))
        context.say(f"the model is now {agent.model}")


@command("/thinking", "[LEVEL]", choices=lambda context: THINKING_LEVELS)
async def thinking(context: CommandContext, rest: str) -> None:
    """how much the model thinks: off … extra_high"""
    choices = dict.fromkeys(THINKING_LEVELS, "")
    level = rest or await context.ask(Picker("thinking", choices, context.driver.agent.thinking_level))
    if level:
        check_word("/thinking", level, THINKING_LEVELS)
        context.driver.think(cast("ThinkingLevel", level))
        context.say(f"thinking: {level}")


@command("/system", "[TEXT]")
async def system(context: CommandContext, rest: str) -> None:
    """show the system prompt, or set one for this conversation"""
    if rest:
        context.driver.instruct(rest)
        context.say("the system prompt is set")
    else:
        context.say(await context.driver.system_prompt() or "(there is no system prompt)")


@command("/compact")
async def compact(context: CommandContext, rest: str) -> None:
    """make room in the context now; everything stays in the session"""
    events = None if context.environment is None else context.environment.hooks.events
    if events is not None and (why := await events.before_compaction("manual", rest)):
        raise MisuseError(f"a hook blocked it: {why}")
    context.say("compacting …")
    with nullcontext() if events is None else events.by_hand():
        report = await context.driver.compact()
    if not (report.dropped or report.pruned):
        context.say("there is nothing to leave out: the conversation fits its window")
