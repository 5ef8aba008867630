"""The policies that run shell hooks for the coding agent and its sub-agents; loaded where there are hooks."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from swink.agent.policy import Inject, PolicyContext, Stop, TurnVerdict
from swink.app.assistant.brought import Programs
from swink.app.assistant.hookfiles import HOOK_FILES
from swink.app.assistant.serverprograms import TooManyPrograms
from swink.app.assistant.sessionevents import SessionEvents
from swink.messages import UserMessage
from swink.policies.hooks import Hook, HookAnswer, HookGroup, HookOutcome, read_answer
from swink.policies.hooks.hookgroup import Facts
from swink.policies.shellhook import ShellHook
from swink.system.threads import in_thread


class TrustedHooks(HookGroup):
    """Hooks of which those of a project run only while what they name is as it was when it was trusted."""

    def __init__(
        self,
        directory: Path,
        project: Path,
        facts: Facts,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__((), directory, project=project, facts=facts, tell=tell)
        self.programs: dict[str, Programs] = {}
        """What the command of each hook of the project names."""

    def place_of(self, hook: Hook) -> str:
        """Those of the project start where they were judged from."""
        return self.project if hook.source in HOOK_FILES else self.directory

    async def run_one(self, hook: Hook, fields: Mapping[str, Any]) -> HookAnswer:
        """Run a hook, unless it is not what was trusted."""
        programs = self.programs.get(hook.command)
        changed = None if programs is None else await in_thread(_find_change, programs)
        if changed is None:
            return await super().run_one(hook, fields)
        why = f"it was not run, because {changed} is not as it was when you trusted this folder (swink trust)"
        answer = read_answer(hook.event, HookOutcome(failure=why))
        self.report(hook, answer)
        return answer


class MainHooks(ShellHook):
    """The hooks of the conversation; the model reads what SessionStart said once a turn is taken."""

    for_sub_agents = False
    events: SessionEvents | None = None
    erase: Callable[[PolicyContext, UserMessage], None] | None = None

    async def pre_turn(self, ctx: PolicyContext) -> TurnVerdict:
        """SessionStart before the first turn, then UserPromptSubmit."""
        if self.events is not None:
            await self.events.begin()
        verdict = await super().pre_turn(ctx)
        context = "" if self.events is None or isinstance(verdict, Stop) else self.events.take_context()
        if not context:
            return verdict
        said = Inject(f'<hook event="SessionStart">\n{context}\n</hook>')
        return Inject((*said.messages, *verdict.messages)) if isinstance(verdict, Inject) else said

    def take_back(self, ctx: PolicyContext, message: UserMessage) -> None:
        """Let no later turn see a prompt that was blocked."""
        if self.erase is not None:
            self.erase(ctx, message)


class SubAgentHooks(ShellHook):
    """The hooks of sub-agents: their calls, and when they would stop."""

    def __init__(self, group: HookGroup, **terms: Any) -> None:
        super().__init__(group, stop_event="SubagentStop", **terms)


def _find_change(programs: Programs) -> str | None:
    """A file that is not as it was; blocking."""
    try:
        return programs.changed()
    except (TooManyPrograms, OSError) as error:
        return str(error)
