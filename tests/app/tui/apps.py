"""What tests of the app share: an app with a scripted agent, waiting, and the text on its screen."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from textual.pilot import Pilot

from swink import Agent, tool
from swink.app.assistant.permissions import Permissions
from swink.app.tui import ConversationDriver, SwinkApp
from swink.testing import ScriptedModel
from swink.tools import Workspace

SECONDS = 60.0
"""Only bounds a hang."""


def app_of(
    replies: Iterable[Any] | ScriptedModel,
    clock: Callable[[], float] = time.monotonic,
    model: str = "scripted:model",
    workspace: Workspace | None = None,
    **options: Any,
) -> SwinkApp:
    """An app whose agent says these replies."""
    script = replies if isinstance(replies, ScriptedModel) else ScriptedModel(replies)
    permissions = Permissions(workspace=workspace)
    agent = Agent(model, stream_fn=script, approve=permissions, approval_mode="on", **options)
    return SwinkApp(ConversationDriver(agent, clock=clock), permissions)


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await pilot.pause(0.01)


def screen_text(app: SwinkApp) -> str:
    """What is on the screen, as text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


class Gate:
    """A tool that runs until it is let go."""

    def __init__(self) -> None:
        self.started, self.open = asyncio.Event(), asyncio.Event()

    def tool(self) -> Any:
        @tool(read_only=True)
        async def hold() -> str:
            """Wait."""
            self.started.set()
            await self.open.wait()
            return "held"

        return hold
