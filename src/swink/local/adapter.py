"""Local models as a stream function: a model in this process answers like any provider's.

context ─▶ what is wanted, text or a call ─▶ request with chat template and grammar ─▶ chunks ─▶ stream events
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from swink.errors import StreamError
from swink.local import callneed, prompt
from swink.local.callgrammar import NO_CALL, call_grammar, output_grammar
from swink.local.chunks import ChunkDecoder
from swink.local.gguf import GgufHead
from swink.local.lifetime import call_in_thread
from swink.local.llamacpp import Settings
from swink.local.model import LocalModel, local_model
from swink.local.prefix import FIXED
from swink.local.progress import say_on_stderr
from swink.local.prompt import Answer, Choice, ForcedCall, Native, NativeCall, Output
from swink.local.replyrequests import VARIED, ReplyRequests
from swink.local.schemas import LengthLimits
from swink.local.states import Listener
from swink.local.weights import KNOWN
from swink.messages import Cost, ModelSpec, UserMessage
from swink.stream import (
    UNREPORTED,
    AssistantMessageEvent,
    LlmContext,
    Start,
    StreamOptions,
    Timeout,
    UsageUpdate,
)

logger = logging.getLogger("swink.local")

MAX_TOKENS = 1024
"""The longest reply if neither the caller nor the model's entry limits it: a small model may never stop."""

_ONE_TOKEN = [["{", -10.0]]
"""Unbiased, models write {" as two tokens; in the next prompt it is one token, and the cache misses."""

_OPTIONS = {
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "n_predict"), "max_tokens"),
    **{name: name for name in ("temperature", "top_p", "seed", "stop", "tool_choice")},
    "cache_prompt": "cache",
}
"""Fields of a request, and the options of `StreamOptions` that set them."""

_IGNORED = {
    **dict.fromkeys(("api_key", "http"), "the model runs in this process"),
    **dict.fromkeys(
        ("service_tier", "verbosity", "parallel_tool_calls", "headers"), "a local model has no such option"
    ),
}
_DEFAULTS = StreamOptions()


