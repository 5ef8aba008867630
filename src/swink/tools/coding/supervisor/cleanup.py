"""Files that a command left and that programs outside the sandbox would act on later: found and moved aside.

    kept   files and directories that must be as they were, or must not exist: put back, or moved aside
    new    what other programs obey, made anywhere in the workspace: moved aside
           repositories made anywhere in it: what git would run in them is moved aside

Moved aside means renamed: `hooks` becomes `hooks.refused`, for a person to look at. Links are not followed.
Whatever is found, the rest is still looked at: what goes wrong with one thing is a note.
"""

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from swink.tools.coding.supervisor import aside, gitconfig, names, snapshot
    from swink.tools.coding.supervisor.snapshot import Tree
else:
    import aside
    import gitconfig
    import names
    import snapshot

MAX_CONFIGURATION = 1 << 20
MAX_LOOKED = 1_000_000
"""Entries that are looked at for repositories."""
MAX_NOTES = 20


class Originals:
    """The kept files and directories as they were before the command."""

    def __init__(self, watch: "dict[str, Any]") -> None:
        self._watch = watch
        self._root: str = watch["root"]
        budget = snapshot.ByteBudget()
        before = watch["before"]
        self._before = {
            path: before[path] if path in before else snapshot.read_at(self._root, path, budget)
            for path in watch["kept"]
        }
        self._notes: list[str] = []
        self._undone: list[str] = []
        self._moved: dict[str, str] = {}

    def put_right(self) -> list[str]:
        """Compare, put back, move aside; returns notes about what was done."""
        for path, before in self._before.items():
            self._attempt(self._put_back, path, before)
        plants: list[str] = []
        repositories: list[str] = []
        self._attempt(self._find_new, self._root, plants, repositories)
        for path in plants:
            self._attempt(self._refuse, path)
        for path in repositories:
            self._attempt(self._defuse, self._find_moved(path))
        if len(self._notes) > MAX_NOTES:
            self._notes[MAX_NOTES:] = [f"[and {len(self._notes) - MAX_NOTES} more like these]"]
        return [*self._notes, *self._say_undone()]

    def _attempt(self, act: "Any", path: str, *more: "Any") -> None:
        try:
            act(path, *more)
        except Exception as error:
            # Whatever a command can cause here must not keep us from looking at the rest.
            reason = getattr(error, "strerror", None) or type(error).__name__
            self._notes.append(
                f"[{self._show(path)} could not be checked: {reason}; "
                "look at it before you use git or an editor here]"
            )

    def _find_new(self, root: str, plants: list[str], repositories: list[str]) -> None:
        for path in _find_new(root, self._watch, plants, self._notes):
            repositories.append(path)

    def _show(self, path: str) -> str:
        return ascii(os.path.relpath(path, self._root)).strip("'")

    def _put_back(self, path: str, before: "Tree") -> None:
        parent = aside.open_beneath(self._root, os.path.dirname(path))
        if parent is None:
            return  # its directory is gone: what is in its place counts as new
        try:
            name = os.path.basename(path)
            is_signed = before is not None and before[0] == snapshot.SIGNED
            now = _read_now(parent, name, is_signed)
            if now == before:
                return
            tree = None if is_signed else before
            moved = aside.replace(parent, name, tree, is_there=now is not None)
        finally:
            os.close(parent)
        if before is None:
            self._note_undone(path, moved)
            return
        done = "could not be put back, because it is too large" if is_signed else "was put back"
        became = f"; what it had become is in {moved}" if moved else ""
        self._notes.append(
            f"[{self._show(path)} {done}{became}. Other programs obey it, so commands may not change it. "
            f"{self._watch['instead']}]"
        )

    def _refuse(self, path: str) -> None:
        """Move aside what other programs would obey."""
        parent = aside.open_beneath(self._root, os.path.dirname(path))
        if parent is None:
            return
        try:
            moved = aside.move_aside(parent, os.path.basename(path))
        finally:
            os.close(parent)
        self._note_undone(path, moved)

    def _note_undone(self, path: str, moved: str) -> None:
        name = os.path.basename(path)
        now = "" if moved == f"{name}.refused" else f" (now {moved})" if moved else " (removed)"
        self._undone.append(self._show(path) + now)
        if moved:
            self._moved[path] = os.path.join(os.path.dirname(path), moved)

    def _find_moved(self, path: str) -> str:
        """Where a path is, after something above it was moved aside."""
        above = path
        while len(above) > len(self._root):
            if above in self._moved:
                return self._moved[above] + path[len(above) :]
            above = above.rpartition("/")[0]
        return path

    def _say_undone(self) -> list[str]:
        if not self._undone:
            return []
        shown = sorted(self._undone)
        more = f" and {len(shown) - MAX_NOTES} more" if len(shown) > MAX_NOTES else ""
        return [
            f"[undone: {', '.join(shown[:MAX_NOTES])}{more}. Other programs obey these, so commands may not "
            f"make them; each was renamed to NAME.refused, or as said. {self._watch['instead']}]"
        ]

    def _defuse(self, path: str) -> None:
        """Move aside what makes git run programs in a new repository, or use one outside the workspace."""
        fd = aside.open_beneath(self._root, path)
        if fd is None:
            self._check_pointer(path)
            return
        try:
            parts = ("config", "config.worktree", "hooks", "commondir")
            wrong = [part for part in parts if self._is_wrong(fd, part, path)]
            for part in wrong:
                self._report_refused(os.path.join(path, part), aside.move_aside(fd, part))
            names = set(os.listdir(fd))
        finally:
            os.close(fd)
        if not wrong and gitconfig.is_repository(names):
            self._notes.append(f"[the command made a git repository: {self._show(path)}]")

    def _check_pointer(self, path: str) -> None:
        parent = aside.open_beneath(self._root, os.path.dirname(path))
        if parent is None:
            return
        try:
            if not self._leads_inside(parent, os.path.basename(path), path):
                self._report_refused(path, aside.move_aside(parent, os.path.basename(path)))
        finally:
            os.close(parent)

    def _report_refused(self, path: str, moved: str) -> None:
        done = f"renamed to {moved}" if moved else "removed"
        self._notes.append(
            f"[{self._show(path)} would have git run programs or look elsewhere; it was {done}]"
        )

    def _is_wrong(self, fd: int, part: str, path: str) -> bool:
        try:
            found = snapshot.read(fd, part, snapshot.ByteBudget(MAX_CONFIGURATION))
        except OSError:
            return True  # too large to check, or unreadable
        match found:
            case None:
                return False
            case ("file", _, content) if part == "commondir":
                return not self._names_inside(path, os.fsdecode(content))
            case ("file", _, content) if part.startswith("config"):
                return not self._is_harmless(os.fsdecode(content), path)
            case ("directory", _, inside) if part == "hooks":
                return any(not name.endswith(".sample") for name in inside)
            case _:
                return True

    def _is_harmless(self, config: str, path: str) -> bool:
        if "\0" in config:
            return False  # git and we may differ on where it ends
        for key, value in gitconfig.read_settings(config):
            if not gitconfig.is_harmless(key, value):
                return False
            if key == "core.worktree" and not self._is_inside(os.path.join(path, value)):
                return False
        return True

    def _leads_inside(self, parent: int, name: str, path: str) -> bool:
        try:
            found = snapshot.read(parent, name, snapshot.ByteBudget(MAX_CONFIGURATION))
        except OSError:
            return False  # too large to check, or unreadable
        match found:
            case ("link", _, target):
                return self._is_inside(os.path.join(os.path.dirname(path), target))
            case ("file", _, content):
                word, colon, target = os.fsdecode(content).partition(":")
                return (word.strip(), colon) != ("gitdir", ":") or self._names_inside(
                    os.path.dirname(path), target.removeprefix(" ")
                )
            case _:
                return True

    def _names_inside(self, directory: str, content: str) -> bool:
        """Whether a file of git that holds one path leads inside; git drops the ends of lines, no blanks."""
        target = content.rstrip("\r\n")
        return target == target.strip() and self._is_inside(os.path.join(directory, target))

    def _is_inside(self, path: str) -> bool:
        if "\0" in path:
            return False
        real = os.path.realpath(path)
        return real == self._root or real.startswith(self._root + "/")


