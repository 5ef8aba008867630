"""The command that has the guide of a project written, AGENTS.md."""

from pathlib import Path

from swink.app.assistant.instructionfiles import NAME
from swink.app.assistant.projectguide import GuideTools, guide_prompt, is_missing
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.errors import MisuseError
from swink.system.threads import in_thread


@command("/init")
async def init(context: CommandContext, rest: str) -> None:
    """let the agent look around and propose an AGENTS.md for this project, or a better one"""
    driver, permissions = context.driver, context.permissions
    if driver.is_running:
        raise MisuseError("the agent is at work; Esc stops it, then /init")
    if driver.is_planning:
        raise MisuseError("in plan mode nothing is written; Shift+Tab leaves it, then /init")
    directory = Path.cwd() if context.environment is None else context.environment.directory
    is_new = await in_thread(is_missing, directory)
    tools = GuideTools(driver.agent.tools, is_new=is_new)
    await in_thread(tools.check)
    before = await in_thread(_read, directory / NAME)
    permissions.asks_about = frozenset({NAME})
    try:
        await driver.run_with(guide_prompt(is_new=is_new), [tools])
    finally:
        permissions.asks_about = frozenset()
    if await in_thread(_read, directory / NAME) != before and context.environment is not None:
        if context.environment.trust.is_trusted:
            context.say(f"{NAME} is written; it holds from the next conversation on, or after /reload")
        else:
            context.say(f"{NAME} is written; it is used once you trust this folder: /trust")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
