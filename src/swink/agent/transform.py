"""The context of a request: the history after its transformers, and what is said of what they drop."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from swink.agent.config import AgentContext, AgentLoopConfig, Model
from swink.agent.context.windows import TransformFn
from swink.agent.engine.account import Account, Spent
from swink.agent.engine.repair import with_pairs, with_prompt
from swink.agent.engine.run import Run
from swink.agent.engine.turnsetup import TurnSetup
from swink.errors import AgentError, InvalidInput, NetworkError, error_for
from swink.events import CompactionReport, ContextCompacted
from swink.messages import Cost, CustomMessage, Message, ModelSpec, Usage
from swink.messages.history import Snapshot
from swink.messages.pruning import is_pruned
from swink.messages.tokens import estimate_tokens
from swink.stream import Assembly, Done, Error, LlmContext, StreamFn, StreamOptions, observer
from swink.stream.watch import read_reply
from swink.system.aio import resolve
from swink.tools import Tool, ToolSource, offered_tools
from swink.tools.toolsearch import tool_search

log = logging.getLogger("swink")

ASK_WITHIN = 120.0
"""Seconds that a transformer's own question to a model may take."""


class TransformRequest(Struct, eq=False):
    """What is about to be asked, as transformers see it; what they ask a model is charged to the account."""

    _setup: TurnSetup
    model: ModelSpec
    _account: Account
    _append: Callable[[Sequence[Message]], None] | None = None
    spent: list[Spent] = []

    @property
    def ratio(self) -> float:
        """How many tokens the provider counts for one that is estimated, as learnt so far."""
        return self._setup.config.ratio.ratio(self.model)

    @property
    def overhead(self) -> int:
        """Estimated tokens of the system prompt and the tools."""
        return self._setup.config.ratio.overhead(self._setup.system_prompt, self._setup.tools)

    def offers(self, tool: str) -> bool:
        """Whether the model is offered a tool of this name."""
        return any(item.name == tool for item in self._setup.tools)

    def note(self, message: CustomMessage) -> None:
        """Add a message to the history at the end of the turn, with the cost of what was asked for it."""
        if self._append is not None:
            if self.spent and isinstance(data := message.data, dict):
                _, cost = _total(self.spent)
                told = {**cast("dict[str, Any]", data), "cost": None if cost is None else cost.total}
                message = replace(message, data=told)
            self._append([message])

    def warn(self, text: str) -> None:
        """Log a warning, once per agent."""
        warned = self._setup.config.warned
        if (known := text.partition(" (")[0]) not in warned:
            warned.append(known)
            log.warning("%s", text)

    async def ask(
        self, context: LlmContext, model: Model | None = None, max_tokens: int | None = None
    ) -> str:
        """The text of a model's answer; what it has used is charged in every outcome."""
        own = next((route for route in self._setup.routes if route[0] is self.model), self._setup.routes[0])
        spec, stream_fn = own if model is None else self._setup.config.route_to(model)
        spec = spec if spec.thinking_level == "off" else replace(spec, thinking_level="off")
        options = await self._options(spec, stream_fn, max_tokens)
        assembly, failed = Assembly(), None
        asking = None if observer.current is None else observer.current.request(spec, context, options)
        options = options if asking is None else asking.options
        try:
            async with asyncio.timeout(ASK_WITHIN):
                await read_reply(stream_fn, spec, context, options, assembly)
            if not isinstance(assembly.terminal, Done):
                failed = _failure(assembly.terminal, spec)
                raise failed
        except AgentError as error:
            failed = error
            raise
        finally:
            spent = self._account.attempt(spec, assembly, failed)
            self._account.charge(*spent)
            self.spent.append(spent)
            if asking is not None:
                asking.end(assembly, failed, *spent)
        return assembly.message(spec, "stop", usage=Usage()).text

    async def _options(self, spec: ModelSpec, stream_fn: StreamFn, max_tokens: int | None) -> StreamOptions:
        config = self._setup.config
        options = config.options_for(spec, stream_fn)
        if config.get_api_key is not None:
            key = await resolve(config.get_api_key(spec.provider))
            options = options if key is None else replace(options, api_key=key)
        if max_tokens is None or (options.max_tokens is not None and options.max_tokens < max_tokens):
            max_tokens = options.max_tokens
        return replace(options, max_tokens=max_tokens, tool_choice=None)


