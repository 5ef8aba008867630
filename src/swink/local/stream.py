"""Local models as a stream function: a model in this process answers like any provider's.

context ─▶ what is wanted: words, a call ─▶ request with chat template and grammar ─▶ chunks ─▶ stream events
"""

import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Hashable
from contextlib import aclosing
from typing import Any

from swink.errors import StreamError
from swink.local.calls import CallGrammar, CallParser, call_grammar
from swink.local.gguf import Head
from swink.local.model import LocalModel, local_model
from swink.local.progress import say_on_stderr
from swink.local.prompt import Answer, Call, Native, Wanted, chat_messages, native_tools, wanted_reply
from swink.local.reply import Reply
from swink.local.runtime import Settings
from swink.local.states import Listener
from swink.local.weights import KNOWN
from swink.messages import ModelSpec, Usage
from swink.schema import Shape
from swink.stream import AssistantMessageEvent, Error, LlmContext, Start, StreamOptions, Timeout, ToolSpec, parse_arguments

logger = logging.getLogger("swink.local")

MAX_TOKENS = 1024
"""The length of a reply where neither the caller nor the model's entry sets one: a small model may never stop by itself."""

_NO_CALL = "root ::= [^{ \\n\\t`] [^\\x00]*\n"
"""Any text that does not begin like a call."""

_ONE_TOKEN = [["{", -10.0]]
"""Left alone, models write the two characters {" as two tokens, read back they are one, and the prompt cache ends there."""

_VARIED = {"temperature": 0.7, "top_p": 0.95}
_OPTIONS_WITHOUT_MEANING = ("api_key", "transport")


class LocalStreamFn:
    """Asks a model in this process; all instances with equal settings share it.

    `progress` hears of downloading and loading, in the event loop of the call; by default a download is shown on stderr.
    """

    timeout = Timeout(idle=600.0, first=600.0)

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
        """The model behind a name, for its state and to unload it."""
        return local_model(model_id, self.settings)

    async def __call__(self, model: ModelSpec, context: LlmContext, options: StreamOptions) -> AsyncIterator[AssistantMessageEvent]:
        """One reply as stream events."""
        self._report(model, options)
        local = self.model(model.model_id)
        head = (await local.ready(self._progress or say_on_stderr())).head
        wanted = wanted_reply(context, options, head)
        request = _request(model, context, options, wanted, head)
        asked = _Asked(local, options, options.session_id or id(self))
        yield Start()
        match wanted:
            case Call(tools, varied):
                events = asked.call(request, tools, varied=varied)
            case Answer() | Native():
                events = asked.answer(request)
        async with aclosing(events):
            async for event in events:
                yield event

    def _report(self, model: ModelSpec, options: StreamOptions) -> None:
        """Each option that a local model cannot honour, once and by name."""
        for name in _OPTIONS_WITHOUT_MEANING:
            if getattr(options, name) is not None and name not in self._reported:
                self._reported.add(name)
                logger.warning("%s: option %r is ignored: the model runs in this process", model, name)


class _Asked:
    """One request to one model, made as often as it takes."""

    def __init__(self, model: LocalModel, options: StreamOptions, key: Hashable) -> None:
        self._model = model
        self._raw = options.on_raw_payload
        self._key = key

    async def answer(self, request: dict[str, Any]) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Words, thinking, and calls of models that make them by themselves, as they arrive."""
        reply = Reply()
        async with aclosing(self._model.generate(request, self._key)) as chunks:
            async for chunk in chunks:
                self._show(chunk)
                for event in reply.take(chunk):
                    yield event
        for event in reply.finish():
            yield event

    async def call(
        self, request: dict[str, Any], tools: tuple[ToolSpec, ...], *, varied: bool
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """One call. Arguments that the grammar vouches for are passed on as they arrive, others when they have been checked."""
        grammar = call_grammar(tools)
        request = {**request, "grammar": grammar.text, **(_VARIED if varied else {})}
        shapes = {tool.name: Shape(tool.parameters_schema) for tool in tools}
        usage = Usage()
        for last in (False, True):
            reply = Reply(CallParser(), usage)
            violations: list[str] = []
            held: list[AssistantMessageEvent] = []
            async with aclosing(self._model.generate(request, self._key)) as chunks:
                async for chunk in chunks:
                    self._show(chunk)
                    held += reply.take(chunk)
                    if not _must_wait(reply, grammar):
                        for event in held:
                            yield event
                        held = []
            held += reply.finish()
            if _must_wait(reply, grammar) and reply.call_is_complete:
                violations = _violations(reply, shapes)
            if not violations:
                break
            usage = reply.usage
            request = {**request, **_VARIED, "seed": secrets.randbelow(1 << 31)}
            if last:
                held = [
                    Error(f"the model's arguments for {reply.name} do not fit its schema: {'; '.join(violations)}", "stream", usage=usage)
                ]
        for event in held:
            yield event

    def _show(self, chunk: dict[str, Any]) -> None:
        if self._raw is not None:
            self._raw(chunk)


def _must_wait(reply: Reply, grammar: CallGrammar) -> bool:
    """Whether the arguments have to be checked before anybody sees them; before the name is known, there is nothing to see."""
    return reply.name is None or reply.name in grammar.unsure


def _violations(reply: Reply, shapes: dict[str, Shape]) -> list[str]:
    arguments = parse_arguments(reply.arguments)
    shape = shapes.get(reply.name or "")
    if arguments is None or shape is None:
        return ["they are not a JSON object"]
    return shape.violations(arguments)


def _request(model: ModelSpec, context: LlmContext, options: StreamOptions, wanted: Wanted, head: Head) -> dict[str, Any]:
    """What llama.cpp is asked."""
    known = KNOWN.get(model.model_id)
    request: dict[str, Any] = {
        "messages": chat_messages(context, wanted, options),
        "max_tokens": options.max_tokens or model.max_output or MAX_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a chunk per batch of the prompt: only between chunks can a request be stopped
        "cache_prompt": options.cache,
        **(known.sampling if known else {}),
    }
    match wanted:
        case Call():
            # At temperature 0 small models choose twice as often the right tool and arguments as at 0.8.
            request |= {"temperature": 0.0, "repeat_penalty": 1.0, "logit_bias": _ONE_TOKEN}
        case Answer(after_calls):
            if after_calls:
                request["grammar"] = _NO_CALL
        case Native(tools, choice):
            request |= {"tools": native_tools(tools), "tool_choice": choice}
    if options.temperature is not None:
        request["temperature"] = options.temperature
    if head.knows_thinking:
        request["chat_template_kwargs"] = {"enable_thinking": model.thinking_level != "off"}
    if not request["messages"]:
        raise StreamError("there is nothing to answer: the context has no text", model=str(model))
    return request | dict(options.extra)
