"""Commands about skills: which there are, and why some are not used; `/skill:name` enters one."""

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.skillplaces import list_skills, make_skill_prompt
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.app.tui.conversationdriver import ConversationDriver


@command("/skills")
def skills(context: CommandContext, rest: str) -> None:
    """skills: which there are, which are in the conversation, and why others are not used"""
    found = None if context.environment is None else context.environment.skills
    context.say(list_skills(found, context.driver.agent.messages))


async def enter_skill(
    driver: ConversationDriver, environment: AgentEnvironment | None, name: str, arguments: str
) -> None:
    """Send what a skill says, and what is wanted of it; raises `MisuseError` if there is none."""
    driver.send(await make_skill_prompt(environment, driver.agent.messages, name, arguments))
