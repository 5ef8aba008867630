"""What a server asks in the middle of a call, put to the person one question at a time.

A question belongs to a call: outside of any it is declined unasked, and when the last call ends, what still
waits is withdrawn. What a server asks beyond a bound is declined too.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from swink.errors import InvalidInput
from swink.mcp.elicitation import Elicitation, ElicitForm, OnElicit, read_form, read_url
from swink.mcp.sdk import Sdk
from swink.mcp.timeouts import PausableTimeouts, Withdrawn
from swink.messages.redact import describe_traceback
from swink.system.aio import is_async, resolve
from swink.system.threads import in_thread

log = logging.getLogger("swink.mcp")

_MOST = 20
"""Questions of a server from one call of ours to the next."""


class ElicitCallback:
    """Asks the person on behalf of one server."""

    def __init__(self, server: str, on_elicit: OnElicit, sdk: Sdk, limits: PausableTimeouts) -> None:
        self._server = server
        self._on_elicit = on_elicit
        self._sdk = sdk
        self._limits = limits
        self._alone = asyncio.Lock()
        self.asked = 0
        """How often it has asked since the last call began."""

    async def __call__(self, context: Any, params: Any) -> Any:
        """The SDK's callback: the person's answer as a result of the protocol."""
        try:
            if params.mode == "url":
                asked = read_url(self._server, params.message, params.url)
            else:
                asked = read_form(self._server, params.message, params.requested_schema)
        except InvalidInput as error:
            return self._sdk.invalid(str(error))
        return await self._put(asked)

    async def open(self, params: Any) -> str:
        """Ask the user to open an address before a call can be made; what to tell the model."""
        try:
            asked = read_url(self._server, params.message, params.url)
        except InvalidInput as error:
            return str(error)
        result = await self._put(asked)
        if result.action != "accept":
            return f"the user did not want to open a page of {asked.host}"
        return f"the user was sent to {asked.host} for it: call it again when they say that it is done"

    async def _put(self, asked: Elicitation) -> Any:
        self.asked += 1
        if self.asked > _MOST or not self._limits.are_open:
            if self.asked == _MOST + 1 or not self._limits.are_open:
                log.warning("MCP server %r asks too much, or out of turn: declined", self._server)
            return self._sdk.elicited("decline")
        try:
            return self._result(asked, await self._limits.ask(self._ask(asked)))
        except Withdrawn:
            return self._sdk.elicited("cancel")

    async def _ask(self, asked: Elicitation) -> Mapping[str, Any] | bool | None:
        async with self._alone:
            try:
                ask = self._on_elicit
                # The user may be typing the answer at a prompt: not on the event loop.
                return await resolve(ask(asked) if is_async(ask) else await in_thread(ask, asked))
            except Exception as error:
                # It is the application's code: log its bug, and treat the question as unanswered.
                log.error("asking for MCP server %r failed\n%s", self._server, describe_traceback(error))
                return None

    def _result(self, asked: Elicitation, answer: Mapping[str, Any] | bool | None) -> Any:
        if answer is None or answer is False:
            return self._sdk.elicited("cancel" if answer is None else "decline")
        if not isinstance(asked, ElicitForm):
            return self._sdk.elicited("accept")
        try:
            return self._sdk.elicited("accept", asked.fill({} if answer is True else answer))
        except InvalidInput as error:
            log.warning("the answer for MCP server %r is none it takes: %s", self._server, error)
            return self._sdk.elicited("cancel")
