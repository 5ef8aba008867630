"""The GenAI semantic conventions of OpenTelemetry: names, attributes and the buckets of metrics.

What they do not cover has names that begin with `swink.`.
"""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from swink.messages import Cost, ModelSpec, StopReason, Usage
from swink.stream import BlockWriter, LlmContext, StreamOptions
from swink.tools import FINAL_OUTPUT

Attributes = dict[str, Any]
Kind = Literal["internal", "client"]

OPERATION = "gen_ai.operation.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
TOOL = "gen_ai.tool.name"
ERROR = "error.type"
STOP_REASON = "swink.stop_reason"
EVALUATION = "gen_ai.evaluation.result"

TOKENS = "gen_ai.client.token.usage"
TOKEN_TYPE = "gen_ai.token.type"
REQUEST_DURATION = "gen_ai.client.operation.duration"
FIRST_CHUNK_DURATION = "gen_ai.client.operation.time_to_first_chunk"
RUN_DURATION = "gen_ai.invoke_agent.duration"
CALL_DURATION = "gen_ai.execute_tool.duration"
MCP_DURATION = "mcp.client.operation.duration"

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_LONG = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)
_MCP_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
METRICS: Mapping[str, tuple[str, str, tuple[float, ...]]] = {
    TOKENS: ("{token}", "Number of input and output tokens used.", tuple(4.0**power for power in range(14))),
    REQUEST_DURATION: ("s", "GenAI operation duration.", _SECONDS),
    FIRST_CHUNK_DURATION: ("s", "Time to receive the first chunk.", _SECONDS),
    RUN_DURATION: ("s", "Duration of a single agent invocation.", _LONG),
    CALL_DURATION: ("s", "Duration of a single tool execution.", _SECONDS),
    MCP_DURATION: ("s", "Duration of an MCP request as observed by the client.", _MCP_SECONDS),
}
"""Histograms by name: unit, description and the boundaries of their buckets."""

_PROVIDERS = {
    "openai-responses": "openai",
    "azure": "azure.ai.openai",
    "azure-responses": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "xai-responses": "x_ai",
    "moonshot": "moonshot_ai",
}
"""The conventions' names of providers, where ours differ."""


def provider_name(provider: str) -> str:
    """A provider as the conventions call it; one that they do not know has its own name."""
    return _PROVIDERS.get(provider, provider)


def model_attributes(operation: str, model: ModelSpec) -> Attributes:
    """What identifies an operation with a model."""
    return {OPERATION: operation, PROVIDER: provider_name(model.provider), REQUEST_MODEL: model.model_id}


def request_attributes(context: LlmContext, options: StreamOptions) -> Attributes:
    """What a request asks for."""
    by_tool = bool(context.tools) and context.tools[-1].name == FINAL_OUTPUT
    output = "json" if by_tool or context.output is not None else "text"
    attributes: Attributes = {"gen_ai.request.stream": True, "gen_ai.output.type": output}
    for name in ("max_tokens", "temperature", "top_p", "seed"):
        if (value := getattr(options, name)) is not None:
            attributes[f"gen_ai.request.{name}"] = value
    if options.stop:
        attributes["gen_ai.request.stop_sequences"] = options.stop
    return attributes


def server_attributes(url: str) -> Attributes:
    """Where a request is sent."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or "", "server.port": port}


def response_attributes(reply: BlockWriter) -> Attributes:
    """What the provider calls the reply and the model that gave it, as far as it says so."""
    said = {"gen_ai.response.id": reply.response_id, RESPONSE_MODEL: reply.response_model}
    return {name: value for name, value in said.items() if isinstance(value, str) and value}


def usage_attributes(usage: Usage, cost: Cost | None) -> Attributes:
    """Tokens, as far as anybody said, and what they cost; input counts what was cached, too."""
    if usage.unknown and not usage.total:
        return {}
    attributes: Attributes = {
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.extra.get("reasoning", 0),
    }
    attributes = {name: count for name, count in attributes.items() if count}
    attributes |= {"gen_ai.usage.input_tokens": input_tokens(usage)}
    attributes |= {"gen_ai.usage.output_tokens": usage.output}
    return attributes if cost is None else attributes | {"swink.cost": cost.total}


def input_tokens(usage: Usage) -> int:
    """All tokens of the input, wherever they were read from."""
    return usage.input + usage.cache_read + usage.cache_write


def finish_reason(stop_reason: StopReason) -> str:
    """How a reply ended, in the conventions' words."""
    return "tool_call" if stop_reason == "tool_use" else stop_reason


def remote_attributes(tool: str, url: str | None) -> Attributes:
    """What a call of an MCP server's tool adds to the span of the tool."""
    attributes: Attributes = {"mcp.method.name": "tools/call", TOOL: tool}
    if url is None:
        return {**attributes, "network.transport": "pipe"}
    return {
        **attributes,
        "network.transport": "tcp",
        "network.protocol.name": "http",
        **server_attributes(url),
    }


def error_class(text: str | None, otherwise: str) -> str:
    """The class of an exception that was described as `Class: what it says`, as the type of an error."""
    name = (text or "").partition(":")[0]
    return name if name.isidentifier() and name[:1].isupper() else otherwise