def _read_now(parent: int, name: str, is_signed: bool) -> "Tree":
    """What has a name now, to compare; anything that cannot be read differs from what could."""
    try:
        if is_signed:
            return snapshot.sign(parent, name)
        return snapshot.read(parent, name, snapshot.ByteBudget())
    except FileNotFoundError:
        return None
    except OSError:
        return "unreadable"


def _find_new(root: str, watch: "dict[str, Any]", plants: list[str], notes: list[str]) -> "Iterator[str]":
    """New repositories, `.git` files and `.git` links; to `plants` goes what else other programs would obey.

    Directories that did not change are not read again.
    """
    known: dict[str, tuple[int, int, int]] = watch["directories"]
    repositories = set(watch["repositories"])
    # What is reserved was out of the command's reach: what is there now is another command's placeholder.
    settled = {*watch["kept"], *watch["pointers"], *watch["reserved"]}
    obeyed = set(watch["obeyed"])
    listed = names.Names(*watch["names"])
    waiting = [
        (path, False) for path, stamp in known.items() if (now := _stamp(path)) is not None and now != stamp
    ]
    looked = 0
    seen: set[str] = set()
    while waiting:
        path, in_plant = waiting.pop()
        now = _stamp(path)
        if path in seen or now is None:
            continue
        seen.add(path)
        aside.make_readable(path)
        was_here = known.get(path, (0, 0, 0))[:2] == now[:2]
        expected = frozenset[str]() if in_plant else listed.expected_in(path[len(root) :])
        found: set[str] = set()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    found.add(entry.name)
                    is_directory = entry.is_dir(follow_symlinks=False)
                    is_plant = (
                        listed.match(entry.name, expected, is_directory)
                        and entry.path not in settled
                        and not (was_here and entry.path in obeyed)
                    )
                    if is_plant:
                        plants.append(entry.path)
                    if is_directory:
                        before = known.get(entry.path)
                        if before is None or before[1] != entry.inode():
                            waiting.append((entry.path, in_plant or is_plant))
                    elif entry.name.lower() == ".git" and entry.path not in settled:
                        yield entry.path
        except OSError:
            continue
        looked += len(found)
        if looked > MAX_LOOKED:
            notes.append(
                "[the command made too many files to look through; "
                "programs may obey some of them when git or an editor is used there]"
            )
            return
        is_known = path in repositories and was_here
        if not is_known and (os.path.basename(path).lower() == ".git" or gitconfig.is_repository(found)):
            yield path


def _stamp(path: str) -> "tuple[int, int, int] | None":
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_ctime_ns) if stat.S_ISDIR(found.st_mode) else None
