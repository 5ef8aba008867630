"""What a model is sent: the context converted for it, with prompt, tools and the schema of the answer."""

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

from msgspec.structs import replace

from swink.agent.config import AgentLoopConfig
from swink.agent.engine.repair import with_pairs
from swink.agent.engine.run import Run
from swink.events import CustomEvent
from swink.messages import AssistantMessage, LlmMessage, Message, ModelSpec
from swink.messages.history import Snapshot
from swink.messages.providertools import hosted_for
from swink.stream import LlmContext, OutputSchema, StreamFn
from swink.tools import FINAL_OUTPUT, Tool

CACHE_PREFIX_BROKEN = "cache_prefix_broken"


def llm_context(run: Run, messages: Sequence[Message], stream_fn: StreamFn) -> LlmContext:
    """What the model is asked; if it does not begin with what was asked before, an event says where."""
    ledger, setup = run.ledger, run.setup
    model, config, tools = ledger.attempt.model, setup.config, setup.tools
    if setup.search is not None:
        tools = setup.search.offered(model, stream_fn)
    offered = () if model.capabilities is not None and not model.capabilities.tools else tools
    hosted = hosted_for(config.hosted, model) if config.hosted else ()
    context = LlmContext(setup.system_prompt, llm_messages(config, messages), offered, hosted)
    if setup.own_tools and tools[-1].name == FINAL_OUTPUT:
        context = _with_output(context, tools[-1], model, stream_fn)
    if config.options.cache:
        own = _own(context) if setup.own_tools else context
        broken = config.guard.begin(model, own, ledger.turn.number == 1)
        if broken is not None:
            ledger.emit(CustomEvent(CACHE_PREFIX_BROKEN, {"model": str(model), **broken.data}))
    return context


def _with_output(context: LlmContext, tool: Tool, model: ModelSpec, stream_fn: StreamFn) -> LlmContext:
    """The context with the schema of the answer in the place of the tool, if the provider sees to that."""
    native: Callable[[ModelSpec, LlmContext], bool] | None = getattr(stream_fn, "native_output", None)
    if native is None:
        return context
    others = tuple([other for other in context.tools if other is not tool])
    asked = replace(context, tools=others, output=OutputSchema("output", tool.parameters_schema))
    return asked if native(model, asked) else context


def llm_messages(config: AgentLoopConfig, messages: Sequence[Any]) -> Sequence[LlmMessage]:
    """What the model sees: converted, and without a failed reply at the end, which would be a prefill."""
    converted: Sequence[Any] = messages
    if (convert := config.convert_to_llm) is not None:
        converted = [kept for message in messages if (kept := convert(message)) is not None]
        if len(converted) < len(messages) or not all(map(is_, converted, messages)):
            converted = with_pairs(converted, "convert_to_llm", config.warned)
    elif type(messages) is Snapshot:
        if not messages.has_custom and type(messages.last) is not AssistantMessage:
            return converted
        converted = messages.plain
    else:
        converted = [message for message in messages if message.role != "custom"]
    whole = end = len(converted)
    while end and type(last := converted[end - 1]) is AssistantMessage and last.failed:
        end -= 1
    return converted if end == whole else converted[:end]


def _own(context: LlmContext) -> LlmContext:
    """A request without the tool that a run with `output=` adds: the caller knows of that change."""
    if not context.tools or context.tools[-1].name != FINAL_OUTPUT:
        return context
    return replace(context, tools=tuple(context.tools[:-1]))
