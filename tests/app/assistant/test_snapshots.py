"""Snapshots of a directory, and how it is put back."""

import os
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.app.assistant.snapshots import restoring, scan
from swink.app.assistant.snapshots.filehashes import FileHashes, load_hashes, save_hashes
from swink.app.assistant.snapshots.restoring import restore, strays
from swink.app.assistant.snapshots.rewinding import BETWEEN, INTERRUPTED, SINCE, UNSAVED, difference, plan
from swink.app.assistant.snapshots.scan import SnapshotLimits, take_snapshot
from swink.app.assistant.snapshots.trees import TreeSnapshot
from swink.app.assistant.snapshots.vault import Damaged, Vault
from swink.messages.records import FilesChanged


class Scene:
    """A directory, a vault and what was done to the directory."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir(parents=True)
        self.vault = Vault(folder / "vault")
        self.known = FileHashes()
        self.limits = SnapshotLimits()
        self.changes: list[FilesChanged] = []
        self._before: TreeSnapshot | None = None

    def take_snapshot(self, before: TreeSnapshot | None = None, named: tuple[str, ...] = ()) -> TreeSnapshot:
        return take_snapshot(self.vault, str(self.root), self.known, before, named, limits=self.limits)

    def begin(self, *named: str) -> None:
        self._before = self.take_snapshot(None, named)

    def end(self, *named: str, certain: bool = True) -> None:
        assert self._before is not None
        after = self.take_snapshot(self._before, named)
        self.changes.append(
            FilesChanged(0, str(self.root), self._before.id, after.id, "tools", certain=certain)
        )

    def undo(self, *confirmed: str) -> dict[str, str]:
        planned = plan(self.vault, str(self.root), self.changes)
        chosen = [change for change in planned if change.possible and not change.conflict]
        chosen += [change for change in planned if change.path in confirmed]
        return restore(self.vault, str(self.root), [(change.path, change.then) for change in chosen])

    def conflicts(self) -> dict[str, str]:
        planned = plan(self.vault, str(self.root), self.changes)
        return {change.path: change.conflict for change in planned if change.conflict}

    def write(self, path: str, text: str | bytes, mode: int | None = None) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        if mode is not None:
            file.chmod(mode)
        return file


def everything(root: Path) -> dict[str, object]:
    """All there is below a directory: kinds, modes, bytes and targets."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        name, mode = str(path.relative_to(root)), stat.S_IMODE(status.st_mode)
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = (mode, path.read_bytes() if path.is_file() else None)
    return found


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_everything_that_tools_changed_is_put_back_byte_for_byte(scene: Scene):
    scene.write("kept.txt", "kept\n")
    scene.write("changed.txt", "old\r\n")
    scene.write("gone/deep/binary", bytes(range(256)) * 10, 0o751)
    scene.write("run.sh", "#!/bin/sh\n", 0o755)
    (scene.root / "link").symlink_to("kept.txt")
    (scene.root / "turned").symlink_to("nowhere")
    (scene.root / "empty").mkdir(0o750)
    scene.write("becomes/file", "a directory before")
    scene.write("shape", "a file before")
    before = everything(scene.root)
    scene.begin()
    scene.write("changed.txt", "new\n")
    shutil.rmtree(scene.root / "gone")
    (scene.root / "run.sh").chmod(0o644)
    (scene.root / "link").unlink()
    (scene.root / "turned").unlink()
    scene.write("turned", "a file now")
    (scene.root / "empty").rmdir()
    shutil.rmtree(scene.root / "becomes")
    scene.write("becomes", "a file now")
    (scene.root / "shape").unlink()
    scene.write("shape/inner/file", "a directory now")
    scene.write("made/by/tools", "new")
    scene.end()
    assert scene.conflicts() == {}
    assert scene.undo() == {}
    assert everything(scene.root) == before
    assert plan(scene.vault, str(scene.root), scene.changes) == []


