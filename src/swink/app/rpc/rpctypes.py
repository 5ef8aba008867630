"""What programs send to `swink rpc` and get from it, as types; docs/reference/rpc.md is made from them."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from swink.serve.native.bodies import InputParts, ListedConversation, ShortText


class _Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """What a program sends; fields that are not known are refused."""


class RunParameters(_Parameters, frozen=True):
    """Start a run in a session, or in a new one; without `input` it goes on with what is there."""

    input: str | InputParts | None = None
    session: str | None = None


class OfRun(_Parameters, frozen=True):
    """Which run: that of a session; it may be left out while only one is under way."""

    session: str | None = None


class SayParameters(_Parameters, frozen=True):
    """Something to say to a run while it works."""

    message: str | InputParts
    session: str | None = None


class ApproveParameters(_Parameters, frozen=True):
    """The answer to a call that waits; with `arguments` it runs with those instead.

    `session` is needed for a call of a run that has ended, which goes on with the answer.
    """

    call_id: str
    approved: bool
    reason: ShortText | None = None
    arguments: dict[str, Any] | None = None
    session: str | None = None


class ListParameters(_Parameters, frozen=True):
    """How many sessions to list, and what must have been said in them."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 50
    search: str | None = None


class OpenParameters(_Parameters, frozen=True):
    """The session whose messages are wanted, as sessions.list names it."""

    session: str


class ForkParameters(_Parameters, frozen=True):
    """A new session with the first `at` messages of this one, or with all of them."""

    session: str
    at: Annotated[int, Meta(ge=0)] | None = None


class ShutdownParameters(_Parameters, frozen=True):
    """Nothing is to be said."""


class RunAnswer(Struct, frozen=True):
    """The run that was started, or that heard."""

    run_id: str
    session: str


class SessionAnswer(Struct, frozen=True):
    """The session that was made for the fork."""

    session: str


class SavedSessions(Struct, frozen=True):
    """The sessions, the last updated first."""

    sessions: list[ListedConversation]


class ShutdownAnswer(Struct, frozen=True):
    """The program ends; runs under way are aborted, and what arrived is kept."""


class EventParameters(Struct, frozen=True):
    """The parameters of the notification `event`; `number` counts from 1 in each run, without a gap.

    `event` is a line of `swink run --output json`; the last one of a run has the type `result`.
    """

    session: str
    run_id: str
    number: int
    event: Any
