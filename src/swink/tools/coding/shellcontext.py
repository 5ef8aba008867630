"""The context of a shell command: its directory and environment, and what paths and names mean there."""

import fnmatch
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from swink.system.writable import identify, is_beneath
from swink.tools import ToolError
from swink.tools.coding.credentials import is_known_place, is_unsuspicious, suspect
from swink.tools.coding.secrets import find_home
from swink.tools.coding.syntax import Word
from swink.tools.coding.workspace import PathRefused, Workspace

MAX_ENTRIES = 5_000
"""Directory entries looked at to judge one command; where there are more, it asks."""
MAX_WILDCARDS = 8

_LOADED = ("LD_", "DYLD_", "GCONV_PATH", "LOCPATH")
_CHANGES_ALL = frozenset({
    "POSIXLY_CORRECT", "_POSIX2_VERSION", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_COMPAT",
    "EXECIGNORE", "GLOBIGNORE", "GREP_OPTIONS",
})  # fmt: skip
_CHANGES = {
    "rg": {"RIPGREP_CONFIG_PATH"}, "file": {"MAGIC"}, "jq": {"JQ_LIBRARY_PATH"}, "cd": {"CDPATH"},
    "shasum": {"PERL5LIB", "PERL5OPT", "PERLLIB"},
}  # fmt: skip
_STARTS = {"egrep": "grep", "fgrep": "grep", "shasum": "perl"}
"""Programs that are scripts and have the PATH find another."""
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_MAX_IGNORE_FILE = 64_000
PLAIN_GLOB = re.compile(r"[\w.*?-]+")
_SAFE_START = re.compile(r"[\w./]")


class ShellContext(Struct, frozen=True):
    """The directory, the environment and the sandbox that a command would run in.

    `private` is the directory where the sandbox keeps the commands' home and temp files, if it has one;
    `is_open` means that no sandbox keeps commands from reading secrets in the workspace.
    """

    workspace: Workspace
    directory: str
    environment: Mapping[str, str]
    private: str | None = None
    is_open: bool = False

    def inside(self, path: str) -> bool:
        """Whether reading a path stays in the workspace, out of hidden places, and cannot block."""
        if path in ("", "-", "/dev/null"):
            return True
        full = os.path.join(self.directory, path)
        if suspect(path) == "sure" and not os.path.exists(full):
            return False  # it may be made before the command runs
        try:
            with self.workspace.at(full) as spot:
                found = spot.stat()
                return found is None or stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        except PathRefused:
            return False
        except ToolError:
            return not os.path.exists(full)  # then there is nothing to read

    def reaches(self, path: str) -> bool:
        """Whether what a path leads to is inside and may be told about, though perhaps not read."""
        found = os.path.realpath(os.path.join(self.directory, path))
        return is_beneath(found, str(self.workspace.root)) and not self.workspace.is_hidden(found)

    def holds(self, path: str) -> bool:
        """Whether a path is something inside, itself and not what a link there points to."""
        head, name = os.path.split(path)
        if name in ("", ".", ".."):
            return self.reaches(path)
        return self.reaches(head or ".") and not self.workspace.is_hidden(
            os.path.join(os.path.realpath(os.path.join(self.directory, head)), name)
        )

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(os.path.join(self.directory, path))

    def has_above(self, names: Sequence[str]) -> bool:
        """Whether one of these names is in the directory or above it, up to the workspace's root."""
        directories = self._up_from(self.directory)
        return any(os.path.lexists(os.path.join(top, name)) for top in directories for name in names)

    def _up_from(self, directory: str) -> Iterator[str]:
        """A directory and those above it, up to the workspace's root."""
        while is_beneath(directory, str(self.workspace.root)):
            yield directory
            if directory == "/":
                return
            directory = os.path.dirname(directory)

    def enter(self, path: str) -> "ShellContext | None":
        """The context after `cd path`; None if that is not certain."""
        if not path or path == "-" or ".." in path.split("/"):
            return None
        full = os.path.normpath(os.path.join(self.directory, path))
        try:
            found = self.workspace.directory(full)
        except ToolError:
            return None
        # Through a link the shell and the system disagree about the current directory, and so about `..`.
        return replace(self, directory=found) if found == full else None

    def shows_secrets(self, path: str, *, skips_dots: bool = False, names: Sequence[str] = ()) -> bool:
        """Whether a search through a directory would read hidden files; also if it has too many to check.

        `skips_dots`: the search skips names with a leading dot. `names`: patterns for the files it reads.
        """
        if not self.is_open:
            return False
        left = MAX_ENTRIES
        top = os.path.realpath(os.path.join(self.directory, path))
        wanted = [name for above in self._up_from(os.path.dirname(top)) for name in _read_exceptions(above)]
        for directory, directories, files in os.walk(top):
            if skips_dots:
                wanted += _read_exceptions(directory)
                directories[:] = [name for name in directories if _is_seen(name, wanted)]
                files = [name for name in files if _is_seen(name, wanted)]
            left -= len(directories) + len(files)
            inside = (os.path.join(directory, name) for name in (*directories, *files))
            if left < 0 or any(map(self.workspace.is_hidden, inside)):
                return True
            read = [name for name in files if not names or any(fnmatch.fnmatchcase(name, p) for p in names)]
            suspects = [name for name in read if is_known_place(directory) or not is_unsuspicious(name)]
            left -= 20 * len(suspects)  # these may have to be opened
            if left < 0 or any(self._is_secret(os.path.join(directory, name)) for name in suspects):
                return True
        return False

    def _is_secret(self, path: str) -> bool:
        """Whether a search that comes across this file would read credentials."""
        try:
            return stat.S_ISREG(os.lstat(path).st_mode) and not self.inside(path)
        except OSError:
            return True

    def expand(self, word: Word) -> list[str] | None:
        """The words bash expands a word to; None if uncertain, or if one lies outside (not by a link)."""
        if not word.wild:
            return [word.text]
        top = word.text[: word.text.rfind("/", 0, word.wild[0]) + 1] or "."
        if len(word.wild) > MAX_WILDCARDS or not self.inside(top):
            return None
        parts: list[tuple[str, set[int]]] = []
        start = 0
        for part in word.text.split("/"):
            parts.append((part, {place - start for place in word.wild}))
            start += len(part) + 1
        try:
            found = sorted(_matches(self.directory, "", parts, [MAX_ENTRIES]))
        except _Uncertain:
            return None
        if not found:
            return [word.text]
        return found if all(_SAFE_START.match(name) and self.holds(name) for name in found) else None

    def has_trusted_environment(self) -> bool:
        """Whether no variable makes the shell, the linker or a program do more than its command line says."""
        for name, value in self.environment.items():
            if name in _CHANGES_ALL or name.startswith("BASH_FUNC_"):
                return False
            parts = re.split(r"[:;\s]", value)
            if name.startswith(_LOADED) and value and any(map(self._can_be_planted, parts)):
                return False
        return True

    def reads_bytes_as_text(self) -> bool:
        """Whether the locale leaves no doubt about characters beyond ASCII."""
        names = ("LC_ALL", "LC_CTYPE", "LANG")
        locale = next((self.environment[name] for name in names if self.environment.get(name)), "C")
        return locale in ("C", "POSIX") or "utf" in locale.lower()

    def trusts(self, program: str) -> bool:
        """Whether the program found on the PATH lies where commands cannot write; also if there is none."""
        if _CHANGES.get(program, set()) & self.environment.keys():
            return False
        found = self.find(program)
        if found is not None and (self._is_writable(found) or self._is_writable(os.path.realpath(found))):
            return False
        return program not in _STARTS or self.trusts(_STARTS[program])

    def find(self, program: str) -> str | None:
        """The program that a name means, in the sandbox or outside."""
        for entry in self.environment.get("PATH", os.defpath).split(os.pathsep):
            for directory in self._seen_as(os.path.join(self.directory, entry)):
                candidate = os.path.join(directory, program)
                if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                    return candidate
        return None

    def _seen_as(self, directory: str) -> Iterator[str]:
        """The directories that one on the PATH may be: in a sandbox, home and temp files are elsewhere."""
        if self.private is not None:
            for own, top in (("home", str(find_home())), ("tmp", "/tmp"), ("tmp", "/var/tmp")):
                if is_beneath(directory, top):
                    yield os.path.join(self.private, own, os.path.relpath(directory, top))
        yield directory

    def _can_be_planted(self, part: str) -> bool:
        """Whether a part of a variable is a path that commands may have written to."""
        if part.startswith("/"):
            return self._is_writable(part)
        return part in ("", ".", "..") or "/" in part

    def _is_writable(self, path: str) -> bool:
        """Whether a path lies in the workspace or among temp files, compared by inode and not by name."""
        places = (str(self.workspace.root), tempfile.gettempdir(), self.private or "/tmp")
        tops = [top for top in map(identify, places) if top is not None]
        while identify(path) not in tops:
            parent = os.path.dirname(path)
            if parent == path:
                return False
            path = parent
        return True


