"""Bedrock's Converse API as a wire.

Cache points stand after the tools, after the system prompt and in the last two messages of the user's side,
for the models that know them.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from swink.errors import ModelError, StreamError
from swink.messages import ModelSpec
from swink.messages.providertools import CodeExecution, HostedTool, ProviderTool, WebSearch
from swink.providers.adapter import Ask, Wire
from swink.providers.bedrock.awserrors import explain
from swink.providers.bedrock.conversation import ConverseConversation
from swink.providers.bedrock.stream import ConverseDecoder
from swink.providers.claude import (
    BUDGETS,
    INTERLEAVED,
    LATE,
    LEAST_ANSWER,
    claude_effort,
    claude_version,
    interleaves,
    mark_turns,
    output_schema,
    sampling,
    takes_schema,
    without_thinking,
)
from swink.providers.convert import input_schema
from swink.providers.http import Response
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.thinking import asked_level, nearest, refuse, refuse_budget
from swink.stream import BlockWriter, LlmContext, OutputSchema

_CACHING_CLAUDE = re.compile(r"claude-3-5-(haiku|sonnet-20241022)")
_CACHING_NOVA = re.compile(r"nova-(2-)?(micro|lite|pro|premier)")


class Converse(Wire):
    """What Converse takes and gives."""

    honours = ALL_OPTIONS - {"session_id", "seed", "verbosity", "parallel_tool_calls"}
    accept = "application/vnd.amazon.eventstream"

    def conversation(self, model: ModelSpec) -> ConverseConversation:
        return ConverseConversation(model)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        model, context, options, notices = ask.model, ask.context, ask.options, ask.notices
        body: dict[str, Any] = {"messages": messages}
        if context.system_prompt.strip():
            body["system"] = [{"text": context.system_prompt}]
        if tools := _tool_config(ask):
            body["toolConfig"] = tools
        limits, additional = _limits_and_thinking(ask)
        if limits:
            body["inferenceConfig"] = limits
        if additional:
            body["additionalModelRequestFields"] = additional
        if options.service_tier is not None:
            body["serviceTier"] = {"type": options.service_tier}
        if context.output is not None:
            body["outputConfig"] = {"textFormat": _text_format(model, context.output)}
        if options.cache:
            _mark_for_cache(body, model.model_id.lower(), options.cache, notices)
        return body

    def decoder(self, reply: BlockWriter, ask: Ask) -> ConverseDecoder:
        return ConverseDecoder(reply, ask.options)

    def explain(self, response: Response, body: bytes) -> ModelError:
        return explain(response, body)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        can = model.capabilities is not None and model.capabilities.json_schema is True
        if not can or context.hosted or context.output is None:
            return False
        return claude_version(model.model_id) == (0, 0) or takes_schema(context.output.schema)


def _text_format(model: ModelSpec, output: OutputSchema) -> dict[str, Any]:
    held = output_schema(output.schema) if claude_version(model.model_id) > (0, 0) else output.schema
    text = msgspec.json.encode(held).decode()
    return {"type": "json_schema", "structure": {"jsonSchema": {"name": output.name, "schema": text}}}


def _limits_and_thinking(ask: Ask) -> tuple[dict[str, Any], dict[str, Any]]:
    model, context, options, notices = ask.model, ask.context, ask.options, ask.notices
    limits: dict[str, Any] = {}
    limit = options.max_tokens or model.max_output
    if limit:
        limits["maxTokens"] = limit
    begun = isinstance(ask.conversation, ConverseConversation) and ask.conversation.thoughtless is True
    additional = _thinking(ask, limits, begun)
    thinks = additional.get("thinking", {}).get("type") in ("enabled", "adaptive")
    if thinks and context.tools and interleaves(model.model_id):
        additional["anthropic_beta"] = [INTERLEAVED]
    if claude_version(model.model_id) > (0, 0):
        chosen = sampling(model, options, thinks, notices)
    else:
        given = {"temperature": options.temperature, "top_p": options.top_p}
        chosen = {name: value for name, value in given.items() if value is not None}
    limits |= {"topP" if name == "top_p" else name: value for name, value in chosen.items()}
    if options.stop:
        limits["stopSequences"] = list(options.stop)
    return limits, additional


def _thinking(ask: Ask, limits: dict[str, Any], begun: bool) -> dict[str, Any]:
    """The fields with which each family of models is asked to think."""
    model, notices = ask.model, ask.notices
    level, name, version = asked_level(model, notices), model.model_id.lower(), claude_version(model.model_id)
    if level is None:
        return {}
    if version > (0, 0):
        if level == "off":
            return without_thinking(model, version, notices)
        if ask.options.tool_choice not in (None, "auto", "none"):
            return refuse(model, notices, "this model does not think when a tool call is forced")
        if version >= (4, 6):
            refuse_budget(model, notices)
            effort = claude_effort(level, version, model.model_id)
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
        if begun:
            return refuse(model, notices, LATE)
        budget = model.thinking_budgets.get(level, BUDGETS[level])
        if "maxTokens" in limits and limits["maxTokens"] < budget + LEAST_ANSWER:
            most = min(budget + max(limits["maxTokens"], LEAST_ANSWER), model.max_output or 2**31)
            limits["maxTokens"], budget = most, max(1024, min(budget, most - LEAST_ANSWER))
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    refuse_budget(model, notices)
    effort = nearest(level, ("low", "medium", "high"))
    if "nova-2" in name:
        enabled = {"type": "enabled", "maxReasoningEffort": effort}
        return {"reasoningConfig": enabled if level != "off" else {"type": "disabled"}}
    if "gpt-oss" in name:
        return {"reasoning_effort": effort}
    return refuse(model, notices, f"no way is known to ask {model.model_id} for it")


def _tool_config(ask: Ask) -> dict[str, Any]:
    """The tools; those of the history are named even when none is offered, because Bedrock insists on it."""
    model, context, choice = ask.model, ask.context, ask.options.tool_choice
    offered = () if choice == "none" else context.tools
    specs = [_tool_spec(tool.name, tool.description, input_schema(tool)) for tool in offered]
    specs += _hosted(context.hosted, model) if choice != "none" else []
    if not specs:
        called = ask.conversation.called if isinstance(ask.conversation, ConverseConversation) else ()
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        specs = [_tool_spec(name, "No longer available.", schema) for name in called]
        return {"tools": specs} if specs else {}
    if choice in (None, "none"):
        return {"tools": specs}
    modes: dict[str, Any] = {"auto": {"auto": {}}, "required": {"any": {}}}
    return {"tools": specs, "toolChoice": modes.get(choice, {"tool": {"name": choice}})}


def _hosted(hosted: Sequence[HostedTool], model: ModelSpec) -> list[dict[str, Any]]:
    """The tools that Bedrock runs for its own models."""
    tools: list[dict[str, Any]] = []
    nova = "nova-2" in model.model_id or "nova-premier" in model.model_id
    for tool in hosted:
        match tool:
            case ProviderTool("bedrock", spec):
                tools.append(dict(spec))
            case WebSearch() if nova and tool != WebSearch():
                raise StreamError("bedrock: Nova's web search takes no domains, uses or location")
            case WebSearch() if nova:
                tools.append({"systemTool": {"name": "nova_grounding"}})
            case CodeExecution() if nova:
                tools.append({"systemTool": {"name": "nova_code_interpreter"}})
            case _:
                kind, own = type(tool).__name__, "WebSearch, CodeExecution and ProviderTool('bedrock', …)"
                has = own if nova else "ProviderTool alone"
                raise StreamError(f"bedrock has no hosted {kind} for {model.model_id}; it has {has}")
    return tools


def _tool_spec(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": name, "inputSchema": {"json": schema}}
    return {"toolSpec": {**spec, "description": description} if description else spec}


def _mark_for_cache(body: dict[str, Any], name: str, cache: bool | str, notices: Notices) -> None:
    """Put cache points at the tail; turns are kept for later requests, so marked ones are copies."""
    nova = bool(_CACHING_NOVA.search(name))
    version = claude_version(name)
    claude = version >= (3, 7) or bool(_CACHING_CLAUDE.search(name))
    if not (nova or claude):
        return
    point: dict[str, Any] = {"type": "default"}
    if cache == "1h" and version < (4, 5):
        notices.report("cache", f"{name} keeps its cache for five minutes")
    elif cache is not True:
        point["ttl"] = cache
    mark = {"cachePoint": point}
    if claude and "toolConfig" in body:
        body["toolConfig"]["tools"].append(mark)
    if "system" in body:
        body["system"].append(mark)
    body["messages"] = mark_turns(body["messages"], lambda content: [*content, mark])
