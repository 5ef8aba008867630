"""A store in one SQLite file: many sessions, full-text search, several processes of one machine."""

import os

from swink.memory.sqlbackend import SqlBackend
from swink.memory.sqlitefile import SqliteFile
from swink.memory.store import Store


class SqliteStore(Store):
    """Sessions in an SQLite file (mode 0600), which is created with its directory (0700) on first use."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(SqlBackend(SqliteFile(path)))
