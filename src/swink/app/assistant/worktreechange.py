"""The change of a worktree: all that is different from where it left the main tree, committed or not.

read_change     the files that differ, as git has them; the worktree itself stays as it is
preview_file    one of them, for a person to judge
take_change     those that were chosen, into the main tree: all of them or nothing
keep_change     what is not committed becomes a commit of the branch
drop_change     directory and branch go; a commit without a name has all of it for a while
"""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.gitprogram import GitProgram, GitRefused
from swink.app.assistant.previews import Preview, preview_bytes
from swink.app.assistant.worktrees import Worktree, remove_worktree, take_over_objects
from swink.errors import MisuseError
from swink.messages.redact.shown import escape_invisible
from swink.system.files import write_whole
from swink.system.shorten import clip_list
from swink.tools.coding.text import detect

_GONE, _LINK, _REPOSITORY = "000000", "120000", "160000"
_LARGEST = 4 << 20
"""Bytes of a file that is shown."""
_NAMED = 5

Chosen = Mapping[str, bool | bytes]
"""By path: taken as it is, not taken, or taken with another content."""


class ChangedPath(Struct, frozen=True):
    """A file that differs: its modes and objects, before and now."""

    path: str
    old_mode: str
    new_mode: str
    old: str
    new: str

    @property
    def is_repository(self) -> bool:
        """Whether it is a repository of its own, or a submodule: git keeps no content of it here."""
        return _REPOSITORY in (self.old_mode, self.new_mode)

    @property
    def is_executable(self) -> bool:
        """Whether it is a program now."""
        return self.new_mode[-3:] == "755"


class TreeChange(Struct, frozen=True):
    """What a worktree has that the main tree has not."""

    worktree: Worktree
    base: str
    """The commit where they parted."""
    tip: str
    tree: str
    files: tuple[ChangedPath, ...]

    @property
    def summary(self) -> str:
        count = len(self.files)
        return f"{count} file{'' if count == 1 else 's'} changed"


def read_change(git: GitProgram, worktree: Worktree) -> TreeChange:
    """What a worktree changed; raises `MisuseError`. Blocking."""
    here = GitProgram(git.program, worktree.path) if worktree.is_there else git
    tip = here.do("rev-parse", "--verify", "HEAD^{commit}" if worktree.is_there else worktree.branch)
    base = git.ask("merge-base", "HEAD", tip)
    if base is None:
        raise MisuseError(f"{worktree.branch} and {git.directory} have no commit in common")
    nested: list[str] = []
    if worktree.is_there:
        tree, nested = _write_tree(here, worktree, tip)
    else:
        tree = git.do("rev-parse", f"{tip}^{{tree}}")
    raw = git.names("diff-tree", "-r", "-z", "--raw", "--no-renames", base, tree)
    files = {file.path: file for file in _read_raw(raw)}
    for path in nested:  # no part of the tree, but named, and never taken
        files.setdefault(path, ChangedPath(path, _GONE, _REPOSITORY, "", ""))
    return TreeChange(worktree, base, tip, tree, tuple(files[path] for path in sorted(files)))


def _write_tree(here: GitProgram, worktree: Worktree, tip: str) -> tuple[str, list[str]]:
    """The tree of all files that are not ignored; by a copy of the index, which is left alone.

    With it the repositories inside, which are left out.
    """
    linked = worktree.linked
    with _index() as (index, env):
        with suppress(OSError):  # without it git reads every file again
            if linked is not None and not (linked.own / "index").is_symlink():
                shutil.copyfile(linked.own / "index", index)
        try:
            nested = _add_all(here, env)
        except GitRefused:  # a merge that is not finished, or a broken index
            index.unlink(missing_ok=True)
            here.do("read-tree", tip, env=env)
            nested = _add_all(here, env)
        return here.do("write-tree", env=env), nested


def _add_all(here: GitProgram, env: Mapping[str, str]) -> list[str]:
    """Put all files into an index, and return the repositories inside.

    git would look into a repository that the index has, with the programs of that one's configuration:
    commands of the agent may have written it. So they are taken out first, and put back as they were.
    """
    links = _repositories(here, env)
    if links:
        here.do("update-index", "--force-remove", "-z", "--stdin", input=_lines(links), env=env)
    others = here.names("ls-files", "--others", "--exclude-standard", "-z", env=env)
    nested = [name.rstrip("/") for name in others if name.endswith("/")]
    wanted = _lines([".", *(f":(exclude,top,literal){name}" for name in nested)])
    here.do("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", input=wanted, env=env)
    if kept := _still_there(here, links, env):
        lines = [f"{_REPOSITORY} {links[path]}\t{path}" for path in kept]
        here.do("update-index", "-z", "--index-info", input=_lines(lines), env=env)
    return sorted({*nested, *(path for path in kept if os.path.lexists(here.directory / path / ".git"))})


def _repositories(here: GitProgram, env: Mapping[str, str]) -> dict[str, str]:
    """The commits of repositories inside that an index has, by path."""
    found: dict[str, str] = {}
    for entry in here.names("ls-files", "--stage", "-z", env=env):
        head, _, path = entry.partition("\t")
        if head.startswith(_REPOSITORY):
            found[path] = head.split(" ")[1]
    return found