async def transform_context(run: Run, overflow: bool) -> Sequence[Message]:
    """The history after its transformers, for the model that is asked; what one drops is announced."""
    ledger = run.ledger
    history = messages = Snapshot(ledger.history)
    request = TransformRequest(run.setup, ledger.attempt.model, ledger.account, ledger.append)
    for position, (function, fit) in enumerate(run.setup.transformers):
        before = messages
        returned = fit(before, overflow, request)
        if returned is before:
            continue
        messages = await resolve(returned)
        if messages is not before:
            messages = _checked(run, function, messages, history)
            _announce(run, position, before, messages, overflow, request)
    return messages


async def compacted(
    config: AgentLoopConfig, offers: Sequence[Tool | ToolSource], history: Snapshot
) -> tuple[Sequence[Message], CompactionReport]:
    """What the transformers keep of a history when they are told to make it smaller, and the report of it."""
    messages: Sequence[Message] = history
    tools = await offered_tools(offers, (), config.warned)
    search = tool_search(tools, (), config.spec.context_window, config.warned)
    setup = TurnSetup(config, AgentContext(), tools=tools if search is None else search.tools)
    request = TransformRequest(setup, setup.routes[0][0], Account(config.price))
    for _, fit in setup.transformers:
        messages = await resolve(fit(messages, True, request))
    config.guard.expect_break()
    return messages, _report(history, messages, True, request)


async def refit_context(run: Run, messages: Sequence[Message]) -> Sequence[Message]:
    """The context for another model than the one it was made for."""
    is_sized = any(
        hasattr(function, "sized_for") or hasattr(function, "fit") for function, _ in run.setup.transformers
    )
    return await transform_context(run, False) if is_sized else messages


async def shrink_context(run: Run, sent: Sequence[Message]) -> Sequence[Message] | None:
    """After an overflow: a smaller context, or None if no transformer can make one."""
    smaller = await transform_context(run, True)
    run.check()
    return smaller if sum(map(estimate_tokens, smaller)) < sum(map(estimate_tokens, sent)) else None


def _failure(end: Error | None, model: ModelSpec) -> AgentError:
    if end is None:
        return NetworkError("the stream ended without a terminal event", model=str(model))
    return error_for(end.kind, end.message, model=str(model), retry_after=end.retry_after)


def _checked(run: Run, function: TransformFn, messages: Any, history: Snapshot) -> Sequence[Message]:
    """What a transformer returned, repaired; snapshots are sound, since histories are."""
    if isinstance(messages, Snapshot):
        return messages
    name = getattr(function, "__name__", None) or type(function).__name__
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise InvalidInput(f"{name} returned {type(messages).__name__}; it returns the messages to send")
    returned, warned = cast("Sequence[Message]", messages), run.setup.config.warned
    return with_prompt(with_pairs(returned, name, warned), history, name, warned)


def _announce(
    run: Run,
    position: int,
    before: Sequence[Message],
    after: Sequence[Message],
    overflow: bool,
    request: TransformRequest,
) -> None:
    known = run.dropped or {}
    window = after.history if isinstance(after, Snapshot) else None
    announced, dropped = known.get(position, (None, 0))
    if window is not None and (window is announced or run.setup.config.guard.has_told(position, window)):
        return  # it has only grown since
    now = _dropped(before, after)
    is_told = now > dropped or (window is not None and any(map(is_pruned, after)))
    if is_told:
        run.ledger.emit(ContextCompacted(_report(before, after, overflow, request)))
    if is_told or window is not None:
        run.setup.config.guard.expect_break()
    if window is not None:
        run.setup.config.guard.tell(position, window)
    run.dropped = {**known, position: (window, now)}


def _report(
    before: Sequence[Message], after: Sequence[Message], overflow: bool, request: TransformRequest
) -> CompactionReport:
    usage, cost = _total(request.spent)
    request.spent.clear()
    return CompactionReport(
        _dropped(before, after),
        _tokens(before),
        _tokens(after),
        overflow,
        sum(map(is_pruned, after)),
        usage,
        cost,
    )


def _total(spent: Sequence[Spent]) -> Spent:
    usage, cost = Usage(), None if any(cost is None for _, cost in spent) else Cost()
    for used, price in spent:
        usage += used
        cost = None if cost is None or price is None else cost + price
    return usage, cost


def _dropped(before: Sequence[Message], after: Sequence[Message]) -> int:
    """How many messages are gone; one that was cut short is not, and a summary takes nobody's place."""
    there = {id(message) for message in before}
    return max(0, len(before) - sum(id(message) in there or is_pruned(message) for message in after))


def _tokens(messages: Sequence[Message]) -> int:
    if isinstance(messages, Snapshot) and len(messages) == len(messages.history):
        return messages.history.most_tokens()  # measured message by message, as it grew
    return sum(map(estimate_tokens, messages))
