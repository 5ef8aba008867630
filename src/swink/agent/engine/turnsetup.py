"""What a turn works with, taken once at its beginning: what is changed later acts at the next turn."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from swink.agent.config import AgentContext, AgentLoopConfig, PromptContext, SystemPrompt, copied
from swink.agent.context.windows import fitters
from swink.errors import InvalidInput
from swink.messages.codec import copy_state
from swink.messages.history import History
from swink.system.aio import resolve
from swink.tools import Tool, TurnContext, as_offers, offered_tools
from swink.tools.toolsearch import ToolSearch, tool_search
from swink.tools.toolsource import Offers


class TurnSetup:
    """The settings of a turn, the models it may ask, its tools and its system prompt."""

    __slots__ = (
        "_context", "_given", "_offers", "_prompt", "config", "deps", "own_tools", "routes", "search",
        "system_prompt", "tool_choice", "tools", "transformers"
    )  # fmt: skip

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
        self.config = copied(config)
        self.routes = config.routes()
        self.transformers = fitters(config.transform_context)
        self.deps = config.deps if deps is None else deps
        self.own_tools = tuple(tools)
        """Those of this run alone."""
        self.tools: tuple[Tool, ...] = self.own_tools
        self.search: ToolSearch | None = None
        """Which of them a model is sent, if any is deferred."""
        self.tool_choice = tool_choice
        self.system_prompt = ""

    async def take(self, history: History) -> None:
        """Take what is there now; a source of tools is asked at every turn, a prompt function once a run."""
        before, prompt, offers = self.config, self._context.system_prompt, self._context.tools
        if self._given.version != before.version:
            config = self.config = copied(self._given)
            self.transformers = fitters(config.transform_context)
            if (
                config.model is not before.model
                or config.stream_fn is not before.stream_fn
                or config.fallbacks is not before.fallbacks
            ):
                self.routes, self._offers = config.routes(), None
        if offers is not self._offers:
            await self._take_tools(offers, history)
        if prompt is not self._prompt:
            self._prompt = prompt
            self.system_prompt = prompt if isinstance(prompt, str) else await self._written(prompt, history)

    async def _take_tools(self, offers: Sequence[Any], history: History) -> None:
        given: Any = offers if type(offers) is Offers else as_offers(offers)
        self._offers = offers if isinstance(offers, tuple) else None  # a list may be changed in place
        for offer in given:
            if type(offer) is not Tool:
                context = TurnContext(self.deps, copy_state(self.config.state), history.snapshot())
                given = await offered_tools(given, self.own_tools, self.config.warned, context)
                self._offers = None
                break
        window = self.routes[0][0].context_window
        self.search = tool_search(given, self.own_tools, window, self.config.warned)
        self.tools = (*given, *self.own_tools) if self.search is None else self.search.tools

    async def _written(
        self, prompt: Callable[[PromptContext[Any]], str | Awaitable[str]], history: History
    ) -> str:
        context = PromptContext(self.deps, copy_state(self.config.state), history.snapshot())
        written = await resolve(prompt(context))
        if not isinstance(written, str):
            raise InvalidInput(f"system_prompt() returned {type(written).__name__}; it returns a str")
        return written
