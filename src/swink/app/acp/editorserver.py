"""The methods of the protocol: what an editor may ask for, and the sessions that it has open.

initialize → authenticate? → session/new | load | resume | fork → session/prompt … → session/close

Nothing else is answered before `initialize`. After `logout` no session is opened and no prompt is taken until
`authenticate`: what is logged in to are the models, by the keys that this machine has.
"""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw

from swink import __version__
from swink.app.acp.connection import (
    INVALID_PARAMETERS,
    INVALID_REQUEST,
    NEEDS_KEY,
    NO_METHOD,
    NOT_FOUND,
    Connection,
    RequestRefused,
)
from swink.app.acp.continuations import as_editors_know, note_continuation, went_on_as
from swink.app.acp.editorsession import EditorSession, OpenedConversation
from swink.app.acp.parameters import (
    Authenticate,
    EditorAbilities,
    EditorServerEntry,
    Initialize,
    ListSessions,
    OfSession,
    Place,
    Prompt,
    SavedPlace,
    SetMode,
    SetOption,
)
from swink.app.acp.promptinput import read_prompt
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.titles import list_talks, title_line
from swink.errors import SessionError, SessionNotFound
from swink.memory.backend import Stored
from swink.memory.meta import SessionMeta
from swink.memory.store import SyncStore
from swink.system.threads import in_thread

PROTOCOL = 1
LOGIN = "swink-keys"
_PAGE = 50
"""Sessions that are named at once."""
P = TypeVar("P")


class OpenConversation(Protocol):
    """Makes what a session needs in a directory; blocking."""

    def __call__(
        self,
        directory: Path,
        saved: SavedConversation | None,
        servers: Mapping[str, Any],
        further: tuple[str, ...],
        *,
        has_forms: bool,
    ) -> OpenedConversation:
        """The agent of a saved conversation, or of one that is not kept."""
        ...


