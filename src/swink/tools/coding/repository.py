"""A repository: whether git commands that only look would run no other program there.

A repository's configuration names programs that git runs (fsmonitor, filters, text conversions, hooks), and
git uses the nearest repository above the working directory, even a bare one among ordinary files. So git is
trusted only with the workspace's own `.git`, a plain directory whose configuration has only settings known to
run nothing; or where there is no repository at all.
"""

import os
import re
import stat
from collections.abc import Iterator

from msgspec import Struct

from swink.system.writable import is_beneath
from swink.tools.coding.gitindex import has_submodules, read_whole
from swink.tools.coding.secrets import find_home
from swink.tools.coding.shellcontext import ShellContext

MAX_CONFIGURATION = 256_000
MAX_INDEX = 32_000_000

_VARIABLES = re.compile(
    r"GIT_(?:PAGER|OPTIONAL_LOCKS|TERMINAL_PROMPT|EDITOR|SEQUENCE_EDITOR|ASKPASS|SSH|SSH_COMMAND|SSH_VARIANT"
    r"|(?:SSL|HTTP|PROXY)_\w+|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE))"
)
"""Variables that only matter to commits, terminals and networks."""
_HEADER = re.compile(r'[ \t]*\[([A-Za-z0-9-]+)(?:[ \t]+"([^"\\]*)")?\][ \t]*')
_SETTING = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=([^\\\x00-\x08\x0a-\x1f]*))?")
_COMMENT = re.compile(r"[ \t]*(?:[#;][^\x00-\x08\x0b-\x1f]*)?")

_BARE = ("HEAD", "commondir")
_PERSONAL = (".gitconfig", ".config/git/config")
_HEAD = re.compile(rb"(?:ref: refs/[^\x00-\x20\x7f]+|[0-9a-f]{40}|[0-9a-f]{64})\s*")
_PLAIN_PATH = re.compile(r"[\w./-]+")

_HARMLESS_SECTIONS = frozenset({
    "advice", "alias", "branch", "color", "commit", "credential", "fetch", "gc", "github", "gui", "http",
    "init", "maintenance", "pack", "pull", "push", "rebase", "receive", "rerere", "submodule", "tag", "url",
    "user",
})  # fmt: skip
_HARMLESS = {
    "core": frozenset({
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
        "symlinks", "autocrlf", "safecrlf", "eol", "quotepath", "abbrev", "compression", "longpaths",
        "untrackedcache", "fscache", "preloadindex", "whitespace", "commentchar", "checkstat", "trustctime",
        "protectntfs", "protecthfs", "sharedrepository", "bigfilethreshold", "hookspath",
    }),
    "lfs": frozenset({"repositoryformatversion", "url", "pushurl", "access", "locksverify"}),
    "remote": frozenset({
        "url", "pushurl", "fetch", "push", "tagopt", "prune", "mirror", "gh-resolved", "skipdefaultupdate",
    }),
    "diff": frozenset({
        "algorithm", "renames", "renamelimit", "colormoved", "colormovedws", "mnemonicprefix", "noprefix",
        "context", "interhunkcontext", "tool", "wserrorhighlight", "indentheuristic", "statgraphwidth",
    }),
    "merge": frozenset({
        "ff", "conflictstyle", "tool", "log", "renames", "stat", "autostash", "verifysignatures",
    }),
    "status": frozenset({
        "short", "branch", "showuntrackedfiles", "showstash", "aheadbehind", "relativepaths", "renames",
    }),
    "log": frozenset({"date", "decorate", "abbrevcommit", "follow", "graphcolors"}),
    "extensions": frozenset({"objectformat"}), "index": frozenset({"version", "threads"}),
    "feature": frozenset({"manyfiles"}),
}  # fmt: skip
"""Settings with which looking commands run no program; hooks are checked where `hookspath` says."""


class ConfigSetting(Struct, frozen=True):
    """One line of a configuration: section, its name if it has one, key and value."""

    section: str
    name: str | None
    key: str
    value: str


def is_quiet(shell: ShellContext) -> bool:
    """Whether a looking git command, run there, would run no program that a file names."""
    if any(name.startswith("GIT_") and not _VARIABLES.fullmatch(name) for name in shell.environment):
        return False
    root = str(shell.workspace.root)
    directory = shell.directory
    while directory != root:
        if not is_beneath(directory, root) or _has_repository(directory):
            return False
        directory = os.path.dirname(directory)
    git = os.path.join(root, ".git")
    try:
        if not all(
            map(_is_harmless, (setting for path in _personal(shell) for setting in read_configuration(path)))
        ):
            return False
        if not os.path.lexists(git) or _is_reserved(git):
            return not any(os.path.lexists(os.path.join(root, name)) for name in _BARE) and not any(
                map(_has_repository, _above(root))
            )
        settings = read_configuration(os.path.join(git, "config"))
        return _is_plain(git) and all(map(_is_harmless, settings)) and not _has_hook(root, git, settings)
    except (OSError, ValueError):
        return False


