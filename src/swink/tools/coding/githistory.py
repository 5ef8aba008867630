"""Git's history: what revisions name, and which files differ between commits, read without running git."""

import heapq
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from swink.tools.coding.gitindex import read_whole
from swink.tools.coding.gitobjects import Objects, Uncertain

MAX_REFS = 4_000_000
_NAME = re.compile(r"[\w+-][\w./+-]*")
_REVISION = re.compile(
    r"(?P<base>[\w./+-]*|@)(?:@\{(?P<entry>\d{1,6})\})?"
    r"(?P<steps>(?:\^\{(?:commit|tree)?\}|\^\d{0,3}|~\d{0,6})*)"
)
_STEP = re.compile(r"\^\{(\w*)\}|([\^~])(\d*)")
_PLACES = ("{}", "refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")
_OBJECT = re.compile(r"[0-9a-f]{40}")
_COMMITTER = re.compile(rb"^committer .*> (\d{1,12}) ", re.M)

Blob = tuple[str, str]
"""The path and the name of a file's content."""


class Commit(Struct, frozen=True):
    """A commit's tree, its parents, and when it was made."""

    tree: str
    parents: tuple[str, ...]
    time: int


class CommitHistory:
    """The commits of a repository."""

    def __init__(self, git: str, objects: Objects) -> None:
        self._git = git
        self._objects = objects
        self._packed = self._read_packed()
        self._shallow = frozenset(self._text("shallow").split())
        places = (os.path.join(git, name) for name in ("info/grafts", "refs/replace"))
        is_packed = any(name.startswith("refs/replace/") for name in self._packed)
        if is_packed or any(map(os.path.lexists, places)):
            raise Uncertain("objects are replaced")

    def resolve(self, revision: str) -> str | None:
        """The object that a revision names; None if it names none."""
        match = _REVISION.fullmatch(revision)
        if match is None:
            return None
        base = "HEAD" if match["base"] in ("", "@") else match["base"]
        found = self._entry(base, int(match["entry"])) if match["entry"] else self._base(base)
        for kind, step, number in _STEP.findall(match["steps"]):
            found = None if found is None else self._step(found, kind, step, number)
        return found

    def commit(self, name: str) -> Commit:
        """The commit that an object is, or that a tag names."""
        kind, data = self._objects.read(name)
        if kind == "tag":
            return self.commit(data[7:47].decode())
        if kind != "commit":
            raise Uncertain(f"{name} is no commit")
        lines = data.split(b"\n\n", 1)[0].split(b"\n")
        time = _COMMITTER.search(data)
        if time is None or not lines[0].startswith(b"tree "):
            raise Uncertain("no commit")
        parents = [line[7:].decode() for line in lines[1:] if line.startswith(b"parent ")]
        return Commit(lines[0][5:].decode(), () if name in self._shallow else tuple(parents), int(time[1]))

    def kind(self, name: str) -> str:
        """What an object is, behind tags."""
        kind, data = self._objects.read(name)
        return self.kind(data[7:47].decode()) if kind == "tag" else kind

    def tree_of(self, revision: str) -> str | None:
        """The tree that a revision names; None for HEAD before the first commit."""
        found = self.resolve(revision)
        if found is None:
            if revision in ("HEAD", "@") and self._text("HEAD").startswith("ref: "):
                return None
            raise Uncertain(f"no revision {revision}")
        return found if self.kind(found) == "tree" else self.commit(found).tree

    def all_refs(self) -> list[str]:
        """What every reference names, and HEAD."""
        names = dict.fromkeys(["HEAD", *self._packed])
        top = os.path.join(self._git, "refs")
        for directory, _, files in os.walk(top):
            paths = (os.path.join(directory, file) for file in files)
            names.update(dict.fromkeys(os.path.relpath(path, self._git) for path in paths))
            if len(names) > 1_000:
                raise Uncertain("many references")
        return [found for name in names if (found := self._reference(name)) is not None]

    def walk(self, start: Sequence[str], without: Sequence[str], most: int | None) -> Iterator[Commit]:
        """Commits from some on, the newest first, but for those that others have too."""
        left = dict.fromkeys(without, True)
        seen: set[str] = set()
        waiting: list[tuple[int, str, Commit]] = []
        for name in (*start, *without):
            commit = self.commit(name)
            heapq.heappush(waiting, (-commit.time, name, commit))
        while waiting and most != 0 and not all(left.get(name, False) for _, name, _ in waiting):
            _, name, commit = heapq.heappop(waiting)
            if name in seen:
                continue
            seen.add(name)
            is_left = left.get(name, False)
            if not is_left:
                yield commit
                most = None if most is None else most - 1
            for parent in commit.parents:
                if is_left:
                    left[parent] = True
                if parent not in seen:
                    found = self.commit(parent)
                    heapq.heappush(waiting, (-found.time, parent, found))

    def changes_of(self, commit: Commit) -> Iterator[Blob]:
        """The files that a commit changes, compared with each of its parents."""
        for parent in commit.parents or (None,):
            yield from self.changes(None if parent is None else self.commit(parent).tree, commit.tree)

    def changes(self, one: str | None, other: str | None, at: str = "") -> Iterator[Blob]:
        """The files that differ between two trees, each with both contents."""
        if one == other:
            return
        before, after = self._objects.tree(one), self._objects.tree(other)
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old == new:
                continue
            path = at + name
            yield from ((path, entry.name) for entry in (old, new) if entry is not None and not entry.is_tree)
            old_tree = old.name if old is not None and old.is_tree else None
            new_tree = new.name if new is not None and new.is_tree else None
            yield from self.changes(old_tree, new_tree, f"{path}/")

    def beside(
        self, tree: str | None, known: Mapping[str, str], paths: frozenset[Blob], at: str = ""
    ) -> Iterator[Blob]:
        """The files of a tree that the index does not have so; `known` are trees that it has unchanged."""
        if tree is None or known.get(at.removesuffix("/")) == tree:
            return
        for name, entry in self._objects.tree(tree).items():
            path = at + name
            if entry.is_tree:
                yield from self.beside(entry.name, known, paths, f"{path}/")
            elif (path, entry.name) not in paths:
                yield path, entry.name

    def _step(self, name: str, kind: str, step: str, number: str) -> str | None:
        if not step:
            return self.commit(name).tree if kind == "tree" else name
        count = int(number or 1)
        if step == "^":
            parents = self.commit(name).parents
            return name if count == 0 else parents[count - 1] if count <= len(parents) else None
        for _ in range(count):
            parents = self.commit(name).parents
            if not parents:
                return None
            name = parents[0]
        return name

    def _base(self, name: str) -> str | None:
        if _OBJECT.fullmatch(name):
            return name
        if (found := self._find_reference(name)) is not None:
            return self._reference(found)
        try:
            return self._objects.find(name)
        except Uncertain:
            return None

    def _entry(self, name: str, number: int) -> str | None:
        """An entry of the log of a reference, counted from the newest."""
        found = self._find_reference(name)
        lines = [] if found is None else self._text(f"logs/{found}").splitlines()
        return lines[-1 - number].split()[1] if number < len(lines) else None

    def _find_reference(self, name: str) -> str | None:
        if not _NAME.fullmatch(name) or ".." in name:
            return None
        names = (place.format(name) for place in _PLACES)
        return next((name for name in names if self._reference(name) is not None), None)

    def _reference(self, name: str, depth: int = 0) -> str | None:
        text = self._text(name).strip()
        if text.startswith("ref: ") and depth < 5 and ".." not in text:
            return self._reference(text[5:].strip(), depth + 1)
        return text if _OBJECT.fullmatch(text) else self._packed.get(name)

    def _read_packed(self) -> dict[str, str]:
        lines = (line.split(" ") for line in self._text("packed-refs").splitlines() if line[:1] not in "#^")
        return {words[1]: words[0] for words in lines if len(words) == 2 and _OBJECT.fullmatch(words[0])}

    def _text(self, name: str) -> str:
        try:
            return read_whole(os.path.join(self._git, name), MAX_REFS).decode()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, ValueError):
            if os.path.isdir(os.path.join(self._git, name)):
                return ""
            raise
