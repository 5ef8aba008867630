"""Commands of every conversation."""

from swink.tui.commands.registry import COMMANDS, Desk, command


@command("/help", other_names=("/?",))
def show_help(desk: Desk, rest: str) -> None:
    """what there is"""
    desk.say("\n".join(f"{each.name} {each.usage}".ljust(22) + each.help for each in COMMANDS.values()))


@command("/quit", other_names=("/exit", "/q"))
def quit(desk: Desk, rest: str) -> None:
    """leave; so do Ctrl+Q, and Ctrl+C twice"""
    desk.leave()