def test_files_that_a_person_changed_are_left_unless_confirmed(scene: Scene):
    for name in ("since", "between", "alone", "tools"):
        scene.write(name, "first")
    scene.begin()
    for name in ("since", "between", "tools"):
        scene.write(name, "by a tool")
    scene.end()
    scene.write("between", "by a person")
    scene.write("alone", "by a person")
    scene.begin()
    scene.write("between", "by a tool again")
    scene.end()
    scene.write("since", "by a person")
    assert scene.conflicts() == {"since": SINCE, "between": BETWEEN}
    scene.undo()
    texts = {path.name: path.read_text() for path in scene.root.iterdir()}
    assert texts == {
        "since": "by a person",
        "between": "by a tool again",
        "alone": "by a person",
        "tools": "first",
    }
    scene.undo("since", "between")
    assert (scene.root / "since").read_text() == (scene.root / "between").read_text() == "first"
    assert (scene.root / "alone").read_text() == "by a person"


def test_a_file_that_a_person_deleted_or_made_is_a_conflict_too(scene: Scene):
    scene.write("kept", "first")
    scene.write("removed", "first")
    scene.begin()
    scene.write("kept", "second")
    (scene.root / "removed").unlink()
    scene.end()
    (scene.root / "kept").unlink()
    scene.write("removed", "made by a person")
    assert scene.conflicts() == {"kept": SINCE, "removed": SINCE}


def test_what_happened_while_nobody_watched_needs_to_be_confirmed(scene: Scene):
    scene.write("file", "first")
    scene.begin()
    scene.write("file", "second")
    scene.end(certain=False)
    assert scene.conflicts() == {"file": INTERRUPTED}


def test_ignored_files_git_and_credentials_are_left_alone(scene: Scene):
    scene.write(".gitignore", "build/\n*.log\n")
    scene.write(".git/HEAD", "ref: refs/heads/main\n")
    scene.write(".git/info/exclude", "private\n")
    scene.write("sub/.git/config", "a repository inside")
    scene.write("sub/.gitignore", "local\n")
    scene.write("sub/local", "ignored")
    scene.write("private", "ignored")
    scene.write("build/out.o", "ignored")
    scene.write("a.log", "ignored")
    scene.write(".env", "TOKEN=secret")
    scene.write("main.py", "kept")
    assert sorted(scene.take_snapshot().tree) == [".gitignore", "main.py", "sub", "sub/.gitignore"]


def test_ignored_files_that_a_tool_names_are_in_the_snapshots(scene: Scene):
    scene.write(".gitignore", "build/\n")
    scene.write("build/settings", "old")
    scene.begin("build/settings", "build/new")
    scene.write("build/settings", "new")
    scene.write("build/new", "new")
    scene.end("build/settings", "build/new")
    scene.undo()
    assert (scene.root / "build/settings").read_text() == "old"
    assert not (scene.root / "build/new").exists()


def test_a_tool_that_rewrites_gitignore_neither_hides_nor_reveals_files(scene: Scene):
    scene.write(".gitignore", "modules/\n")
    scene.write("modules/huge", "not ours")
    scene.write("notes.txt", "old")
    before = everything(scene.root)
    scene.begin()
    scene.write(".gitignore", "notes.txt\n")
    scene.write("notes.txt", "new")
    scene.end()
    assert [change.path for change in plan(scene.vault, str(scene.root), scene.changes)] == [
        ".gitignore",
        "notes.txt",
    ]
    scene.undo()
    assert everything(scene.root) == before


def test_a_file_that_is_excluded_meanwhile_is_still_looked_at(scene: Scene):
    scene.write("notes.txt", "old")
    scene.begin()
    scene.write(".git/info/exclude", "notes.txt\n")
    scene.write("notes.txt", "new")
    scene.end()
    scene.undo()
    assert (scene.root / "notes.txt").read_text() == "old"


def test_large_files_are_not_kept_and_never_touched(scene: Scene):
    scene.limits = SnapshotLimits(largest=10)
    scene.write("large", "x" * 11)
    scene.write("grows", "small")
    before = scene.take_snapshot()
    assert before.unsaved == 1
    scene.begin()
    scene.write("large", "y" * 12)
    scene.write("grows", "z" * 20)
    scene.end()
    assert scene.conflicts() == {"large": UNSAVED, "grows": UNSAVED}
    scene.undo()
    assert (scene.root / "large").read_text() == "y" * 12


