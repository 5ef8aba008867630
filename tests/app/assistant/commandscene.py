"""The coding agent in a folder, its commands, and a person whose answers are known before."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Once, Question, Reply
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.trust import decided, look_up
from swink.messages import ModelSpec, ToolCall, ToolResultMessage
from swink.testing import ScriptedModel
from swink.tools.coding.workspace import Workspace

MODEL = ModelSpec("test", "large", context_window=200_000)


class Scene:
    """The coding agent in a folder, and what its person was asked and said."""

    def __init__(
        self,
        work: Path,
        *,
        trusted: bool = True,
        reply: Reply | Callable[[Question], Reply] = Once(),
        word: Any = "smart",
    ) -> None:
        self.work, self.reply = work, reply
        self.asked: list[Question] = []
        self.environment = AgentEnvironment(work, decided(look_up(work), trusted))
        rules = RuleBook(work, path=work.parent / "permissions")
        self.permissions = Permissions(word, workspace=Workspace(work), rules=rules, ask=self._ask)
        self.environment.attend(self.permissions)

    @property
    def outside(self) -> list[Question]:
        """The questions about runs outside the sandbox."""
        return [question for question in self.asked if question.is_once]

    async def _ask(self, question: Question) -> Reply:
        self.asked.append(question)
        await asyncio.sleep(0)
        return self.reply(question) if callable(self.reply) else self.reply

    async def call(self, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """The results of calls that the model makes, one a turn."""
        return await self.answer(
            *([ToolCall(f"c{at}", name, arguments)] for at, (name, arguments) in enumerate(calls))
        )

    async def answer(self, *turns: list[ToolCall]) -> list[str]:
        """The results of calls, those of a turn together."""
        model = ScriptedModel([*turns, "done"])
        try:
            await self.environment.open()
            agent = self.environment.make_agent(
                MODEL, approve=self.permissions, approval_mode="on", stream_fn=model
            )
            result = await agent.run("go")
        finally:
            await self.environment.aclose()
        assert result.error is None
        return [m.text for m in result.messages if isinstance(m, ToolResultMessage)]

    async def shell(self, *commands: str) -> list[str]:
        """What the model is told of commands, one a turn."""
        return await self.call(*(("bash", {"command": command}) for command in commands))