class EditorServer:
    """Serves one editor; without a store its sessions are not kept."""

    def __init__(
        self,
        connection: Connection,
        open_conversation: OpenConversation,
        store: SyncStore | None,
        check_login: Callable[[], None],
    ) -> None:
        self._connection, self._open, self._store = connection, open_conversation, store
        self._check_login = check_login
        self._abilities = EditorAbilities()
        self._is_ready = self._is_out = False
        self.sessions: dict[str, EditorSession] = {}
        self._methods: dict[str, Callable[[Raw], Awaitable[Mapping[str, Any]]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "logout": self._logout,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/delete": self._delete,
            "session/close": self._close,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    async def serve(self) -> None:
        """Answer until the editor leaves; then end its sessions, with all saved."""
        try:
            await self._connection.serve(self)
        finally:
            closing = [session.aclose() for session in self.sessions.values()]
            self.sessions.clear()
            try:
                await asyncio.gather(*closing, return_exceptions=True)
            finally:
                await self._connection.aclose()

    async def answer(self, method: str, parameters: Raw) -> Mapping[str, Any]:
        """The result of a request; raises `RequestRefused`."""
        found = self._methods.get(method)
        if found is None:
            raise RequestRefused(NO_METHOD, f"there is no method {method!r}")
        if not self._is_ready and method != "initialize":
            raise RequestRefused(INVALID_REQUEST, f"{method} comes after initialize")
        return await found(parameters)

    def hear(self, method: str, parameters: Raw) -> None:
        """Take a notification; one that is not known means nothing, as the protocol says."""
        if method == "session/cancel":
            session = self.sessions.get(_read(parameters, OfSession).session_id)
            if session is not None:
                session.cancel()

    # ── the editor ──

    async def _initialize(self, parameters: Raw) -> Mapping[str, Any]:
        asked = _read(parameters, Initialize)
        self._abilities = asked.client_capabilities or EditorAbilities()
        self._is_ready = True
        login: dict[str, Any] = {
            "id": LOGIN,
            "name": "API keys of swink",
            "description": "in a terminal swink keys set PROVIDER stores one; or set its variable",
        }
        keeps = self._store is not None
        sessions = ("list", "delete", "resume", "fork") if keeps else ()
        return {
            "protocolVersion": PROTOCOL,
            "agentInfo": {"name": "swink", "title": "swink", "version": __version__},
            "authMethods": [login],
            "agentCapabilities": {
                "loadSession": keeps,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {name: {} for name in (*sessions, "close", "additionalDirectories")},
                "auth": {"logout": {}},
            },
        }

    async def _authenticate(self, parameters: Raw) -> Mapping[str, Any]:
        asked = _read(parameters, Authenticate)
        if asked.method_id != LOGIN:
            raise RequestRefused(INVALID_PARAMETERS, f"there is no way to log in named {asked.method_id!r}")
        await in_thread(self._check_login)
        self._is_out = False
        return {}

    async def _logout(self, parameters: Raw) -> Mapping[str, Any]:
        self._is_out = True
        sessions = list(self.sessions.values())
        for session in sessions:
            session.cancel()
        return {}

    def _check_is_in(self) -> None:
        if self._is_out:
            raise RequestRefused(NEEDS_KEY, "you have logged out; log in again in the editor")

    # ── sessions ──

    async def _new(self, parameters: Raw) -> Mapping[str, Any]:
        place = _read(parameters, Place)
        directory = await self._look_at(place)
        saved = None if self._store is None else SavedConversation(self._store, directory=str(directory))
        session = await self._begin(place, directory, saved)
        return {"sessionId": session.id, **await self._enter(session)}

    async def _load(self, parameters: Raw) -> Mapping[str, Any]:
        return await self._take_up(_read(parameters, SavedPlace), replays=True)

    async def _resume(self, parameters: Raw) -> Mapping[str, Any]:
        return await self._take_up(_read(parameters, SavedPlace), replays=False)

    async def _take_up(self, place: SavedPlace, *, replays: bool) -> Mapping[str, Any]:
        store, directory = self._kept(), await self._look_at(place)
        if (before := self.sessions.get(place.session_id)) is not None:
            if before.has_turn:
                raise RequestRefused(INVALID_REQUEST, "a turn of this session goes on; cancel it first")
            await self._end(place.session_id)
        stored = await _found(place.session_id, in_thread(_read_continued, store, place.session_id))
        saved = SavedConversation(store, stored, directory=str(directory))
        session = await self._begin(place, directory, saved, id=place.session_id, replays=replays)
        await self._connection.drained()
        return await self._enter(session)

    async def _fork(self, parameters: Raw) -> Mapping[str, Any]:
        place = _read(parameters, SavedPlace)
        store, directory = self._kept(), await self._look_at(place)
        now = await in_thread(went_on_as, place.session_id)
        stored = await _found(place.session_id, in_thread(store.split, now))
        saved = SavedConversation(store, stored, directory=str(directory))
        session = await self._begin(place, directory, saved)
        return {"sessionId": session.id, **await self._enter(session)}

    async def _look_at(self, place: Place) -> Path:
        """The directory of a session; raises `RequestRefused` if it cannot be worked in."""
        self._check_is_in()
        for path in (place.cwd, *(place.additional_directories or ())):
            if not os.path.isabs(path):
                raise RequestRefused(INVALID_PARAMETERS, f"{path!r} is no absolute path")
            if not await in_thread(os.path.isdir, path):
                raise RequestRefused(INVALID_PARAMETERS, f"there is no directory {path}")
        return Path(place.cwd)

    async def _begin(
        self,
        place: Place,
        directory: Path,
        saved: SavedConversation | None,
        *,
        id: str | None = None,
        replays: bool = False,
    ) -> EditorSession:
        opened = await in_thread(
            self._open,
            directory,
            saved,
            _servers_of(place.mcp_servers or ()),
            tuple(place.additional_directories or ()),
            has_forms=self._abilities.has_forms,
        )
        id = id or (f"unsaved-{uuid.uuid4()}" if saved is None else saved.meta.id)
        session = self.sessions[id] = EditorSession(id, opened, self._connection, self._abilities)
        session.begin(replays=replays)
        return session

    async def _enter(self, session: EditorSession) -> Mapping[str, Any]:
        state = await session.state()
        # After the answer, which names the session: an editor knows no update of a session before.
        asyncio.get_running_loop().call_soon(session.begin_work)
        return state

    async def _list(self, parameters: Raw) -> Mapping[str, Any]:
        asked = _read(parameters, ListSessions)
        talks = await in_thread(list_talks, self._kept(), asked.cwd)
        known = await in_thread(as_editors_know, [talk for talk in talks if talk.directory is not None])
        start = 0
        if asked.cursor is not None:
            after = [at for at, talk in enumerate(known) if talk.id == asked.cursor]
            if not after:
                raise RequestRefused(INVALID_PARAMETERS, "the cursor means nothing any more; list anew")
            start = after[0] + 1
        page = known[start : start + _PAGE]
        more = {"nextCursor": page[-1].id} if len(known) > start + _PAGE else {}
        return {"sessions": [_described(talk) for talk in page], **more}

    async def _delete(self, parameters: Raw) -> Mapping[str, Any]:
        asked, store = _read(parameters, OfSession), self._kept()
        if asked.session_id in self.sessions:
            await self._end(asked.session_id)
        await _found(asked.session_id, in_thread(_delete_continued, store, asked.session_id))
        return {}

    async def _close(self, parameters: Raw) -> Mapping[str, Any]:
        asked = _read(parameters, OfSession)
        self._session(asked.session_id)
        await self._end(asked.session_id)
        return {}

    async def _end(self, id: str) -> None:
        await self.sessions.pop(id).aclose()

    # ── turns ──

    async def _prompt(self, parameters: Raw) -> Mapping[str, Any]:
        asked = _read(parameters, Prompt)
        self._check_is_in()
        session = self._session(asked.session_id)
        return await session.prompt(read_prompt(asked.prompt))

    async def _set_mode(self, parameters: Raw) -> Mapping[str, Any]:
        asked = _read(parameters, SetMode)
        self._session(asked.session_id).set_mode(asked.mode_id)
        return {}

    async def _set_option(self, parameters: Raw) -> Mapping[str, Any]:
        asked = _read(parameters, SetOption)
        return {
            "configOptions": await self._session(asked.session_id).set_option(asked.config_id, asked.value)
        }

    def _session(self, id: str) -> EditorSession:
        if (found := self.sessions.get(id)) is None:
            raise RequestRefused(
                NOT_FOUND, f"there is no open session {id!r}; session/load opens a saved one"
            )
        return found

    def _kept(self) -> SyncStore:
        if self._store is None:
            raise RequestRefused(
                INVALID_REQUEST, "conversations are not saved here (save = false in config.toml)"
            )
        return self._store


def _read(parameters: Raw, kind: type[P]) -> P:
    return msgspec.json.decode(parameters, type=kind)


async def _found(id: str, reading: Awaitable[P]) -> P:
    try:
        return await reading
    except SessionNotFound as error:
        raise RequestRefused(NOT_FOUND, f"there is no saved session {id!r}") from error
    except SessionError as error:
        raise RequestRefused(INVALID_REQUEST, str(error)) from error


def _read_continued(store: SyncStore, id: str) -> Stored:
    """A session as it went on after it was rewound; as it was before if that is gone."""
    with suppress(SessionNotFound):
        return store.read(went_on_as(id))
    return store.read(id)


def _delete_continued(store: SyncStore, id: str) -> None:
    if (now := went_on_as(id)) != id:
        with suppress(SessionNotFound):
            store.delete(now)
        note_continuation(id, id)
    store.delete(id)


def _described(talk: SessionMeta) -> dict[str, Any]:
    updated = datetime.fromtimestamp(talk.updated, UTC).isoformat()
    return {"sessionId": talk.id, "cwd": talk.directory, "title": title_line(talk), "updatedAt": updated}


def _servers_of(listed: tuple[EditorServerEntry, ...]) -> dict[str, Any]:
    """The MCP servers of the editor as a file of servers names them."""
    servers: dict[str, Any] = {}
    for entry in listed:
        if entry.type == "stdio":
            env = {each.name: each.value for each in entry.env or ()}
            servers[entry.name] = {"command": entry.command, "args": list(entry.args or ()), "env": env}
        elif entry.type == "http":
            headers = {each.name: each.value for each in entry.headers or ()}
            servers[entry.name] = {"url": entry.url, "headers": headers}
        else:
            raise RequestRefused(
                INVALID_PARAMETERS, f"MCP server {entry.name!r}: {entry.type} is not supported"
            )
    return servers
