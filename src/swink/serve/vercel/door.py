"""The door for `useChat` of the AI SDK: `POST /vercel` runs the agent, `GET /vercel/{id}/stream` resumes."""

from collections.abc import Sequence
from typing import Any

from swink.messages import Message, UserMessage
from swink.serve.hosting import Host
from swink.serve.toldhistory import UnknownFields
from swink.serve.vercel.asked import ChatInput, read_chat
from swink.serve.vercel.reply import VercelReply
from swink.serve.web import Exchange, Route
from swink.serve.webrun import FORK, LEAVE, BegunRun, WebRuns, may_fork, read_asked, send_run
from swink.serve.wire import Refused

HEADERS = {"x-vercel-ai-ui-message-stream": "v1", "cache-control": "no-cache"}
DONE = b"data: [DONE]\n\n"
_AGAIN = (
    "the store keeps what was said, so a reply is not made again in its place; ask for a conversation of its "
    "own with ?on_conflict=fork"
)


class VercelDoor:
    """Answers `DefaultChatTransport`. A chat is a conversation of the caller."""

    def __init__(self, host: Host) -> None:
        self._runs = WebRuns(host)
        self._unknown = UnknownFields("Vercel")

    def routes(self) -> Sequence[Route]:
        """The requests that this door answers."""
        stream = "text/event-stream"
        return [
            Route(
                "POST",
                "/vercel",
                self._run,
                summary="Run the agent of a chat, and stream its UI message",
                request=ChatInput,
                statuses=(409,),
                query={FORK: str, LEAVE: str},
                kind=stream,
            ),
            Route(
                "GET",
                "/vercel/{id}/stream",
                self._resume,
                summary="Stream the UI message that is under way, from its beginning; 204 if there is none",
                query={LEAVE: str},
                kind=stream,
            ),
        ]

    def failure(self, status: int, message: str) -> Any:
        """The body of a refusal."""
        return {"error": {"message": message}}

    async def _run(self, exchange: Exchange) -> None:
        asked = await read_asked(exchange, read_chat, self._unknown)
        if asked.run.again and not may_fork(exchange):
            raise Refused(409, _AGAIN)
        begun = await self._runs.begin(exchange.caller, asked.run, may_fork=may_fork(exchange))
        answered = {*begun.run.start.approvals, *begun.run.start.tool_results}
        is_further = bool(answered) and asked.going_on is not None
        id = asked.going_on if is_further and asked.going_on else _message_id(begun)
        shown = begun.before.news.calls if is_further else frozenset[str]()
        reply = VercelReply(begun.conversation.id, id, begun.before, shown=shown)
        await send_run(exchange, begun, reply, HEADERS, DONE)

    async def _resume(self, exchange: Exchange) -> None:
        """The run under way, from its first event, as the client's last message begins again."""
        begun = await self._runs.resume(exchange.caller, exchange.path["id"])
        if begun is None:
            await exchange.send(204, b"", "text/event-stream")
            return
        conversation, before = begun.conversation.id, begun.before
        reply = VercelReply(conversation, _message_id(begun), before, earlier=_earlier(begun))
        await send_run(exchange, begun, reply, HEADERS, DONE)


def _message_id(begun: BegunRun) -> str:
    return f"message-{begun.run.id}"


def _earlier(begun: BegunRun) -> Sequence[Message]:
    """The stored replies of the message that the run goes on with: those since the user spoke."""
    if begun.before.news.messages:
        return ()
    stored = begun.before.stored
    last = max((at for at, each in enumerate(stored) if isinstance(each, UserMessage)), default=-1)
    return stored[last + 1 :]
