"""Snapshots around the turns of an agent, told to its session, and used to rewind."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from swink import Agent, tool
from swink.agent.policy import ApprovalRequest
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.snapshots import snapshotpolicy
from swink.app.assistant.snapshots.rewinding import INTERRUPTED, SINCE
from swink.app.assistant.snapshots.scan import SnapshotLimits
from swink.app.assistant.snapshots.snapshotpolicy import Snapshots
from swink.memory import JsonlStore
from swink.memory.store import SyncStore
from swink.messages import ToolCall
from swink.testing import ScriptedModel

Work = Callable[[], object]


class Desk:
    """An agent with a tool that does to the directory what a test wants."""

    def __init__(
        self,
        folder: Path,
        store: SyncStore,
        saved: SavedConversation | None = None,
        limits: SnapshotLimits = SnapshotLimits(),
    ) -> None:
        self.root = folder / "work"
        self.root.mkdir(exist_ok=True)
        self.store = store
        self.saved = saved or SavedConversation(store)
        self.now = 0.0
        self.snapshots = Snapshots(
            self.root, self.saved, folder=folder / "snapshots", limits=limits, clock=lambda: self.now
        )
        self._work: dict[str, Work] = {}
        self._calls = 0

    async def ask(
        self, prompt: str, *steps: Work, approve: Callable[[ApprovalRequest], Awaitable[bool]] | None = None
    ) -> None:
        replies: list[object] = []
        for step in steps:
            self._calls += 1
            self._work[str(self._calls)] = step
            replies.append(ToolCall(f"call{self._calls}", "work", {"step": str(self._calls)}))

        @tool(requires_approval=approve is not None)
        def work(step: str) -> str:
            """Do some work."""
            return str(self._work[step]())

        @tool(read_only=True)
        def look() -> str:
            """Look."""
            return "seen"

        agent = Agent(
            "scripted:model",
            stream_fn=ScriptedModel([*replies, "done"]),
            tools=[work, look],
            session=self.saved.session,
            policies=[self.snapshots],
            approve=None if approve is None else self.snapshots.approving(approve),
        )
        await agent.run(prompt)

    def write(self, name: str, text: str) -> Work:
        return lambda: (self.root / name).write_text(text)

    def texts(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.root.iterdir()}

    def resumed(self, folder: Path) -> "Desk":
        return Desk(folder, self.store, SavedConversation(self.store, self.store.read(self.saved.session.id)))


@pytest.fixture
def store(tmp_path: Path) -> SyncStore:
    return JsonlStore(tmp_path / "sessions").sync


@pytest.fixture
def desk(tmp_path: Path, store: SyncStore) -> Desk:
    return Desk(tmp_path, store)


async def test_files_are_rewound_to_any_prompt_and_redone(desk: Desk, tmp_path: Path):
    (desk.root / "a").write_text("0")
    await desk.ask("one", desk.write("a", "1"), desk.write("b", "1"))
    await desk.ask("two", desk.write("a", "2"))
    await desk.ask("talk")
    desk = desk.resumed(tmp_path)
    prompts = [
        number
        for number, message in desk.saved.session.conversation.everything.items()
        if message.role == "user"
    ]
    second = prompts[1]
    assert [change.path for change in await desk.snapshots.preview(second)] == ["a"]
    await desk.snapshots.rewind(second)
    assert desk.texts() == {"a": "1", "b": "1"}
    result = await desk.snapshots.rewind(prompts[0])
    assert (result.files, result.left, result.failed) == (("a", "b"), (), {})
    assert desk.texts() == {"a": "0"}
    desk = desk.resumed(tmp_path)
    assert desk.snapshots.can_redo
    await desk.snapshots.redo()
    assert desk.texts() == {"a": "1", "b": "1"}
    await desk.snapshots.redo()
    assert desk.texts() == {"a": "2", "b": "1"}
    assert not desk.snapshots.can_redo
    await desk.snapshots.rewind(prompts[0])
    assert desk.texts() == {"a": "0"}
    await desk.ask("three", desk.write("a", "3"))
    assert not desk.snapshots.can_redo


async def test_what_a_person_changed_meanwhile_is_listed_and_left(desk: Desk):
    (desk.root / "a").write_text("0")
    await desk.ask("one", desk.write("a", "1"), desk.write("b", "1"))
    (desk.root / "a").write_text("mine")
    assert {change.path: change.conflict for change in await desk.snapshots.preview(0)} == {
        "a": SINCE,
        "b": "",
    }
    result = await desk.snapshots.rewind(0)
    assert [change.path for change in result.left] == ["a"]
    assert desk.texts() == {"a": "mine"}
    await desk.snapshots.rewind(0, confirmed=["a"])
    assert desk.texts() == {"a": "0"}
    await desk.snapshots.redo()
    assert desk.texts() == {"a": "mine"}


async def test_what_a_person_edits_while_they_are_asked_is_theirs(desk: Desk):
    (desk.root / "mine").write_text("0")

    async def approve(request: ApprovalRequest) -> bool:
        desk.now += 60
        (desk.root / "mine").write_text("edited while the question was open")
        return True

    await desk.ask("one", desk.write("a", "1"), approve=approve)
    assert [change.path for change in await desk.snapshots.preview(0)] == ["a"]


async def test_no_snapshot_is_taken_for_tools_that_only_read(desk: Desk, tmp_path: Path):
    agent = Agent(
        "scripted:model",
        stream_fn=ScriptedModel([ToolCall("1", "look", {}), "done"]),
        tools=[tool(read_only=True)(look)],
        session=desk.saved.session,
        policies=[desk.snapshots],
    )
    await agent.run("look")
    assert not (tmp_path / "snapshots").exists()
    assert desk.saved.session.conversation.files == []


def look() -> str:
    """Look."""
    return "seen"


async def test_what_an_aborted_run_changed_can_be_rewound(desk: Desk):
    agent: Agent | None = None

    @tool
    async def work() -> str:
        """Work."""
        (desk.root / "a").write_text("half")
        assert agent is not None
        agent.abort()
        await asyncio.sleep(60)
        return ""

    agent = Agent(
        "scripted:model",
        stream_fn=ScriptedModel([ToolCall("1", "work", {}), "done"]),
        tools=[work],
        session=desk.saved.session,
        policies=[desk.snapshots],
    )
    await agent.run("go")
    assert [change.path for change in await desk.snapshots.preview(0)] == ["a"]
    await desk.snapshots.rewind(0)
    assert desk.texts() == {}


async def test_what_was_done_in_another_directory_is_not_rewound_here(desk: Desk, tmp_path: Path):
    await desk.ask("one", desk.write("a", "1"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a").write_text("1")
    there = Snapshots(elsewhere, desk.saved, folder=tmp_path / "snapshots")
    assert await there.preview(0) == []
    await there.rewind(0)
    assert (elsewhere / "a").read_text() == "1"


async def test_what_this_session_changed_is_shown_as_diffs(desk: Desk):
    (desk.root / "a").write_text("one\n")
    await desk.ask("one", desk.write("a", "two\n"), desk.write("new", "all\n"))
    await desk.ask("two", desk.write("a", "three\n"))
    shown = {change.path: diff for change, diff in await desk.snapshots.changed()}
    assert shown["a"] is not None
    assert shown["a"].unified == "--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-one\n+three\n"
    assert shown["new"] is not None
    assert shown["new"].kind == "created"


async def test_caps_are_announced_once(tmp_path: Path, store: SyncStore):
    desk = Desk(tmp_path, store, limits=SnapshotLimits(largest=1 << 20))
    (desk.root / "large").write_bytes(bytes((1 << 20) + 1))
    await desk.ask("one", desk.write("a", "1"), desk.write("a", "2"))
    assert desk.snapshots.take_notices() == [
        "1 file over 1 MB is not in the snapshots: rewinding leaves such files as they are"
    ]
    await desk.ask("two", desk.write("a", "3"))
    assert desk.snapshots.take_notices() == []
    desk = Desk(tmp_path, store, limits=SnapshotLimits(files=1))
    await desk.ask("three", desk.write("a", "4"))
    [notice] = desk.snapshots.take_notices()
    assert "only files that tools name can be rewound" in notice


async def test_a_snapshot_that_cannot_be_taken_stops_no_tool(desk: Desk, tmp_path: Path):
    (tmp_path / "snapshots").write_text("a file in the way")
    await desk.ask("one", desk.write("a", "1"), desk.write("a", "2"))
    assert desk.texts() == {"a": "2"}
    assert len([notice for notice in desk.snapshots.take_notices() if "cannot be rewound" in notice]) == 1


KILLED = """
import asyncio, os, sys
from pathlib import Path
from swink import Agent, tool
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.snapshots.snapshotpolicy import Snapshots
from swink.memory import JsonlStore
from swink.messages import ToolCall
from swink.testing import ScriptedModel

