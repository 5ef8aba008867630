"""The review of a worktree's change: a question for each file, and what the answers take of it."""

from swink.agent.policy import ApprovalRequest, PolicyContext
from swink.app.assistant.gitprogram import GitProgram, GitRefused
from swink.app.assistant.person import Once, Question, Refuse, Reply
from swink.app.assistant.previews import DELETE, WRITE, Preview
from swink.app.assistant.reviewing import ALL_REJECTED
from swink.app.assistant.worktreechange import (
    ChangedPath,
    TreeChange,
    drop_change,
    encode_like,
    files_left,
    ignored_files,
    preview_file,
    take_change,
)
from swink.app.assistant.worktrees import Worktree, remove_worktree
from swink.messages import ModelSpec, Usage
from swink.system.oneline import strip_controls
from swink.system.shorten import clip_list

_NO_CONTEXT = PolicyContext(0, ModelSpec("", ""), "", (), (), Usage(), None, {})
_GONE = "000000"
_NAMED = 5
_LEFT_OUT = "Of the change in this worktree the user has left something out, and said why:"


class TreeReview:
    """What a person says of the files of a change, one after the other."""

    def __init__(self, git: GitProgram, change: TreeChange) -> None:
        self.git = git
        self.change = change
        self._chosen: dict[str, bool | bytes] = {}
        self._reasons: list[str] = []

    def files(self) -> list[ChangedPath]:
        """Those that a person has to judge. Blocking."""
        return files_left(self.git, self.change)

    def preview(self, file: ChangedPath) -> Preview:
        """What becomes of a file. Blocking."""
        return preview_file(self.git, file)

    def question(self, file: ChangedPath, preview: Preview) -> Question:
        """What to ask about a file; on an event loop, which waits for the answer."""
        name = DELETE if file.new_mode == _GONE else WRITE
        shown = {"path": file.path}
        request = ApprovalRequest("", name, {**shown}, shown, True, _NO_CONTEXT)
        title = f"Take {file.path} into {self.git.directory}?"
        return Question(request, preview, title=title, is_once=True)

    def judge(self, file: ChangedPath, reply: Reply) -> None:
        """Keep the answer about a file. Blocking."""
        match reply:
            case Once(None):
                self._chosen[file.path] = True
            case Once({"content": str(text)}, note):
                self._chosen[file.path] = encode_like(self.git, file, text)
                self._reasons += [note] if "\nbecause: " in note else []
            case Refuse(reason):
                said = reason.removeprefix(ALL_REJECTED).removeprefix("; ")
                self._reasons += [f"{file.path}: {said}"] if said else []
            case _:
                pass

    def take(self) -> list[str]:
        """Bring what was chosen into the main tree; its paths. Blocking, raises `MisuseError`."""
        return take_change(self.git, self.change, self._chosen)

    @property
    def is_whole(self) -> bool:
        """Whether all of the change is in the main tree now. Blocking."""
        return not files_left(self.git, self.change)

    @property
    def message(self) -> str | None:
        """What to tell the agent: why something was left out, where the person said so."""
        return "\n".join([_LEFT_OUT, *self._reasons]) if self._reasons else None


def drop(git: GitProgram, change: TreeChange) -> str:
    """Remove a worktree, and what was decided about its folder; how to get it back. Blocking."""
    inside = [strip_controls(file.path) for file in change.files if file.is_repository]
    lost = [f"repositories inside ({', '.join(clip_list(inside, _NAMED))})"] if inside else []
    lost += [ignored] if (ignored := describe_ignored(git, change.worktree)) else []
    _forget_trust(change.worktree)
    made = drop_change(git, change)
    how = f"; git branch {change.worktree.branch} {made[:12]} brings it back as long as git keeps it"
    gone = f"worktree {change.worktree.name} is gone" + (how if change.files else "")
    return gone + (f"; lost for good: {', '.join(lost)}" if lost else "")


def drop_unread(git: GitProgram, worktree: Worktree) -> str:
    """Remove a worktree whose change cannot be read: what is not committed is lost. Blocking."""
    _forget_trust(worktree)
    remove_worktree(git, worktree)
    return f"worktree {worktree.name} is gone, with what was not committed in it"


def describe_ignored(git: GitProgram, worktree: Worktree) -> str:
    """Files that git ignores, which no commit brings back; nothing if there are none. Blocking."""
    try:
        found = ignored_files(git, worktree)
    except GitRefused:  # its index is broken, say
        return "files that git ignores, if there are any"
    named = ", ".join(clip_list([strip_controls(name) for name in found], _NAMED))
    return f"what git ignores ({named})" if found else ""


def _forget_trust(worktree: Worktree) -> None:
    from swink.app.assistant.trust import forget

    if worktree.is_there:
        forget(worktree.path)


def how_to_go_on(worktree: Worktree) -> str:
    """What a person can do with a worktree that stays."""
    name = worktree.name
    return f"swink -w {name} goes on, swink worktree take {name} takes the change, drop {name} drops it"
