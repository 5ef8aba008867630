"""The state of a prompt's beginning is kept on disk: a later start reads only what is new, and nothing leaks."""

import asyncio
import logging
import os
import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from talking import ask
from tests.counts import left_to_more

from swink.local import LocalStreamFn, statefiles
from swink.local.llamacpp import physical_cores
from swink.local.statefiles import StateFiles
from swink.messages import ModelSpec, Usage, UserMessage
from swink.stream import LlmContext, PromptProgress, StreamOptions
from swink.system.writable import mark_writable

SYSTEM = "You are a helpful assistant. " + "Answer in few words, and in the order of the questions. " * 6
KEY = "0" * 40
TOKENS = [7, 8, 9]


def content(tokens: list[int], preface: tuple[int, ...] = (-1, 1, 3)) -> bytes:
    """What llama.cpp writes: a head, numbers of its own, the tokens, and the state itself."""
    listed = (*preface, *tokens, 0)
    return struct.pack(f"<3I{len(listed)}i", 0x67677371, 4, len(listed), *listed) + bytes(range(256)) * 40


def saved(files: StateFiles, key: str = KEY, tokens: list[int] = TOKENS) -> Path:
    written = files.begin(key)
    written.write_bytes(content(tokens))
    assert files.keep(written, key, tokens)
    found = files.find(key)
    assert found is not None
    return found


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return StateFiles(tmp_path / "states")


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"x", lambda data: b""])
def test_a_damaged_file_is_not_found_and_removed(files: StateFiles, damage):
    path = saved(files)
    path.write_bytes(damage(path.read_bytes()))
    assert files.find(KEY) is None
    assert not list(files.directory.iterdir())


def test_a_link_in_place_of_a_file_is_not_followed(files: StateFiles, tmp_path: Path):
    path = saved(files)
    other = path.rename(tmp_path / "other")
    path.symlink_to(other)
    assert files.find(KEY) is None
    assert other.exists()


@pytest.mark.parametrize("more", [[7, 8, 9, *range(100, 120)], [7, 8], [7, 8, 10]])
def test_a_file_with_other_tokens_than_the_beginning_is_not_kept(files: StateFiles, more: list[int]):
    written = files.begin(KEY)
    written.write_bytes(content(more))
    assert not files.keep(written, KEY, TOKENS)
    assert not list(files.directory.iterdir())


def test_files_are_for_the_user_alone(files: StateFiles):
    written = files.begin(KEY)
    assert written.stat().st_mode & 0o777 == 0o600
    assert saved(files).stat().st_mode & 0o777 == 0o600
    assert files.directory.stat().st_mode & 0o777 == 0o700
    files.directory.chmod(0o777)
    assert files.find(KEY) is None


def test_a_directory_that_the_agent_may_write_is_refused_and_the_reason_names_it(
    files: StateFiles, tmp_path: Path
):
    workspace = mark_writable(tmp_path)
    with pytest.raises(OSError, match="states can be written by the agent's own tools"):
        files.begin(KEY)
    del workspace
    assert files.begin(KEY).exists()


