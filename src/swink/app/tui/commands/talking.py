"""Commands about what is said: planning, side questions, copying."""

import re

from swink.app.assistant.planning import EXECUTE, OFFER
from swink.app.tui.commands.registry import Desk, command
from swink.errors import MisuseError
from swink.events.transcript import ReplyBlock

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
_CARRY_OUT, _NOT_YET = "carry it out now", "not yet"


@command("/plan")
async def plan(desk: Desk, rest: str) -> None:
    """plan without changing anything; again: carry out (Shift+Tab)"""
    from swink.app.tui.screens.picker import Choice, Picker

    conductor = desk.conductor
    if not conductor.is_planning:
        conductor.set_planning(True)
        desk.say("planning: the agent only looks; Shift+Tab or /plan again lets it carry out")
        return
    conductor.set_planning(False)
    if conductor.has_plan and not conductor.is_running:
        choices = [Choice(_CARRY_OUT, "the plan is sent to the agent"), Choice(_NOT_YET, "you say what next")]
        if await desk.ask(Picker(OFFER, choices)) == _CARRY_OUT:
            conductor.send(EXECUTE)


@command("/btw", "QUESTION")
async def aside(desk: Desk, rest: str) -> None:
    """a question beside the conversation, which stays as it is"""
    if not rest:
        raise MisuseError("write the question after it: /btw what does this flag mean?")
    desk.say(f"beside: {rest}")
    desk.say(await desk.conductor.ask_aside(rest), "btw")


@command("/copy", "[code | all]", choices=lambda desk: ("code", "all"))
def copy(desk: Desk, rest: str) -> None:
    """copy the last reply, its last block of code, or all replies"""
    replies = [block.text for block in desk.conductor.transcript.blocks if isinstance(block, ReplyBlock)]
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
    desk.copy(text)
    desk.say(f"copied {len(text):,} characters")


@command("/init")
def init(desk: Desk, rest: str) -> None:
    """let the agent look around and write an AGENTS.md for this project"""
    desk.conductor.send(INIT)


INIT = """Look around in this project and write AGENTS.md in its root, or better the one that is there: \
what the project is, how to build, run and test it (try the commands), how it is laid out, and the \
conventions that its code keeps to. At most 60 lines, only what you found in the files."""
