"""The workshop: what an assistant has to work with in a directory, and the agent that works there."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swink.agent import Agent
from swink.assistant.prompts import Surroundings, find_git, is_small, look_around, system_prompt
from swink.checkpoint import placeholders
from swink.config import ApprovalMode, PromptContext
from swink.memory.session import Session
from swink.messages import Message, ModelSpec
from swink.policy import Approve, Policy
from swink.stream import StreamFn, StreamOptions
from swink.threads import in_thread
from swink.tool import Tool


class Workshop:
    """The tools and instructions of one directory, made once and shared by the conversations in it.

    It is a source of tools: what it offers depends on the model that the agent has at that turn.
    """

    def __init__(self, directory: str | Path, *, hidden: Sequence[str | Path] = ()) -> None:
        self.directory = Path(os.path.realpath(directory))
        self.is_coding = has_work(self.directory)
        self._hidden = hidden
        self._tools: tuple[Tool, ...] | None = None
        self._around: Surroundings | None = None
        self.agent: Agent | None = None
        """The agent whose model decides what is offered; whoever copies it to go on names the copy here."""

    def make_agent(
        self,
        model: ModelSpec,
        *,
        session: Session | None = None,
        approve: Approve | None = None,
        approval_mode: ApprovalMode = "enabled",
        system: str | None = None,
        tools: Sequence[Any] = (),
        options: StreamOptions = StreamOptions(),
        policies: Sequence[Policy] = (),
        stream_fn: StreamFn | None = None,
    ) -> Agent:
        """An agent that works here; every call is put to `approve`, whose word may change later."""
        agent = Agent(
            model,
            system_prompt=self._prompt if system is None else system,
            tools=[*tools, self, *_gone(session, [*tools, *self._all_tools()])],
            session=session,
            options=options,
            policies=policies,
            approve=approve,
            approval_mode=approval_mode,
            stream_fn=stream_fn,
        )
        self.agent = agent
        return agent

    def tools(self) -> Sequence[Tool]:
        """The tools for the model as it is now; none for one whose window they would fill."""
        if self.agent is not None and is_small(self.agent.model):
            return ()
        return self._all_tools()

    def _all_tools(self) -> tuple[Tool, ...]:
        if self._tools is None:
            from swink.tools import coding_tools, fetch_tools, todo_tools

            self._tools = tuple(
                coding_tools(self.directory, hidden=self._hidden)
                if self.is_coding
                else [*fetch_tools(), *todo_tools()]
            )
        return self._tools

    async def _prompt(self, context: PromptContext) -> str:
        if self._around is None:  # once: a prompt that stays the same is cached by providers
            self._around = await in_thread(look_around, self.directory)
        model = ModelSpec("", "") if self.agent is None else self.agent.model
        return system_prompt(model, self._around, coding=self.is_coding)


def make_assistant(directory: str | Path, model: ModelSpec, **options: Any) -> Agent:
    """An agent set up for a person in a directory; options are those of `Workshop.make_agent`."""
    return Workshop(directory).make_agent(model, **options)


def has_work(directory: Path) -> bool:
    """Whether there is something to work on: a git repository, or any file that is not hidden."""
    if find_git(directory) is not None:
        return True
    try:
        with os.scandir(directory) as entries:
            return any(not entry.name.startswith(".") for entry in entries)
    except OSError:
        return False


def _gone(session: Session | None, tools: Sequence[Tool]) -> Sequence[Tool]:
    """What stands in for tools that the conversation used and that are no longer there."""
    if session is None:
        return ()
    turn = session.conversation.open
    messages: list[Message] = [*session.messages, *([] if turn is None else [turn.reply])]
    return placeholders(messages, tools)
