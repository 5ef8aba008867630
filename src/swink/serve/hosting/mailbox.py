"""Words to a run that another worker carries out: left in the store they share, and taken by that worker.

    word → a session of its own → taken, twice a second → said to the run → answer → read by who left it

A word is said at most once: who gave up waiting withdraws it, and what was taken cannot be withdrawn.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct

from swink.errors import MisuseError, SessionConflict, SessionError
from swink.memory import Session, SessionMeta, Store
from swink.memory.backend import Stored
from swink.memory.meta import new_meta
from swink.messages import Message
from swink.messages.jsondata import decode, encode
from swink.messages.records import UnknownRecord
from swink.serve.hosting.hostedrun import HostedRun
from swink.serve.hosting.keptstart import KeptAnswer, answer_of
from swink.serve.wire import Refused
from swink.system.threads import in_thread

log = logging.getLogger("swink.serve")

PLACE = "swink-serve-mail"
"""Where the sessions are said to have taken place that hold a word each."""
PAUSE = 0.5
PATIENCE = 10.0
"""Seconds that a word waits to be taken."""
_UNTOLD = (
    "the worker that carries this run out has taken it and does not say what came of it: it may have died; "
    "look at the events of the run before you send it again"
)
_FORGOTTEN = 300.0
"""Seconds after which nobody waits for the answer any more."""


class RunWord(Struct, frozen=True, omit_defaults=True):
    """Something that a client says to a run."""

    kind: Literal["abort", "steer", "follow_up", "approve"]
    message: list[Message] | None = None
    call_id: str = ""
    answer: KeptAnswer | None = None
    rules: tuple[str, ...] = ()

    def say(self, run: HostedRun) -> None:
        """Say it to a run of this process; `Refused` if the run does not take it."""
        match self.kind:
            case "abort":
                run.abort()
            case "approve":
                run.approve(self.call_id, answer_of(self.answer or KeptAnswer("no")), self.rules)
            case "steer":
                run.steer(self.message or [])
            case "follow_up":
                run.follow_up(self.message or [])


class Mailbox:
    """The words of one worker: those it leaves for others, and those it takes."""

    def __init__(self, store: Store, runs: Callable[[], Iterable[HostedRun]]) -> None:
        self._store = store
        self._runs = runs

    async def send(self, run: HostedRun, word: RunWord, lease: float) -> None:
        """Say something to a run of another worker; `Refused` if that one refuses it, or does not answer."""
        meta = new_meta(id=f"{run.id}.{secrets.token_hex(8)}", directory=PLACE)
        record = _record("word", decode(encode(word)))
        meta = await in_thread(self._store.sync.backend.create, meta, [record])
        left = Session(self._store.sync.backend, Stored(meta, [record]))
        deadline = time.monotonic() + PATIENCE
        try:
            while (answer := await self._answer(meta.id)) is None:
                if run.is_over and await _withdrawn(left):
                    raise Refused(409, "the run has ended; start another one")
                if time.monotonic() > deadline and await _withdrawn(left):
                    text = "the worker that carries this run out does not answer"
                    raise Refused(
                        409, f"{text}; ask again in {lease:g} s, when another one has taken it over"
                    )
                if time.monotonic() > deadline + PATIENCE:
                    raise Refused(409, _UNTOLD)
                await asyncio.sleep(PAUSE / 2)
        finally:
            await self._store.delete(meta.id)
        if answer["status"] != 200:
            raise Refused(answer["status"], answer["text"])

    async def take(self) -> None:
        """Take what was left for runs of this worker, and forget what nobody waits for."""
        for meta in await self._store.list(directory=PLACE, limit=1_000):
            id, _, _ = meta.id.partition(".")
            run = next((run for run in self._runs() if run.id == id), None)
            try:
                if run is not None and not run.is_elsewhere and not run.is_lost:
                    await self._say(run, meta)
                elif time.time() - meta.updated > _FORGOTTEN:
                    await self._store.delete(meta.id)
            except SessionError:
                pass  # withdrawn, or taken by who was faster

    async def _say(self, run: HostedRun, meta: SessionMeta) -> None:
        records = await self._store.load(meta.id)
        if [_kind(record) for record in records] != ["word"]:
            return
        left = await self._store.open(meta.id)
        await left.append([], records=[_record("taken", None)])
        status, text = 200, ""
        try:
            word: UnknownRecord = records[0]  # type: ignore[assignment]  # its kind was looked at
            decode(encode(word.data["said"]), RunWord).say(run)
        except Refused as refused:
            status, text = refused.status, str(refused)
        except MisuseError as error:
            status, text = 400, str(error)
        await left.append([], records=[_record("answer", {"status": status, "text": text})])

    async def _answer(self, id: str) -> dict[str, Any] | None:
        for record in await self._store.load(id):
            if _kind(record) == "answer" and isinstance(record, UnknownRecord):
                return record.data["said"]
        return None


async def _withdrawn(left: Session) -> bool:
    """Whether nobody has taken a word, and nobody will."""
    try:
        await left.append([], records=[_record("withdrawn", None)])
    except SessionConflict:
        return False  # its answer comes
    return True


def _record(kind: str, said: Any) -> UnknownRecord:
    name = f"run_word_{kind}"
    return UnknownRecord(name, {"type": name, "said": said})


def _kind(record: Any) -> str:
    return record.type.removeprefix("run_word_") if isinstance(record, UnknownRecord) else ""
