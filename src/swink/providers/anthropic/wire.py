"""Anthropic's Messages API as a wire, for Anthropic and for others that serve Claude in the same words.

`POST {base_url}/v1/messages`, streamed as server-sent events. Breakpoints for the prompt cache stand on the
last tool, on the system prompt and on the last two messages of the user's side: the four that the API allows,
so that each turn reads what the turn before wrote.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from swink.messages import Extension, ModelSpec
from swink.messages.providertools import McpConnector
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.anthropic.claudetools import MCP_BETA, hosted_tools
from swink.providers.anthropic.claudetoolsearch import SEARCH_TOOL, searches_tools, with_references
from swink.providers.anthropic.conversation import ClaudeConversation
from swink.providers.anthropic.stream import MessagesDecoder
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
from swink.providers.convert import input_schema, is_deferred
from swink.providers.notices import ALL_OPTIONS
from swink.providers.thinking import asked_level, refuse, refuse_budget
from swink.stream import BlockWriter, LlmContext, ToolSpec

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 32_000


class Messages(Wire):
    """What Anthropic's Messages API takes and gives."""

    honours = ALL_OPTIONS - {"seed", "verbosity"}

    def conversation(self, model: ModelSpec) -> ClaudeConversation:
        return ClaudeConversation(model)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        context, options = ask.context, ask.options
        body: dict[str, Any] = {"model": ask.name, "stream": True}
        begun = isinstance(ask.conversation, ClaudeConversation) and ask.conversation.thoughtless is True
        body |= _thinking_and_limits(ask, begun)
        if context.output is not None:
            schema = {"type": "json_schema", "schema": output_schema(context.output.schema)}
            body["output_config"] = {**body.get("output_config", {}), "format": schema}
        if context.system_prompt.strip():
            body["system"] = [{"type": "text", "text": context.system_prompt}]
        body |= _tools(ask)
        body["messages"] = messages
        if isinstance(ask.conversation, ClaudeConversation) and ask.conversation.references:
            body["messages"] = with_references(messages, ask.conversation.references, body.get("tools", ()))
        if options.session_id:
            body["metadata"] = {"user_id": options.session_id}
        if options.stop:
            body["stop_sequences"] = list(options.stop)
        if options.service_tier is not None:
            body["service_tier"] = options.service_tier
        if context.hosted and isinstance(ask.conversation, ClaudeConversation):
            container = ask.conversation.container
            if container is not None and not _is_past(container.get("expires_at")):
                body["container"] = container["id"]
        if options.cache:
            _mark_for_cache(body, options.cache)
        return body

    def extra(self, ask: Ask) -> Mapping[str, Any]:
        """What joins the body; betas are a header."""
        return {name: value for name, value in ask.options.extra.items() if name != "betas"}

    def headers(self, ask: Ask) -> Mapping[str, str]:
        """The version of the API, and the betas that the request needs."""
        betas = _betas(ask)
        return {"anthropic-version": VERSION, **({"anthropic-beta": ",".join(betas)} if betas else {})}

    def decoder(self, reply: BlockWriter, ask: Ask) -> MessagesDecoder:
        return MessagesDecoder(reply, ask.options)

    def native_search(self, model: ModelSpec) -> bool:
        """Whether Claude searches deferred tools here."""
        return searches_tools(model)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether Claude holds its answer to the schema: not where it is cited, as beside hosted tools."""
        can = model.capabilities is not None and model.capabilities.json_schema is True
        if not can or context.hosted or context.output is None:
            return False
        cited = any(_is_cited(block) for message in context.messages for block in message.content)
        return takes_schema(context.output.schema) and not cited


def _is_cited(block: Any) -> bool:
    match block:
        case Extension("anthropic", {"citations": {"enabled": True}}):
            return True
        case _:
            return False


class AnthropicStreamFn(Adapter):
    """Claude, or a server with the same Messages API; `base_url` is without `/v1`, as in Anthropic's SDK.

    Args:
        base_url: the server, by default ANTHROPIC_BASE_URL or Anthropic's
        api_key: by default ANTHROPIC_API_KEY or the stored key
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "anthropic"
    wire = Messages()
    path = "/v1/messages"
    key_header = "x-api-key"


def _betas(ask: Ask) -> list[str]:
    """The betas that a request needs, and those that `extra={"betas": […]}` asks for."""
    model, context = ask.model, ask.context
    betas = [str(beta) for beta in ask.options.extra.get("betas", ())]
    if any(isinstance(tool, McpConnector) for tool in context.hosted):
        betas.append(MCP_BETA)
    thinks = model.thinking_level != "off" and (model.capabilities is None or model.capabilities.thinking)
    if thinks and (context.tools or context.hosted) and interleaves(model.model_id):
        betas.append(INTERLEAVED)
    return list(dict.fromkeys(betas))


