"""Commands about what is said: planning, side questions, copying."""

import re

from swink.app.assistant.planning import EXECUTE, OFFER
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.app.tui.screens.picker import Picker
from swink.errors import MisuseError
from swink.events.transcript import ReplyBlock
from swink.events.transcript.blockkinds import counted

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
_CARRY_OUT = "carry it out now"


@command("/plan")
async def plan(context: CommandContext, rest: str) -> None:
    """plan without changing anything; again: carry out (Shift+Tab)"""
    driver = context.driver
    if not driver.is_planning:
        driver.set_planning(True)
        context.say("planning: the agent only looks; Shift+Tab or /plan again lets it carry out")
        return
    driver.set_planning(False)
    if driver.has_plan and not driver.is_running:
        choices = {_CARRY_OUT: "the plan is sent to the agent", "not yet": "you say what next"}
        if await context.ask(Picker(OFFER, choices)) == _CARRY_OUT:
            driver.send(EXECUTE)


@command("/btw", "QUESTION")
async def aside(context: CommandContext, rest: str) -> None:
    """a question beside the conversation, which stays as it is"""
    if not rest:
        raise MisuseError("write the question after it: /btw what does this flag mean?")
    context.say(f"beside: {rest}")
    context.say(await context.driver.ask_aside(rest), "btw")


@command("/copy", "[code | all]", choices=lambda context: ("code", "all"))
def copy(context: CommandContext, rest: str) -> None:
    """copy the last reply, its last block of code, or all replies"""
    replies = [block.text for block in context.driver.transcript.blocks if isinstance(block, ReplyBlock)]
    if not replies:
        raise MisuseError("there is no reply to copy yet")
    match rest:
        case "":
            text = replies[-1]
        case "code":
            fences = [found[1] for reply in replies for found in _FENCE.findall(reply)]
            if not fences:
                raise MisuseError("there is no block of code in the replies")
            text = fences[-1]
        case "all":
            text = "\n\n".join(replies)
        case _:
            raise MisuseError("/copy takes nothing, code or all")
    context.copy_to_clipboard(text)
    context.say(f"copied {counted(len(text), 'character')}")
