"""The environment of an agent: what it has to work with in a directory, and the agent that works there.

AgentEnvironment(directory, trust, …) nothing is read yet: the first frame need not wait
make_agent(model, …)                   the agent; the environment is the source of its tools
await open()                           once trust is known: instructions, commands, servers; again to reload
await aclose()                         servers and background commands are ended
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from swink.agent import Agent
from swink.agent.checkpoint import placeholders
from swink.agent.config import ApprovalMode, PromptContext
from swink.agent.context.compaction import Summary
from swink.agent.policy import Approve, Policy
from swink.agent.retry import ExponentialBackoff, RetryStrategy
from swink.app.assistant.brought import Brought
from swink.app.assistant.cautions import Cautions, describe_machine
from swink.app.assistant.customcommands import CustomCommand, read_commands
from swink.app.assistant.delegates import Delegate
from swink.app.assistant.fallbacks import FallbackFollower
from swink.app.assistant.forms import FillIn, question_tools
from swink.app.assistant.instructionfiles import Instructions, read_instructions
from swink.app.assistant.ownproviders import register_providers
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.planning import ReadOnlyTools, read_only
from swink.app.assistant.prompts import Surroundings, describe_small, is_small, look_around, system_prompt
from swink.app.assistant.servers import Servers, find_servers
from swink.app.assistant.sessionevents import HookedCompaction
from swink.app.assistant.sessionhooks import SessionHooks
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.shellaccess import ShellAccess, ShellTerms
from swink.app.assistant.skillkeeping import KeepSkills
from swink.app.assistant.skillpermissions import SkillPermissions
from swink.app.assistant.smallmodels import is_small_local, small_tools
from swink.app.assistant.subagents import HoldBelow, SubAgents
from swink.app.assistant.trust import Trust, find_project
from swink.app.assistant.websearch import search_for
from swink.app.assistant.workplaces import has_work, is_home, why_no_tools
from swink.errors import MisuseError
from swink.memory.session import Session
from swink.messages import Message, ModelSpec
from swink.models.catalog import with_limits
from swink.stream import StreamFn, StreamOptions
from swink.system.places import config_dir
from swink.system.threads import in_thread
from swink.system.writable import mark_writable
from swink.tools import GONE, Tool
from swink.tools.coding.backends import USUAL, find_machine_trouble
from swink.tools.coding.background import Background, Job
from swink.tools.coding.linkedgit import LinkedGit
from swink.tools.coding.runtime import TrustedPrograms
from swink.tools.coding.sandbox import Sandbox

if TYPE_CHECKING:
    from swink.app.assistant.skillplaces import FoundSkills
    from swink.app.assistant.worktrees import Worktree


class _Made(NamedTuple):
    """The tools of the directory as they were made, in one piece: threads ask while settings change."""

    edition: int
    terms: ShellTerms
    tools: Sequence[Tool]
    scripts: Sequence[Any]


class AgentEnvironment:
    """What one directory offers its conversations: a source of tools, by the model that the agent has now."""

    def __init__(
        self, directory: str | Path, trust: Trust | None = None, settings: UserSettings | None = None
    ) -> None:
        self.directory = Path(os.path.realpath(directory))
        self._writable = mark_writable(self.directory)
        self.trust = trust or Trust(find_project(self.directory), "unasked")
        self.settings = settings or UserSettings(config_dir() / "config.toml")
        self.access = ShellAccess(self.directory, self.settings.sandbox, lambda: self.is_own, self._tell_once)
        self.shell = self.access.settings
        """What commands of the agent may do; change it by `choose`."""
        self.worktree: Worktree | None = None
        """The worktree of ours that the directory is; `work_in_tree` sets it."""
        self._has_begun = has_work(self.directory)
        self._in_home = False
        self._trouble = ""
        """Why no sandbox works on this machine, once that is known."""
        self.is_first_run = False
        """Whether no model was chosen yet and there is no key."""
        self.changed: Callable[[], None] = lambda: None
        """Called, from any thread, when there is a notice to take."""
        self.agent: Agent | None = None
        """The agent whose model decides which tools are offered; replace it when a copy of it goes on."""
        self.background = Background()
        self.background.on_end = self._tell_end
        self.servers = Servers(self.notify)
        self.hooks = SessionHooks(self.directory, self._tell_once)
        self.hooks.agent, self.hooks.servers = lambda: self.agent, self.servers.owners
        self.hooks.retrust = lambda trust: self.open(trust=trust)
        self.sub_agents = SubAgents(self._make_sub_agent, lambda: self.shared_policies)
        self.commands: dict[str, CustomCommand] = {}
        """The user's own commands, and those of a trusted project, by name."""
        self.instructions: Instructions | None = None
        self.fill_in: FillIn | None = None
        """Puts what the agent asks to the person; without it the agent has no ask_user."""
        self.further_servers: Mapping[str, Any] = {}
        """MCP servers that an editor brings along; they start where the person answers for the folder."""
        self.skills: FoundSkills | None = None
        """Those of the user and of a trusted project, once they were read."""
        self.skill_permissions: SkillPermissions | None = None
        """What skills were allowed, once there is somebody to ask."""
        self._notices: list[str] = []
        self._said: set[str] = set()
        self.shared_policies: Sequence[Policy] = ()
        """Those that hold for what works beside the agent too: limits, not what keeps its conversation."""
        self._terms: dict[str, Any] = {}
        """What an agent of this environment, and its sub-agents, are made with."""
        self._around: Surroundings | None = None
        self._programs = TrustedPrograms(() if self._brought is None else self._brought.program_paths)
        self._edition = 0  # grows when trust or settings change: what was made before is made again
        self._made: _Made | None = None

    @property
    def is_coding(self) -> bool:
        """Whether there are file tools and a shell here."""
        return self._why_no_tools is None

    @property
    def needs_trust(self) -> bool:
        """Whether it is to be asked if this folder is trusted: not about one that holds nothing yet."""
        standing = self.trust.standing
        return standing == "changed" or (standing == "unasked" and self.is_coding and self._has_begun)

    def work_in_home(self, is_wanted: bool) -> None:
        """Have file tools and a shell in the home directory itself, in this session, or not."""
        if not is_home(self.directory):
            raise MisuseError(f"{self.directory} is not your home directory: nothing changes here")
        self._in_home = is_wanted
        self._edition += 1

    def work_in_tree(self, worktree: "Worktree") -> None:
        """Let commands commit to the branch of a worktree that the directory is; before tools are made."""
        self.worktree, linked = worktree, worktree.linked
        if linked is not None:
            self.access.linked = LinkedGit(linked.common, linked.own, worktree.branch)

    @property
    def _why_no_tools(self) -> str | None:
        return why_no_tools(self.directory, in_home=self._in_home or self.settings.sandbox.home)

    @property
    def project(self) -> Path | None:
        """The project, if what it brings along may be used."""
        return self.trust.project if self.trust.is_trusted else None

    @property
    def is_own(self) -> bool:
        """Whether the person answers for what is here: the folder is trusted, or was empty at the start."""
        return self.trust.is_trusted or (not self._has_begun and self.trust.standing == "unasked")

    def attend(self, permissions: Permissions) -> None:
        """Have these permissions ask the person what only they decide of commands here, and show it."""
        self.access.attend(permissions)
        self.skill_permissions = allowed = SkillPermissions(
            permissions,
            skills=lambda: self.skills,
            agent=lambda: self.agent,
            is_hooked=lambda: self.hooks.group is not None and self.hooks.group.has("PermissionRequest"),
            tell=self._tell_once,
        )
        permissions.ask_first(allowed.answer)
        self.hooks.attend(permissions)
        permissions.ask_first(allowed.answer_first)
        self.shell.is_current = self._is_current
        cautions = Cautions(self.directory, lambda: self._trouble, self._script_names, lambda: self.is_own)
        permissions.caution = lambda asked: cautions(asked) or self.servers.caution_about(asked.name)

        def ask_again(tool: str) -> None:
            for trust in [each for each in permissions.trusted if each.tool == tool]:
                permissions.forget(trust)

        self.servers.on_redefined = ask_again

    @property
    def _brought(self) -> Brought | None:
        """What the project brings along, as it was allowed."""
        return self.trust.brought if self.trust.is_trusted else None

    def notify(self, text: str) -> None:
        """Keep something that people have to know until it is taken."""
        self._notices.append(text)
        self.changed()

    def take_notices(self) -> list[str]:
        """What people have to know, once."""
        notices, self._notices = self._notices, []
        return notices

    def make_agent(
        self,
        model: ModelSpec,
        *,
        session: Session | None = None,
        approve: Approve | None = None,
        approval_mode: ApprovalMode = "on",
        system: str | None = None,
        tools: Sequence[Any] = (),
        options: StreamOptions = StreamOptions(),
        policies: Sequence[Policy] = (),
        stream_fn: StreamFn | None = None,
        retry: RetryStrategy = ExponentialBackoff(),
        fallback_models: Sequence[ModelSpec] = (),
    ) -> Agent:
        """An agent that works here; every call is put to `approve`, whose word may change later.

        The policies hold for its sub-agents too, and limits count all of them together.
        """
        own, below = self.hooks.make_policies(self.trust, self.settings, session)
        policies = [*policies, *own]
        shared = [policy for policy in (*policies, *below) if policy.for_sub_agents]
        self.shared_policies = [HoldBelow(shared), *shared] if shared else ()
        self._terms = {"approve": approve, "approval_mode": approval_mode}
        search = search_for(lambda: self.settings.web_search, self._tell_once)
        self._terms |= {"options": options, "stream_fn": stream_fn, "retry": retry, "hosted": search}
        self.agent = Agent(
            model,
            system_prompt=self._prompt if system is None else system,
            tools=[*tools, self, *_gone(session, tools)],
            session=session,
            fallback_models=fallback_models,
            policies=[HoldBelow(shared), *policies] if policies else (),
            # What a small model writes as a summary loses more than a window that is cut.
            transform_context="window" if is_small(with_limits(model)) else self._summary(),
            **self._terms,
        )
        return self.agent

    def _summary(self) -> KeepSkills:
        return KeepSkills(HookedCompaction(Summary(), self.hooks.events))

    async def open(self, *, trust: Trust | None = None, settings: UserSettings | None = None) -> None:
        """Read what there is to read, and start the servers; again after a change of trust or settings."""
        self.trust, self.settings = trust or self.trust, settings or self.settings
        self.shell.user = self.settings.sandbox
        for problem in register_providers(settings) if settings is not None else ():
            self.notify(problem)
        if notice := self.trust.notice:
            self.notify(notice)
        for notice in [] if self._brought is None else self._brought.notices:
            self._tell_once(notice)
        if (why := self._why_no_tools) is not None:
            self._tell_once(why)
        for notice in await in_thread(self.shell.follow, self.project):
            self._tell_once(notice)
        self.commands, notices = await in_thread(read_commands, self._brought)
        broken = await in_thread(self.sub_agents.read_files, self._brought)
        if self._trouble or self.is_coding:
            self._trouble = await find_machine_trouble(USUAL, network=False)
        if self._trouble:
            self._tell_once(describe_machine(self._trouble, is_trusted=self.is_own))
        await self.read_skills()
        self._around = None
        self._edition += 1
        await self._read_instructions()
        for notice in notices:
            self.notify(notice)
        for notice in broken:
            self._tell_once(notice)
        self.hooks.follow(self.settings, self.trust)
        self.hooks.events.begin_soon()
        self._programs = TrustedPrograms(() if self._brought is None else self._brought.program_paths)
        self.servers.fill_in, self.servers.deferred = self.fill_in, self.settings.mcp_deferred
        given = self.further_servers if self.is_own else None
        found = await in_thread(find_servers, self.settings.mcp, self._brought, self.directory, given)
        await self.servers.follow(found)
        await self.sub_agents.look()

    async def aclose(self) -> None:
        """End the servers, and the agents and commands in the background."""
        async with AsyncExitStack() as ends:  # in turn, the last one first, whatever happens to the others
            for part in (self.hooks, self.servers, self.background, self.sub_agents):
                ends.push_async_callback(part.aclose)

    def tools(self) -> Sequence[Tool]:
        """The tools for the model as it is now; none for one whose window they would fill."""
        if self.agent is not None and is_small(with_limits(self.agent.model)):
            return small_tools(self._own_tools()) if is_small_local(self.agent.model) else ()
        asking = [] if self.fill_in is None else question_tools(self.fill_in)
        others = [*asking, *self.sub_agents.tools()]
        own = [*self._own_tools([tool.name for tool in others]), *others]
        given = [] if self.agent is None else [tool for tool in self.agent.tools if isinstance(tool, Tool)]
        taken = [tool.name for tool in (*own, *given) if tool.description != GONE]
        return [*own, *self.servers.tools(taken)]

    def sandbox(self) -> Sandbox | None:
        """What the user's own commands run in: nothing in a trusted or empty folder, else the sandbox."""
        if self.trust.is_trusted or not self.is_coding or not has_work(self.directory):
            return None
        return Sandbox(self.directory, hidden=self.access.hidden())

    def review_sandbox(self) -> Sandbox:
        """What git runs in for a review, also in a trusted folder; there without one if none works here."""
        from swink.app.assistant.reviewdiff import find_git_places

        project, is_own = self.trust.project, self.is_own
        readable = find_git_places(project) if is_own else ()
        return Sandbox(project, readable=readable, hidden=self.access.hidden(), or_none=is_own)

    def _own_tools(self, taken: Sequence[str] = ()) -> Sequence[Tool]:
        """The tools of the directory, and scripts with other names; made in a thread when first wanted."""
        made = self._made
        if made is None or not self._still_holds(made):
            made = self._made = self._make_tools(self._edition, self.access.terms())
        window = None if self.agent is None else with_limits(self.agent.model).context_window
        skills = () if self.skills is None else self.skills.tools(window)
        tools = {tool.name: tool for tool in (*made.tools, *skills)}
        for tool in (tool for scripts in made.scripts for tool in scripts.tools()):
            if tool.name in taken or tools.setdefault(tool.name, tool) is not tool:
                self._tell_once(f"a script tool is left out: another tool is named {tool.name}; rename it")
        return list(tools.values())

    def _still_holds(self, made: _Made) -> bool:
        return made.edition == self._edition and made.terms == self.access.terms()

    def _make_tools(self, edition: int, terms: ShellTerms) -> _Made:
        from swink.app.assistant.projectscripts import ProjectScripts
        from swink.tools.coding import ScriptTools, coding_tools, fetch_tools, todo_tools

        shown = () if self.skills is None else self.skills.folders
        here, given = self.directory, self.access.sandbox_options(terms, shown)
        if self.is_coding:
            more: Any = {"outside": self.access.outside, "is_trusted": lambda: self.is_own, **given}
            tools = coding_tools(here, sandbox=terms.level, background=self.background, **more)
        else:
            tools = [*fetch_tools(), *todo_tools()]
        if self.trust.is_trusted:
            from swink.app.assistant.diagnostics import Diagnostics

            # Nobody is asked about checkers: never without a sandbox.
            alone = Sandbox(here, hidden=self.access.hidden())
            tools = Diagnostics(here, self.settings.diagnostics, alone, self._tell_once).checking(tools)
        sandbox = Sandbox(here, terms.level, **given)
        place, brought = config_dir() / "tools", self._brought
        own = [ScriptTools(place, sandbox, on_bad=self._tell_bad)] if place.is_dir() else []
        theirs = [] if brought is None else [ProjectScripts(brought, sandbox, self._tell_once)]
        return _Made(edition, terms, tuple(tools), (*own, *theirs))

    def _is_current(self, tool: object) -> bool:
        """Whether a tool of the directory would be made as it is now, too."""
        made = self._made
        if made is None or not isinstance(tool, Tool):
            return False
        return any(tool.body is own.body for own in made.tools) and self._still_holds(made)

    def _script_names(self) -> frozenset[str]:
        scripts = () if self._made is None else self._made.scripts
        return frozenset(tool.name for each in scripts for tool in each.tools())

    async def _prompt(self, context: PromptContext) -> str:
        model = with_limits(ModelSpec("", "") if self.agent is None else self.agent.model)
        if is_small(model):
            self._tell_once(describe_small(model))
        if self._around is None:  # once: a prompt that stays the same is cached by providers
            self._around = await in_thread(look_around, self.directory)
        instructions = self.instructions or await self._read_instructions()
        said = "\n\n".join(filter(None, [instructions.text, self.servers.instructions]))
        return system_prompt(model, self._around, coding=self.is_coding, instructions=said)

    async def _read_instructions(self) -> Instructions:
        self.instructions = found = await in_thread(read_instructions, self.directory, self.project)
        for notice in found.notices:
            self._tell_once(notice)
        return found

    async def read_skills(self) -> None:
        """Find the skills of the user and of the directory; a prompt may name one before `open` is there."""
        from swink.app.assistant.skillplaces import find_skills

        self.skills = await in_thread(find_skills, self._brought)
        for notice in self.skills.notices:
            self._tell_once(notice)

    async def _make_sub_agent(self, started: Delegate, session: Session | None = None) -> Agent:
        assert self.agent is not None
        prompt = started.prompt if self._around is None else f"{started.prompt}\n\n{self._around}"
        limits = started.policies()
        agent = Agent(
            await started.model(self.agent.model, self._tell_once),
            system_prompt=prompt,
            tools=[_SubAgentTools(self, started)],
            fallback_models=self.agent.fallback_models,
            session=session,
            policies=[HoldBelow(limits), *limits] if limits else (),
            **started.narrow(self._terms),
        )
        follower = FallbackFollower()
        agent.subscribe(lambda event: follower.take_event(agent, event))
        return agent

    def tools_of(self, started: Delegate) -> Sequence[Tool]:
        """The tools of a sub-agent now; those that read, if it only looks or the assistant plans by now."""
        tools = [*self._own_tools(), *(self.servers.tools() if started.kind == "task" else ())]
        if started.may_delegate:
            tools.append(self.sub_agents.task_tool(started))
        offers = () if self.agent is None else self.agent.tools
        is_planning = any(isinstance(offer, ReadOnlyTools) for offer in offers)
        allowed = started.allowed(tools, self.servers.owners)
        return read_only(allowed) if is_planning else allowed

    def _tell_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.notify(text)

    def _tell_end(self, job: Job) -> None:
        how = job.error if job.completed is None else job.completed.ending
        self.notify(f"background command {job.id} has ended ({how}): {job.command}")

    def _tell_bad(self, bad: Any) -> None:
        self._tell_once(f"{bad.path} is no tool: {bad.reason}")


class _SubAgentTools:
    """A source of tools, asked at every turn."""

    def __init__(self, environment: AgentEnvironment, started: Delegate) -> None:
        self._environment = environment
        self._started = started

    def tools(self) -> Sequence[Tool]:
        return self._environment.tools_of(self._started)


def make_assistant(directory: str | Path, model: ModelSpec, **options: Any) -> Agent:
    """An agent set up for a person in a directory; options are those of `AgentEnvironment.make_agent`."""
    return AgentEnvironment(directory).make_agent(model, **options)


def _gone(session: Session | None, tools: Sequence[Any]) -> Sequence[Tool]:
    """What stands in for tools that the conversation used; those that a source still has take its place."""
    if session is None:
        return ()
    turn = session.conversation.open
    messages: list[Message] = [*session.messages, *([] if turn is None else [turn.reply])]
    known = [cast(Tool, tool) for tool in tools if isinstance(tool, Tool)]
    return placeholders(messages, known)