def _tools(ask: Ask) -> dict[str, Any]:
    context, options = ask.context, ask.options
    fields = hosted_tools(context.hosted, claude_version(ask.model.model_id), ask.model.provider)
    # A tool that the provider describes may run here, such as its memory: a name is described once.
    described = {tool.get("name") for tool in (*fields["tools"], *options.extra.get("tools", ()))}
    undescribed = [tool for tool in context.tools if tool.name not in described]
    told = [_described(tool, options.tool_choice) for tool in undescribed]
    if any("defer_loading" in tool for tool in told):
        fields["tools"].append(SEARCH_TOOL)
    fields["tools"] += told
    if not fields["tools"]:
        return {}
    choice = _tool_choice(options.tool_choice or "auto")
    if options.parallel_tool_calls is False and choice["type"] != "none":
        fields["tool_choice"] = {**choice, "disable_parallel_tool_use": True}
    elif options.tool_choice is not None:
        fields["tool_choice"] = choice
    return fields


def _described(tool: ToolSpec, choice: str | None) -> dict[str, Any]:
    """A tool as the API is told of it; one that has to be called cannot wait until it is found."""
    told = {"name": tool.name, "description": tool.description, "input_schema": input_schema(tool)}
    return {**told, "defer_loading": True} if is_deferred(tool) and tool.name != choice else told


def _is_past(moment: object) -> bool:
    try:
        expires = datetime.fromisoformat(str(moment))
    except ValueError:
        return False
    return expires.replace(tzinfo=expires.tzinfo or UTC) <= datetime.now(UTC)


def _thinking_and_limits(ask: Ask, begun: bool) -> dict[str, Any]:
    model, options, notices = ask.model, ask.options, ask.notices
    level = asked_level(model, notices)
    version = claude_version(model.model_id)
    limit = options.max_tokens or model.max_output or DEFAULT_MAX_TOKENS
    if level not in (None, "off") and options.tool_choice not in (None, "auto", "none"):
        refuse(model, notices, "this provider does not think when a tool call is forced")
        level = "off"
    elif level not in (None, "off") and begun and (0, 0) < version < (4, 6):
        refuse(model, notices, LATE)
        level = "off"
    fields: dict[str, Any] = {"max_tokens": limit}
    if level == "off":
        fields |= without_thinking(model, version, notices)
    elif level is not None and version >= (4, 6):
        shown = {"display": "summarized"} if version >= (4, 7) else {}
        fields["thinking"] = {"type": "adaptive", **shown}
        fields["output_config"] = {"effort": claude_effort(level, version, model.model_id)}
        refuse_budget(model, notices)
    elif level is not None:
        fields = _budget_fields(model.thinking_budgets.get(level, BUDGETS[level]), limit, model.max_output)
    return fields | sampling(model, options, level not in (None, "off"), notices)


def _budget_fields(budget: int, limit: int, most: int | None) -> dict[str, Any]:
    """A thinking budget inside a limit that leaves room for the answer."""
    if limit < budget + LEAST_ANSWER:
        limit = budget + max(limit, LEAST_ANSWER)
    if most is not None:
        limit = min(limit, most)
    budget = max(1024, min(budget, limit - LEAST_ANSWER))
    return {"max_tokens": max(limit, budget + 1), "thinking": {"type": "enabled", "budget_tokens": budget}}


def _tool_choice(choice: str) -> dict[str, Any]:
    modes = {"auto": "auto", "none": "none", "required": "any"}
    return {"type": modes[choice]} if choice in modes else {"type": "tool", "name": choice}


def _mark_for_cache(body: dict[str, Any], cache: bool | str) -> None:
    """Put breakpoints on the tail; turns are kept for later requests, so marked ones are copies."""
    mark = {"type": "ephemeral"} if cache is True else {"type": "ephemeral", "ttl": cache}

    def marked(blocks: list[Any]) -> list[Any]:
        return [*blocks[:-1], {**blocks[-1], "cache_control": mark}]

    if tools := body.get("tools"):
        # A deferred tool is no part of the prefix, and takes no mark.
        end = max((at for at, tool in enumerate(tools, 1) if not tool.get("defer_loading")), default=0)
        body["tools"] = [*marked(tools[:end]), *tools[end:]] if end else tools
    if system := body.get("system"):
        body["system"] = marked(system)
    body["messages"] = mark_turns(body["messages"], marked)
