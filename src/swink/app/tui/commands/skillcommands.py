"""Commands about skills: which there are, and why some are not used; `/skill:name` enters one."""

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.skillplaces import FoundSkills, prompt_for
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.app.tui.conversationdriver import ConversationDriver
from swink.errors import MisuseError
from swink.system.threads import in_thread
from swink.tools.skills import entered_skills

PREFIX = "/skill:"


@command("/skills")
def skills(context: CommandContext, rest: str) -> None:
    """skills: which there are, which are in the conversation, and why others are not used"""
    found = None if context.environment is None else context.environment.skills
    if found is None or not (found.skills or found.bad):
        context.say(
            "no skills; they are folders with a SKILL.md in .agents/skills, .claude/skills or .swink/skills "
            "of a trusted project, or in your home; swink skills new NAME writes one"
        )
        return
    context.say("\n".join(_lines(found, set(entered_skills(context.driver.agent.messages)))))


async def enter_skill(
    driver: ConversationDriver, environment: AgentEnvironment | None, name: str, arguments: str
) -> None:
    """Send what a skill says, and what is wanted of it; raises `MisuseError` if there is none."""
    found = None if environment is None else environment.skills
    skill = None if found is None else found.skills.get(name)
    if skill is None:
        raise MisuseError(f"there is no skill {name!r}; /skills lists them")
    if not await in_thread(lambda: skill.is_there):
        raise MisuseError(f"the skill {name} is gone: {skill.path} was removed")
    if environment is not None and environment.skill_permissions is not None:
        await environment.skill_permissions.offer(skill)
    is_entered = name in entered_skills(driver.agent.messages)
    driver.send(await in_thread(prompt_for, skill, arguments, is_entered))


def _lines(found: FoundSkills, entered: set[str]) -> list[str]:
    lines: list[str] = []
    for skill in found.skills.values():
        mark = " (in this conversation)" if skill.name in entered else ""
        lines.append(f"{PREFIX}{skill.name}{mark}: {skill.description.splitlines()[0]}")
        lines.append(f"    {skill.path}")
    lines += [f"not used: {each.skill.path}: {each.reason}" for each in found.shadowed]
    return [*lines, *(f"broken: {bad}" for bad in found.bad)]
