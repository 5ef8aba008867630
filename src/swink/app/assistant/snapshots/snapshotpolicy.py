"""Snapshots of a conversation's directory: a policy takes them around what tools do, the session is told.

pre_dispatch of the first call that may write   before
approval by a person, who may have edited       before, again
post_turn, post_run                             after
"""

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swink.agent.policy import Answer, ApprovalRequest, Approve, Approved, Ending, Policy, PolicyContext, Turn
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.snapshots.filehashes import FileHashes, load_hashes, save_hashes
from swink.app.assistant.snapshots.restoring import restore, strays
from swink.app.assistant.snapshots.rewinding import FileChange, difference, plan, redoable
from swink.app.assistant.snapshots.scan import SnapshotLimits, take_snapshot
from swink.app.assistant.snapshots.trees import TreeSnapshot
from swink.app.assistant.snapshots.vault import Damaged, Vault
from swink.errors import SessionError
from swink.events.transcript import Diff
from swink.messages import ToolCall
from swink.messages.records import FilesChanged
from swink.stream import ToolSpec
from swink.system.aio import call_to_end, resolve
from swink.system.threads import Serial, in_thread, start_thread

Changes = Sequence[FilesChanged]
Undoing = Literal["rewound", "redone"]
_PATHS = ("path", "file_path")
"""Arguments by which tools name a file that they write."""
_AT_ONCE = 1.0
"""Seconds: a person who approves that soon has not edited a file meanwhile."""


def snapshots_dir() -> Path:
    """Where snapshots are kept: beside the sessions."""
    from swink.memory.jsonl import sessions_dir

    return sessions_dir() / "snapshots"


class Restored(Struct, frozen=True):
    """What a rewind did: files it restored, files it left, and files it could not restore, and why."""

    files: tuple[str, ...]
    left: tuple[FileChange, ...]
    failed: dict[str, str]