def test_a_file_that_was_not_kept_for_want_of_room_does_not_look_changed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scan, "_SETTLED", -(10**18))
    scene.limits = SnapshotLimits(new=10)
    scene.write("a", "12345678")
    scene.write("b", "12345678")
    scene.begin()
    scene.end()
    assert plan(scene.vault, str(scene.root), scene.changes) == []


def test_a_directory_with_too_many_files_has_only_those_that_tools_name(scene: Scene):
    scene.limits = SnapshotLimits(files=3)
    for number in range(5):
        scene.write(f"{number}", "first")
    scene.begin("1", "new/file")
    for number in range(4):
        (scene.root / f"{number}").unlink()
    scene.write("1", "second")
    scene.write("new/file", "second")
    scene.end("1", "new/file")
    assert not scene.take_snapshot(None, ("1",)).complete or len(os.listdir(scene.root)) <= 3
    scene.undo()
    assert sorted(os.listdir(scene.root)) == ["1", "4"]
    assert (scene.root / "1").read_text() == "first"


def test_too_many_files_made_by_a_tool_do_not_look_like_deleted_ones(scene: Scene):
    scene.write("mine", "first")
    scene.begin()
    for number in range(5):
        scene.write(f"made{number}", "x")
    scene.limits = SnapshotLimits(files=3)
    scene.write("mine", "second")
    scene.end()
    scene.undo()
    assert (scene.root / "mine").read_text() == "first"


def test_an_unchanged_file_is_not_read_again(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan, "_SETTLED", -(10**18))
    scene.write("a", "first")
    first = scene.take_snapshot()
    save_hashes(scene.vault, str(scene.root), scene.known)
    scene.known = load_hashes(scene.vault, str(scene.root))
    read: list[bytes] = []
    put = scene.vault.put
    monkeypatch.setattr(scene.vault, "put", lambda data: read.append(data) or put(data))
    assert scene.take_snapshot().id == first.id
    assert b"first" not in read
    scene.write("a", "again")
    assert scene.take_snapshot().id != first.id


def test_a_file_changed_within_the_grain_of_the_clock_is_seen(scene: Scene):
    file = scene.write("a", "first")
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    first = scene.take_snapshot()
    assert scene.known.files == {}, "it may change once more without its times telling"
    file.write_bytes(b"other")
    os.utime(file, ns=times)
    assert scene.take_snapshot().id != first.id


