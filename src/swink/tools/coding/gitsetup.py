"""Git commands that set a repository up, carried out by us: the sandbox keeps `.git/config` read-only.

    git init [-b BRANCH] [DIR]                a new `.git`
    git remote add | set-url NAME URL         the lines of a remote
    git config NAME VALUE                     one harmless line
    git branch -u REMOTE/BRANCH [BRANCH]      the lines of a branch
    git push -u REMOTE BRANCH…                the push elsewhere, then the lines of a branch

A command in any other form is none of these, and runs in the sandbox. What would make git run a program is
refused with the reason.
"""

import os
import re
from collections.abc import Sequence

from msgspec import Struct

from swink.tools.coding.gitconfiguration import (
    ConfigLine,
    Configuration,
    check_line,
    find_repository,
    read_ref,
)
from swink.tools.coding.gitfolder import GitFolder, SetupRefused
from swink.tools.coding.options import Arguments, OptionTable, declare_options, read_arguments
from swink.tools.coding.secrets import find_home
from swink.tools.coding.supervisor import gitconfig

_BRANCH = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$))[\w][\w./+-]*(?<![./])")
_CONFIG = (
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
)
_FOLDERS = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info")
_OPTIONS: dict[str, OptionTable] = {
    "init": declare_options("-q -b=text --quiet --initial-branch=text"),
    "remote add": declare_options(""),
    "remote set-url": declare_options("--push"),
    "config": declare_options("--local"),
    "branch": declare_options("-u=text --set-upstream-to=text"),
    "push": declare_options("-uqvfd --set-upstream --quiet --verbose --force --delete --tags --progress"),
}


class GitSetup(Struct, frozen=True):
    """What a command writes outside the sandbox, and what it says then."""

    git: GitFolder
    lines: tuple[ConfigLine, ...] = ()
    branch: str | None = None
    """The first branch of a repository that is made; None if it exists."""
    push: tuple[str, ...] = ()
    """The words of a push that comes first, without `-u`."""
    said: str = ""

    def describe(self, root: str) -> str:
        """What it writes, for the person who is asked."""
        config = os.path.relpath(os.path.join(self.git.path, "config"), root)
        made = "" if self.branch is None else f"makes a git repository in {self.git.directory}"
        lines = f"writes to {config}: {'; '.join(map(str, self.lines))}" if self.lines else ""
        after = " if the push succeeds" if self.push and lines else ""
        return " and ".join(filter(None, (made, lines))) + after


class GitFailed(Exception):
    """What git would say of a command that cannot be done, and its exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def parse_setup(
    words: Sequence[str], directory: str, root: str, ahead: Sequence[GitSetup] = ()
) -> GitSetup | None:
    """What a git command writes, after those `ahead` of it; None if it is none of those above.

    Raises `SetupRefused` for what is not written, and `GitFailed` for what git would refuse. Blocking.
    """
    found = split_git(words, directory, root)
    if found is None:
        return None
    directory, name, rest = found
    if name == "remote" and rest:
        name, rest = f"remote {rest[0]}", rest[1:]
    arguments = read_arguments(_OPTIONS[name], rest) if name in _OPTIONS else None
    if arguments is None:
        return None
    if name == "init":
        return _init(arguments, directory, root)
    if name == "push" and not {"-u", "--set-upstream"} & arguments.options.keys():
        return None
    if (name == "branch" and not arguments.options) or (name == "config" and len(arguments.operands) != 2):
        return None
    made = {setup.git: setup.branch for setup in ahead if setup.branch is not None}
    git = find_repository(directory, root, made)
    if git is None:
        return None
    configuration = Configuration(git, [line for setup in ahead if setup.git == git for line in setup.lines])
    parse = {"remote add": _remote_add, "remote set-url": _set_url, "config": _config, "branch": _branch}
    if name == "push":
        return _push(arguments, rest, configuration, made.get(git), is_sure=not ahead)
    return parse[name](arguments, configuration)


def split_git(words: Sequence[str], directory: str, root: str) -> tuple[str, str, list[str]] | None:
    """The directory, the name and the words of a git command; None with other options before the name."""
    if not words or words[0] != "git":
        return None
    rest = list(words[1:])
    while len(rest) > 2 and rest[0] == "-C":
        directory, rest = os.path.join(directory, rest[1]), rest[2:]
    directory = os.path.realpath(directory)
    if not os.path.isdir(directory):
        raise GitFailed(f"fatal: cannot change to '{directory}': No such file or directory", 128)
    if not rest or not (directory == root or directory.startswith(f"{root}/")):
        return None
    return directory, rest[0], rest[1:]


def carry_out(setup: GitSetup) -> None:
    """Write what a command writes. Blocking."""
    try:
        if setup.branch is not None:
            head = f"ref: refs/heads/{setup.branch}\n"
            setup.git.make(_FOLDERS, {"HEAD": head, "config": _CONFIG, "description": "Unnamed repository\n"})
        if setup.lines:
            Configuration(setup.git).write(setup.lines)
    except OSError as error:
        raise SetupRefused(f"{setup.git.path} could not be written: {error.strerror or error}") from error


def current_branch(git: GitFolder) -> str:
    """The branch that is checked out; raises `GitFailed` if none is."""
    head = read_ref(git, "HEAD") or ""
    if not head.startswith("ref: refs/heads/"):
        raise GitFailed("fatal: You are not currently on a branch.", 128)
    return head.removeprefix("ref: refs/heads/")


def _init(arguments: Arguments, directory: str, root: str) -> GitSetup | None:
    if len(arguments.operands) > 1:
        return None
    place = os.path.realpath(os.path.join(directory, *arguments.operands))
    if not (place == root or place.startswith(f"{root}/")) or "/.git/" in f"{place}/":
        return None
    git = os.path.join(place, ".git")
    exists = os.path.lexists(git) and not (
        os.path.isdir(git) and not os.path.islink(git) and not os.listdir(git)
    )
    given = [*arguments.options.get("-b", ()), *arguments.options.get("--initial-branch", ())]
    branch = given[-1] if given else _usual_branch()
    if not _BRANCH.fullmatch(branch):
        raise GitFailed(f"fatal: invalid initial branch name: '{branch}'", 128)
    how = "Reinitialized existing" if exists else "Initialized empty"
    quiet = {"-q", "--quiet"} & arguments.options.keys()
    said = "" if quiet else f"{how} Git repository in {git}/\n"
    return GitSetup(GitFolder(root, git), branch=None if exists else branch, said=said)


def _usual_branch() -> str:
    """The first branch as the user's configuration has it."""
    for path in (".gitconfig", ".config/git/config"):
        try:
            with open(os.path.join(find_home(), path), encoding="utf-8", errors="replace") as file:
                found = dict(gitconfig.read_settings(file.read(1 << 18)))
        except OSError:
            continue
        if "init.defaultbranch" in found:
            return found["init.defaultbranch"]
    return "master"


