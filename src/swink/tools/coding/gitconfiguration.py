"""The configuration of a repository as we read and write it: plain lines, none that runs programs.

It is written as git does it: the whole file as `config.lock`, then renamed. A file with lines that are not
plain (continued, escaped, quoted) is left alone.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from swink.messages.redact import redact_text
from swink.tools.coding.domains import canonicalize
from swink.tools.coding.gitfolder import GitFolder, SetupRefused
from swink.tools.coding.repository import ConfigSetting, parse_configuration
from swink.tools.coding.supervisor.gitconfig import is_harmless
from swink.tools.coding.wishes import Wish

_HEADER = re.compile(r'[ \t]*\[([A-Za-z0-9-]+)(?:[ \t]+"([^"\\]*)")?\][ \t]*')
_KEY = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=|$)")
_NAME = re.compile(r"[\w][\w./+-]*")
_URL = re.compile(r"(?:https?|ssh|git)://(?!-)[^\s\x00-\x1f]+", re.I)
_SCP = re.compile(r"(?:[\w.+-]+@)?(?!-)[\w.-]+:(?!:|//)[^\s\x00-\x1f]+")
_AUTHORITY = re.compile(
    r"(\w+)://(?:([^@/?#\\\s]*)@)?(\[[0-9a-f:.]+\]|[\w.-]+)(?::([0-9]{1,5}))?(?:/.*)?", re.I | re.S
)
_PORTS = {"ssh": 22, "http": 80, "https": 443, "git": 9418}
_KEPT = frozenset({
    "core.worktree", "core.bare", "core.repositoryformatversion", "commit.gpgsign", "extensions.objectformat",
    "extensions.refstorage", "extensions.compatobjectformat", "extensions.partialclone", "submodule.url",
    "submodule.path",
})  # fmt: skip
"""Harmless where they are, and nothing that a command changes through us."""
_MOST_PACKED = 4 << 20


class ConfigLine(Struct, frozen=True):
    """A setting to write: section, its name if it has one, key and value."""

    section: str
    name: str | None
    key: str
    value: str

    def __str__(self) -> str:
        named = "" if self.name is None else f' "{self.name}"'
        return f"[{self.section}{named}] {self.key} = {self.value}"

    def matches(self, section: str, name: str | None, key: str) -> bool:
        """Whether a setting of a file is this one."""
        return (self.section, self.name, self.key.lower()) == (section, name, key)


def check_line(line: ConfigLine) -> ConfigLine:
    """The line, if it makes git run nothing; raises `SetupRefused`."""
    if not f"{line.section}{line.key}".isascii():
        raise SetupRefused(f"{line.section}.{line.key} is not written: git's settings have names in ASCII")
    setting = f"{line.section}.{line.key}".lower()
    runs_nothing = setting not in _KEPT or (setting, line.value.lower()) == ("commit.gpgsign", "false")
    if not runs_nothing or not is_harmless(setting, line.value):
        name = line.section if line.name is None else f"{line.section}.{line.name}"
        raise SetupRefused(
            f"{name}.{line.key} is not written: it may make git run a program or work elsewhere; "
            "the user can set it in a terminal"
        )
    if line.name is not None and not _NAME.fullmatch(line.name):
        raise SetupRefused(f"{line.name!r} is no name for a remote or a branch that is written here")
    if (
        any(char in line.value for char in '"\\')
        or not line.value.isprintable()
        or line.value.startswith("!")
    ):
        raise SetupRefused(f"the value {line.value!r} is not plain enough to be written")
    if line.key.lower() in ("url", "pushurl"):
        check_url(line.value)
    return line


def check_url(url: str) -> str:
    """The URL, if git only contacts a server for it; raises `SetupRefused`."""
    is_path = url.startswith(("/", "./", "../"))
    if (
        "::" in url
        or "@-" in url
        or url.startswith("-")
        or not (_URL.fullmatch(url) or _SCP.fullmatch(url) or is_path)
    ):
        raise SetupRefused(f"{url!r} is no URL that is written: use https://, ssh:// or user@host:path")
    return url


def is_ssh(url: str) -> bool:
    """Whether git uses ssh for a URL."""
    return url.lower().startswith("ssh://") or ("://" not in url and _SCP.fullmatch(url) is not None)


def is_http(url: str) -> bool:
    """Whether git uses HTTP for a URL."""
    return url.lower().startswith(("http://", "https://"))


def find_host(url: str) -> Wish:
    """The host that git contacts for a URL; raises `SetupRefused` if programs could differ about it."""
    if "://" not in url:
        host, port = url.partition(":")[0].rpartition("@")[2], _PORTS["ssh"]
    elif (found := _AUTHORITY.fullmatch(url)) and (is_http(url) or "%" not in (found[2] or "")):
        host, port = found[3].strip("[]"), int(found[4] or _PORTS.get(found[1].lower(), 0))
    else:
        raise SetupRefused(f"{url!r} names no host that is understood")
    return Wish(canonicalize(host) or host.lower(), port)


def find_repository(directory: str, root: str, made: Collection[GitFolder] = ()) -> GitFolder | None:
    """The `.git` of a directory in a workspace; raises `SetupRefused` if it is no plain directory.

    `made` are those that will be there by then.
    """
    here = directory
    while True:
        git = os.path.join(here, ".git")
        if (folder := GitFolder(root, git)) in made:
            return folder
        if os.path.lexists(git) and not (
            os.path.isdir(git) and not os.path.islink(git) and not os.listdir(git)
        ):
            break
        if here == root or not here.startswith(root):
            return None
        here = os.path.dirname(here)
    for path in (git, os.path.join(git, "objects"), os.path.join(git, "refs")):
        if not os.path.lexists(path) or not stat.S_ISDIR(os.lstat(path).st_mode):
            raise SetupRefused(f"{path} is not a plain directory, so this repository is not changed")
    common = os.path.join(git, "commondir")
    if os.path.lexists(common):
        raise SetupRefused(f"{git} is part of another repository, so it is not changed")
    return folder


class Configuration:
    """The settings of a repository's `config`, and of lines that will be written before."""

    def __init__(self, git: GitFolder, ahead: Iterable[ConfigLine] = ()) -> None:
        self.git = git
        self.settings = self._parse(git.read("config") or b"")
        self.settings += [ConfigSetting(one.section, one.name, one.key.lower(), one.value) for one in ahead]

    def _parse(self, data: bytes) -> list[ConfigSetting]:
        try:
            return parse_configuration(data)
        except ValueError as error:
            what = f"{self.git.path}/config is not plain enough to be read"
            raise SetupRefused(f"{what}: {redact_text(str(error))[:100]!r}") from error

    def values(self, section: str, name: str | None, key: str) -> list[str]:
        """What a setting has, in order; raises `SetupRefused` for one in quotes."""
        found = [
            one.value for one in self.settings if (one.section, one.name, one.key) == (section, name, key)
        ]
        if odd := [value for value in found if set(value) & set('"#;')]:
            raise SetupRefused(f"the value {odd[0]!r} of {section}.{key} is not plain enough to be used")
        return found

    def value(self, section: str, name: str | None, key: str) -> str | None:
        """The one value of a setting; raises `SetupRefused` if there are several."""
        found = self.values(section, name, key)
        if len(found) > 1:
            raise SetupRefused(f"{section}.{name}.{key} has several values")
        return found[0] if found else None

    @property
    def remotes(self) -> list[str]:
        """The names of the remotes."""
        return list(dict.fromkeys(one.name for one in self.settings if one.section == "remote" and one.name))

    @property
    def includes(self) -> list[str]:
        """The files that it includes, which are not read."""
        return [one.value for one in self.settings if one.section in ("include", "includeif")]

    def write(self, lines: Sequence[ConfigLine]) -> None:
        """Write settings, each in place of the one value that it has, or added. Blocking."""

        def change(data: bytes) -> bytes:
            self.settings = self._parse(data)
            text = data.decode().split("\n")
            for line in lines:
                self.value(line.section, line.name, line.key.lower())
                text = _put(text, line)
            return "\n".join(text).encode()

        self.git.rewrite("config", change)


