"""Commands about what is allowed."""

from swink.app.assistant.rules import parse_rule
from swink.app.tui.commands.registry import Desk, command
from swink.errors import MisuseError
from swink.system.threads import in_thread


@command("/permissions", "[allow RULE | deny RULE]", choices=lambda desk: ("allow", "deny"))
async def permissions(desk: Desk, rest: str) -> None:
    """what is allowed here and why calls ran; removes rules, or saves one for this project"""
    from swink.app.tui.screens.permissions import PermissionsScreen

    if not rest:
        await desk.ask(PermissionsScreen(desk.permissions, desk.look))
        return
    if not rest.startswith(("allow ", "deny ")):
        raise MisuseError("write /permissions, or a rule after it: /permissions deny bash(git push *)")
    rule = parse_rule(rest)
    await in_thread(desk.permissions.rules.add, [rule], "project")
    desk.permissions.reconsider()
    desk.say(f"saved for this project: {rule.line}")