class LocalStreamFn:
    """Asks a model in this process; all instances with equal settings share it.

    `progress` is called with each state of downloading and loading, in the event loop of the call; by default
    downloads are shown on stderr.

    Args:
        context: tokens of a conversation (default: what the model has, at most 8192)
        threads: how many write (default: the physical cores less one)
        parallel: conversations at the same time
        gpu_layers: layers on the GPU; None takes as many as fit, 0 none
        batch: tokens that are read at a time; None chooses by speed
        chat_template: a template instead of the model's own
    """

    timeout = Timeout(idle=600.0, first=600.0)
    honours = frozenset(StreamOptions.__struct_fields__) - _IGNORED.keys()
    """The options that a local model can honour."""

    def __init__(
        self,
        *,
        context: int | None = None,
        threads: int | None = None,
        parallel: int = 2,
        gpu_layers: int | None = None,
        batch: int | None = None,
        chat_template: str | None = None,
        progress: Listener | None = None,
    ) -> None:
        self.settings = Settings(context, threads, parallel, gpu_layers, batch, chat_template)
        self._progress = progress
        self._reported: set[str] = set()

    def model(self, model_id: str) -> LocalModel:
        """The model behind the name `model_id`, for its state and to unload it."""
        return local_model(model_id, self.settings)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether the answer of `model` can be held to a schema: a grammar sees to it, if `context` has no
        tools.
        """
        return not context.tools

    async def ready(self, model_id: str) -> None:
        """Download and load the model `model_id` now instead of at the first request."""
        await self.model(model_id).ready(self._progress or say_on_stderr())

    async def read_ahead(
        self, model: ModelSpec, context: LlmContext, progress: Callable[[int, int], None]
    ) -> None:
        """Have the model read what every prompt with the system prompt and tools of `context` begins with.

        `progress` gets the tokens read so far, and all of them. A request that comes meanwhile waits for it
        and reads only the rest. Nothing is read if no states are kept.
        """
        local, options = self.model(model.model_id), StreamOptions()
        head = (await local.ready(self._progress or say_on_stderr())).head
        asked = replace(context, messages=(UserMessage("Hello"),))
        wanted = _wanted(model, asked, options, head)
        request = _request(model, asked, options, wanted, head)
        async with aclosing(local.generate(request, id(progress), only_beginning=True)) as chunks:
            async for chunk in chunks:
                match chunk.get("prompt_progress"):
                    case {"processed": int() as done, "total": int() as total}:
                        progress(min(done, total), total)
                    case _:
                        pass

    async def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncIterator[AssistantMessageEvent]:
        local = self.model(model.model_id)
        head = (await local.ready(self._progress or say_on_stderr())).head
        self._report(model, options, head)
        if context.hosted:
            named = ", ".join(type(tool).__name__ for tool in context.hosted)
            raise StreamError(f"a local model has no hosted tools, such as {named}", model=str(model))
        known = KNOWN.get(model.model_id)
        wanted = _wanted(model, context, options, head)
        request = _request(model, context, options, wanted, head)
        limits = known.limits if known else LengthLimits()
        requests = ReplyRequests(local, options, options.session_id or id(self), head.end_token)
        yield Start()
        yield UsageUpdate(UNREPORTED, Cost())  # it is free, however far it comes
        match wanted:
            case ForcedCall(tools):
                grammar = await call_in_thread("swink-local-grammar", lambda: call_grammar(tools, limits))
                request["grammar"] = grammar.text
                events = requests.call(request, grammar)
            case Choice(tools, made, must_call):
                grammar = await call_in_thread("swink-local-grammar", lambda: call_grammar(tools, limits))
                if known and known.calls_above is not None and not made and not must_call:
                    least = known.calls_above + callneed.shift_likelihood(tools)
                    events = requests.first_choice(request, grammar, least)
                else:
                    events = requests.choice(request, grammar, made, must_call=must_call)
            case NativeCall(_, offered, made):
                grammar = await call_in_thread("swink-local-grammar", lambda: call_grammar(offered, limits))
                events = requests.choice(request, grammar, made, must_call=True)
            case Output(schema):
                request["grammar"] = await call_in_thread(
                    "swink-local-grammar", lambda: output_grammar(schema, limits)
                )
                events = requests.reply(request, ChunkDecoder())
            case Answer() | Native():
                events = requests.reply(request, ChunkDecoder())
        async with aclosing(events):
            async for event in events:
                yield event

    def _report(self, model: ModelSpec, options: StreamOptions, head: GgufHead) -> None:
        """Each option that a local model cannot honour, once and by name."""
        ignored = {
            name: why for name, why in _IGNORED.items() if getattr(options, name) != getattr(_DEFAULTS, name)
        }
        if model.thinking_level != "off" and not head.knows_thinking:
            ignored["thinking_level"] = "the model's chat template cannot turn thinking on or off"
        if model.thinking_level in model.thinking_budgets:
            ignored["thinking_budgets"] = "a local model takes no number of tokens"
        for name in options.extra:
            if name in _OPTIONS:
                ignored[f"extra[{name!r}]"] = f"set StreamOptions.{_OPTIONS[name]} instead"
        for name, why in ignored.items():
            if name not in self._reported:
                self._reported.add(name)
                logger.warning("%s: option '%s' is ignored: %s", model, name, why)


def _wanted(model: ModelSpec, context: LlmContext, options: StreamOptions, head: GgufHead) -> prompt.Wanted:
    known = KNOWN.get(model.model_id)
    return prompt.wanted_reply(context, options, head, native=known is None or known.native_tools)


def _request(
    model: ModelSpec, context: LlmContext, options: StreamOptions, wanted: prompt.Wanted, head: GgufHead
) -> dict[str, Any]:
    """The body of llama.cpp's chat completion request."""
    known = KNOWN.get(model.model_id)
    if known and not context.system_prompt and context.messages:
        context = replace(context, system_prompt=known.system_prompt)
    request: dict[str, Any] = {
        "messages": prompt.chat_messages(context, wanted, options),
        "max_tokens": options.max_tokens or model.max_output or MAX_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a chunk per batch of the prompt: a request stops between chunks only
        "cache_prompt": bool(options.cache),
        FIXED: len(prompt.chat_messages(replace(context, messages=()), wanted, options)),
        **(known.sampling if known else {}),
    }
    match wanted:
        case Choice(must_call=False):
            request |= {"temperature": 0.0, "logit_bias": _ONE_TOKEN}
        case ForcedCall(varied=True):
            request |= {**VARIED, "dry_multiplier": 0.0, "logit_bias": _ONE_TOKEN}
        case ForcedCall() | Choice():
            # At temperature 0 small models choose the right tool and arguments twice as often as at 0.8.
            request |= {"temperature": 0.0, "dry_multiplier": 0.0, "logit_bias": _ONE_TOKEN}
        case Output():
            request |= {"temperature": 0.0, "dry_multiplier": 0.0}
        case Answer(after_calls):
            if after_calls:
                request["grammar"] = NO_CALL
        case Native(tools, choice):
            request |= {"tools": prompt.native_tools(tools), "tool_choice": choice}
        case NativeCall(tools):
            # With another choice llama.cpp takes no grammar beside tools; the template shows them even so.
            request |= {"tools": prompt.native_tools(tools), "tool_choice": "none"}
            request |= {"temperature": 0.0, "dry_multiplier": 0.0, "logit_bias": _ONE_TOKEN}
    for name in ("temperature", "top_p", "seed", "stop"):
        if (value := getattr(options, name)) not in (None, ()):
            request[name] = value
    if head.knows_thinking:
        # Under a grammar there is no room for thoughts.
        thinks = model.thinking_level != "off" and isinstance(wanted, Answer | Native)
        request["chat_template_kwargs"] = {"enable_thinking": thinks}
    for said in ("messages", "tools"):
        if said in request:
            request[said] = prompt.as_text(request[said], head.control_tokens)
    if not request["messages"]:
        raise StreamError("there is nothing to answer: the context has no text", model=str(model))
    return request | {name: value for name, value in options.extra.items() if name not in _OPTIONS}
