"""The OpenAI door: an agent for clients that know a base URL and a key.

`/v1/chat/completions` keeps nothing: the client's history is all there is. `/v1/responses` keeps a
conversation unless `store` is false, and `previous_response_id` goes on with it. A client that leaves ends
its run. A call that has to be approved is refused there, as these protocols have no question for it.
"""

import logging
from collections.abc import Sequence
from typing import Any

from swink.agent.policy import Rejected
from swink.messages import ToolResult, ToolResultMessage
from swink.serve.hosting import ClientTool, Conversation, Host, HostedRun
from swink.serve.openai.asked import AskedOfAgent, read_chat, read_responses
from swink.serve.openai.chatreply import ChatReply, whole_chat
from swink.serve.openai.responseids import end_of_response, new_response_id, read_response_id, stored_id
from swink.serve.openai.responsesreply import ResponseReply, response_head, whole_response
from swink.serve.openai.running import send_stream, send_whole
from swink.serve.openaiwire import error_type, failure
from swink.serve.web import Exchange, Refused, Route

log = logging.getLogger("swink.serve")

NOT_HERE = "nobody can be asked for an approval here: OpenAI's protocols have no question for it"
_MOST_TOLD = 100


class OpenAIDoor:
    """Answers `/v1/models`, `/v1/chat/completions` and `/v1/responses`."""

    def __init__(self, host: Host, model: str = "agent") -> None:
        self._host = host
        self._model = model
        self._silence = host.limits.silence_seconds
        self._told: set[str] = set()

    def routes(self) -> Sequence[Route]:
        streams = "application/json, or text/event-stream with stream=true"
        return (
            Route("GET", "/v1/models", self._models, "The agent, as the one model there is"),
            Route("GET", "/v1/models/{model}", self._model_of, "The agent, as a model"),
            Route(
                "POST",
                "/v1/chat/completions",
                self._chat,
                f"A completion of the client's history, as OpenAI's chat completions: {streams}",
                request=dict[str, Any],
                response=dict[str, Any],
            ),
            Route(
                "POST",
                "/v1/responses",
                self._responses,
                f"A response in a stored conversation, as OpenAI's Responses API: {streams}",
                request=dict[str, Any],
                response=dict[str, Any],
                statuses=(409,),
            ),
        )

    def failure(self, status: int, message: str) -> Any:
        """The body of a refusal."""
        return failure(message, None, error_type(status))

    async def _models(self, exchange: Exchange) -> None:
        await exchange.send_json(200, {"object": "list", "data": [self._entry]})

    async def _model_of(self, exchange: Exchange) -> None:
        if exchange.path["model"] != self._model:
            raise Refused(404, f"the model here is {self._model}")
        await exchange.send_json(200, self._entry)

    @property
    def _entry(self) -> dict[str, Any]:
        return {"id": self._model, "object": "model", "created": 0, "owned_by": "swink"}

    async def _chat(self, exchange: Exchange) -> None:
        asked = read_chat(await exchange.json())
        self._tell(asked)
        run = await self._host.stateless(
            exchange.caller, asked.messages, _client_tools(asked), **_further(asked)
        )
        if asked.stream:
            reply = ChatReply(self._model, asked.counts, asked.output is not None)
            await send_stream(exchange, run, reply, asked, self._silence)
        else:
            await send_whole(exchange, run, lambda said, end: whole_chat(self._model, said, end), asked)

    async def _responses(self, exchange: Exchange) -> None:
        asked = read_responses(await exchange.json())
        self._tell(asked)
        id, run = await self._respond(exchange, asked)
        about = response_head(id, self._model, asked)
        if asked.stream:
            reply = ResponseReply(about, asked.output is not None)
            await send_stream(exchange, run, reply, asked, self._silence)
        else:
            await send_whole(exchange, run, lambda said, end: whole_response(about, said, end), asked)

    async def _respond(self, exchange: Exchange, asked: AskedOfAgent) -> tuple[str, HostedRun]:
        """The id of a response, and the run that gives it."""
        tools, further = _client_tools(asked), _further(asked)
        if not asked.store:
            if asked.previous is not None:
                raise Refused(400, "with previous_response_id the conversation is stored; leave out store")
            run = await self._host.stateless(exchange.caller, asked.messages, tools, **further)
            return new_response_id(), run
        if asked.previous is None:
            conversation = await self._host.create(exchange.caller)
        else:
            conversation = await self._continued(exchange, asked.previous)
        said = [each for each in asked.messages if not isinstance(each, ToolResultMessage)]
        results: dict[str, ToolResult] = {}
        if asked.previous is None:
            said = list(asked.messages)
        else:
            results = {
                each.tool_call_id: ToolResult(each.content)
                for each in asked.messages
                if isinstance(each, ToolResultMessage)
            }
        at = len(conversation.messages) + len(said) - 1
        run = await conversation.start(
            said or None,
            client_tools=tools,
            tool_results=results,
            **further,
        )
        return stored_id(conversation.id, max(at, 0)), run

    async def _continued(self, exchange: Exchange, previous: str) -> Conversation:
        """The conversation of a response; another one if it went on from there already."""
        id, at = read_response_id(previous)
        conversation = await self._host.open(exchange.caller, id)
        end = end_of_response(conversation.messages, at)
        if end == len(conversation.messages):
            return conversation
        return await self._host.fork(exchange.caller, id, end)

    def _tell(self, asked: AskedOfAgent) -> None:
        """Say once in the log which fields change nothing."""
        names = [name[:40] for name in asked.ignored]
        new = [name for name in names if name not in self._told and len(self._told) < _MOST_TOLD]
        self._told.update(new)
        if new:
            log.warning("the OpenAI door ignores these fields of requests: %s", ", ".join(map(repr, new)))


def _client_tools(asked: AskedOfAgent) -> list[ClientTool]:
    return [ClientTool(tool.name, tool.description, tool.parameters_schema) for tool in asked.tools]


def _further(asked: AskedOfAgent) -> dict[str, Any]:
    """The fields of `Start` that both protocols give alike."""
    return {
        "output": None if asked.output is None else dict(asked.output.schema),
        "instructions": asked.instructions or None,
        "options": asked.options,
        "unanswered": Rejected(NOT_HERE),
    }
