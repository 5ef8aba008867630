"""A store in a PostgreSQL database: many sessions, full-text search, workers on several machines."""

from swink.memory.postgresdb import PostgresDatabase
from swink.memory.sqlbackend import SqlBackend
from swink.memory.store import Store


class PostgresStore(Store):
    """Sessions in the tables of a schema of their own, which is created on first use.

    >>> store = PostgresStore("postgresql://user:password@host:5432/database")
    """

    def __init__(self, dsn: str, *, schema: str = "swink") -> None:
        super().__init__(SqlBackend(PostgresDatabase(dsn, schema)))
