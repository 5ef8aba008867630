"""One request to a local model, and what follows it if the reply goes round in circles or does not fit."""

import logging
import secrets
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from swink.local.callgrammar import NO_CALL, CallGrammar, CallParser
from swink.local.chunks import FIRST_TOKEN, ChunkDecoder, FirstToken
from swink.local.model import LocalModel
from swink.local.schemas import compact
from swink.messages import Cost, Usage
from swink.stream import (
    AssistantMessageEvent,
    Error,
    PromptProgress,
    StreamOptions,
    UsageUpdate,
    parse_arguments,
)
from swink.tools.schema import Shape

logger = logging.getLogger("swink.local")

VARIED = {"temperature": 0.7, "top_p": 0.95}
_UNSTUCK: dict[str, Any] = {
    **VARIED,
    "seed": 1,
    "dry_multiplier": 2.0,
    "dry_allowed_length": 3,
    "dry_sequence_breakers": ["\x00"],  # none, but an empty list is refused
    "repeat_penalty": 1.1,
    "repeat_last_n": 128,
}
"""Sampling under which a model leaves a loop; for ordinary text it would be too wild."""

_Request = Mapping[str, Any]
_Events = AsyncGenerator[AssistantMessageEvent, None]


class ReplyRequests:
    """The requests that one reply takes."""

    def __init__(
        self, model: LocalModel, options: StreamOptions, key: Hashable, end_token: int | None = None
    ) -> None:
        self._model = model
        self._end_token = end_token
        self._raw = options.on_raw_payload
        self._key = key

    async def reply(self, request: _Request, reply: ChunkDecoder) -> _Events:
        """The events of a reply as they arrive.

        Text that has become a loop in the middle of a sentence is continued once with other sampling; any
        other loop, or the second, ends the reply.
        """
        async for event in self._generated(request, reply):
            yield event
        if reply.stuck == "text" and (again := self._unstuck(request, reply)) is not None:
            reply.go_on()
            async for event in self._generated(again, reply):
                yield event
        if reply.stuck:
            text = "local:%s: the model kept repeating itself, so its %s was cut short"
            logger.warning(text, self._model.model_id, reply.stuck)
        for event in reply.finish():
            yield event

    async def first_choice(self, request: _Request, grammar: CallGrammar, threshold: float) -> _Events:
        """Words or a call, for a model that never calls by itself: it has to if it is inclined to."""
        look = FirstToken()
        async with aclosing(self._generated({**request, **FIRST_TOKEN}, look)) as arriving:
            async for event in arriving:
                yield event
        if look.call_likelihood >= threshold:
            following = self.call({**request, "grammar": grammar.text}, grammar, fresh=look.fresh)
        else:
            following = self.reply({**request, "grammar": NO_CALL}, ChunkDecoder(fresh=look.fresh))
        async with aclosing(following):
            async for event in following:
                yield event

    async def choice(
        self,
        request: _Request,
        grammar: CallGrammar,
        made: Sequence[tuple[str, str]],
        *,
        must_call: bool = False,
    ) -> _Events:
        """Words or a call, as the model begins; a call that was made before gives way to words."""
        reply = ChunkDecoder(CallParser(), or_words=not must_call)
        held: list[AssistantMessageEvent] = []
        allowed = grammar.text if must_call else grammar.or_words(self._end_token)
        async with aclosing(self.reply({**request, "grammar": allowed}, reply)) as arriving:
            async for event in arriving:
                if reply.is_call and (made or grammar.unsure) and not isinstance(event, PromptProgress):
                    held.append(event)
                else:
                    yield event
        if reply.call_is_complete and (reply.name, _canonical(reply.arguments)) in made:
            following = self.reply({**request, "grammar": NO_CALL}, ChunkDecoder(spent=reply.usage))
        elif _violations(reply, grammar.unsure):
            following = self.call({**request, "grammar": grammar.text}, grammar, reply.usage)
        else:
            for event in held:
                yield event
            return
        yield UsageUpdate(reply.usage, Cost())
        async with aclosing(following):
            async for event in following:
                yield event

    async def call(
        self, request: _Request, grammar: CallGrammar, spent: Usage = Usage(), fresh: int = 0
    ) -> _Events:
        """A call; if its arguments may not fit in spite of the grammar, it is held back until it is checked.

        One that does not fit is generated once more, then it is an error.
        """
        violations: list[str] = []
        for attempt in (request, {**request, **VARIED, "seed": secrets.randbelow(1 << 31)}):
            reply = ChunkDecoder(CallParser(), spent, fresh=fresh)
            held: list[AssistantMessageEvent] = []
            async with aclosing(self.reply(attempt, reply)) as arriving:
                async for event in arriving:
                    if grammar.unsure and not isinstance(event, PromptProgress):
                        held.append(event)
                    else:
                        yield event
            violations = _violations(reply, grammar.unsure)
            if not violations:
                for event in held:
                    yield event
                return
            spent = reply.usage
            yield UsageUpdate(spent, Cost())
        text = f"the model's arguments do not fit the schema of the tool: {'; '.join(violations)}"
        yield Error(text, "stream", usage=spent)

    def _unstuck(self, request: _Request, reply: ChunkDecoder) -> dict[str, Any] | None:
        """The request that continues what was said, and soon ends; None if nothing may follow.

        After a whole sentence or line nothing has to: the model has said all it had to say.
        """
        left = request["max_tokens"] - reply.written
        if left < 1 or "tools" in request or reply.said.endswith(("\n", ". ", "! ", "? ")):
            return None
        messages = request["messages"]
        if reply.said:
            messages = [*messages, {"role": "assistant", "content": reply.said}]
        again = {**request, **_UNSTUCK, "messages": messages, "max_tokens": left}
        if self._end_token is not None:
            again["logit_bias"] = [[self._end_token, 8.0]]  # the end of the reply becomes much likelier
        again.pop("grammar", None)  # it says how a reply begins
        return again

    async def _generated(self, request: _Request, reply: ChunkDecoder | FirstToken) -> _Events:
        async with aclosing(self._model.generate(request, self._key)) as chunks:
            async for chunk in chunks:
                if self._raw is not None:
                    self._raw(chunk)
                for event in reply.take_chunk(chunk):
                    yield event
                if reply.stuck:
                    return


def _violations(reply: ChunkDecoder, shapes: Mapping[str, Shape]) -> list[str]:
    shape = shapes.get(reply.name or "")
    if shape is None or not reply.call_is_complete:
        return []
    arguments = parse_arguments(reply.arguments)
    return ["they are not a JSON object"] if arguments is None else shape.violations(arguments)


def _canonical(arguments: str) -> str:
    parsed = parse_arguments(arguments)
    return arguments if parsed is None else compact(parsed)
