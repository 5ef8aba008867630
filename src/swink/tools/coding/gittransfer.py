"""A git transfer outside the sandbox: push, fetch or ls-remote with the person's keys, in a clean room.

    scratch repository of ours ──objects by alternates──▶ the workspace's repository
        its own configuration, no hooks                     its configuration and hooks are never read
        git push URL SHA:REF

Git runs in an empty repository that we make and that borrows the objects. So nothing that the workspace's
repository names can run: hooks, `ext::`, fsmonitor, filters, sshCommand, credential helpers, receive-pack,
aliases, rewritten URLs, included files. The person's own configuration holds.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from swink.system.programs import environment, find_program
from swink.tools.coding.environment import QUIET, clean_environment
from swink.tools.coding.gitconfiguration import (
    Configuration,
    check_url,
    find_host,
    find_repository,
    is_http,
    is_ssh,
    list_refs,
    read_ref,
)
from swink.tools.coding.gitfolder import GitFolder, SetupRefused
from swink.tools.coding.gitsetup import current_branch, split_git
from swink.tools.coding.options import Arguments, declare_options, read_arguments
from swink.tools.coding.outside import OWN_LIMITS, build_own_environment
from swink.tools.coding.process import Launch
from swink.tools.coding.wishes import Wish

Kind = Literal["push", "fetch", "ls-remote"]

_OPTIONS = {
    "push": declare_options("-qvfdn --quiet --verbose --force --delete --tags --progress --dry-run"),
    "fetch": declare_options("-qvpt --quiet --verbose --prune --tags --progress"),
    "ls-remote": declare_options("-qht --quiet --heads --tags --refs"),
}
_PASSED_ON = frozenset({
    "-q", "-v", "-n", "--quiet", "--verbose", "--dry-run", "-h", "-t", "--heads", "--tags", "--refs",
})  # fmt: skip
_SETTINGS = (
    f"core.hooksPath={os.devnull}", "core.fsmonitor=false", "protocol.ext.allow=never", "push.gpgSign=false",
    "push.recurseSubmodules=no", "fetch.recurseSubmodules=no", "submodule.recurse=false", "gc.auto=0",
    "maintenance.auto=false",
)  # fmt: skip
_OWN = re.compile(r"GIT_(?:SSH(?:_COMMAND|_VARIANT)?|SSL_\w+|HTTP_\w+|PROXY_\w+|ASKPASS)|SSH_ASKPASS")
"""Variables of git's that the person may have set for transfers."""
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs/(?!.*(?:\.\.|//|@\{|\.lock$))[\w./+-]+(?<![./])")


class GitTransfer(Struct, frozen=True):
    """One transfer: between which repository and which URL, and what is pushed where."""

    git: GitFolder
    kind: Kind
    url: str
    host: Wish
    remote: str | None
    """The name of the remote; None for a URL."""
    specs: tuple[tuple[str, str, str], ...] = ()
    """Of a push: commit (empty to delete), its name here, and the name there (`+` before it forces)."""
    options: tuple[str, ...] = ()

    def describe(self) -> str:
        """What it may do outside, for the person who is asked."""
        keys = "your ssh keys" if is_ssh(self.url) else "your credentials"
        sent = [
            f"{name} ({sha[:9]}) to {there}" if sha else f"nothing to {there}"
            for sha, name, there in self.specs
        ]
        what = f" and send {', '.join(sent)}" if sent else " and read what is there"
        return f"reach {self.url} with {keys}{what}; it runs no hook and no program that the repository names"


def parse_transfer(words: Sequence[str], directory: str, root: str) -> GitTransfer | None:
    """The transfer that a git command makes; None if it makes none in a known form, or by no known way.

    Raises `SetupRefused` and `GitFailed` as `parse_setup` does. Blocking.
    """
    found = split_git(words, directory, root)
    if found is None or (kind := _kind(found[1])) is None:
        return None
    arguments = read_arguments(_OPTIONS[kind], found[2])
    git = find_repository(found[0], root)
    if arguments is None or git is None:
        return None
    configuration = Configuration(git)
    remote = arguments.operands[0] if arguments.operands else _usual_remote(configuration)
    url = _find_url(configuration, remote, kind)
    if url is None or not (is_ssh(url) or is_http(url)):
        return None
    name = remote if remote in configuration.remotes else None
    specs = tuple(_specs(git, arguments)) if kind == "push" else ()
    options = tuple(
        sorted(arguments.options.keys() & _PASSED_ON - ({"--tags", "-t"} if kind != "ls-remote" else set()))
    )
    return GitTransfer(git, kind, check_url(url), find_host(url), name, specs, options)


def _kind(name: str) -> Kind | None:
    return name if name in ("push", "fetch", "ls-remote") else None


def _usual_remote(configuration: Configuration) -> str:
    head = read_ref(configuration.git, "HEAD") or ""
    branch = head.removeprefix("ref: refs/heads/")
    return configuration.value("branch", branch, "remote") or "origin"


def _find_url(configuration: Configuration, remote: str, kind: Kind) -> str | None:
    if remote not in configuration.remotes:
        return remote if "://" in remote or is_ssh(remote) else None
    pushed = configuration.value("remote", remote, "pushurl") if kind == "push" else None
    url = pushed or configuration.value("remote", remote, "url")
    if url is None and configuration.includes:
        raise SetupRefused(
            f"the remote {remote} is in a file that the configuration includes; it is not read"
        )
    return url


def _specs(git: GitFolder, arguments: Arguments) -> list[tuple[str, str, str]]:
    """What a push sends where, resolved by us."""
    force = "+" if arguments.has("-f", "--force") else ""
    given = list(arguments.operands[1:])
    if arguments.has("-d", "--delete"):
        given = [f":{name}" for name in given]
    if arguments.has("--tags"):
        given += list_refs(git, "refs/tags/")
    elif not given:
        given = ["HEAD"]
    found: list[tuple[str, str, str]] = []
    for spec in given:
        forced = "+" if spec.startswith("+") else force
        source, _, target = spec.removeprefix("+").partition(":")
        sha, full = _resolve(git, source) if source else ("", "")
        there = target or full
        there = there if there.startswith("refs/") else f"refs/heads/{there}"
        if not _REF.fullmatch(there):
            raise SetupRefused(f"{spec!r} is not understood as what to push")
        found.append((sha, source, forced + there))
    return found


def _resolve(git: GitFolder, name: str) -> tuple[str, str]:
    """The commit that a name means, and its full name, without asking git."""
    if name == "HEAD":
        name = f"refs/heads/{current_branch(git)}"
    for full in (name,) if name.startswith("refs/") else (f"refs/heads/{name}", f"refs/tags/{name}"):
        if _REF.fullmatch(full) and _SHA.fullmatch(sha := read_ref(git, full) or ""):
            return sha, full
    raise SetupRefused(f"{name!r} is no branch or tag here; name one to push")


def check_objects(git: GitFolder) -> None:
    """Raises `SetupRefused` unless a repository holds all its objects itself, in plain files. Blocking."""
    if not git.path.isprintable() or git.path.startswith(('"', "#")):
        raise SetupRefused(
            f"the path {git.path!r} has characters that git reads otherwise; rename the folder"
        )
    names = {name.casefold() for name in git.list_files("objects")}
    if names & {"objects/info/alternates", "objects/info/http-alternates"}:
        raise SetupRefused("the repository borrows objects from elsewhere, so it is not used outside")


class CleanRoom:
    """A scratch repository that borrows objects, which were checked; a context manager that removes it.

    Blocking.
    """

    def __init__(self, transfer: GitTransfer) -> None:
        self._transfer = transfer
        self.path = ""

    def __enter__(self) -> "CleanRoom":
        objects = os.path.join(self._transfer.git.path, "objects")
        configuration = Configuration(self._transfer.git)
        kind = configuration.value("extensions", None, "objectformat")
        if kind not in (None, "sha1", "sha256") or configuration.value("extensions", None, "refstorage"):
            raise SetupRefused("the repository has a format that is not known here")
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=f"swink-{os.getpid()}-git-"))
        try:
            self._fill(objects, kind)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _fill(self, objects: str, kind: str | None) -> None:
        for name in ("objects/info", "refs/heads", "refs/tags"):
            os.makedirs(os.path.join(self.path, name))
        extension = f"\n[extensions]\n\tobjectformat = {kind}" if kind else ""
        version = 1 if kind else 0
        files = {
            "HEAD": "ref: refs/heads/none\n",
            "config": f"[core]\n\trepositoryformatversion = {version}\n\tbare = true{extension}\n",
            "objects/info/alternates": f"{objects}\n",
        }
        if (shallow := self._transfer.git.read("shallow")) is not None:
            lines = shallow.decode("ascii", "replace").split()
            files["shallow"] = "".join(f"{line}\n" for line in lines if _SHA.fullmatch(line))
        if self._transfer.kind == "fetch":
            files["packed-refs"] = "".join(self._list_known())
        for name, text in files.items():
            with open(os.path.join(self.path, name), "x", encoding="utf-8") as file:
                file.write(text)

    def _list_known(self) -> Iterator[str]:
        """What is here already, so that it is not fetched again."""
        names = list_refs(self._transfer.git, "refs/remotes/")
        found = (read_ref(self._transfer.git, name) or "" for name in names)
        known = dict.fromkeys(sha for sha in found if _SHA.fullmatch(sha))
        yield from (f"{sha} refs/known/{at:09}\n" for at, sha in enumerate(known))

    def launch(self) -> Launch:
        """Git, by its absolute path, in this repository."""
        git, nothing = find_program("git"), find_program("true")
        if git is None or nothing is None:
            raise SetupRefused("there is no git on the PATH, outside of the workspace")
        transfer = self._transfer
        # Otherwise git would look for references in the repository that objects are borrowed from.
        chosen = (*_SETTINGS, f"core.alternateRefsCommand={nothing}")
        settings = [word for setting in chosen for word in ("-c", setting)]
        words: list[str] = [transfer.kind, *transfer.options]
        if transfer.kind == "push":
            pushed = [
                f"{'+' if there.startswith('+') else ''}{sha}:{there.lstrip('+')}"
                for sha, _, there in transfer.specs
            ]
            words += ["--no-verify", "--", transfer.url, *pushed]
        elif transfer.kind == "fetch":
            words += [
                "--no-write-fetch-head",
                "--",
                transfer.url,
                "+refs/heads/*:refs/heads/*",
                "+refs/tags/*:refs/tags/*",
            ]
        else:
            words += ["--", transfer.url]
        argv = (git, f"--git-dir={self.path}", *settings, *words)
        return Launch(argv, self.path, build_transfer_environment(), OWN_LIMITS, backend="none")


def build_transfer_environment() -> dict[str, str]:
    """The person's environment without secrets, and without what tells git where to work or what to run."""
    own = {name: value for name, value in os.environ.items() if _OWN.fullmatch(name)}
    kept = {
        name: value for name, value in clean_environment(os.environ).items() if not name.startswith("GIT_")
    }
    handles = {name: value for name, value in build_own_environment().items() if not name.startswith("GIT_")}
    return environment({
        **kept, **handles, **own, **QUIET, "GIT_ALLOW_PROTOCOL": "ssh:https:http", "GIT_TERMINAL_PROMPT": "0",
    })  # fmt: skip
