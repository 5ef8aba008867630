"""Worktrees: where the assistant works beside the main tree, each in a directory and on a branch of its own.

    REPO          the main tree: nothing of it changes before the change is taken
    REPO-NAME     the worktree, beside it; in swink's own place where the directory above cannot be written
    swink/NAME    its branch

All that matters is in git itself: whatever ends the program, the next start takes the worktree up again.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from swink.app.assistant.gitprogram import GitProgram, GitRefused
from swink.app.assistant.linkedtree import LinkedTree, find_linked
from swink.errors import MisuseError
from swink.system.filelock import alone
from swink.system.places import cache_dir, config_dir, data_dir, state_dir
from swink.tools.coding.privateobjects import PrivateObjects

PREFIX = "swink/"
"""Where the branches of worktrees are."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")
_LONGEST = 60
_MAKING = "swink is making it"


class Worktree(Struct, frozen=True):
    """A worktree of a repository; the directory may be gone, and then only the branch is left."""

    name: str
    path: Path
    main: Path
    """The tree that its change is for."""

    @property
    def branch(self) -> str:
        return PREFIX + self.name

    @property
    def is_there(self) -> bool:
        """Whether its directory is there; blocking."""
        return (self.path / ".git").exists()

    @property
    def linked(self) -> LinkedTree | None:
        """Its place in the repository; blocking."""
        return find_linked(self.path)


class OpenedWorktree(Struct, frozen=True):
    """A worktree to work in, whether it was made just now, and what to say of it."""

    worktree: Worktree
    is_new: bool
    notices: tuple[str, ...] = ()


class _Entry(Struct):
    """A line of `git worktree list`."""

    path: Path
    branch: str | None = None
    lock: str | None = None


def check_name(name: str) -> None:
    """Raise `MisuseError` for what cannot be the name of a directory and of a branch alike."""
    if _NAME.fullmatch(name) and len(name) <= _LONGEST and not name.endswith(".lock"):
        return
    kept = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._").removesuffix(".lock")
    kept = re.sub(r"\.{2,}", ".", kept)[:_LONGEST]
    instead = f", such as {kept}" if _NAME.fullmatch(kept) else ""
    rule = f"letters, digits, - and _ (inside also .), at most {_LONGEST}"
    raise MisuseError(f"{name!r} cannot be the name of a worktree: it has to be of {rule}{instead}")


def find_tree(directory: Path) -> GitProgram:
    """git in the tree that work in a directory is for; raises `MisuseError` with what to do. Blocking.

    From inside one of our worktrees that is the main tree.
    """
    git = GitProgram.at(directory)
    if git.ask("rev-parse", "--is-bare-repository") == "true":
        raise MisuseError(f"{directory} is a bare repository: it has no tree to work beside; clone it first")
    try:
        top = Path(git.do("rev-parse", "--show-toplevel"))
    except GitRefused as error:
        if "not a git repository" in str(error):
            how = "git init makes one, a first commit has to follow"
            raise MisuseError(f"{directory} is in no git repository: {how}") from error
        raise
    linked = find_linked(top)
    main = None if linked is None else linked.main
    is_ours = main is not None and _name_of(git, top, main) is not None
    return GitProgram(git.program, main if main is not None and is_ours else top)


def _name_of(git: GitProgram, top: Path, main: Path) -> str | None:
    """The name of the worktree of ours that a directory is."""
    said = git.ask("for-each-ref", "--format=%(refname)", f"refs/heads/{PREFIX}") or ""
    names = [line.removeprefix(f"refs/heads/{PREFIX}") for line in said.splitlines()]
    here = Path(os.path.realpath(top))
    return next((name for name in names if here in (_beside(main, name), _own_place(main, name))), None)


def check_programs(git: GitProgram) -> None:
    """Raise `MisuseError` if a configuration of the repository has programs run at a checkout. Blocking."""
    said = git.ask("config", "--list", "--show-scope", "--name-only", "-z") or ""
    words = said.split("\0")
    found = [
        key
        for scope, key in zip(words[::2], words[1::2], strict=False)
        if scope in ("local", "worktree") and key.startswith("filter.")
    ]
    if found:
        why = f"its configuration has git run programs ({found[0]})"
        raise MisuseError(f"{git.directory} is not trusted, and {why}; swink trust shows and trusts it")