def test_the_newest_few_stay_and_what_is_not_ours_goes(files: StateFiles, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(statefiles, "MOST_FILES", 2)
    for number in range(3):
        os.utime(saved(files, f"{number}" * 40), (number, number))
    files.directory.joinpath("foreign.txt").write_text("x")
    files.directory.joinpath(".fresh.part").write_text("another process writes it")
    abandoned = files.directory / ".old.part"
    abandoned.write_text("x")
    os.utime(abandoned, (1, 1))
    files.directory.joinpath("directory").mkdir()
    files.prune()
    assert {path.name[:8] for path in files.directory.iterdir()} == {
        "11111111", "22222222", "directory"[:8], ".fresh.part"[:8],
    }  # fmt: skip
    monkeypatch.setattr(statefiles, "MOST_BYTES", 11_000)
    files.prune()
    assert [path.name[:4] for path in files.directory.glob("*.state")] == ["2222"]


def test_the_nearest_file_is_found_by_its_tokens_and_only_if_it_is_whole(files: StateFiles):
    saved(files, "a" * 40, [1, 2, 3, 9, 9])
    near = saved(files, "a" * 20 + "b" * 20, [1, 2, 3, 4, 9])
    saved(files, "c" * 40, [1, 2, 3, 4, 5])
    assert files.nearest("a" * 20, [1, 2, 3, 4, 5, 6], 4) == near
    assert files.nearest("a" * 20, [1, 2, 3, 4, 5, 6], 5) is None
    assert files.nearest("d" * 20, [1, 2, 3, 4, 5, 6], 1) is None
    near.write_bytes(near.read_bytes() + b"x")
    assert files.nearest("a" * 20, [1, 2, 3, 4, 5, 6], 4) is None
    assert not near.exists()


class Talker:
    """A model as a new process would have it each time it is `started`."""

    def __init__(self, weights: Path) -> None:
        self.function = LocalStreamFn(context=512, threads=physical_cores(), parallel=1)
        self.spec = ModelSpec("local", str(weights))

    async def usage(self, text: str, system: str = SYSTEM) -> Usage:
        """What a reply costs after a start."""
        self.end()
        return (await ask(self.function, text, system=system, spec=self.spec, max_tokens=2))[1].usage

    def end(self) -> None:
        self.function.model(self.spec.model_id).unload()


@pytest.fixture
def talker(weights: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talker]:
    monkeypatch.delenv("SWINK_LOCAL_STATES")
    talker = Talker(weights)
    yield talker
    talker.end()


async def until_kept(states: Path, count: int = 1) -> Path:
    """A file, once the threads that keep them are done."""
    async with asyncio.timeout(20):
        while len(found := list(states.glob("*.state"))) < count:
            await asyncio.sleep(0.01)
    return found[0]


@left_to_more
async def test_a_later_start_reads_only_what_is_new(talker: Talker, own_cache: Path):
    first = await talker.usage("Say blue.")
    assert first.cache_read == 0
    path = await until_kept(own_cache / "states")
    later = await talker.usage("Name a colour of the sky, please.")
    assert later.cache_read > 64
    assert later.input < 20
    tokens = struct.unpack("<3I", path.read_bytes()[:12])[2]
    assert tokens <= later.cache_read + 8, "nothing of what the user said is in the file"
    other_day = await talker.usage("Say blue.", f"{SYSTEM}Today is the fourth of May.")
    assert other_day.cache_read > 64
    assert other_day.input < 40
    await until_kept(own_cache / "states", 2)
    for other in {*path.parent.glob("*.state")} - {path}:
        other.unlink()
    path.write_bytes(path.read_bytes()[:5000])  # llama.cpp itself would end the process
    damaged = await talker.usage("Say blue.")
    assert damaged == first
    assert await until_kept(own_cache / "states") == path


@left_to_more
async def test_a_full_disk_and_a_directory_that_cannot_be_made_only_cost_time(
    talker: Talker, own_cache: Path, caplog: pytest.LogCaptureFixture
):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with caplog.at_level(logging.WARNING, "swink.local"):
            assert (await talker.usage("Say blue.")).output
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list((own_cache / "states").iterdir())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    (own_cache / "states").rmdir()
    (own_cache / "states").write_text("a file")
    with caplog.at_level(logging.WARNING, "swink.local"):
        assert (await talker.usage("Say blue.")).output
        other = await ask(talker.function, "Say blue.", system=SYSTEM * 2, spec=talker.spec, max_tokens=2)
        assert other[1].usage.output
    assert len(caplog.records) == 2


@left_to_more
async def test_a_reply_that_is_stopped_while_its_beginning_is_read_ends_and_can_be_asked_again(
    talker: Talker, own_cache: Path
):
    model = talker.function.model(talker.spec.model_id)
    context = LlmContext(SYSTEM, [UserMessage("Say blue.")])
    reply = talker.function(talker.spec, context, StreamOptions(max_tokens=2))
    async for event in reply:
        if isinstance(event, PromptProgress) and event.done:
            break
    await reply.aclose()  # pyright: ignore[reportAttributeAccessIssue]
    while model.generating:
        await asyncio.sleep(0.001)
    assert not list((own_cache / "states").glob("*"))
    await ask(talker.function, "Say blue.", system=SYSTEM, spec=talker.spec, max_tokens=2)
    assert await until_kept(own_cache / "states")


@left_to_more
async def test_nothing_is_kept_if_the_user_wants_none(
    talker: Talker, own_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SWINK_LOCAL_STATES", "off")
    assert (await talker.usage("Say blue.")).output
    assert not (own_cache / "states").exists()
