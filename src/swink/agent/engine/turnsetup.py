"""What a turn works with, taken once at its beginning: what is changed later acts at the next turn."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from swink.agent.config import AgentContext, AgentLoopConfig, PromptContext, SystemPrompt
from swink.agent.context.windows import in_order
from swink.errors import InvalidInput
from swink.messages.codec import copy_state
from swink.messages.history import History
from swink.system.aio import resolve
from swink.tools import Tool, as_offers, offered_tools


class TurnSetup:
    """The settings of a turn, the models it may ask, its tools and its system prompt."""

    __slots__ = (
        "_context",
        "_given",
        "_offers",
        "_prompt",
        "config",
        "deps",
        "own_tools",
        "routes",
        "system_prompt",
        "tool_choice",
        "tools",
        "transformers",
    )

    def __init__(
        self,
        config: AgentLoopConfig,
        context: AgentContext,
        *,
        tools: Sequence[Tool] = (),
        deps: Any = None,
        tool_choice: str | None = None,
    ) -> None:
        self._given = config
        self._context = context
        self._offers: Sequence[Any] | None = None
        self._prompt: SystemPrompt | None = None
        self.config = copy(config)
        self.routes = config.routes()
        self.transformers = in_order(config.transform_context)
        self.deps = config.deps if deps is None else deps
        self.own_tools = self.tools = tuple(tools)
        """Those of this run alone."""
        self.tool_choice = tool_choice
        self.system_prompt = ""

    def take_settings(self) -> bool:
        """Take what is there; False if tools or prompt have to be asked for besides."""
        context, before = self._context, self.config
        if self._given.version != before.version:
            config = self.config = copy(self._given)
            self.transformers = in_order(config.transform_context)
            if (
                config.model is not before.model
                or config.stream_fn is not before.stream_fn
                or config.fallbacks is not before.fallbacks
            ):
                self.routes = config.routes()
        return context.tools is self._offers and context.system_prompt is self._prompt

    async def ask(self, history: History) -> None:
        """Take tools and prompt; a source of tools is asked at every turn, a prompt function once a run."""
        prompt, offers = self._context.system_prompt, self._context.tools
        if offers is not self._offers:
            await self._take_tools(offers)
        if prompt is not self._prompt:
            await self._write_prompt(prompt, history)

    async def _take_tools(self, offers: Sequence[Any]) -> None:
        given = as_offers(offers)
        tools = [offer for offer in given if isinstance(offer, Tool)]
        if len(tools) < len(given):
            self.tools = await offered_tools(given, self.own_tools, self.config.warned)
        else:
            self.tools = (*tools, *self.own_tools)
            self._offers = offers if isinstance(offers, tuple) else None  # a list may be changed in place

    async def _write_prompt(self, prompt: SystemPrompt, history: History) -> None:
        self._prompt = prompt
        if isinstance(prompt, str):
            self.system_prompt = prompt
            return
        context = PromptContext(self.deps, copy_state(self.config.state), history.snapshot())
        written = await resolve(prompt(context))
        if not isinstance(written, str):
            raise InvalidInput(f"system_prompt() returned {type(written).__name__}; it returns a str")
        self.system_prompt = written