def open_worktree(git: GitProgram, name: str) -> OpenedWorktree:
    """Take a worktree up again, or make it from the last commit; raises `MisuseError`. Blocking."""
    check_name(name)
    if git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
        raise MisuseError(f"{git.directory} has no commit yet, so there is nothing to work on; commit first")
    place = state_dir()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone(place / "worktrees.lock"):
        entries = _entries(git)
        places = (_beside(git.directory, name), _own_place(git.directory, name))
        there = [entry for entry in entries if entry.path in places and (entry.path / ".git").exists()]
        for entry in there:
            if entry.lock not in (_MAKING, "initializing"):
                return _taken_up(git, name, entry)
            _forget(git, entry.path)  # nobody worked in it yet
            entries.remove(entry)
        _check_elsewhere(name, entries)
        return _make(git, name, *places)


def find_worktrees(git: GitProgram) -> list[Worktree]:
    """All of a repository, by name; those whose directory is gone have their branch still. Blocking.

    A command may have removed the branch: then the directory is there still.
    """
    said = git.ask("for-each-ref", "--format=%(refname)", f"refs/heads/{PREFIX}") or ""
    names = {line.removeprefix(f"refs/heads/{PREFIX}") for line in said.splitlines()}
    entries = _entries(git)
    return [_known(git, name, entries) for name in sorted(names | _left(git))]


def find_worktree(git: GitProgram, name: str) -> Worktree:
    """One by name; raises `MisuseError` with those that there are. Blocking."""
    check_name(name)
    known = {worktree.name: worktree for worktree in find_worktrees(git)}
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "there is none"
        raise MisuseError(f"there is no worktree {name} of {git.directory}; {there}")
    return known[name]


def remove_worktree(git: GitProgram, worktree: Worktree) -> None:
    """Remove the directory and the branch, whatever is in them; its commits stay for a while. Blocking."""
    take_over_objects(git, worktree)
    if worktree.is_there:
        _forget(git, worktree.path)
    if worktree.is_there:
        raise MisuseError(f"{worktree.path} could not be removed")
    git.do("worktree", "prune")
    has_branch = git.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}") is not None
    if git.ask("branch", "-D", worktree.branch) is None and has_branch:  # its commit is not there any more
        git.do("update-ref", "-d", f"refs/heads/{worktree.branch}")
    with _told_of(worktree):
        _objects_of(git, worktree).remove()


def take_over_objects(git: GitProgram, worktree: Worktree) -> None:
    """Have the repository own what was committed in a worktree; raises `MisuseError`. Blocking."""
    with _told_of(worktree):
        _objects_of(git, worktree).take_over()


def _objects_of(git: GitProgram, worktree: Worktree) -> PrivateObjects:
    common = os.path.realpath(git.directory / git.do("rev-parse", "--git-common-dir"))
    return PrivateObjects(Path(common), worktree.name)


@contextmanager
def _told_of(worktree: Worktree) -> Generator[None]:
    try:
        yield
    except OSError as error:
        what = f"the commits of worktree {worktree.name} could not be copied into the repository"
        raise MisuseError(f"{what}: {error.strerror}") from error


def _left(git: GitProgram) -> set[str]:
    """Those in which commands ran, and whose directory is there."""
    place = _objects_of(git, Worktree("", git.directory, git.directory)).place
    names = [name for name in os.listdir(place) if _NAME.fullmatch(name)] if place.is_dir() else []
    places = {name: (_beside(git.directory, name), _own_place(git.directory, name)) for name in names}
    return {name for name in names if any((place / ".git").exists() for place in places[name])}


def _known(git: GitProgram, name: str, entries: list[_Entry]) -> Worktree:
    places = (_beside(git.directory, name), _own_place(git.directory, name))
    branch = f"refs/heads/{PREFIX}{name}"
    for entry in entries:
        if entry.branch == branch or (entry.path in places and (entry.path / ".git").exists()):
            return Worktree(name, entry.path, git.directory)
    return Worktree(name, places[0], git.directory)


