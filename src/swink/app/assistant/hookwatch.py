"""Hooks that appear or change while swink runs: noticed before the next event, by a look at their files.

Policies stand in for the hooks from the start and load nothing as long as there are none.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from swink.agent.policy import CallVerdict, Policy, PolicyContext, ReplyVerdict, Turn, TurnVerdict
from swink.messages import ToolCall

Look = Callable[[], Awaitable[None]]
"""Takes up what has changed in the files of hooks."""


class HookFileWatch:
    """The files that hooks stand in, and how they were when they were read."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._paths = tuple(map(str, paths))
        self._seen = self.state()

    def state(self) -> tuple[object, ...]:
        """What tells a file from what it was before."""
        return tuple([_state(path) for path in self._paths])

    @property
    def has_changed(self) -> bool:
        """Whether one of them is another one than it was."""
        return self.state() != self._seen

    def accept(self, state: tuple[object, ...]) -> None:
        """What was in the files in this state has been read."""
        self._seen = state


class LateHooks(Policy):
    """Runs the hooks that there are at the time, by the policy that `find` gives for them."""

    fail_closed = True

    def __init__(self, look: Look, find: Callable[[], Policy | None], *, for_sub_agents: bool) -> None:
        self.for_sub_agents = for_sub_agents
        self._look = look
        self._find = find

    async def pre_turn(self, ctx: PolicyContext) -> TurnVerdict:
        """What SessionStart and UserPromptSubmit say, after a look at the files."""
        return await self._ask("pre_turn", ctx)

    async def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
        """What PreToolUse says, after a look at the files."""
        return await self._ask("pre_dispatch", ctx, call)

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> ReplyVerdict:
        """What PostToolUse says, after a look at the files."""
        return await self._ask("post_turn", ctx, turn)

    async def post_loop(self, ctx: PolicyContext) -> TurnVerdict:
        """What Stop says, after a look at the files."""
        return await self._ask("post_loop", ctx)

    async def _ask(self, slot: str, *values: Any) -> Any:
        await self._look()
        found = self._find()
        return None if found is None else await getattr(found, slot)(*values)


def _state(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
