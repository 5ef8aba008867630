"""Commands of the program itself."""

from swink.app.approvals import MEANINGS, parse_approval
from swink.app.assistant.settings import change_setting
from swink.app.tui.commands.registry import Desk, command
from swink.app.tui.look import LOOKS
from swink.errors import MisuseError
from swink.system.threads import in_thread


@command("/help", other_names=("/?", "#help"))
async def show_help(desk: Desk, rest: str) -> None:
    """keys and commands"""
    from swink.app.tui.screens.help import Help

    await desk.ask(Help(None if desk.settings is None else desk.settings.keys))


@command("/theme", "[NAME]", choices=lambda desk: LOOKS)
async def theme(desk: Desk, rest: str) -> None:
    """another look: dark, light, high-contrast, ansi or plain"""
    from swink.app.tui.screens.picker import Choice, Picker

    name = rest or await desk.ask(
        Picker("look", [Choice(name, _LOOKS.get(name, "")) for name in LOOKS], desk.look.name)
    )
    if name is not None and name not in LOOKS:
        raise MisuseError(f"there is no look {name!r}; there are {', '.join(LOOKS)}")
    if name is not None:
        desk.use_look(name)
        if desk.settings is not None:
            await in_thread(change_setting, "theme", name)


_LOOKS = {
    "dark": "for dark terminals",
    "light": "for light terminals",
    "high-contrast": "for tired eyes and projectors",
    "ansi": "the terminal's own sixteen colours",
    "plain": "no colours",
}


@command("#approve", "on | smart | edits | off", choices=lambda desk: MEANINGS, other_names=("/approve",))
def approve(desk: Desk, rest: str) -> None:
    """show or set which tool calls you are asked about"""
    if rest:
        desk.permissions.word = parse_approval(rest)
    word = desk.permissions.word
    desk.say(f"approvals: {word} ({MEANINGS[word]})")


@command("/debug")
def debug(desk: Desk, rest: str) -> None:
    """what tools and libraries printed past the screen"""
    desk.say("\n".join(desk.stray[-_STRAY:]) or "nothing was printed past the screen")


_STRAY = 100


@command("/quit", other_names=("/exit", "/q"))
def leave(desk: Desk, rest: str) -> None:
    """leave; so do Ctrl+Q, and Ctrl+C twice"""
    desk.leave()