def _entries(git: GitProgram) -> list[_Entry]:
    found: list[_Entry] = []
    for line in git.do("worktree", "list", "--porcelain").splitlines():
        word, _, rest = line.partition(" ")
        if word == "worktree":
            found.append(_Entry(Path(os.path.realpath(rest))))
        elif found and word == "branch":
            found[-1].branch = rest
        elif found and word == "locked":
            found[-1].lock = rest
    return found


def _beside(top: Path, name: str) -> Path:
    return Path(os.path.realpath(top.parent)) / f"{top.name}-{name}"


def _own_place(top: Path, name: str) -> Path:
    """Where swink keeps worktrees itself: not where its settings and keys are, which tools never see."""
    base = cache_dir() if data_dir() == config_dir() else data_dir()
    mark = hashlib.sha256(os.fsencode(top)).hexdigest()[:8]
    return Path(os.path.realpath(base)) / "worktrees" / f"{top.name}-{mark}-{name}"


def _check_elsewhere(name: str, entries: list[_Entry]) -> None:
    for entry in entries:
        if entry.branch == f"refs/heads/{PREFIX}{name}" and (entry.path / ".git").exists():
            how = f"work there, choose another name, or free it: git worktree remove {entry.path}"
            raise MisuseError(f"the branch {PREFIX}{name} is checked out in {entry.path}; {how}")


def _taken_up(git: GitProgram, name: str, entry: _Entry) -> OpenedWorktree:
    worktree = Worktree(name, entry.path, git.directory)
    notices = [f"worktree {name} is taken up again: {entry.path}"]
    if entry.branch != f"refs/heads/{worktree.branch}":
        now = "no branch" if entry.branch is None else entry.branch.removeprefix("refs/heads/")
        notices.append(f"it has {now} checked out, not {worktree.branch}; the change is taken all the same")
    return OpenedWorktree(worktree, False, tuple(notices))


def _make(git: GitProgram, name: str, beside: Path, own: Path) -> OpenedWorktree:
    place = beside if os.access(beside.parent, os.W_OK | os.X_OK) else own
    if os.path.lexists(place) and not _is_empty(place):
        raise MisuseError(f"{place} exists and is no worktree of {git.directory}; choose another name")
    worktree = Worktree(name, place, git.directory)
    is_known = git.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}") is not None
    branch = (worktree.branch,) if is_known else ("HEAD",)
    new = () if is_known else ("-b", worktree.branch)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        git.do("worktree", "add", "-f", "-f", "--lock", "--reason", _MAKING, *new, str(place), *branch)
        git.do("worktree", "unlock", str(place))
    except BaseException as error:
        _clean_up(git, worktree, keep_branch=is_known)
        if isinstance(error, OSError):
            raise MisuseError(f"the worktree could not be made: {place}: {error.strerror}") from error
        raise
    notices = [f"worktree {name}, branch {worktree.branch}: {place}"]
    if is_known:
        notices[0] += " (its directory was gone; what was on the branch is there)"
    return OpenedWorktree(worktree, not is_known, (*notices, *_remarks(git, place)))


def _remarks(git: GitProgram, place: Path) -> list[str]:
    found: list[str] = []
    dirty = len(git.names("status", "--porcelain", "-z", "--ignore-submodules=dirty", "--no-renames"))
    if dirty:
        files = f"{dirty} file{'' if dirty == 1 else 's'}"
        found.append(
            f"it begins at the last commit: what is not committed in {git.directory} ({files}) is not in it"
        )
    if (place / ".gitmodules").is_file():
        found.append("submodules are not checked out in it; git submodule update --init does that")
    return found


def _clean_up(git: GitProgram, worktree: Worktree, *, keep_branch: bool) -> None:
    """Leave nothing of a worktree that could not be made."""
    _forget(git, worktree.path)
    if not keep_branch:
        git.ask("branch", "-D", worktree.branch)


def _forget(git: GitProgram, path: Path) -> None:
    """Remove the directory of a worktree, however far it was made or broken."""
    if git.ask("worktree", "remove", "--force", "--force", str(path)) is None:
        shutil.rmtree(path, ignore_errors=True)
        git.ask("worktree", "unlock", str(path))
        git.ask("worktree", "prune")


def _is_empty(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink() and not os.listdir(place)
