"""Leases: one worker at a time runs a session, and one that was believed dead cannot write to it any more.

claim          nobody else can claim the session or append to it while the lease lasts
renew          in the background, three times per lease
give back      at the end of the block; after a crash the lease runs out by itself
take over      by a claim after that: it gets a higher token, and appends with a lower one are refused
"""

import logging
import os
import secrets
import socket
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol, cast, runtime_checkable

from swink.errors import MisuseError, SessionError
from swink.memory.backend import Backend, Stored
from swink.memory.meta import SessionMeta
from swink.memory.session import Session, SyncSession
from swink.messages.checks import check_positive
from swink.messages.records import Record
from swink.system.threads import Serial, start_thread

log = logging.getLogger(__name__)


@runtime_checkable
class LeasingBackend(Backend, Protocol):
    """A backend whose sessions can be claimed."""

    def append(
        self,
        id: str,
        after: int,
        records: Sequence[Record],
        *,
        durable: bool = True,
        token: int | None = None,
    ) -> SessionMeta:
        """As `Backend.append`; `SessionConflict` unless the token is the newest.

        Without a token, `SessionBusy` while another worker has a lease.
        """
        ...

    def claim(self, id: str, holder: str, seconds: float) -> int:
        """Let `holder` have the session `id` for `seconds`, and return a token; `SessionBusy` if another has
        it.
        """
        ...

    def renew(self, id: str, token: int, seconds: float) -> bool:
        """Make the lease of `id` last `seconds` from now on; False if the `token` is no longer the newest."""
        ...

    def give_back(self, id: str, token: int) -> bool:
        """End the lease of the session `id`: its `token` is worth nothing from here on."""
        ...


@asynccontextmanager
async def claimed(backend: Backend, id: str, seconds: float) -> AsyncGenerator[Session]:
    """A session that nobody else writes to inside the block."""
    lease = Lease(backend, id, seconds)
    serial = Serial()  # what is cancelled is done all the same, and in this order: claim, append, release
    try:
        yield _ClaimedSession(lease, await serial.call(lease.claim), serial)
    finally:
        await serial.call(lease.release)


@contextmanager
def claimed_sync(backend: Backend, id: str, seconds: float) -> Generator[SyncSession]:
    """A session that nobody else writes to inside the block."""
    lease = Lease(backend, id, seconds)
    try:
        yield SyncSession(cast(Backend, lease), lease.claim())
    finally:
        lease.release()


class Lease:
    """A claim on a session, and the backend of the session that was claimed."""

    def __init__(self, backend: Backend, id: str, seconds: float) -> None:
        check_positive("seconds", seconds)
        if not isinstance(backend, LeasingBackend):
            raise MisuseError("sessions of this store cannot be claimed; use SqliteStore or PostgresStore")
        self._backend = backend
        self._id = id
        self._seconds = seconds
        self._token: int | None = None
        self._ended = threading.Event()

    def claim(self) -> Stored:
        """Claim the session, and keep the claim until the end."""
        holder = f"process {os.getpid()} on {socket.gethostname()} ({secrets.token_hex(4)})"
        self._token = self._backend.claim(self._id, holder, self._seconds)
        start_thread(self._keep, "swink-lease")
        return self._backend.read(self._id)

    def append(self, id: str, after: int, records: Sequence[Record], *, durable: bool = True) -> SessionMeta:
        return self._backend.append(id, after, records, durable=durable, token=self._token)

    def release(self) -> None:
        """Give the session back, if it is still ours; a lease that cannot be given back runs out."""
        self._ended.set()
        if self._token is not None:
            try:
                self._backend.give_back(self._id, self._token)
            except SessionError as error:
                log.warning("the claim on session %s ends within %g s: %s", self._id, self._seconds, error)

    def _keep(self) -> None:
        assert self._token is not None
        while not self._ended.wait(self._seconds / 3):
            try:
                if self._backend.renew(self._id, self._token, self._seconds):
                    continue
                if not self._ended.is_set():
                    log.warning("the claim on session %s is lost: another worker has taken over", self._id)
                return
            except SessionError as error:
                log.warning("the claim on session %s could not be renewed: %s", self._id, error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


class _ClaimedSession(Session):
    def __init__(self, lease: Lease, stored: Stored, serial: Serial) -> None:
        super().__init__(cast(Backend, lease), stored)
        self._serial = serial