def test_restoring_never_goes_through_a_link(scene: Scene, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("not ours")
    scene.write("folder/file", "first")
    scene.begin()
    scene.write("folder/file", "second")
    scene.end()
    shutil.rmtree(scene.root / "folder")
    (scene.root / "folder").symlink_to(outside)
    assert "folder/file" in scene.conflicts()
    failed = scene.undo("folder/file")
    assert "folder/file" in failed
    assert (outside / "file").read_text() == "not ours"


def test_a_directory_that_tools_made_stays_if_somebody_put_something_into_it(scene: Scene):
    scene.begin()
    scene.write("made/tool", "x")
    scene.end()
    scene.write("made/person", "mine")
    assert scene.undo() == {}
    assert os.listdir(scene.root / "made") == ["person"]


def test_a_directory_that_a_person_removed_comes_back_if_they_say_so(scene: Scene):
    scene.write("deep/er/file", "first")
    scene.begin()
    scene.write("deep/er/file", "second")
    scene.end()
    shutil.rmtree(scene.root / "deep")
    assert scene.conflicts() == {"deep/er/file": SINCE}
    assert scene.undo("deep/er/file") == {}
    assert (scene.root / "deep/er/file").read_text() == "first"


def test_names_and_targets_that_are_no_text_are_kept(scene: Scene):
    name = os.fsdecode(b"caf\xe9")
    try:
        scene.write(name, "first")
        (scene.root / "link").symlink_to(os.fsdecode(b"nowhere\xff"))
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    before = everything(scene.root)
    scene.begin()
    scene.write(name, "second")
    (scene.root / "link").unlink()
    scene.end()
    scene.undo()
    assert everything(scene.root) == before


def test_a_damaged_object_is_noticed_and_written_anew(scene: Scene):
    scene.write("file", "first")
    entry = scene.take_snapshot().tree["file"]
    [path] = Path(scene.vault.folder).rglob(entry.content[2:])
    path.write_bytes(b"")
    with pytest.raises(Damaged):
        scene.vault.get(entry.content)
    scene.known = FileHashes()
    scene.take_snapshot()
    assert scene.vault.get(entry.content) == b"first"


def test_pruning_keeps_what_the_snapshots_that_stay_need(scene: Scene):
    scene.write("a", "first")
    scene.write("both", "same")
    old = scene.take_snapshot()
    scene.write("a", "second")
    new = scene.take_snapshot()
    os.utime(Path(scene.vault.folder, "snapshots", old.id), (1, 1))
    half = Path(scene.vault.folder, "objects", new.id[:2], ".half")
    half.write_bytes(b"half")
    with scene.vault.holding():
        assert scene.vault.prune() >= 2
    assert not half.exists()
    with pytest.raises(Damaged):
        scene.vault.load(old.id)
    kept = scene.vault.load(new.id)
    assert kept.tree == new.tree
    assert [scene.vault.get(entry.content) for entry in kept.tree.values()] == [b"second", b"same"]
    scene.write("a", "first")
    assert scene.vault.load(scene.take_snapshot().id).tree["a"] == old.tree["a"]


def test_pruning_removes_the_oldest_snapshots_when_there_is_too_much(scene: Scene):
    ids: list[str] = []
    for number in range(3):
        scene.write("a", str(number) * 1000)
        ids.append(scene.take_snapshot().id)
        os.utime(Path(scene.vault.folder, "snapshots", ids[-1]), (number + 1, number + 1))
    with scene.vault.holding():
        scene.vault.prune(now=10, most=2500)
    assert sorted(os.listdir(Path(scene.vault.folder, "snapshots"))) == sorted(ids[1:])


def test_the_vault_is_for_its_owner_alone(scene: Scene):
    scene.write("a", "first")
    scene.take_snapshot()
    for path in [Path(scene.vault.folder), *Path(scene.vault.folder).rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_differences_are_shown_for_texts_alone(scene: Scene):
    scene.write("text", "old\n")
    scene.write("binary", b"\0\1")
    scene.write("latin", b"\xe9")
    scene.begin()
    scene.write("text", "new\n")
    scene.write("binary", b"\0\2")
    scene.write("latin", b"\xe8")
    scene.write("added", "all new\n")
    scene.end()
    shown = {
        change.path: difference(scene.vault, change.path, change.now, change.then)
        for change in plan(scene.vault, str(scene.root), scene.changes)
    }
    assert shown["binary"] is None
    assert shown["latin"] is None
    assert (text := shown["text"]) is not None
    assert (text.added, text.removed, text.kind) == (1, 1, "changed")
    assert (added := shown["added"]) is not None
    assert added.kind == "deleted"


class Killed(BaseException):
    """The process ends here."""


def test_a_kill_at_any_write_leaves_snapshots_that_are_whole(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    scene.write("a/b", "first")
    scene.write("c", "first")
    first = scene.take_snapshot()
    write = Vault.write
    at = 0
    while True:
        scene.write("a/b", f"changed {at}")
        scene.write("c", f"changed {at} too")
        at += 1
        left = at

        def dying(vault: Vault, path: str, data: bytes) -> None:
            nonlocal left
            left -= 1
            if not left:
                Path(path).parent.mkdir(exist_ok=True)
                Path(path).with_name(".half").write_bytes(data[:1])
                raise Killed
            write(vault, path, data)

        with monkeypatch.context() as patch:
            patch.setattr(Vault, "write", dying)
            try:
                scene.take_snapshot()
            except Killed:
                pass
            else:
                break
        assert scene.vault.load(first.id).tree == first.tree
        again = Vault(scene.vault.folder)
        snapshot = take_snapshot(again, str(scene.root), FileHashes())
        assert again.get(again.load(snapshot.id).tree["c"].content) == f"changed {at - 1} too".encode()
    assert at > 4
    with scene.vault.holding():
        scene.vault.prune()
    assert not list(Path(scene.vault.folder).rglob(".half"))


def test_a_kill_at_any_step_of_restoring_leaves_each_file_old_or_new(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    def change() -> None:
        for name in ("a", "b/c", "d"):
            scene.write(name, "new")
        scene.write("made", "new")

    for name in ("a", "b/c", "d"):
        scene.write(name, "old")
    before = everything(scene.root)
    scene.begin()
    change()
    scene.end()
    rename = os.rename
    for at in range(1, 4):
        left = at

        def dying(*values: Any, **more: Any) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Killed
            rename(*values, **more)

        with monkeypatch.context() as patch:
            patch.setattr(restoring.os, "rename", dying)
            patch.setattr(
                restoring.os,
                "unlink",
                lambda *values, **more: None if not left else os.remove(*values, **more),
            )
            with pytest.raises(Killed):
                scene.undo()
        found = {path: path.read_text() for path in scene.root.rglob("*") if path.is_file()}
        stray = strays(map(str, found))
        assert len(stray) == 1
        assert {text for path, text in found.items() if str(path) not in stray} <= {"old", "new"}
        Path(stray[0]).unlink()
        assert scene.conflicts() == {}
        assert scene.undo() == {}
        assert everything(scene.root) == before
        change()


def test_several_processes_use_one_vault(scene: Scene):
    for number in range(20):
        scene.write(f"{number}", f"content {number}")
    scene.take_snapshot()
    ids: list[str] = []

    def work(number: int) -> None:
        vault, known = Vault(scene.vault.folder), FileHashes()
        for _ in range(5):
            ids.append(take_snapshot(vault, str(scene.root), known).id)
            if number == 0:
                with vault.holding():
                    vault.prune()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 15
    assert len(set(ids)) == 1
    tree = scene.vault.load(ids[0]).tree
    assert [scene.vault.get(entry.content) for entry in tree.values()] == [
        (scene.root / name).read_bytes() for name in tree
    ]


NAMES = st.sampled_from(["a", "b", "a/x", "a/y", "c/d/e", "b/z"])
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "mkdir", "link", "mode", "move"]),
        NAMES,
        NAMES,
        st.integers(0, 3),
    ),
    max_size=8,
)


