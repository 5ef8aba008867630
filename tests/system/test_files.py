"""Files written whole: whatever goes wrong, the old content stays and no temporary file is left."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swink.system import files
from swink.system.files import remove_leftovers, temporary_name, whole_file, write_whole

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")
STEPS = ["chmod", "fsync", "replace"]

KILLED = """
import os, signal, sys
import swink.system.files as files
for name in ("chmod", "fsync", "replace"):
    def step(*args, real=getattr(os, name), at=sys.argv[2] == name, after=sys.argv[3] == "after", **keywords):
        if at and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(*args, **keywords)
        if at:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    setattr(os, name, step)
files.write_whole(sys.argv[1], b"new" * 10_000, private=False)
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_created_and_replaced(tmp_path: Path):
    path = tmp_path / "settings"
    for data in (b"first", b"", b"second"):
        write_whole(path, data)
        assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["settings"]


@posix
def test_a_private_file_is_private_whatever_the_umask_and_the_file_before(tmp_path: Path):
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        write_whole(path, b"new")
        with whole_file(path) as file:
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    finally:
        os.umask(before)
    assert mode_of(path) == 0o600


@posix
def test_another_file_keeps_its_mode_or_gets_the_one_of_the_umask(tmp_path: Path):
    path = tmp_path / "list"
    before = os.umask(0o027)
    try:
        write_whole(path, b"1", private=False)
        assert mode_of(path) == 0o640
        path.chmod(0o604)
        write_whole(path, b"2", private=False)
    finally:
        os.umask(before)
    assert mode_of(path) == 0o604


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "old"


def test_parents_are_made_only_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "a" / "b", b"x")
    assert os.listdir(tmp_path) == []
    write_whole(tmp_path / "a" / "b", b"x", make_parents=True)
    assert (tmp_path / "a" / "b").read_bytes() == b"x"
    monkeypatch.chdir(tmp_path)
    write_whole("here", b"x", make_parents=True)
    assert (tmp_path / "here").read_bytes() == b"x"


@pytest.mark.parametrize("failure", [ValueError(), KeyboardInterrupt(), GeneratorExit()])
def test_a_block_that_fails_leaves_the_old_file(tmp_path: Path, failure: BaseException):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(type(failure)), whole_file(path) as file:
        file.write(b"half")
        raise failure
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_the_old_file(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_directory_in_the_way_is_told_and_nothing_is_left(tmp_path: Path):
    (tmp_path / "place" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="place"):
        write_whole(tmp_path / "place", b"new")
    assert os.listdir(tmp_path) == ["place"]


@posix
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path, step: str, when: str):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path), step, when], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_bytes() == (b"new" * 10_000 if (step, when) == ("replace", "after") else b"old")
    remove_leftovers(path)
    assert os.listdir(tmp_path) == ["file"]


def test_what_is_removed_as_left_over_belongs_to_that_file(tmp_path: Path):
    path = tmp_path / "keys.json"
    names = ["keys.json", "keys.json.lock", "other.part", ".keys.jsonl.1a2b3c4d.part"]
    for name in (*names, temporary_name("keys.json"), "keys.json.part"):
        (tmp_path / name).touch()
    remove_leftovers(path)
    assert sorted(os.listdir(tmp_path)) == sorted(names)


def test_what_is_not_durable_is_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append("replace"), replace(old, new)))
    monkeypatch.setattr(files, "sync_directory", lambda path: done.append("names"))
    write_whole(tmp_path / "a", b"")
    assert done == ["fsync", "replace", "names"]
    write_whole(tmp_path / "a", b"", durable=False)
    assert done == ["fsync", "replace", "names", "replace"]


def test_many_writers_at_once_leave_one_whole_file(tmp_path: Path):
    path = tmp_path / "file"
    contents = [bytes([65 + number]) * 50_000 for number in range(8)]
    threads = [threading.Thread(target=write_whole, args=(path, data)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


@given(
    st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=255)
)
def test_a_temporary_name_fits_wherever_the_name_does(name: str):
    made = temporary_name(name)
    assert made.startswith(".")
    assert made != temporary_name(name)
    assert len(os.fsencode(made)) <= 255