def _is_reserved(git: str) -> bool:
    """Whether this is a placeholder of a sandboxed command: an empty directory, no repository to git."""
    return os.path.isdir(git) and not os.path.islink(git) and not os.listdir(git)


def _has_repository(directory: str) -> bool:
    """Whether git could take a directory for a repository, or for the place of one."""
    return any(os.path.lexists(os.path.join(directory, name)) for name in (".git", *_BARE))


def _above(directory: str) -> Iterator[str]:
    while (parent := os.path.dirname(directory)) != directory:
        directory = parent
        yield directory


def _personal(shell: ShellContext) -> Iterator[str]:
    """The user's configuration files that commands can write: in the workspace, or in the sandbox's home."""
    home = str(find_home())
    found = [os.path.join(top, ".gitconfig") for top in (shell.environment.get("HOME", home), home)]
    found.append(os.path.join(home, ".config/git/config"))
    if folder := shell.environment.get("XDG_CONFIG_HOME"):
        found.append(os.path.join(folder, "git/config"))
    yield from (path for path in found if is_beneath(os.path.realpath(path), str(shell.workspace.root)))
    if shell.private is not None:
        yield from (os.path.join(shell.private, "home", name) for name in _PERSONAL)


def _is_plain(git: str) -> bool:
    """Whether this directory holds a whole repository: no links, no objects elsewhere, no submodules."""
    if not stat.S_ISDIR(os.lstat(git).st_mode):
        return False
    with os.scandir(git) as entries:
        kinds = {entry.name: entry.stat(follow_symlinks=False).st_mode for entry in entries}
    if any(not stat.S_ISDIR(mode) and not stat.S_ISREG(mode) for mode in kinds.values()):
        return False
    if not all(stat.S_ISDIR(kinds.get(name, 0)) for name in ("objects", "refs")) or "HEAD" not in kinds:
        return False
    # While a sandboxed command runs, a placeholder names the repository itself as its common directory.
    if "commondir" in kinds and read_whole(os.path.join(git, "commondir"), 1_000) != b".\n":
        return False
    if any(name.startswith("sharedindex.") for name in kinds):
        return False
    info = os.path.join(git, "objects/info")
    if any(os.path.lexists(os.path.join(info, name)) for name in ("alternates", "http-alternates")):
        return False
    if not _HEAD.fullmatch(read_whole(os.path.join(git, "HEAD"), 1_000)):
        return False  # git would take it for no repository, and look further up
    return "index" not in kinds or not has_submodules(read_whole(os.path.join(git, "index"), MAX_INDEX))


def read_configuration(path: str) -> list[ConfigSetting]:
    """The settings of a configuration file, if it exists; ValueError for any line that is not simple."""
    return parse_configuration(read_whole(path, MAX_CONFIGURATION)) if os.path.lexists(path) else []


def parse_configuration(data: bytes) -> list[ConfigSetting]:
    """The settings that a configuration file holds; ValueError for any line that is not simple."""
    found: list[ConfigSetting] = []
    section, name = "", None
    for line in data.decode().split("\n"):
        line = line.removesuffix("\r")
        if header := _HEADER.fullmatch(line):
            section, name = header[1].lower(), header[2]
        elif setting := _SETTING.fullmatch(line):
            found.append(ConfigSetting(section, name, setting[1].lower(), (setting[2] or "").strip()))
        elif not _COMMENT.fullmatch(line):
            raise ValueError(line)
    return found


def _is_harmless(setting: ConfigSetting) -> bool:
    if setting.value.lstrip('"').startswith("!"):
        return False
    if setting.section == "alias" and "whatchanged" in (setting.key, (setting.name or "").lower()):
        return False  # a command of git's that later versions let an alias replace
    if setting.section in _HARMLESS_SECTIONS:
        return True
    if setting.section != "lfs" and (setting.name is not None) != (setting.section == "remote"):
        return False
    if (setting.section, setting.key) == ("core", "bare"):
        return setting.value.lower() == "false"
    return setting.key in _HARMLESS.get(setting.section, ())


def _has_hook(root: str, git: str, settings: list[ConfigSetting]) -> bool:
    """Whether there is a hook for refreshing the index, in the usual place or the configured one."""
    values = [setting.value for setting in settings if setting.key == "hookspath"]
    if not all(_PLAIN_PATH.fullmatch(value) for value in values):
        return True
    places = [os.path.join(git, "hooks"), *(os.path.join(root, value) for value in values)]
    return any(os.path.lexists(os.path.join(folder, "post-index-change")) for folder in places)