def _remote_add(arguments: Arguments, configuration: Configuration) -> GitSetup | None:
    if len(arguments.operands) != 2:
        return None
    name, url = arguments.operands
    if not _BRANCH.fullmatch(name):
        raise GitFailed(f"fatal: '{name}' is not a valid remote name", 128)
    if name in configuration.remotes:
        raise GitFailed(f"error: remote {name} already exists.", 3)
    fetch = f"+refs/heads/*:refs/remotes/{name}/*"
    return _lines(configuration, ("remote", name, "url", url), ("remote", name, "fetch", fetch))


def _set_url(arguments: Arguments, configuration: Configuration) -> GitSetup | None:
    if len(arguments.operands) != 2:
        return None
    name, url = arguments.operands
    if name not in configuration.remotes:
        raise GitFailed(f"error: No such remote '{name}'", 2)
    return _lines(configuration, ("remote", name, "pushurl" if arguments.options else "url", url))


def _config(arguments: Arguments, configuration: Configuration) -> GitSetup | None:
    name, value = arguments.operands
    section, _, rest = name.partition(".")
    middle, _, key = rest.rpartition(".")
    if not section or not key:
        raise GitFailed(f"error: key does not contain a section: {name}", 1)
    return _lines(configuration, (section.lower(), middle or None, key, value))


def _branch(arguments: Arguments, configuration: Configuration) -> GitSetup | None:
    given = [*arguments.options.get("-u", ()), *arguments.options.get("--set-upstream-to", ())]
    if len(given) != 1 or len(arguments.operands) > 1:
        return None
    branch = arguments.operands[0] if arguments.operands else current_branch(configuration.git)
    for remote in sorted(configuration.remotes, key=len, reverse=True):
        merge = given[0].removeprefix("refs/remotes/").removeprefix(f"{remote}/")
        if given[0].removeprefix("refs/remotes/") != merge and _BRANCH.fullmatch(merge):
            if read_ref(configuration.git, f"refs/remotes/{remote}/{merge}") is None:
                raise GitFailed(f"fatal: the requested upstream branch '{given[0]}' does not exist", 128)
            said = f"branch '{branch}' set up to track '{given[0]}'.\n"
            return _track(configuration, branch, remote, f"refs/heads/{merge}", said)
    return None


def _push(
    arguments: Arguments,
    words: Sequence[str],
    configuration: Configuration,
    first: str | None,
    *,
    is_sure: bool,
) -> GitSetup | None:
    """`first` is the branch of a repository that is not there yet; unless sure, others may be made before."""
    git, operands = configuration.git, list(arguments.operands)
    if arguments.options.keys() & {"-d", "--delete", "--tags"}:
        return None
    remote = operands[0] if operands else "origin"
    if remote not in configuration.remotes:
        return None  # a URL has no lines to write, and an unknown name fails as git says it
    lines: list[ConfigLine] = []
    said = ""
    for spec in operands[1:] or ["HEAD"]:
        source, _, target = spec.removeprefix("+").partition(":")
        branch = (first or current_branch(git)) if source == "HEAD" else source.removeprefix("refs/heads/")
        if not branch or (is_sure and read_ref(git, f"refs/heads/{branch}") is None):
            continue  # a tag, or nothing that git finds
        merge = (target or branch).removeprefix("refs/heads/")
        lines += _track(configuration, branch, remote, f"refs/heads/{merge}").lines
        said += f"branch '{branch}' set up to track '{remote}/{merge}'.\n"
    kept = [word for word in words if word not in ("-u", "--set-upstream")]
    if any(re.fullmatch(r"-[a-z]*u[a-z]*", word) for word in kept):
        raise SetupRefused("write -u as a word of its own")
    specs = () if operands[1:] else ((remote,) if not operands else ()) + ("HEAD",)
    return GitSetup(git, tuple(lines), push=("push", *kept, *specs), said=said)


def _track(configuration: Configuration, branch: str, remote: str, merge: str, said: str = "") -> GitSetup:
    if not _BRANCH.fullmatch(branch) or not _BRANCH.fullmatch(merge):
        raise SetupRefused(f"{branch!r} is no name of a branch that is written here")
    setup = _lines(configuration, ("branch", branch, "remote", remote), ("branch", branch, "merge", merge))
    return GitSetup(setup.git, setup.lines, said=said)


def _lines(configuration: Configuration, *lines: tuple[str, str | None, str, str]) -> GitSetup:
    return GitSetup(configuration.git, tuple(check_line(ConfigLine(*line)) for line in lines))
