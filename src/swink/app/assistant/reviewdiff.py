"""A diff to review: what git says is different, asked so that git starts no other program.

nothing    the working tree against the last commit, files that git does not know yet included
a branch   what is here since it left that branch; if that is ahead of what is here, what it has more
a commit   what it changed
"""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from swink.errors import MisuseError
from swink.messages.redact import redact_text
from swink.system.programs import find_program
from swink.system.threads import in_thread
from swink.tools import ToolError
from swink.tools.coding import Workspace
from swink.tools.coding.credentials import suspect
from swink.tools.coding.process import Limits, build_shell_argv, run
from swink.tools.coding.sandbox import Sandbox, SandboxUnavailable
from swink.tools.coding.text import detect

MOST = 200_000
"""Characters of a diff that a model is given."""
MOST_OF_FILE = 50_000
"""Characters of the diff of one file: a file that a program wrote must not take the place of the others."""
_MOST_OUTPUT = 4_000_000
_MOST_NEW = 300
_LARGEST_NEW = 100_000
_LIMITS = Limits(wall=60.0)
_QUIET = (
    "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
    "-c", "core.quotePath=false", "-c", "core.safecrlf=false",
)  # fmt: skip
_DIFF = (
    "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--relative", "--src-prefix=a/",
    "--dst-prefix=b/", "--ignore-submodules=dirty", "--submodule=short", "--unified=5",
)  # fmt: skip
_SECTION = "diff --git "


class ReviewDiff(Struct, frozen=True):
    """A diff: of what it is, its text and its files; `left_out` are those that the text does not show."""

    what: str
    text: str
    files: tuple[str, ...]
    left_out: tuple[str, ...] = ()


async def read_diff(
    reference: str, directory: Path, sandbox: Sandbox, hidden: Sequence[Path] = ()
) -> ReviewDiff:
    """The diff that a reference names; raises `MisuseError` if there is none, with the reason.

    git runs in the sandbox: its configuration may name filters for the files of the working tree.
    """
    git = _Git(directory, sandbox)
    await git.check_place()
    head = await git.name("HEAD^{commit}") or await git.empty_tree()
    what, between, is_worktree = await _choose(git, reference, head)
    workspace = Workspace(directory, hidden)
    changed = await git.names(*_DIFF, "--name-only", "-z", *between)
    new = await git.names("ls-files", "--others", "--exclude-standard", "-z") if is_worktree else []
    if not changed and not new:
        raise MisuseError(f"there is nothing to review: {what} has no change")
    secret = [name for name in changed if await in_thread(_is_secret, workspace, name)]
    shown = [name for name in changed if name not in secret]
    without = [f":(exclude,literal){name}" for name in secret]
    text = await git.output(*_DIFF, *between, "--", ".", *without) if shown else ""
    sections = [f"{_SECTION}{part}" for part in text.split(f"\n{_SECTION}")]
    sections[0] = sections[0].removeprefix(_SECTION)
    texts = dict(zip(shown, sections, strict=False))
    texts |= await in_thread(_new_sections, workspace, new[:_MOST_NEW])
    return _fit(what, [*changed, *new], texts)


def find_git_places(project: Path) -> list[Path]:
    """Where a repository is that is not in the project itself: of a worktree, or a submodule. Blocking."""
    try:
        if not (project / ".git").is_file():
            return []
        place = project / (project / ".git").read_text().removeprefix("gitdir:").strip()
        common = place / "commondir"
        shared = [place / common.read_text().strip()] if common.is_file() else []
    except (OSError, ValueError):
        return []
    return [Path(os.path.realpath(found)) for found in (place, *shared)]


async def _choose(git: "_Git", reference: str, head: str) -> tuple[str, list[str], bool]:
    """What is reviewed in words, what git compares, and whether files that it does not know belong to it."""
    if not reference:
        return "the working tree", [head], True
    if reference.startswith("-") or not reference.isprintable() or " " in reference:
        raise MisuseError(f"{reference!r} is no branch or commit; /review takes the name of one, or nothing")
    found = await git.name(f"{reference}^{{commit}}")
    if found is None:
        raise MisuseError(f"there is no branch or commit {reference!r}; git branch --all lists the branches")
    if not await git.is_branch(reference):
        before = await git.name(f"{found}^") or await git.empty_tree()
        return f"the commit {reference}", [before, found], False
    base = await git.merge_base(head, found)
    if base is None:
        raise MisuseError(f"{reference} and what is checked out here have no commit in common")
    if base == head != found:
        return f"what {reference} has and the branch here has not", [base, found], False
    return f"what is here since it left {reference}", [base], True


