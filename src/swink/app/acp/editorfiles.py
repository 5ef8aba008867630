"""The files that the editor has open: their text, saved or not, and what becomes of them after a change.

Tools ask in threads of theirs; the editor is asked in the event loop. One that does not answer in time has
nothing to say: the file on disk counts.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, TypeVar

from swink.app.acp.calls import absolute
from swink.app.acp.connection import Connection
from swink.app.acp.parameters import Done, EditorAbilities, FileText
from swink.errors import AgentError

T = TypeVar("T")
_PATIENCE = 5.0
"""Seconds that a tool waits for the editor."""
_LARGEST = 4 << 20
"""Bytes of a file that the editor is told of."""


class EditorFiles:
    """The open files of one session; made in the event loop."""

    def __init__(
        self, connection: Connection, session_id: str, directory: Path, abilities: EditorAbilities
    ) -> None:
        self._connection, self._session_id, self._directory = connection, session_id, directory
        self._reads, self._writes = abilities.reads, abilities.writes
        self._loop = asyncio.get_running_loop()

    @property
    def follows(self) -> bool:
        return self._writes

    def text_of(self, path: str) -> str | None:
        """What the editor has of a file; None if it does not say."""
        if not self._reads:
            return None
        answer = self._wait_for(
            self._ask("fs/read_text_file", FileText, path=absolute(path, self._directory))
        )
        return None if answer is None else answer.content

    def follow(self, path: str) -> str:
        """Have the editor take over what was written; a note if it made something else of it."""
        whole = absolute(path, self._directory)
        text = _read(whole)
        if text is None:
            return ""
        saved = self._wait_for(self._ask("fs/write_text_file", Done, path=whole, content=text))
        if saved is None:
            return "[the editor did not take over the change; it may show the file as it was]"
        if _read(whole) != text:
            return "[the editor changed the file again when it saved it; read it before changing it further]"
        return ""

    async def _ask(self, method: str, kind: type[T], **parameters: Any) -> T:
        asked: Mapping[str, Any] = {"sessionId": self._session_id, **parameters}
        return await self._connection.ask(method, asked, kind)

    def _wait_for(self, asking: Coroutine[Any, Any, T]) -> T | None:
        try:
            waiting = asyncio.run_coroutine_threadsafe(asking, self._loop)
        except RuntimeError:  # the loop has ended
            asking.close()
            return None
        try:
            return waiting.result(_PATIENCE)
        except (AgentError, TimeoutError, CancelledError):
            waiting.cancel()
            return None


def _read(path: str) -> str | None:
    """The text of a file as it is on disk; None if it is none that an editor shows."""
    try:
        data = Path(path).read_bytes()
        return data.decode() if len(data) <= _LARGEST else None
    except (OSError, UnicodeDecodeError):
        return None
