"""What git prints of files: whether a looking command would show credentials, of today or of the past.

    git diff                  what is tracked: of a file that a sandbox hides, git shows the whole as deleted
    git diff REV, status -v   that, and what the revision has beside the index
    git diff REV REV          what differs between the two
    git show, git log -p      what each commit changes
    git show REV:path         that file

A command of which this cannot be told, or only by reading much, asks.
"""

import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from swink.tools.coding.credentials import SAMPLE, shows_credentials, suspect
from swink.tools.coding.githistory import Blob, Commit, CommitHistory
from swink.tools.coding.gitindex import Index, all_may_be_read, read_index
from swink.tools.coding.gitobjects import Objects, Uncertain
from swink.tools.coding.options import Arguments
from swink.tools.coding.shellcontext import ShellContext

_MAGIC = re.compile(r"[*?\[\\]|^:|(?:^|/)\.\.(?:/|$)")
_FAILURES = (Uncertain, OSError, ValueError, IndexError, struct.error, zlib.error, RecursionError)
_ALL = ("--all", "--branches", "--tags", "--remotes", "--glob", "--not")
_UNKNOWN = ("-g", "--walk-reflogs", "--merge-base", "-C", "--find-copies", "--find-copies-harder")
"""Options with which it takes more to tell what is printed; a copy is shown against its unchanged source."""
_NEUTRAL = frozenset({
    "-p", "-u", "--patch", "-U", "--unified", "-n", "-#", "--max-count", "--oneline", "--stat", "--format",
    "--pretty", "--date", "--color", "--no-color", "--decorate", "--no-decorate", "--abbrev-commit", "-w",
    "--reverse", "--word-diff", "--color-words", "--no-ext-diff", "--no-textconv", "--patch-with-stat",
})  # fmt: skip
"""Options that do not change which commits are counted."""


class GitQuestion(Struct, frozen=True):
    """A git command that prints files: its name, its arguments, and which operands follow `--`."""

    name: str
    arguments: Arguments
    operands: tuple[str, ...]
    """Without the pattern of a search."""
    has_mark: bool
    """Whether a `--` stands among the words."""
    after: tuple[str, ...]


def prints_secrets(request: GitQuestion, shell: ShellContext) -> bool:
    """Whether a git command that prints files would print credentials; also if this is not certain."""
    git = os.path.join(str(shell.workspace.root), ".git")
    if not os.path.isdir(git) or not os.listdir(git):
        return False
    try:
        with Objects(git) as objects:
            return _Look(request, shell, git, objects).shows()
    except _FAILURES:
        return True


