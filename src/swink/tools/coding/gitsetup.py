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
from msgspec.structs import replace

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
_MOST_PUSHED = 20
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
    directory = found[0]
    form = _read_form(found[1], found[2])
    if form is None:
        return None
    name, arguments = form
    if name == "init":
        return _init(arguments, directory, root)
    made = {setup.git: setup.branch for setup in ahead if setup.branch is not None}
    git = find_repository(directory, root, made)
    if git is None:
        return None
    configuration = Configuration(git, [line for setup in ahead if setup.git == git for line in setup.lines])
    parse = {"remote add": _remote_add, "remote set-url": _set_url, "config": _config, "branch": _branch}
    if name == "push":
        return _push(arguments, found[2], configuration, made.get(git), is_sure=not ahead)
    return parse[name](arguments, configuration)


def may_write(words: Sequence[str]) -> bool:
    """Whether a command writes something in some workspace, whatever is in this one now."""
    rest = skip_directories(words)
    form = _read_form(rest[0], rest[1:]) if rest else None
    if form is None:
        return False
    name, arguments = form
    try:
        match name, arguments.operands:
            case "config", _:
                check_line(_config_line(arguments))
            case "remote add" | "remote set-url", (remote, url):
                check_line(ConfigLine("remote", remote, "url", url))
            case _:
                pass
    except (SetupRefused, GitFailed):
        return False
    return True


def _read_form(name: str, words: Sequence[str]) -> tuple[str, Arguments] | None:
    """The name and the arguments of a command that is one of those above."""
    if name == "remote" and words:
        name, words = f"remote {words[0]}", words[1:]
    arguments = read_arguments(_OPTIONS[name], words) if name in _OPTIONS else None
    if arguments is None:
        return None
    count, options = len(arguments.operands), arguments.options.keys()
    match name:
        case "init":
            is_known = count < 2
        case "branch":
            is_known = count < 2 and sum(map(len, arguments.options.values())) == 1
        case "push":
            is_known = bool(options & {"-u", "--set-upstream"}) and not options & {"-d", "--delete", "--tags"}
            is_known = is_known and count <= _MOST_PUSHED
        case _:
            is_known = count == 2
    return (name, arguments) if is_known else None


def skip_directories(words: Sequence[str]) -> list[str]:
    """The words of a git command from its name on; empty if it is none."""
    rest = list(words[1:]) if words and words[0] == "git" else []
    while len(rest) > 2 and rest[0] == "-C":
        rest = rest[2:]
    return rest


def split_git(words: Sequence[str], directory: str, root: str) -> tuple[str, str, list[str]] | None:
    """The directory, the name and the words of a git command; None with other options before the name."""
    rest = skip_directories(words)
    if not rest:
        return None
    given = words[1 : len(words) - len(rest)]
    directory = os.path.realpath(os.path.join(directory, *given[1::2]))
    if not os.path.isdir(directory):
        raise GitFailed(f"fatal: cannot change to '{directory}': No such file or directory", 128)
    if not (directory == root or directory.startswith(f"{root}/")):
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


def _remote_add(arguments: Arguments, configuration: Configuration) -> GitSetup:
    name, url = arguments.operands
    if not _BRANCH.fullmatch(name):
        raise GitFailed(f"fatal: '{name}' is not a valid remote name", 128)
    if name in configuration.remotes:
        raise GitFailed(f"error: remote {name} already exists.", 3)
    fetch = f"+refs/heads/*:refs/remotes/{name}/*"
    return _lines(
        configuration, ConfigLine("remote", name, "url", url), ConfigLine("remote", name, "fetch", fetch)
    )


def _set_url(arguments: Arguments, configuration: Configuration) -> GitSetup:
    name, url = arguments.operands
    if name not in configuration.remotes:
        raise GitFailed(f"error: No such remote '{name}'", 2)
    return _lines(configuration, ConfigLine("remote", name, "pushurl" if arguments.options else "url", url))


def _config(arguments: Arguments, configuration: Configuration) -> GitSetup:
    return _lines(configuration, _config_line(arguments))


def _config_line(arguments: Arguments) -> ConfigLine:
    name, value = arguments.operands
    section, _, rest = name.partition(".")
    middle, _, key = rest.rpartition(".")
    if not section or not key:
        raise GitFailed(f"error: key does not contain a section: {name}", 1)
    return ConfigLine(section.lower(), middle or None, key, value)


def _branch(arguments: Arguments, configuration: Configuration) -> GitSetup | None:
    given = [*arguments.options.get("-u", ()), *arguments.options.get("--set-upstream-to", ())]
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
    kept = (ConfigLine("branch", branch, "remote", remote), ConfigLine("branch", branch, "merge", merge))
    return replace(_lines(configuration, *kept), said=said)


def _lines(configuration: Configuration, *lines: ConfigLine) -> GitSetup:
    return GitSetup(configuration.git, tuple(map(check_line, lines)))