def _is_seen(name: str, wanted: Sequence[str]) -> bool:
    """Whether a search that skips names with a leading dot reads this one."""
    return not name.startswith(".") or any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in wanted)


def _read_exceptions(directory: str) -> list[str]:
    """Names that a directory's ignore files un-ignore (`!.env`): ripgrep reads them in spite of their dot."""
    lines: list[str] = []
    for name in _IGNORE_FILES:
        path = os.path.join(directory, name)
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                continue
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(_MAX_IGNORE_FILE)
        except OSError:
            continue
        lines += [*text.split("\n"), *(["!*"] if len(text) == _MAX_IGNORE_FILE else [])]
    negated = [line for line in lines if line.startswith("!")]
    names = [line.strip().rstrip("/").rpartition("/")[2].lstrip("!").lower() for line in negated]
    return [name if PLAIN_GLOB.fullmatch(name) else "*" for name in names]


class _Uncertain(Exception):
    pass


def _matches(base: str, before: str, parts: list[tuple[str, set[int]]], left: list[int]) -> Iterator[str]:
    """The paths that match wildcards, part by part as in bash: only a dot matches a leading dot."""
    (part, wild), rest = parts[0], parts[1:]
    here = os.path.join(base, before)
    if not any(0 <= place < len(part) for place in wild):
        names = [part] if not part or os.path.lexists(os.path.join(here, part)) else []
    else:
        names = _in_directory(here, part, wild, left)
    for name in names:
        path = before + name
        if not rest:
            yield path
        elif os.path.isdir(os.path.join(base, path)) or not path:
            yield from _matches(base, path + "/", rest, left)


def _in_directory(directory: str, part: str, wild: set[int], left: list[int]) -> list[str]:
    literal = {at for at, char in enumerate(part) if char in "*?[" and at not in wild}
    glob = "".join(f"[{char}]" if at in literal else char for at, char in enumerate(part))
    pattern, has_dot = re.compile(fnmatch.translate(glob)), part.startswith(".")
    if has_dot and pattern.match(".."):  # which some versions of bash find, too
        raise _Uncertain
    try:
        entries = os.listdir(directory or ".")
    except OSError:
        return []
    left[0] -= len(entries)
    # In some locales `?` is a character, in others a byte.
    if left[0] < 0 or ("?" in part and not all(name.isascii() for name in entries)):
        raise _Uncertain
    return [name for name in entries if pattern.match(name) and (has_dot or not name.startswith("."))]
