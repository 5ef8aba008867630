"""The door for AG-UI: `POST /ag-ui` runs the agent of a thread and streams its events."""

from collections.abc import Sequence
from typing import Any

from swink.serve.agui.asked import RunInput, read_input
from swink.serve.agui.reply import AguiReply
from swink.serve.hosting import Host
from swink.serve.toldhistory import UnknownFields
from swink.serve.web import Exchange, Route
from swink.serve.webrun import FORK, LEAVE, WebRuns, may_fork, read_asked, send_run


class AguiDoor:
    """Answers clients such as `HttpAgent` of @ag-ui/client. A thread is a conversation of the caller."""

    def __init__(self, host: Host) -> None:
        self._runs = WebRuns(host)
        self._unknown = UnknownFields("AG-UI")

    def routes(self) -> Sequence[Route]:
        """The requests that this door answers."""
        return [
            Route(
                "POST",
                "/ag-ui",
                self._run,
                summary="Run the agent of a thread, and stream the events of AG-UI",
                request=RunInput,
                statuses=(409,),
                query={FORK: str, LEAVE: str},
                kind="text/event-stream",
            )
        ]

    def failure(self, status: int, message: str) -> Any:
        """The body of a refusal: what went wrong, and the protocol's event for it."""
        return {"error": {"message": message}, "type": "RUN_ERROR", "message": message, "code": str(status)}

    async def _run(self, exchange: Exchange) -> None:
        run_id, asked = await read_asked(exchange, read_input, self._unknown)
        begun = await self._runs.begin(exchange.caller, asked, may_fork=may_fork(exchange))
        reply = AguiReply(begun.conversation.id, run_id, begun.before)
        await send_run(exchange, begun, reply)
