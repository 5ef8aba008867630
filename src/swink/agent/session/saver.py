"""The saver of a run: what it comes to goes to the session, one append at a time."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from swink.agent.session.sessiondiff import ConversationState, SessionDiff, Update
from swink.messages.records import Record

LATER = 0.2
"""Seconds for which a prompt or a question may be in memory alone; what takes less time costs no append."""

Look = Callable[[bool], ConversationState]
"""The conversation as it is now; the caller says whether the open turn counts as final."""


class Saver:
    """Brings a session up to date; a wait that is cancelled does not cancel the append."""

    __slots__ = (
        "_again",
        "_appending",
        "_cancel",
        "_look",
        "_loop",
        "_timer",
        "_told",
        "_waiters",
        "closed",
        "diff",
        "notes",
    )

    def __init__(self, diff: SessionDiff, look: Look) -> None:
        self.diff = diff
        self.notes: list[Record] = []
        """The journal of the open turn, as far as it is not saved."""
        self.closed = False
        self._look = look
        self._loop = asyncio.get_running_loop()
        self._told = 0
        self._appending: Update | None = None
        self._cancel: Callable[[], object] | None = None
        """Of the append under way, where it can be cancelled."""
        self._waiters: list[asyncio.Future[None]] = []
        self._again = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_up_to_date(self) -> bool:
        """Whether the session has everything, and nothing is on its way to it."""
        return self._appending is None and self._changes(self._look(True)) is None

    async def save(self, *, final: bool = True) -> None:
        """Return when the session has everything; the open turn is part of it only if it is final."""
        if self._appending is not None:
            await self._wait()
        if self.diff.is_in_doubt:
            await self.diff.settle()
            await self._wait()
        self._begin(final)
        await self._wait()

    def save_soon(self) -> None:
        """Save what has changed, without waiting for it; safe from any thread."""
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._save_unheard)

    def save_later(self) -> None:
        """Save what has changed if it takes long until the next save: a prompt, or a question to a person."""
        if self._timer is None:
            self._timer = self._loop.call_later(LATER, self._save_overdue)

    def close(self) -> None:
        """Begin no further append; one that is under way goes on."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()

    def cancel(self) -> None:
        """Cancel the append under way, where that can be done."""
        if self._cancel is not None:
            self._cancel()

    async def _wait(self) -> None:
        while self._appending is not None:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def _save_overdue(self) -> None:
        self._timer = None
        self._save_unheard()

    def _save_unheard(self) -> None:
        if self._appending is not None:
            self._again = True
        elif not (self.closed or self.diff.is_in_doubt):
            self._begin(final=False)

    def _begin(self, final: bool) -> None:
        now = self._look(final)
        update = self._changes(now)
        if update is None:
            return
        written, told = len(self.notes), len(now.produced) - (len(now.history) - now.upto)

        def ended(error: BaseException | None) -> None:
            self._appending = self._cancel = None
            if self.diff.has(update):
                del self.notes[:written]
                self._told = told
            self._go_on(error)

        self._cancel = self.diff.start(update, ended)
        self._appending = update

    def _changes(self, now: ConversationState) -> Update | None:
        if now.open is None:
            self.notes.clear()  # the messages of a turn that is complete say it all
        return self.diff.changes(now, self._told, self.notes)

    def _go_on(self, error: BaseException | None) -> None:
        """Wake who waits; what nobody waits for is tried again with the next save, and raised there."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            elif isinstance(error, asyncio.CancelledError):
                waiter.cancel()
            else:
                waiter.set_exception(error)
        if self._again:
            self._again = False
            if error is None:
                self._save_unheard()