class _Git:
    """Runs git in a directory, in the sandbox."""

    def __init__(self, directory: Path, sandbox: Sandbox) -> None:
        self._directory = directory
        self._sandbox = sandbox
        program = find_program("git")
        if program is None:
            raise MisuseError("git is not installed; /review needs it")
        self._program = program

    async def check_place(self) -> None:
        """Raise `MisuseError` if this is no working tree."""
        code, said = await self._run("rev-parse", "--is-inside-work-tree", errors="2>&1")
        if code or said.strip() != "true":
            reason = said.strip().partition("\n")[0].removeprefix("fatal: ") or "this is no working tree"
            raise MisuseError(f"there is nothing to review: git says {reason!r}")

    async def name(self, revision: str) -> str | None:
        """The object that a revision names."""
        code, said = await self._run("rev-parse", "--verify", "--quiet", revision)
        return said.strip() if not code else None

    async def is_branch(self, name: str) -> bool:
        places = (f"refs/heads/{name}", f"refs/remotes/{name}")
        return name != "HEAD" and any([await self.name(place) is not None for place in places])

    async def empty_tree(self) -> str:
        """The tree without files, which the first commit is compared with."""
        return (await self.output("hash-object", "-t", "tree", "/dev/null")).strip()

    async def merge_base(self, one: str, other: str) -> str | None:
        code, said = await self._run("merge-base", one, other)
        return said.split()[0] if not code and said.split() else None

    async def names(self, *words: str) -> list[str]:
        """Names that git writes with a NUL after each."""
        return [name for name in dict.fromkeys((await self.output(*words)).split("\0")) if name]

    async def output(self, *words: str) -> str:
        code, said = await self._run(*words)
        if code:
            raise MisuseError(f"git {words[0]} failed with exit code {code}; !git {words[0]} shows why")
        return said

    async def _run(self, *words: str, errors: str = "2>/dev/null") -> tuple[int, str]:
        argv = build_shell_argv(f"exec {shlex.join([self._program, *_QUIET, *words])} {errors}")
        try:
            launch = await self._sandbox.launch(argv, self._directory, limits=_LIMITS)
        except SandboxUnavailable as error:
            how = "git is sandboxed for a review; where no sandbox works it runs only if you trust the folder"
            raise MisuseError(f"{how}: {error}") from error
        mine = {name: value for name, value in launch.env.items() if not name.startswith("GIT_")}
        launch = replace(launch, env={**mine, "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"})
        kept = bytearray()

        def keep(data: bytes) -> None:
            kept.extend(data[: max(0, _MOST_OUTPUT - len(kept))])

        status = await run(launch, keep)
        if status.reason is not None:
            raise MisuseError(f"git {words[0]} was ended ({status.reason}); review less, such as one commit")
        return status.code, kept.decode("utf-8", "replace")


def _is_secret(workspace: Workspace, name: str) -> bool:
    """Whether tools may not read a file, or could not if it were there still."""
    if suspect(name) == "sure" or workspace.is_hidden(name):
        return True
    if not os.path.isfile(workspace.root / name) or os.path.islink(workspace.root / name):
        return False  # git shows where a link points to, not what is there
    try:
        with workspace.at(name) as spot:
            return not workspace.may_show(spot)
    except ToolError:
        return True


def _new_sections(workspace: Workspace, names: Sequence[str]) -> dict[str, str]:
    """New files as git would show them; what may not be read, or is no text, is left out."""
    found: dict[str, str] = {}
    left = MOST
    for name in names:
        try:
            with workspace.at(name, follow=False) as spot, os.fdopen(spot.open_file(), "rb") as file:
                data = file.read(_LARGEST_NEW + 1) if workspace.may_show(spot) else b"\0"
        except (ToolError, OSError):
            continue
        encoding = detect(data)
        if encoding is None or len(data) > _LARGEST_NEW or left <= 0:
            continue
        lines = encoding.decode(data).splitlines()
        added = "".join(f"\n+{line}" for line in lines)
        found[name] = (
            f"{_SECTION}a/{name} b/{name}\nnew file\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@{added}"
        )
        left -= len(added)
    return found


def _fit(what: str, files: Sequence[str], texts: dict[str, str]) -> ReviewDiff:
    """The diff with as many files as there is room for, of each as much as one may have."""
    shown: list[str] = []
    left, left_out = MOST, [name for name in files if name not in texts]
    for name, text in texts.items():
        is_long = len(text) > MOST_OF_FILE
        part = f"{text[:MOST_OF_FILE]}\n[the diff of this file is cut here]" if is_long else text
        if len(part) > left:
            left_out.append(name)
            continue
        shown.append(part)
        left -= len(part) + 1
        left_out += [f"{name} (in part)"] if is_long else []
    return ReviewDiff(what, redact_text("\n".join(shown)), tuple(files), tuple(left_out))
