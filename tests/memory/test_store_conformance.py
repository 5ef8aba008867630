"""Every store keeps the promises of `swink.memory`, by both its doors."""

from pathlib import Path
from secrets import token_hex

import pytest

from swink.memory import JsonlStore, MemoryStore, PostgresStore, SqliteStore
from swink.testing import check_session_store


async def test_the_store_in_memory_keeps_its_promises():
    await check_session_store(MemoryStore)


async def test_the_jsonl_store_keeps_its_promises(tmp_path: Path):
    await check_session_store(lambda: JsonlStore(tmp_path))


async def test_the_sqlite_store_keeps_its_promises(tmp_path: Path):
    await check_session_store(lambda: SqliteStore(tmp_path / "sessions.db"))


async def test_the_postgres_store_keeps_its_promises(postgres: str):
    schema = f"test_{token_hex(8)}"
    await check_session_store(lambda: PostgresStore(postgres, schema=schema))


async def test_a_store_that_breaks_a_promise_is_found_out():
    class Forgetful(MemoryStore):
        async def rename(self, id: str, title: str):  # type: ignore[no-untyped-def]
            return (await self.open(id)).meta

    with pytest.raises(AssertionError, match=r"a rename disturbs nobody \(async\)"):
        await check_session_store(Forgetful)