class Snapshots(Policy):
    """The snapshots of one directory; give it to an agent as a policy, with the saved of its session."""

    for_sub_agents = False  # the call that starts one is a call of the assistant's, with a snapshot around it

    def __init__(
        self,
        root: str | Path,
        saved: SavedConversation | None = None,
        *,
        folder: str | Path | None = None,
        limits: SnapshotLimits = SnapshotLimits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root = os.path.realpath(root)
        self.saved = saved
        """Whose session is told; without one nothing is taken. Assign another one with another session."""
        self._is_whole = self.root not in (os.path.realpath(os.path.expanduser("~")), os.sep)
        """Nobody wants a copy of all they have."""
        self._vault = Vault(folder or snapshots_dir())
        self._limits = limits
        self._known: FileHashes | None = None
        self._named: set[str] = set()
        self._open: tuple[TreeSnapshot, FilesChanged] | None = None
        self._clock = clock
        self._taken = 0.0
        self._serial = Serial()
        self._notices: list[str] = []
        self._told: set[str] = set()

    def take_notices(self) -> list[str]:
        """What people have to know, each once."""
        notices, self._notices = self._notices, []
        return notices

    # ── around what tools do ──

    async def pre_turn(self, ctx: PolicyContext) -> None:
        """End what a run that was cut short left open; read the files while the model is asked."""
        await self._snapshot_after()
        if self._known is None and self.saved is not None and not all(map(_only_reads, ctx.tools)):
            start_thread(self._warm)

    async def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> None:
        """Take a snapshot before the first call of a turn that may write."""
        if self.saved is None or any(_only_reads(tool) for tool in ctx.tools if tool.name == call.name):
            return
        path = self._name(call)
        if self._open is None or (path is not None and path not in self._open[0].tree and self._exists(path)):
            await self._snapshot_before()

    def approving(self, approve: Approve) -> Approve:
        """The approval callback; the snapshot is taken again after it: people may edit meanwhile."""

        async def ask(request: ApprovalRequest) -> Answer:
            answer = await resolve(approve(request))
            waited = self._clock() - self._taken > _AT_ONCE
            if self._open is not None and waited and (answer is True or isinstance(answer, Approved)):
                await self._snapshot_before()
            return answer

        return ask

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        """Take a snapshot of what the tools left."""
        await self._snapshot_after()

    async def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
        """The same for a run that was aborted."""
        await self._snapshot_after()

    async def recover(self, saved: SavedConversation | None = None) -> None:
        """End what a killed process left open in a session; who changed files since then is not known."""
        saved = saved or self.saved
        files = [] if saved is None else saved.session.conversation.files
        if saved is None or not files or files[-1].after is not None:
            return
        left = files[-1]
        id = left.before
        if left.directory == self.root:
            with suppress(OSError, Damaged):
                id = (await in_thread(self._after_a_kill, left.before)).id
        await in_thread(saved.note, replace(left, at=saved.session.meta.messages, after=id, certain=False))

    # ── for people ──

    async def preview(self, number: int | None = None) -> list[FileChange]:
        """What rewinding to a prompt does to the files; without a number, to the beginning."""
        return await in_thread(self._plan, self._since(number))

    async def preview_redo(self) -> list[FileChange]:
        """What undoing the last rewind does to the files."""
        change = redoable(self._files())
        return [] if change is None else await in_thread(self._plan, [change])

    async def diff(self, change: FileChange) -> Diff | None:
        """What a rewind does to a text."""
        return await in_thread(difference, self._vault, change.path, change.now, change.then)

    async def changed(self) -> list[tuple[FileChange, Diff | None]]:
        """What the tools of this session changed, as it is now against what it was at first."""

        def compare(change: FileChange) -> tuple[FileChange, Diff | None]:
            return change, difference(self._vault, change.path, change.then, change.now)

        return await in_thread(lambda: [*map(compare, self._plan(self._since(None)))])

    async def rewind(self, number: int, confirmed: Collection[str] = ()) -> Restored:
        """Restore files as they were before a prompt; what others changed only if its path is confirmed."""
        return await self._undo(self._since(number), "rewound", confirmed)

    @property
    def can_redo(self) -> bool:
        """Whether the last thing that happened to the files was a rewind."""
        return redoable(self._files()) is not None

    async def redo(self, confirmed: Collection[str] = ()) -> Restored:
        """Undo the last rewind of files."""
        change = redoable(self._files())
        return await self._undo([] if change is None else [change], "redone", confirmed)

    def carry_over(self, saved: SavedConversation) -> None:
        """Tell another session of the same directory what it does not know of the files."""
        before, known = self._files(), list(saved.session.conversation.files)
        shared = [(change.before, change.after) for change in before[: len(known)]]
        if shared == [(change.before, change.after) for change in known]:
            at = saved.session.meta.messages
            for change in before[len(known) :]:
                saved.note(replace(change, at=at))

    # ── off the event loop ──

    async def _snapshot_before(self) -> None:
        saved = self.saved
        if saved is None:
            return
        try:
            snapshot = await in_thread(self._take_snapshot, None)
        except OSError as error:
            why = error.strerror or str(error)
            self._tell(f"no snapshot was taken: {why}; what tools change now cannot be rewound")
            return
        if not snapshot.complete:
            why = f"more than {self._limits.files:,} files here" if self._is_whole else "this is your home"
            self._tell(f"{why}: only files that tools name can be rewound, not what commands change")
        elif unsaved := snapshot.unsaved:
            size = f"over {self._limits.largest >> 20} MB"
            text = f"1 file {size} is" if unsaved == 1 else f"{unsaved} files {size} are"
            self._tell(f"{text} not in the snapshots: rewinding leaves such files as they are", "unsaved")
        change = FilesChanged(saved.session.meta.messages, self.root, snapshot.id)
        await in_thread(saved.note, change)
        self._open = snapshot, change
        self._taken = self._clock()

    async def _snapshot_after(self) -> None:
        if self._open is None or self.saved is None:
            return
        before, change = self._open
        try:
            after = (await in_thread(self._take_snapshot, before)).id
        except OSError as error:
            self._tell(f"no snapshot was taken: {error.strerror or error}; this turn cannot be rewound")
            after = before.id
        self._open = None
        # Its prompt is saved only when its tools begin to run.
        at = self.saved.session.meta.messages
        await in_thread(self.saved.note, replace(change, at=at, after=after))

    def _take_snapshot(self, before: TreeSnapshot | None) -> TreeSnapshot:
        if self._known is None:
            self._known = load_hashes(self._vault, self.root)
        count = len(self._known.files)
        whole, limits = self._is_whole, self._limits
        given = self._vault, self.root, self._known, before, self._named
        snapshot = take_snapshot(*given, whole=whole, limits=limits)
        if len(self._known.files) != count or before is None:
            save_hashes(self._vault, self.root, self._known)
        if self._vault.is_pruning_due():
            start_thread(self._prune)
        return snapshot

    def _warm(self) -> None:
        with suppress(OSError):
            self._take_snapshot(None)

    def _after_a_kill(self, before: str) -> TreeSnapshot:
        snapshot = self._vault.load(before)
        after = self._take_snapshot(snapshot)
        if left := strays(after.tree):
            restore(self._vault, self.root, [(path, None) for path in left])
            after = self._take_snapshot(snapshot)
        return after

    def _prune(self) -> None:
        with suppress(OSError), self._vault.holding():
            if self._vault.is_pruning_due():
                self._vault.prune()

    def _plan(self, changes: Changes) -> list[FileChange]:
        try:
            return plan(self._vault, self.root, changes)
        except Damaged as error:
            why = f"a snapshot is not kept any more ({error})"
            raise SessionError(f"the files cannot be restored: {why}") from error

    async def _undo(self, changes: Changes, reason: Undoing, confirmed: Collection[str]) -> Restored:
        saved = self.saved
        if saved is None:
            raise SessionError("there are no snapshots: this conversation is not saved")
        return await call_to_end(self._serial, self._undo_now, saved, changes, reason, frozenset(confirmed))

    def _undo_now(
        self, saved: SavedConversation, changes: Changes, reason: Undoing, confirmed: Collection[str]
    ) -> Restored:
        """Plan again first: what a person changed since they saw the preview is left."""
        planned = self._plan(changes)
        possible = [change for change in planned if change.possible]
        chosen = [change for change in possible if not change.conflict or change.path in confirmed]
        left = tuple([change for change in planned if change not in chosen])
        if not chosen:
            return Restored((), left, {})
        self._named.update(change.path for change in chosen)
        before = self._take_snapshot(None)
        undone = FilesChanged(saved.session.meta.messages, self.root, before.id, None, reason)
        saved.note(undone)
        failed = restore(self._vault, self.root, [(change.path, change.then) for change in chosen])
        saved.note(replace(undone, after=self._take_snapshot(before).id))
        return Restored(tuple([change.path for change in chosen if change.path not in failed]), left, failed)

    def _since(self, number: int | None) -> list[FilesChanged]:
        return [change for change in self._files() if number is None or change.at > number]

    def _files(self) -> list[FilesChanged]:
        return [] if self.saved is None else list(self.saved.session.conversation.files)

    def _name(self, call: ToolCall) -> str | None:
        """The path that a call names, if it is in the directory: snapshots have it even if git ignores it."""
        for key in _PATHS:
            given = call.arguments.get(key)
            if isinstance(given, str) and given:
                path = os.path.relpath(os.path.normpath(os.path.join(self.root, given)), self.root)
                if path != "." and not path.startswith("..") and ".git" not in path.split("/"):
                    self._named.add(path)
                    return path
        return None

    def _exists(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self.root, path))

    def _tell(self, text: str, about: str | None = None) -> None:
        if (about or text) not in self._told:
            self._told.add(about or text)
            self._notices.append(text)


def _only_reads(tool: ToolSpec) -> bool:
    return getattr(tool, "read_only", False) is True
