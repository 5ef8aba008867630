"""What a person allows a skill: calls that its `allowed-tools` name, while it is in the conversation.

the skill is entered    the person is asked once, with what it asks for; a no allows nothing
a call is asked about   hooks → a skill that is in this conversation, and was allowed it → the person
a fork before it, another conversation, other allowed-tools    nothing holds, and the next use asks again

Only calls that would be put to the person get here, so that nothing that is denied is allowed. Those with a
caution or a doubt are left to the person; so are files that other programs obey, and commands that destroy
or publish something, unless a rule names the whole command.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from swink.agent import Agent
from swink.agent.policy import ApprovalRequest, PolicyContext
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Once, Question, Reply
from swink.app.assistant.previews import FILE_TOOLS
from swink.app.assistant.rules import CallRule, JudgedCall, allowed_by, is_exact
from swink.messages import ModelSpec, Usage

if TYPE_CHECKING:
    from swink.app.assistant.skillplaces import FoundSkills
    from swink.tools.skills import Skill

_SKILL = "skill"
"""The tool that enters a skill."""
_UNASKED = frozenset(("read_file", "list_files", "find_files", "search_text"))
"""Tools that need no approval, unless the mode asks for every call."""
_NOTICE = (
    "Calls that match run without a question while the skill is in this conversation. What is denied stays "
    "denied, and commands that destroy or publish something are asked about all the same."
)
_NO_CONTEXT = PolicyContext(0, ModelSpec("", ""), "", (), (), Usage(), None, {})


class SkillGrant(Struct, frozen=True):
    """What a person allowed a skill; no rules if they said no."""

    skill: str
    asked_for: str
    """Its `allowed-tools` as they were, and where it is."""
    rules: tuple[CallRule, ...] = ()


class SkillPermissions:
    """Asks a person what a skill may do, and answers for them where they allowed it."""

    def __init__(
        self,
        permissions: Permissions,
        *,
        skills: "Callable[[], FoundSkills | None]",
        agent: Callable[[], Agent | None],
        is_hooked: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        self._permissions = permissions
        self._skills, self._agent, self._is_hooked, self._tell = skills, agent, is_hooked, tell
        self._grants: dict[str, SkillGrant] = {}
        self._seen: Agent | None = None
        self._alone = asyncio.Lock()
        permissions.skills = self

    @property
    def grants(self) -> list[SkillGrant]:
        """What skills of this conversation were allowed."""
        self._forget_left()
        return [grant for grant in self._grants.values() if grant.rules]

    def forget(self, grant: SkillGrant) -> None:
        """Allow a skill nothing any more; its next use does not ask again."""
        self._grants[grant.skill] = SkillGrant(grant.skill, grant.asked_for)

    def clear(self) -> None:
        """Allow no skill anything any more: the conversation begins anew."""
        self._grants = {}

    async def offer(self, skill: "Skill") -> None:
        """Ask the person, the first time a skill is used, whether it may do what it asks for."""
        if not skill.allowed_tools.strip() or self._permissions.word in ("off", "deny"):
            return
        async with self._alone:  # several agents may enter the same one
            self._forget_left()
            known = self._grants.get(skill.name)
            if known is not None and known.asked_for == _asked_for(skill):
                return
            self._grants.pop(skill.name, None)
            if rules := self._readable(skill):
                why_not = await self._permissions.ask_once(_question(skill, rules))
                allowed = rules if why_not is None else ()
                self._grants[skill.name] = SkillGrant(skill.name, _asked_for(skill), allowed)

    async def answer(self, question: Question) -> Reply | None:
        """A yes to a question about a call that an entered skill was allowed; else None."""
        self._forget_left()
        if not self._grants or question.is_once or question.notice:
            return None
        request, path = question.request, question.path
        if path in self._permissions.asks_about:
            return None
        if request.name in FILE_TOOLS and not self._permissions.is_ordinary(path):
            return None
        server = self._permissions.servers.get(request.name)
        call = JudgedCall(request.name, request.arguments, server=server, path=path)
        for grant in self._active(request):
            used = allowed_by((*grant.rules, *self._permissions.rules.rules), call)
            if used and (not question.is_destructive or all(map(is_exact, used))):
                names = ", ".join(map(str, used))
                return Once(by=f"you allowed the skill {grant.skill} {names}")
        return None

    async def answer_first(self, question: Question) -> Reply | None:
        """As `answer`, where no hook wants to be asked before: then nobody is told that a question waits."""
        return None if self._is_hooked() else await self.answer(question)

    async def before_run(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Ask what a skill may do, if this call enters one."""
        found = self._skills() if name == _SKILL else None
        skill = None if found is None else found.skills.get(str(arguments.get("name", "")).strip())
        if skill is not None:
            await self.offer(skill)

    def _active(self, request: ApprovalRequest) -> list[SkillGrant]:
        """What was allowed to skills that are in the conversation of a call, and ask for what they did."""
        from swink.tools.skills import entered_skills

        found = self._skills()
        known = {} if found is None else found.skills
        entered = entered_skills(request.context.messages)
        grants = [grant for grant in self._grants.values() if grant.skill in entered and grant.skill in known]
        return [grant for grant in grants if grant.asked_for == _asked_for(known[grant.skill])]

    def _forget_left(self) -> None:
        """Drop what was allowed to skills that are not in the conversation that goes on now."""
        agent = self._agent()
        if agent is self._seen:
            return
        self._seen = agent
        if self._grants and agent is not None:
            from swink.tools.skills import entered_skills

            entered = entered_skills(agent.messages)
            self._grants = {name: grant for name, grant in self._grants.items() if name in entered}

    def _readable(self, skill: "Skill") -> tuple[CallRule, ...]:
        """The rules that the person is asked about; what cannot be had is told."""
        from swink.app.assistant.allowedtools import read_allowed_tools

        read = read_allowed_tools(skill)
        if read.problems:
            lost = "; ".join(read.problems)
            self._tell(f"the skill {skill.name} asks to be allowed what it cannot be here: {lost}")
        saved, asks_always = self._permissions.rules.rules, self._permissions.word == "on"
        rules = [rule for rule in read.rules if asks_always or rule.tool not in _UNASKED]
        return tuple(rule for rule in rules if rule not in saved)


def _asked_for(skill: "Skill") -> str:
    return f"{skill.path}: {skill.allowed_tools}"


def _question(skill: "Skill", rules: tuple[CallRule, ...]) -> Question:
    """What the person is asked."""
    lines = [f"{rule} (every call)" if rule.pattern is None else str(rule) for rule in rules]
    shown = {"skill": skill.name, "file": str(skill.path), "allowed-tools": "\n".join(lines)}
    request = ApprovalRequest("", _SKILL, shown, shown, True, _NO_CONTEXT)
    offers = f"while the skill {skill.name} is in this conversation"
    title = f"Allow what the skill {skill.name} asks for?"
    return Question(request, title=title, notice=_NOTICE, is_once=True, offers=offers)
