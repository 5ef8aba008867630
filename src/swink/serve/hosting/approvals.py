"""Approvals of a served run: asked over its events, answered by a request, put off if nobody does."""

import asyncio
from collections.abc import Collection

from swink.agent.config import ApprovalMode
from swink.agent.policy import Answer, ApprovalRequest, Approve, Deferred, defer
from swink.events import AgentEvent, ApprovalRequested, ApprovalResolved
from swink.serve.wire import Refused
from swink.tools.definition import call_off_loop


class Approvals:
    """What a run asks, and what it is answered. An agent with an approve function of its own asks that."""

    def __init__(
        self,
        own: Approve | None,
        mode: ApprovalMode,
        client_tools: Collection[str],
        seconds: float,
        unanswered: Answer | None = None,
    ) -> None:
        self._own = own
        self._mode: ApprovalMode = mode
        self._client_tools = frozenset(client_tools)
        self._seconds = seconds
        self._unanswered = unanswered
        self._asked: dict[str, asyncio.Future[Answer]] = {}

    @property
    def mode(self) -> ApprovalMode:
        """The mode that the agent needs, so that calls of client tools are asked about."""
        if not self._client_tools:
            return self._mode
        return "on" if self._mode == "on" else "smart"

    async def ask(self, request: ApprovalRequest) -> Answer:
        """The answer to a call: the client's word, the application's own, or later."""
        if request.name in self._client_tools:
            return Deferred()
        if self._mode == "off":
            return True
        if self._own is not None and self._own is not defer:
            return await call_off_loop(self._own, request, name="approve")
        if self._own is defer and self._unanswered is None:
            return Deferred()
        return await self.wait(request.call_id)

    def answer(self, call_id: str, answer: Answer) -> None:
        """Answer a call that waits; `Refused` if it does not."""
        waiting = self._asked.get(call_id)
        if waiting is None or waiting.done():
            raise Refused(409, f"no call {call_id[:80]!r} of this run waits for an approval")
        waiting.set_result(answer)

    def put_off(self) -> None:
        """Leave every answer for later: the application is shutting down."""
        self._seconds = 0.0
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_result(Deferred())

    def shows(self, event: AgentEvent) -> bool:
        """Whether clients are told: not of questions that are answered without them."""
        match event:
            case ApprovalRequested(name=name) | ApprovalResolved(name=name):
                return self._mode != "off" and name not in self._client_tools
            case _:
                return True

    async def wait(self, call_id: str) -> Answer:
        """The client's answer to a call; put off if none comes in time."""
        if self._unanswered is not None:
            return self._unanswered
        waiting = self._asked[call_id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._seconds):
                return await waiting
        except TimeoutError:
            return Deferred()
        finally:
            del self._asked[call_id]
