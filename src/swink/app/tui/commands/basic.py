"""Commands of the program itself: help, looks, approvals and permissions, the user's own editor."""

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.approvalmodes import MEANINGS, next_approval, parse_approval
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.settings import change_setting
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.app.tui.look import LOOKS
from swink.app.tui.screens.permissionscreen import PermissionsScreen
from swink.app.tui.screens.picker import Picker
from swink.errors import MisuseError
from swink.system.threads import in_thread


@command("/help", other_names=("/?", "#help"))
async def show_help(context: CommandContext, rest: str) -> None:
    """keys and commands"""
    from swink.app.tui.screens.help import Help

    await context.ask(Help(None if context.settings is None else context.settings.keys))


@command("/theme", "[NAME]", choices=lambda context: LOOKS)
async def theme(context: CommandContext, rest: str) -> None:
    """another look: dark, light, high-contrast, ansi or plain"""
    name = rest or await context.ask(Picker("look", _LOOKS, context.look.name))
    if name is not None and name not in LOOKS:
        raise MisuseError(f"there is no look {name!r}; there are {', '.join(LOOKS)}")
    if name is not None:
        context.use_look(name)
        if context.settings is not None:
            await in_thread(change_setting, "theme", name)


_LOOKS = {
    "dark": "for dark terminals",
    "light": "for light terminals",
    "high-contrast": "for tired eyes and projectors",
    "ansi": "the terminal's own sixteen colours",
    "plain": "no colours",
}


_WORDS = " | ".join(word for word in MEANINGS if word != "deny")


@command("#approve", _WORDS, choices=lambda context: MEANINGS, other_names=("/approve",))
def approve(context: CommandContext, rest: str) -> None:
    """show or set which tool calls you are asked about"""
    if rest:
        word = context.permissions.word
        context.permissions.word = next_approval(word) if rest == "next" else parse_approval(rest)
    word = context.permissions.word
    context.say(f"approvals: {word} ({MEANINGS[word]})")


@command("/debug")
def debug(context: CommandContext, rest: str) -> None:
    """what tools and libraries printed past the screen"""
    context.say("\n".join(context.stray[-100:]) or "nothing was printed past the screen")


@command("/quit", other_names=("/exit", "/q"))
def leave(context: CommandContext, rest: str) -> None:
    """leave; so do Ctrl+Q, and Ctrl+C twice"""
    context.leave()


_SHELL = {"sandbox": "level", "network": "network", "writable": "writable"}
_SHELL_WORDS = ("sandbox workspace", "sandbox none", "network ask", "network off", "network on", "home on")


@command(
    "/permissions",
    "[allow RULE | deny RULE | network ask | sandbox LEVEL | writable DIR]",
    choices=lambda context: ("allow", "deny", *_SHELL_WORDS),
)
async def permissions(context: CommandContext, rest: str) -> None:
    """what is allowed here and why calls ran; removes rules, saves one, changes the sandbox"""
    word, _, value = rest.partition(" ")
    if not rest:
        await context.ask(PermissionsScreen(context.permissions, context.look))
    elif word in ("allow", "deny") and value:
        rule = parse_rule(rest)
        await in_thread(context.permissions.rules.add, [rule], "project")
        context.permissions.reconsider()
        context.say(f"saved for this project: {rule.line}")
    elif (word in _SHELL or word == "home") and context.environment is not None:
        _change_shell(context, context.environment, word, value.strip())
    else:
        raise MisuseError(
            "write /permissions, a rule after it (/permissions deny bash(git push *)), or network ask, "
            "sandbox LEVEL, writable DIR or home on"
        )


def _change_shell(context: CommandContext, environment: AgentEnvironment, word: str, value: str) -> None:
    """Change for this session what commands may do."""
    if word == "home":
        environment.work_in_home(value != "off")
        context.say(f"file tools and a shell in the home directory: {'off' if value == 'off' else 'on'}")
        return
    environment.shell.choose(_SHELL[word], value)
    context.permissions.reconsider()
    for text, about in environment.shell.lines():
        context.say(f"{text}: {about}, in this session")
    for notice in environment.shell.notices:
        context.say(notice)


@command("/editor")
def write_outside(context: CommandContext, rest: str) -> None:
    """write a prompt in your own editor ($EDITOR, else $VISUAL, else vi) and send it; empty cancels"""
    context.editor.action_write_outside(sends=True)