def _still_there(here: GitProgram, links: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    """Those repositories whose directory is there, and has not become an ordinary one."""
    if not links:
        return []
    names = here.names("ls-files", "-z", env=env)
    parents = {os.fspath(parent) for name in names for parent in PurePosixPath(name).parents}
    taken = parents.union(names)
    places = {path: here.directory / path for path in links if path not in taken}
    return [path for path, place in places.items() if place.is_dir() and not place.is_symlink()]


def _lines(words: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)


@contextmanager
def _index() -> Generator[tuple[Path, dict[str, str]]]:
    with tempfile.TemporaryDirectory(prefix="swink-index-") as folder:
        index = Path(folder) / "index"
        yield index, {"GIT_INDEX_FILE": str(index)}


def _read_raw(words: Sequence[str]) -> Iterator[ChangedPath]:
    for head, path in zip(words[::2], words[1::2], strict=True):
        old_mode, new_mode, old, new, _ = head.removeprefix(":").split(" ")
        yield ChangedPath(path, old_mode, new_mode, old, new)


def files_left(git: GitProgram, change: TreeChange) -> list[ChangedPath]:
    """Those files of a change that the main tree has not yet as they are in the worktree. Blocking."""
    return [file for file in change.files if not _is_there(git, file.path, file.new_mode, file.new)]


def ignored_files(git: GitProgram, worktree: Worktree) -> list[str]:
    """Files of a worktree that git ignores, whole directories as one: no change has them. Blocking."""
    if not worktree.is_there:
        return []
    here = GitProgram(git.program, worktree.path)
    which = ("--others", "--ignored", "--exclude-standard", "--directory", "--no-empty-directory")
    return here.names("ls-files", "-z", *which)  # unlike `status` it starts nothing in a repository inside


def preview_file(git: GitProgram, file: ChangedPath) -> Preview:
    """What becomes of a file, to be judged part by part if it is text. Blocking."""
    if file.is_repository:
        return Preview(f"{file.path} is a repository of its own: it is not taken", None, fails=True)
    old, new = _content(git, file.old_mode, file.old), _content(git, file.new_mode, file.new)
    if _LINK in (file.old_mode, file.new_mode):
        return _preview_link(file, old, new)
    if file.old == file.new:
        return Preview(f"changes {file.path}: {_mode_change(file)}", None)
    found = preview_bytes(file.path, old, new)
    if new is None or file.old_mode[-3:] == file.new_mode[-3:] or (old is None and not file.is_executable):
        return found
    return replace(found, summary=f"{found.summary}; {_mode_change(file)}")


def _preview_link(file: ChangedPath, old: bytes | None, new: bytes | None) -> Preview:
    """A symbolic link, made, changed, deleted, or one that was or becomes a file."""
    was = f"symbolic link to {_target(old)}" if file.old_mode == _LINK else "file"
    if new is None:
        return Preview(f"deletes {file.path}, a {was}", None)
    if file.new_mode == _LINK:
        before = "" if old is None else f", before a {was}"
        what = "creates" if old is None else "replaces"
        return Preview(f"{what} {file.path}, a symbolic link to {_target(new)}{before}", None)
    executable = "; makes it executable" if file.is_executable else ""
    found = preview_bytes(file.path, None, new)
    return replace(found, summary=f"{found.summary}, before a {was}{executable}")


def _target(data: bytes | None) -> str:
    return escape_invisible(os.fsdecode(data or b""))


def _mode_change(file: ChangedPath) -> str:
    return "makes it executable" if file.is_executable else "makes it no longer executable"


def _content(git: GitProgram, mode: str, blob: str) -> bytes | None:
    if mode == _GONE:
        return None
    if int(git.do("cat-file", "-s", blob)) > _LARGEST:
        return b"\0"  # too long to be shown: like a file that is no text
    return git.read("cat-file", "blob", blob)


def encode_like(git: GitProgram, file: ChangedPath, text: str) -> bytes:
    """A text that was approved, in the encoding of the file. Blocking."""
    data = git.read("cat-file", "blob", file.old if file.old_mode != _GONE else file.new)
    encoding = detect(data)
    return text.encode() if encoding is None else encoding.encode(text)


def take_change(git: GitProgram, change: TreeChange, chosen: Chosen) -> list[str]:
    """Bring what was chosen into the main tree, uncommitted; the paths that changed there. Blocking.

    Raises `MisuseError`, and changes nothing, if that would overwrite something. What is there already is
    passed over, so that it can be repeated after a crash.
    """
    wanted = [file for file in change.files if chosen.get(file.path, False) is not False]
    refused = [file.path for file in wanted if file.is_repository]
    if refused:
        raise MisuseError(f"{', '.join(refused)}: repositories of their own cannot be taken")
    with tempfile.TemporaryDirectory(prefix="swink-take-") as folder:
        env = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        git.do("read-tree", change.base, env=env)
        lines, paths = b"", list[str]()
        for file in wanted:
            mode, blob = file.new_mode, file.new
            if isinstance(content := chosen[file.path], bytes):
                blob = git.do("hash-object", "-w", "--no-filters", "--stdin", input=content)
                mode = file.old_mode if mode == _GONE else mode
            if not _is_there(git, file.path, mode, blob):
                paths.append(file.path)
                lines += f"{mode} {blob}\t".encode() + os.fsencode(file.path) + b"\0"
        if not paths:
            return []
        git.do("update-index", "-z", "--index-info", input=lines, env=env)
        target = git.do("write-tree", env=env)
        patch = os.path.join(folder, "patch")
        how = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        git.do("diff", *how, "--src-prefix=a/", "--dst-prefix=b/", f"--output={patch}", change.base, target)
        _apply(git, change, patch, paths, Path(folder))
    return paths


def _is_there(git: GitProgram, path: str, mode: str, blob: str) -> bool:
    """Whether the main tree has a file like this already."""
    place = git.directory / path
    if mode == _GONE:
        return not os.path.lexists(place)
    if place.is_symlink() or mode == _LINK:
        if not (place.is_symlink() and mode == _LINK):
            return False
        target = os.fsencode(os.readlink(place))
        return git.do("hash-object", "--no-filters", "--stdin", input=target) == blob
    if not place.is_file():
        return False
    is_executable = bool(place.stat().st_mode & 0o100)
    return git.ask("hash-object", "--", path) == blob and (
        os.name != "posix" or is_executable == (mode[-3:] == "755")
    )


def _apply(git: GitProgram, change: TreeChange, patch: str, paths: Sequence[str], folder: Path) -> None:
    try:
        git.do("apply", "--check", "--whitespace=nowarn", patch)
    except GitRefused as error:
        named = ", ".join(clip_list([path for path in paths if path in str(error)] or paths, _NAMED))
        why = f"{named} would overwrite what has changed in {git.directory} meanwhile"
        how = f"commit or stash that first, or swink worktree keep {change.worktree.name} and git merge"
        what = f"nothing was taken: {why} ({error})"
        raise MisuseError(f"{what}; {how} {change.worktree.branch}") from error
    saved = _save(git.directory, paths, folder)
    try:
        git.do("apply", "--whitespace=nowarn", patch)
    except BaseException as error:
        _restore(git.directory, saved)
        if isinstance(error, GitRefused):
            raise MisuseError(f"nothing was taken, all is as it was: {error}") from error
        raise


def _save(top: Path, paths: Sequence[str], folder: Path) -> dict[Path, Path | None]:
    """Copies of files that are about to change; None for those that are not there."""
    saved: dict[Path, Path | None] = {}
    for number, path in enumerate(paths):
        place, copy = top / path, folder / f"was-{number}"
        saved[place] = None
        if os.path.lexists(place):
            shutil.copy2(place, copy, follow_symlinks=False)
            saved[place] = copy
    return saved


def _restore(top: Path, saved: Mapping[Path, Path | None]) -> None:
    for place, copy in saved.items():
        with suppress(OSError):
            if copy is None:
                place.unlink(missing_ok=True)
            elif copy.is_symlink():
                place.unlink(missing_ok=True)
                os.symlink(os.readlink(copy), place)
            else:
                write_whole(place, copy.read_bytes(), private=False, make_parents=True)
                shutil.copystat(copy, place)


def keep_change(git: GitProgram, change: TreeChange) -> str | None:
    """Commit what is not committed to the branch, without hooks; the commit, None if there was nothing."""
    worktree = change.worktree
    take_over_objects(git, worktree)
    if change.tree == git.do("rev-parse", f"{change.tip}^{{tree}}"):
        return None
    here = GitProgram(git.program, worktree.path)
    if here.ask("symbolic-ref", "-q", "HEAD") != f"refs/heads/{worktree.branch}":
        raise MisuseError(f"{worktree.path} has not {worktree.branch} checked out: it stays as it is")
    linked = worktree.linked
    if linked is None or (linked.own / "index").is_symlink():
        raise MisuseError(f"the index of {worktree.path} is a link: it stays as it is")
    made = _commit(git, change)
    git.do("update-ref", "-m", "swink: keep", f"refs/heads/{worktree.branch}", made, change.tip)
    here.do("reset", "--quiet")
    return made


def drop_change(git: GitProgram, change: TreeChange) -> str:
    """Remove directory and branch; the commit that has all of it until git clears up. Blocking."""
    made = change.tip
    if change.tree != git.do("rev-parse", f"{change.tip}^{{tree}}"):
        made = _commit(git, change)
    remove_worktree(git, change.worktree)
    return made


def _commit(git: GitProgram, change: TreeChange) -> str:
    """A commit of the whole change, by the user, or by us where git knows no name."""
    known = git.ask("var", "GIT_COMMITTER_IDENT") is not None
    named = {f"GIT_{who}_NAME": "swink" for who in ("AUTHOR", "COMMITTER")}
    named |= {f"GIT_{who}_EMAIL": "swink@localhost" for who in ("AUTHOR", "COMMITTER")}
    said = f"Work in the worktree {change.worktree.name}"
    return git.do("commit-tree", change.tree, "-p", change.tip, "-m", said, env={} if known else named)