def _put(text: list[str], line: ConfigLine) -> list[str]:
    """The lines of a file with a setting in its place."""
    written = f"\t{line.key} = {_quote(line.value)}"
    end, section, name = -1, "", None
    for at, found in enumerate(text):
        if header := _HEADER.fullmatch(found.removesuffix("\r")):
            section, name = header[1].lower(), header[2]
            end = at if (section, name) == (line.section, line.name) else end
        elif (section, name) == (line.section, line.name) and (key := _KEY.match(found)):
            if line.matches(section, name, key[1].lower()):
                return [*text[:at], written, *text[at + 1 :]]
            end = at
    if end >= 0:
        return [*text[: end + 1], written, *text[end + 1 :]]
    named = "" if line.name is None else f' "{line.name}"'
    before = text if text[-1] else text[:-1]
    return [*before, f"[{line.section}{named}]", written, ""]


def _quote(value: str) -> str:
    return f'"{value}"' if set(value) & set("#;") or value != value.strip() or not value else value


def read_ref(git: GitFolder, name: str) -> str | None:
    """The commit, or the branch as `ref: …`, that a reference stands for; None if there is none."""
    if (data := git.read(name)) is not None:
        return data[:1_000].decode("ascii", "replace").strip()
    packed = re.search(rb"^([0-9a-f]+) %b\r?$" % re.escape(name.encode()), _read_packed(git), re.M)
    return None if packed is None else packed[1].decode()


def list_refs(git: GitFolder, under: str) -> list[str]:
    """The references below a place such as refs/tags/."""
    lines = _read_packed(git).decode("utf-8", "replace").splitlines()
    packed = (name for line in lines if (name := line.strip().partition(" ")[2]).startswith(under))
    return sorted({*git.list_files(under.rstrip("/")), *packed})


def _read_packed(git: GitFolder) -> bytes:
    """The references that are kept in one file."""
    return git.read("packed-refs", _MOST_PACKED) or b""
