"""The native door: conversations and runs over HTTP, with every event of a run as a server-sent event.

    POST /conversations                          → {"id"}
    POST /conversations/{id}/runs                → 202 {"run_id"}
    GET  /conversations/{id}/runs/{run}/events   → id: 1, data: {"type": "agent_start"} …

A stream that is cut is taken up again with `Last-Event-ID`; the run does not notice.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from swink.agent.policy import Answer, Approved, Rejected
from swink.errors import MisuseError
from swink.events.eventlines import complete
from swink.messages import as_messages
from swink.messages.jsondata import encode
from swink.serve.hosting import Conversation, Host, RunWord
from swink.serve.hosting.keptstart import keep_answer
from swink.serve.native.bodies import (
    Approval,
    ConversationList,
    Created,
    ListedConversation,
    NewConversation,
    NewFork,
    NewRun,
    Remark,
    ShownConversation,
    StartedRun,
    as_input,
)
from swink.serve.web import Exchange, Route, last_event_id, send_events
from swink.serve.wire import Refused

_RUN = "/conversations/{id}/runs/{run}"
_LONGEST_KEY = 200
Limit = Annotated[int, Meta(ge=1, le=1_000)]
EventNumber = Annotated[str, Meta(pattern="^[0-9]{0,18}$")]
Key = Annotated[str, Meta(min_length=1, max_length=_LONGEST_KEY)]


class NativeDoor:
    """The routes of the native protocol."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def failure(self, status: int, message: str) -> object:
        """What is wrong, and what to do about it."""
        return {"error": {"message": message}}

    def routes(self) -> list[Route]:
        """ConversationList, their runs, and what may be said to a run."""
        return [
            Route("POST", "/conversations", self._create, "Begin a conversation", NewConversation, Created,
                  statuses=(409,)),
            Route("GET", "/conversations", self._list, "The caller's conversations", None, ConversationList,
                  query={"search": str, "limit": Limit}),
            Route("GET", "/conversations/{id}/messages", self._messages, "What was said", None,
                  ShownConversation),
            Route("DELETE", "/conversations/{id}", self._delete, "Forget a conversation", status=204,
                  statuses=(409,)),
            Route("POST", "/conversations/{id}/fork", self._fork, "Begin another one with a part of this",
                  NewFork, Created),
            Route("POST", "/conversations/{id}/runs", self._start, "Start a run", NewRun, StartedRun,
                  status=202, statuses=(409, 500), headers={"Idempotency-Key": Key}),
            Route("GET", _RUN + "/events", self._events, "The events of a run as they come",
                  statuses=(410,), query={"abort_on_disconnect": str}, headers={"Last-Event-ID": EventNumber},
                  kind="text/event-stream"),
            Route("POST", _RUN + "/abort", self._abort, "End a run, keeping what arrived", None, StartedRun),
            Route("POST", _RUN + "/steer", self._steer, "Say something that the next turn gets", Remark,
                  StartedRun, statuses=(409,)),
            Route("POST", _RUN + "/follow_up", self._follow_up, "Say something for when the run would stop",
                  Remark, StartedRun, statuses=(409,)),
            Route("POST", _RUN + "/approvals", self._approve, "Answer a call that waits for approval",
                  Approval, StartedRun, statuses=(409, 500)),
            Route("POST", "/conversations/{id}/approvals", self._approve_waiting,
                  "Answer a call that waits although no run does: another run goes on with it",
                  Approval, StartedRun, statuses=(409, 500)),
        ]  # fmt: skip

    async def _create(self, exchange: Exchange) -> None:
        asked: NewConversation = await exchange.json(NewConversation)
        conversation = await self._host.create(exchange.caller, asked.title, id=asked.id)
        await exchange.send_json(200, Created(conversation.id))

    async def _list(self, exchange: Exchange) -> None:
        limit = exchange.query.get("limit", "50")
        if not limit.isascii() or not limit.isdecimal() or not 0 < int(limit[:9]) <= 1_000:
            raise Refused(400, "limit is a number from 1 to 1000")
        metas = await self._host.list(exchange.caller, int(limit[:9]), exchange.query.get("search"))
        await exchange.send_json(200, ConversationList([ListedConversation.of(meta) for meta in metas]))

    async def _messages(self, exchange: Exchange) -> None:
        conversation = await self._conversation(exchange)
        messages = msgspec.json.decode(encode(conversation.messages))
        told, unended = [complete(message) for message in messages], await conversation.find_unended()
        is_left = unended is not None and await self._host.leaves_alone(conversation)
        body = ShownConversation.of(conversation, told, unended, is_interrupted=is_left)
        await exchange.send_json(200, body)

    async def _delete(self, exchange: Exchange) -> None:
        await self._host.delete(exchange.caller, exchange.path["id"])
        await exchange.send(204, b"", "application/json")

    async def _fork(self, exchange: Exchange) -> None:
        asked: NewFork = await exchange.json(NewFork)
        forked = await self._host.fork(exchange.caller, exchange.path["id"], asked.at)
        await exchange.send_json(200, Created(forked.id))

    async def _start(self, exchange: Exchange) -> None:
        asked: NewRun = await exchange.json(NewRun)
        key = exchange.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= _LONGEST_KEY:
            raise Refused(400, f"an Idempotency-Key has 1 to {_LONGEST_KEY} characters")
        conversation = await self._conversation(exchange)
        given = None if asked.input is None else as_input(asked.input)
        run = await conversation.start(given, key=key, when_busy=asked.when_busy)
        await exchange.send_json(202, StartedRun(run.id))

    async def _events(self, exchange: Exchange) -> None:
        after = last_event_id(exchange.headers.get("last-event-id"))
        conversation = await self._conversation(exchange)
        run = await conversation.find_run(exchange.path["run"], after)
        is_owner = exchange.query.get("abort_on_disconnect") in ("1", "true")
        batches = run.log.batches(after, self._host.limits.silence_seconds)
        try:
            writer = await exchange.stream()
            await send_events(writer, batches)
        finally:
            if is_owner:
                conversation.leave(run)

    async def _abort(self, exchange: Exchange) -> None:
        await exchange.json(dict)
        conversation = await self._conversation(exchange)
        run = await conversation.find_run(exchange.path["run"])
        await conversation.abort(run)
        await exchange.send_json(200, StartedRun(run.id))

    async def _steer(self, exchange: Exchange) -> None:
        await self._say(exchange, "steer")

    async def _follow_up(self, exchange: Exchange) -> None:
        await self._say(exchange, "follow_up")

    async def _say(self, exchange: Exchange, how: Literal["steer", "follow_up"]) -> None:
        said: Remark = await exchange.json(Remark)
        conversation = await self._conversation(exchange)
        run = await conversation.find_run(exchange.path["run"])
        try:
            message = list(as_messages(as_input(said.message)))
            await conversation.tell(run, RunWord(how, message))
        except MisuseError as error:
            raise Refused(400, str(error)) from None
        await exchange.send_json(200, StartedRun(run.id))

    async def _approve(self, exchange: Exchange) -> None:
        given: Approval = await exchange.json(Approval)
        answer = _answer_of(given)
        conversation = await self._conversation(exchange)
        run = await conversation.find_run(exchange.path["run"])
        if any(call.call_id == given.call_id for call in conversation.pending) and run.is_over:
            run = await conversation.start(None, approvals={given.call_id: answer})
        else:
            rules = tuple(given.rules) if given.approved else ()
            word = RunWord("approve", call_id=given.call_id, answer=keep_answer(answer), rules=rules)
            await conversation.tell(run, word)
        await exchange.send_json(200, StartedRun(run.id))

    async def _approve_waiting(self, exchange: Exchange) -> None:
        given: Approval = await exchange.json(Approval)
        conversation = await self._conversation(exchange)
        if not any(call.call_id == given.call_id for call in conversation.pending):
            raise Refused(409, f"no call {given.call_id[:80]!r} of this conversation waits for an approval")
        run = await conversation.start(None, approvals={given.call_id: _answer_of(given)})
        await exchange.send_json(200, StartedRun(run.id))

    async def _conversation(self, exchange: Exchange) -> Conversation:
        return await self._host.open(exchange.caller, exchange.path["id"])


def _answer_of(given: Approval) -> Answer:
    if given.approved:
        return Approved(given.arguments, given.reason or "")
    return Rejected(given.reason)
