"""One call of a served tool: its arguments, its progress, and what it asks the client's user.

until 2025-11-25    a question is a request of ours, which the client answers while the call waits
from 2026-07-28     the call ends with the questions and a token; the client calls again with the token and
                    the answers, and what was to be done with them is done then

A tool need not know which: it gives `ask` the questions and how to go on with the answers.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from swink.errors import InvalidInput
from swink.mcp.elicitation import read_form
from swink.serve.mcp.serversdk import ServerSdk

MOST_WAITING = 100
"""Calls whose questions nobody has answered yet; past that the oldest is given up."""
PATIENCE = 3_600.0
"""Seconds after which a call that nobody goes on with may be given up."""
_ANSWERS = ("accept", "decline", "cancel")


class ElicitQuestion(Struct, frozen=True):
    """Something to ask the person: a message, and the fields of a form as a flat JSON Schema."""

    message: str
    schema: dict[str, Any]


class ElicitAnswer(Struct, frozen=True):
    """What the person did with a question: "accept" with the values, "decline" or "cancel"."""

    action: str
    values: Mapping[str, Any]


Answers = Mapping[str, ElicitAnswer]
GoOn = Callable[["ServerCall", Answers], Awaitable[Any]]


class OpenCall(Struct, frozen=True):
    """A call that ended with questions: how it goes on, and what to do if it never does."""

    name: str
    questions: Mapping[str, ElicitQuestion]
    go_on: GoOn
    give_up: Callable[[], Awaitable[None]]


class OpenCalls:
    """The calls that wait for answers, by tokens that nobody can guess; kept in memory."""

    def __init__(self) -> None:
        self._calls: dict[str, OpenCall] = {}
        self._since: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def take(self, token: str, name: str) -> OpenCall | None:
        """The call of this tool that waits under the token, which is its no more."""
        found = self._calls.get(token)
        return None if found is None or found.name != name else self._pop(token)

    async def keep(self, call: OpenCall) -> str:
        """A token for the call."""
        token, now = secrets.token_urlsafe(32), time.monotonic()
        self._calls[token], self._since[token] = call, now
        old = [other for other, since in self._since.items() if since < now - PATIENCE]
        for other in old or [*self._calls][: max(0, len(self._calls) - MOST_WAITING)]:
            await self._pop(other).give_up()
        return token

    async def aclose(self) -> None:
        """Give all of them up."""
        while self._calls:
            await self._pop(next(iter(self._calls))).give_up()

    def _pop(self, token: str) -> OpenCall:
        del self._since[token]
        return self._calls.pop(token)


class ServerCall:
    """A call as a tool sees it; `context` and `params` are the SDK's, for what is not here."""

    def __init__(self, sdk: ServerSdk, context: Any, params: Any, waiting: OpenCalls) -> None:
        self.sdk, self.context, self.params = sdk, context, params
        self.name: str = params.name
        self.arguments: dict[str, Any] = dict(params.arguments or {})
        self._waiting = waiting
        self._steps = 0

    @property
    def can_ask(self) -> bool:
        """Whether the client can ask its user."""
        capabilities = self.context.session.client_capabilities
        elicitation = None if capabilities is None else capabilities.elicitation
        if elicitation is None:
            return False
        # `{}` is how a client of the first version says that it shows forms.
        return elicitation.form is not None or elicitation.url is None

    async def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is, if it wants to know."""
        await self.context.session.report_progress(progress, total, message)

    async def step(self, message: str) -> None:
        """Tell the client what is done now, where nobody knows how much is to come."""
        self._steps += 1
        await self.report(self._steps, message=message)

    async def ask(
        self,
        questions: Mapping[str, ElicitQuestion],
        go_on: GoOn,
        give_up: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """What `go_on` gives with the answers; `give_up` is called instead if nobody ever answers."""
        call = OpenCall(self.name, questions, go_on, give_up or _nothing)
        if not self.context.session.can_send_request:
            return await self._leave_open(call)
        answers: dict[str, ElicitAnswer] = {}
        for key, question in questions.items():
            session, id = self.context.session, self.context.request_id
            given = await session.elicit_form(question.message, question.schema, related_request_id=id)
            answers[key] = _checked(question, given.action, given.content)
        return await go_on(self, answers)

    async def proceed(self, start: Callable[["ServerCall"], Awaitable[Any]]) -> Any:
        """Start the call or, if it says which one it goes on with, go on with that."""
        token = self.params.request_state
        if token is None:
            return await start(self)
        if (call := self._waiting.take(token, self.name)) is None:
            raise self.sdk.invalid(
                "this requestState is unknown, was used or has expired: call the tool anew"
            )
        answers: dict[str, ElicitAnswer] = {}
        responses: dict[str, Any] = self.params.input_responses or {}
        for key, question in call.questions.items():
            given: Any = responses.get(key)
            if getattr(given, "action", None) not in _ANSWERS:
                return await self._leave_open(call)
            answers[key] = _checked(question, given.action, given.content)
        return await call.go_on(self, answers)

    async def _leave_open(self, call: OpenCall) -> Any:
        asked = {key: (one.message, one.schema) for key, one in call.questions.items()}
        return self.sdk.input_required(asked, await self._waiting.keep(call))


def _checked(question: ElicitQuestion, action: str, content: Any) -> ElicitAnswer:
    """The answer; one whose values do not fit the form counts as dismissed."""
    if action != "accept":
        return ElicitAnswer(action, {})
    try:
        return ElicitAnswer(action, read_form("", question.message, question.schema).fill(content or {}))
    except InvalidInput:
        return ElicitAnswer("cancel", {})


async def _nothing() -> None:
    """Nothing is to be done when nobody goes on with the call."""
