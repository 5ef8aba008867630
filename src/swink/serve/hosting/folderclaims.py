"""Claims on conversations by lock files, for a store that has none: two processes never run the same one.

The operating system frees the lock of a process that ends, however it ends.
"""

from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from swink.errors import SessionBusy, SessionError
from swink.system.filelock import alone
from swink.system.threads import in_thread


class FolderClaims:
    """The claims of the processes that keep their lock files in one directory, which is made when needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @asynccontextmanager
    async def claim(self, id: str) -> AsyncGenerator[None]:
        """Keep other processes from running a conversation; `SessionBusy` if one does."""
        with ExitStack() as held:
            await in_thread(self._take, held, id)
            yield

    async def is_free(self, id: str) -> bool:
        """Whether no process runs a conversation now."""
        try:
            async with self.claim(id):
                return True
        except SessionError:
            return False

    def _take(self, held: ExitStack, id: str) -> None:
        try:
            self._directory.mkdir(0o700, parents=True, exist_ok=True)
            held.enter_context(alone(self._directory / f"{id}.lock", 0.0))
        except TimeoutError:
            raise SessionBusy("another program runs this conversation now; wait for its end") from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise SessionError(f"the conversation cannot be claimed: {reason}") from error
