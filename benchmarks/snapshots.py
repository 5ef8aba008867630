"""What snapshots of 10,000 files cost: the first, one of an unchanged tree, one after a change, a rewind.

python benchmarks/snapshots.py [--quick]
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from swink.app.assistant.snapshots.filehashes import FileHashes
from swink.app.assistant.snapshots.restoring import restore
from swink.app.assistant.snapshots.rewinding import plan
from swink.app.assistant.snapshots.scan import take_snapshot
from swink.app.assistant.snapshots.vault import Vault
from swink.messages.records import FilesChanged

ROUNDS = 5


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the files")
    count = 1_000 if parser.parse_args().quick else 10_000
    with tempfile.TemporaryDirectory() as folder:
        root, vault, known = Path(folder, "work"), Vault(Path(folder, "vault")), FileHashes()
        _fill(root, count)
        rows = {"first": _cpu(lambda: take_snapshot(vault, str(root), known))}
        same = [_cpu(lambda: take_snapshot(vault, str(root), known)) for _ in range(ROUNDS)]
        rows["unchanged"] = statistics.median(same)
        before = take_snapshot(vault, str(root), known)
        for number in range(10):
            (root / f"0/0/{number}.py").write_text("changed\n")
        rows["10 files changed"] = _cpu(lambda: take_snapshot(vault, str(root), known, before))
        after = take_snapshot(vault, str(root), known, before)
        changed = [FilesChanged(0, str(root), before.id, after.id)]
        rows["preview of a rewind"] = _cpu(lambda: plan(vault, str(root), changed))
        wanted = [(change.path, change.then) for change in plan(vault, str(root), changed)]
        rows["restoring 10 files"] = _cpu(lambda: restore(vault, str(root), wanted))
    print(f"{count:,} files".ljust(28), "CPU, ms")
    for name, seconds in rows.items():
        print(name.ljust(28), f"{seconds * 1000:7.1f}")


def _fill(root: Path, count: int) -> None:
    past = time.time() - 3600  # the times of a file say something only when it was written some time ago
    for number in range(count):
        path = root / str(number // 1000) / str(number // 20 % 50) / f"{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 200)
        os.utime(path, (past, past))
    (root / ".gitignore").write_text("*.log\nbuild/\n__pycache__/\n*.py[co]\n")
    time.sleep(2.1)  # that of its state cannot be set


def _cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