folder = Path(sys.argv[1])
saved = SavedConversation(JsonlStore(folder / "sessions").sync)
snapshots = Snapshots(folder / "work", saved, folder=folder / "snapshots")

@tool
def work() -> str:
    "Work."
    (folder / "work" / "a").write_text("half")
    os.kill(os.getpid(), 9)
    return ""

agent = Agent("scripted:model", stream_fn=ScriptedModel([ToolCall("1", "work", {})]), tools=[work],
              session=saved.session, policies=[snapshots])
asyncio.run(agent.run("go"))
"""


async def test_what_a_killed_process_changed_is_listed_and_needs_a_yes(tmp_path: Path, store: SyncStore):
    (tmp_path / "work").mkdir()
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED, str(tmp_path)], timeout=60, check=False
    )
    assert ended.returncode == -9
    [meta] = store.list()
    desk = Desk(tmp_path, store, SavedConversation(store, store.read(meta.id)))
    await desk.snapshots.recover()
    desk = desk.resumed(tmp_path)
    assert {change.path: change.conflict for change in await desk.snapshots.preview(0)} == {"a": INTERRUPTED}
    await desk.snapshots.rewind(0)
    assert desk.texts() == {"a": "half"}
    await desk.snapshots.rewind(0, confirmed=["a"])
    assert desk.texts() == {}


async def test_a_rewind_that_was_cut_short_can_be_finished_and_redone(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    await desk.ask("one", desk.write("a", "1"), desk.write("b", "1"))

    class Killed(BaseException):
        pass

    def dying(vault: object, root: str, wanted: object) -> dict[str, str]:
        (desk.root / "a").unlink()
        (desk.root / ".0123.swink-restoring").write_text("half")
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(snapshotpolicy, "restore", dying)
        with pytest.raises(Killed):
            await desk.snapshots.rewind(0)
    desk = desk.resumed(tmp_path)
    await desk.snapshots.recover()
    assert desk.texts() == {"b": "1"}
    assert [change.path for change in await desk.snapshots.preview(0)] == ["b"]
    await desk.snapshots.rewind(0)
    assert desk.texts() == {}


async def test_numbers_of_prompts_are_those_of_the_session_through_a_compaction(desk: Desk, tmp_path: Path):
    (desk.root / "a").write_text("0")
    await desk.ask("one", desk.write("a", "1"))
    await desk.ask("two", desk.write("a", "2"))
    agent = Agent("scripted:model", stream_fn=ScriptedModel([]), session=desk.saved.session)
    agent.messages = agent.messages[-1:]
    await agent.aclose()
    await desk.ask("three", desk.write("a", "3"))
    desk = desk.resumed(tmp_path)
    prompts = [
        number
        for number, message in desk.saved.session.conversation.everything.items()
        if message.role == "user"
    ]
    assert len(prompts) == 3
    await desk.snapshots.rewind(prompts[1])
    assert desk.texts() == {"a": "1"}


async def test_nobody_gets_a_copy_of_their_home(desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(desk.root))
    (desk.root / "diary").write_text("mine")
    home = Desk(tmp_path, desk.store)
    await home.ask("one", home.write("a", "1"))
    [notice] = home.snapshots.take_notices()
    assert "this is your home" in notice
    assert await home.snapshots.preview(0) == []
    kept = [path.read_bytes() for path in (tmp_path / "snapshots" / "objects").rglob("*") if path.is_file()]
    assert b"mine" not in kept