def operate(root: Path, kind: str, name: str, other: str, number: int) -> None:
    path = root / name
    try:
        match kind:
            case "write":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(bytes([number]) * number)
            case "delete":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "mkdir":
                path.mkdir(parents=True)
            case "link":
                path.symlink_to(other)
            case "mode":
                path.chmod([0o644, 0o755, 0o700, 0o750][number], follow_symlinks=not path.is_symlink())
            case _:
                path.rename(root / other)
    except (OSError, NotImplementedError):
        pass


@tried(25, 1000)
@given(first=OPERATIONS, turns=st.lists(OPERATIONS, max_size=3))
def test_whatever_tools_do_the_tree_is_restored_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[str, str, str, int]],
    turns: list[list[tuple[str, str, str, int]]],
):
    scene = Scene(tmp_path_factory.mktemp("scene"))
    for operation in first:
        operate(scene.root, *operation)
    before = everything(scene.root)
    for turn in turns:
        scene.begin()
        for operation in turn:
            operate(scene.root, *operation)
        scene.end()
    assert scene.conflicts() == {}
    assert scene.undo() == {}
    assert everything(scene.root) == before


def test_directories_that_a_tool_left_read_only_are_no_hindrance_and_keep_their_modes(tmp_path: Path):
    scene = Scene(tmp_path)
    scene.write("kept/a", "1").parent.chmod(0o555)
    before = everything(scene.root)
    scene.begin()
    (scene.root / "kept").chmod(0o755)
    scene.write("kept/a", "2")
    scene.write("kept/b", "3").parent.chmod(0o555)
    made = scene.write("made/deep/c", "4", 0o444).parent
    made.chmod(0o555)
    made.parent.chmod(0o555)
    scene.end()
    assert scene.undo() == {}
    assert everything(scene.root) == before
