"""The hooks of an agent: those that match an event run concurrently, and their answers are joined."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.policies.hooks.hook import Event, Hook
from swink.policies.hooks.hookanswers import HookAnswer, join_answers
from swink.policies.hooks.hooknames import CannotTranslate, foreign_tool, to_foreign, to_ours
from swink.policies.hooks.hookprocess import run_hook
from swink.system.aio import resolve

log = logging.getLogger("swink.policy")

Facts = Callable[[], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
"""What is told of the session with every event."""


class HookedCall(Struct, frozen=True):
    """A call of a tool that hooks are told of."""

    name: str
    arguments: Mapping[str, Any]
    server: str | None = None
    """The MCP server whose tool it is."""
    without: Sequence[Hook] = ()
    """Hooks that are not asked, because these arguments are their own change."""

    def is_for(self, hook: Hook) -> bool:
        """Whether a hook wants to hear of it."""
        return hook not in self.without and hook.matches(self.name_for(hook))

    def name_for(self, hook: Hook) -> str:
        """The tool as the hook calls it."""
        return foreign_tool(self.name, self.server) if hook.foreign_names else self.name

    def input_for(self, hook: Hook, directory: str) -> dict[str, Any]:
        """The arguments as the hook knows them."""
        if not hook.foreign_names or self.server is not None:
            return dict(self.arguments)
        return to_foreign(self.name, self.arguments, directory)

    def translate(self, hook: Hook, answer: HookAnswer, directory: str) -> HookAnswer:
        """The answer with its changed input in our names; one that means nothing here is a denial."""
        updated = answer.updated_input
        if updated is None or not hook.foreign_names or self.server is not None:
            return answer
        try:
            return replace(answer, updated_input=to_ours(self.name, updated, self.arguments, directory))
        except CannotTranslate as error:
            why = f"a hook changed the input in a way that cannot be had here: {error}"
            return replace(answer, decision="deny", reason=why, updated_input=None)


class HookGroup:
    """Hooks and what they are told of the session: `facts` are its published fields.

    `tell` is given what people have to know: messages of hooks, and once what went wrong with one.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        directory: str | Path = ".",
        *,
        project: str | Path | None = None,
        facts: Facts = dict,
        tell: Callable[[str], None] = log.warning,
    ) -> None:
        self.hooks: Sequence[Hook] = tuple(hooks)
        self.directory = os.path.realpath(directory)
        self.project = self.directory if project is None else str(project)
        self.facts = facts
        self.tell = tell
        self._told: set[str] = set()

    def has(self, event: Event) -> bool:
        """Whether any hook is for an event."""
        return any(hook.event == event for hook in self.hooks)

    async def run(self, event: Event, fields: Mapping[str, Any], matched: str = "") -> HookAnswer:
        """Tell the hooks of an event that is no call; matchers speak of `matched`."""
        found = self._find(event, lambda hook: hook.matches(*filter(None, (matched,))))
        return join_answers(await self._run_all([(hook, {**fields}) for hook in found]))

    async def ask(
        self, event: Event, call: HookedCall, fields: Mapping[str, Any]
    ) -> list[tuple[Hook, HookAnswer]]:
        """Tell the hooks of a call; each with its answer, a changed input in our names."""
        found = self._find(event, call.is_for)
        told = [
            (
                hook,
                {
                    "tool_name": call.name_for(hook),
                    "tool_input": call.input_for(hook, self.directory),
                    **fields,
                },
            )
            for hook in found
        ]
        answers = await self._run_all(told)
        pairs = zip(found, answers, strict=True)
        return [(hook, call.translate(hook, answer, self.directory)) for hook, answer in pairs]

    def _find(self, event: Event, matches: Callable[[Hook], bool]) -> list[Hook]:
        """Those that match, the same command once."""
        found = [hook for hook in self.hooks if hook.event == event and matches(hook)]
        return list({(hook.command, hook.foreign_names): hook for hook in reversed(found)}.values())[::-1]

    async def _run_all(self, told: Sequence[tuple[Hook, Mapping[str, Any]]]) -> list[HookAnswer]:
        if not told:
            return []
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.run_one(hook, fields)) for hook, fields in told]
        return [task.result() for task in tasks]

    async def run_one(self, hook: Hook, fields: Mapping[str, Any]) -> HookAnswer:
        """Run one hook, with the fields that every event has."""
        if hook.problem:
            self._tell_once(hook, hook.problem)
        common = {
            "session_id": "",
            "transcript_path": "",
            "cwd": self.directory,
            "hook_event_name": hook.event,
        }
        told = {**common, **await resolve(self.facts()), **fields}
        answer = await run_hook(hook, told, self.place_of(hook), self.project)
        self.report(hook, answer)
        return answer

    def place_of(self, hook: Hook) -> str:
        """Where a hook is started."""
        return self.directory

    def report(self, hook: Hook, answer: HookAnswer) -> None:
        """Tell people what a hook says to them, and once what went wrong with it."""
        if answer.problem:
            self._tell_once(hook, answer.problem)
        if answer.message:
            self.tell(answer.message)

    def _tell_once(self, hook: Hook, problem: str) -> None:
        told = f"the hook {hook.command!r} for {hook.event} failed and blocked nothing: {problem}"
        if hook.fails_closed and problem == hook.problem:
            told = f"the hook {hook.command!r} for {hook.event}: {problem}"
        if told not in self._told:
            self._told.add(told)
            self.tell(told)