class _Look:
    """One command in one repository."""

    def __init__(self, request: GitQuestion, shell: ShellContext, git: str, objects: Objects) -> None:
        self._request = request
        self._shell = shell
        self._objects = objects
        self._git = git
        self._history = CommitHistory(git, objects)
        self._index = Index((), {})
        self._has_paths = False

    def shows(self) -> bool:
        request = self._request
        if request.name == "blame":
            return any(suspect(self._path(word)) is not None for word in request.operands)
        if request.name == "cat-file":
            return self._is_secret_object(request.operands[-1:])
        revisions, paths = self._split()
        self._has_paths = bool(paths)
        contents = [word for word in revisions if ":" in word]
        if self._is_secret_object(contents):
            return True
        revisions = [word for word in revisions if word not in contents]
        if contents and not revisions:
            return False
        within = self._within(paths)
        if within and all(map(self._is_ordinary_file, within)):
            return False
        if request.name == "grep" and not revisions and not request.arguments.has("--cached"):
            return not all_may_be_read(self._shell)
        self._index = read_index(self._git)
        return any(
            self._is_secret(path, content)
            for path, content in self._printed(revisions)
            if not within or any(path == one or path.startswith(f"{one}/") for one in within)
        )

    def _split(self) -> tuple[list[str], list[str]]:
        """The operands that are revisions, and those that are paths."""
        request = self._request
        before = request.operands[: len(request.operands) - len(request.after)]
        revisions: list[str] = []
        paths = list(request.after)
        for word in before:
            if request.has_mark or self._is_revision(word):
                revisions.append(word)
            elif os.path.lexists(os.path.join(self._shell.directory, word)):
                paths.append(word)
            else:
                raise Uncertain(f"neither a revision nor a file: {word}")
        return revisions, paths

    def _is_revision(self, word: str) -> bool:
        if ":" in word or word.startswith("^"):
            return True
        ends = re.split(r"\.\.\.?", word)
        if self._request.name == "stash show" and word.isdecimal():
            return True
        return len(ends) <= 2 and all(self._history.resolve(end or "HEAD") is not None for end in ends)

    def _within(self, paths: Sequence[str]) -> list[str]:
        """The paths below which alone something is printed; none if that is not certain."""
        arguments = self._request.arguments
        if any(map(_MAGIC.search, paths)) or arguments.has("--follow", "-L", "--full-diff"):
            return []
        found = [self._path(path) for path in paths]
        return [] if "." in found else found

    def _path(self, path: str) -> str:
        """A path relative to the root of the repository."""
        return os.path.relpath(os.path.join(self._shell.directory, path), str(self._shell.workspace.root))

    def _is_ordinary_file(self, path: str) -> bool:
        full = os.path.join(str(self._shell.workspace.root), path)
        return os.path.isfile(full) and suspect(path) is None and not self._shell.workspace.is_hidden(path)

    def _is_secret_object(self, words: Sequence[str]) -> bool:
        """Whether one of these names a file with credentials, as `REV:path`, or a content by itself."""
        for word in words:
            revision, colon, path = word.partition(":")
            if not colon:
                found = self._history.resolve(word)
                if found is None or self._history.kind(found) == "blob":
                    return True
                continue
            if not revision and re.match(r"[/(!^]", path):
                raise Uncertain("a search, or a pattern")
            path = re.sub(r"^[0-3]:", "", path) if not revision else path
            if path.startswith(("./", "../")):
                path = self._path(path)
            if suspect(path) is not None or self._shell.workspace.is_hidden(os.path.normpath(path)):
                return not self._shell.inside(self._full(path)) or suspect(path) == "perhaps"
        return False

    def _full(self, path: str) -> str:
        return os.path.join(str(self._shell.workspace.root), path)

    def _printed(self, revisions: Sequence[str]) -> Iterable[Blob]:
        """What the command may print, of the files that it is not confined to too."""
        request, arguments = self._request, self._request.arguments
        if arguments.has(*_UNKNOWN):
            raise Uncertain("an option")
        match request.name:
            case "diff":
                return self._compared(revisions)
            case "status":
                return [*self._beside("HEAD"), *self._index.entries]
            case "grep":
                beside = [found for revision in revisions for found in self._beside(revision)]
                return [*beside, *self._index.entries]
            case "show" | "diff-tree" | "stash show" if not _is_range(revisions) and not arguments.has(*_ALL):
                return self._each(revisions)
            case "log" | "whatchanged" | "show":
                return self._walked(revisions)
            case _:
                raise Uncertain(f"what git {request.name} prints")

    def _compared(self, revisions: Sequence[str]) -> Iterable[Blob]:
        history, is_cached = self._history, self._request.arguments.has("--cached", "--staged")
        match revisions:
            case []:
                return self._beside("HEAD", staged=True) if is_cached else self._index.entries
            case [one] if "..." in one:
                return self._walked([one.replace("...", "..")])
            case [one] if ".." in one:
                before, _, after = one.partition("..")
                return history.changes(history.tree_of(before or "HEAD"), history.tree_of(after or "HEAD"))
            case [one] if is_cached:
                return self._beside(one, staged=True)
            case [one]:
                return [*self._beside(one), *self._index.entries]
            case [one, *others] if not _is_range(revisions):
                tree = history.tree_of(one)
                return [found for other in others for found in history.changes(tree, history.tree_of(other))]
            case _:
                raise Uncertain("several ranges")

    def _beside(self, revision: str, *, staged: bool = False) -> Iterator[Blob]:
        """What a revision has that the index has not, or has otherwise; with `staged` the reverse too."""
        index, tree = self._index, self._history.tree_of(revision)
        had: set[str] = set()
        for path, content in self._history.beside(tree, index.trees, frozenset(index.entries)):
            had.add(path)
            yield path, content
        if staged and index.trees.get("") != tree:
            yield from (
                entry
                for entry in index.entries
                if suspect(entry[0]) is not None or self._shell.workspace.is_hidden(entry[0])
                if entry[0] in had or self._content(tree, entry[0]) != entry[1]
            )

    def _content(self, tree: str | None, path: str) -> str | None:
        """The name of a file's content in a tree."""
        *above, name = path.split("/")
        for part in above:
            entry = self._objects.tree(tree).get(part)
            if entry is None or not entry.is_tree:
                return None
            tree = entry.name
        entry = self._objects.tree(tree).get(name)
        return None if entry is None else entry.name

    def _each(self, revisions: Sequence[str]) -> Iterator[Blob]:
        """What each of some commits changes, or of two what differs."""
        history, name = self._history, self._request.name
        if name == "diff-tree" and len(revisions) > 1:
            yield from self._compared(revisions)
            return
        if name == "stash show":
            revisions = [f"stash@{{{word}}}" if word.isdecimal() else word for word in revisions]
            revisions = revisions or ["stash@{0}"]
        for revision in revisions or ["HEAD"]:
            found = history.resolve(revision)
            if found is None or history.kind(found) == "blob":
                raise Uncertain(revision)
            if history.kind(found) == "commit":
                commit = history.commit(found)
                yield from history.changes_of(commit)
                if name == "stash show" and len(commit.parents) > 2:  # files that were not tracked
                    yield from history.changes(None, history.commit(commit.parents[2]).tree)

    def _walked(self, revisions: Sequence[str]) -> Iterator[Blob]:
        for commit in self._commits(revisions):
            yield from self._history.changes_of(commit)

    def _commits(self, revisions: Sequence[str]) -> Iterator[Commit]:
        history, arguments = self._history, self._request.arguments
        start: list[str] = []
        without: list[str] = []
        for word in revisions:
            if word.startswith("^"):
                without.append(self._known(word[1:]))
            elif "..." in word:
                start += [self._known(end) for end in word.split("...")]
            elif ".." in word:
                before, _, after = word.partition("..")
                without.append(self._known(before))
                start.append(self._known(after))
            else:
                start.append(self._known(word))
        if arguments.has(*_ALL):
            start, without = [*start, *without, *history.all_refs()], []
        return history.walk(start or [self._known("HEAD")], without, self._most())

    def _known(self, revision: str) -> str:
        found = self._history.resolve(revision or "HEAD")
        if found is None:
            raise Uncertain(revision)
        return found

    def _most(self) -> int | None:
        """How many commits are shown at most; None if options or paths choose among them."""
        arguments = self._request.arguments
        if not _NEUTRAL.issuperset(arguments.options) or self._has_paths:
            return None
        given = [
            int(value) for name in ("-n", "-#", "--max-count") for value in arguments.options.get(name, ())
        ]
        return min((number for number in given if number >= 0), default=None)

    def _is_secret(self, path: str, content: str) -> bool:
        """Whether the content of a file, at whatever time, is what reading the file asks for."""
        suspicion = suspect(path)
        if suspicion is None:
            return self._shell.workspace.is_hidden(path)
        if not self._shell.inside(self._full(path)):
            return True
        return suspicion == "perhaps" and shows_credentials(path, self._objects.read(content)[1][:SAMPLE])


def _is_range(revisions: Sequence[str]) -> bool:
    return any(".." in word or word.startswith("^") for word in revisions)
