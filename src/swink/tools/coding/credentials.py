"""Which files hold credentials, judged by name and place, and in doubt by content."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from swink.system.files import READ

SAMPLE = 1 << 16
"""Bytes of a file that are looked at for a private key or a token."""

Suspicion = Literal["sure", "perhaps"]

_FORMS = r"(?:json|ya?ml|toml|ini|properties|cfg|conf|txt|xml)"
_SURE = re.compile(
    rf"""
      \.env(?:[._-].*|rc.*|\d+)? | .+\.env
    | id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?:_sk)?
    | .+\.(?:p12|pfx|p8|pk8|jks|jceks|bks|keystore|kdbx?|ppk|keytab|agekey|tfstate|tfvars|kubeconfig)
    | .+\.(?:tfstate\..+|tfvars\.json|publishsettings)
    | [._]netrc | \.npmrc | \.pypirc | \.yarnrc | \.git-credentials | \.pgpass | pgpass\.conf | \.my\.cnf
    | \.mylogin\.cnf | \.htpasswd | \.s3cfg | \.boto | \.dockercfg | \.vault-token
    | \.vault[_-]pass(?:word)?(?:\.txt)? | \.terraformrc | terraform\.rc | credentials\.tfrc\.json
    | \.authinfo(?:\.gpg)? | \.msmtprc | \.fetchmailrc | rclone\.conf | kubeconfig | \.credentials
    | \.secrets?
    | (?:.*[_.-])?(?:credential|secret)s?\.{_FORMS} | client_secret.*\.json | auth\.json
    | (?:.*[_.-])?service[_-]?account(?:[_.-].*)?\.json | .*firebase-adminsdk.*\.json | gha-creds-.*\.json
    | master\.key
    | \.(?:bash|zsh|python|psql|mysql|node_repl|rediscli|irb|sqlite)_history
    """,
    re.X | re.S,
)
_PERHAPS = re.compile(
    r".+\.(?:pem|key|crt|cer|cert|asc|gpg|pgp|ovpn|priv|private|openssh|der)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519|xmss).+",
    re.S,
)
_EXAMPLE = re.compile(
    r"(?:^|[._-])(?:example|sample|template|tmpl|dist|default|schema|stub|skel|skeleton)s?(?:[._-]|$)"
)
_PLACES = re.compile(
    r"""(?:^|.*/)(?:\.aws/(?:credentials|config)|\.docker/config\.json|\.kube/config
      |\.ssh/(?!.*\.pub$|known_hosts|config$)[^/]+|\.gnupg/.+|\.envs/.+|\.azure/.+|\.config/gcloud/.+
      |\.gem/credentials|\.?cargo/credentials|\.m2/settings(?:-security)?\.xml)""",
    re.X | re.S,
)
_SETTINGS = re.compile(
    r"""(?:^|.*/)(?:\.?cargo/config(?:\.toml)?|\.?condarc|condarc\.d/[^/]+\.ya?ml|\.yarnrc\.yml|bunfig\.toml
      |pip\.conf|npmrc)""",
    re.X | re.S,
)
"""Settings that programs need, and that may hold a token."""
_IN_PLACES = re.compile(
    r"(?:^|/)(?:\.aws|\.docker|\.kube|\.ssh|\.gnupg|\.envs|\.azure|\.config|\.gem|\.cargo|\.m2)(?:/|$)"
)
_COPY = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|copy|swp|swo|tmp))+$")
"""What editors and people append to the name of a copy."""
_ENDINGS = frozenset({
    "bak", "backup", "old", "orig", "save", "copy", "swp", "swo", "tmp", "env", "p12", "pfx", "p8", "pk8",
    "jks", "jceks", "bks", "keystore", "kdb", "kdbx", "ppk", "keytab", "agekey", "tfstate", "tfvars",
    "kubeconfig", "publishsettings", "json", "yml", "yaml", "toml", "ini", "properties", "cfg", "conf", "txt",
    "xml", "rc", "pem", "key", "crt", "cer", "cert", "asc", "gpg", "pgp", "ovpn", "priv", "private",
    "openssh", "der",
})  # fmt: skip
_PRIVATE = re.compile(rb"PRIVATE KEY(?: BLOCK)?-----|^AGE-SECRET-KEY-|^PuTTY-User-Key-File|^<key>\s*$", re.M)
_TOKEN = re.compile(rb"\s*[!-~]{16,}\s*")
_SETTING = re.compile(
    rb"""
      ^(?![ \t]*[#;]).*?(?:token|passwo?r?d|secret(?:[_-]?key)?|api[_-]?key|_auth)
      ["']?[ \t]*[=:][ \t]*["']?(?!["'\s$])
    | https?://(?!git@)[^/\s@"'$]+@
    | https?://[^/\s]+(?:/[^/\s]+){0,3}/t/[\w-]{8}
    """,
    re.X | re.M | re.I,
)
"""A setting with a token or password that is no variable, or a URL with one."""


def is_unsuspicious(name: str) -> bool:
    """Whether a name alone shows that a file outside of known places holds no credentials; a cheap test."""
    name = name.casefold()
    at = name.rfind(".")
    if at <= 0 or name[0] in "._i":
        return False
    return name[at + 1 :].rstrip("~") not in _ENDINGS and ".tfstate." not in name


def is_known_place(directory: str) -> bool:
    """Whether files are suspect because they lie in a directory with this path."""
    return "." in directory and _IN_PLACES.search(directory.casefold()) is not None


def suspect(path: str) -> Suspicion | None:
    """What name and place of a file say; for "perhaps" the content decides."""
    place, _, name = path.rpartition("/")
    if is_unsuspicious(name) and not is_known_place(place):
        return None
    name = _COPY.sub("", name.casefold())
    if _SETTINGS.fullmatch(f"{place.casefold()}/{name}"):
        return "perhaps"
    if _SURE.fullmatch(name):
        return None if _EXAMPLE.search(name) else "sure"
    if _PERHAPS.fullmatch(name):
        return None if name.endswith(".pub") else "perhaps"
    return "sure" if _PLACES.fullmatch(path.casefold()) else None


def shows_credentials(path: str, head: bytes) -> bool:
    """Whether the beginning of a file that perhaps holds credentials shows some."""
    name = _COPY.sub("", path.casefold())
    if _SETTINGS.fullmatch(name):
        return _SETTING.search(head) is not None
    if _PRIVATE.search(head):
        return True
    if name.endswith((".key", ".priv", ".private", ".der")):
        # A key that is not PEM is binary (DER begins with a sequence), or one word (the master key of Rails).
        return head[:1] == b"\x30" or _TOKEN.fullmatch(head) is not None
    return False


def holds_credentials(path: str, fd: int | None = None) -> bool:
    """Whether a file holds credentials, judged by its path and in doubt by its content.

    `fd` is the directory that the path's last name is in; without it the path is opened as it stands. A
    doubtful file that we cannot read counts as one with credentials.
    """
    match suspect(path):
        case None:
            return False
        case "sure":
            return True
        case "perhaps":
            try:
                return shows_credentials(path, _head(path if fd is None else path.rpartition("/")[2], fd))
            except FileNotFoundError:
                return False
            except OSError:
                return True


class Readable:
    """The credential files of a workspace that may be read: those named, and those in a named directory."""

    def __init__(self, root: Path, paths: Iterable[str | Path]) -> None:
        self._all = False
        self._names: set[str] = set()
        for path in paths:
            given = os.path.join(root, os.path.expanduser(path))
            for spelling in {os.path.normpath(given), os.path.realpath(given)}:
                relative = os.path.relpath(spelling, root)
                self._all |= relative == "."
                self._names.add(relative)

    def allows(self, path: str) -> bool:
        """Whether a path, relative to the root, may be read."""
        above = (path[:at] for at, char in enumerate(path) if char == "/")
        return self._all or path in self._names or not self._names.isdisjoint(above)


def explain_refusal(path: str) -> str:
    """What a refusal says about a file that holds credentials."""
    return (
        f"{path} may hold credentials, so tools and commands do not read it; "
        f"to allow it, the program names it: readable=[{path!r}]"
    )


def _head(name: str, fd: int | None) -> bytes:
    opened = os.open(name, READ, dir_fd=fd)
    try:
        return os.read(opened, SAMPLE)
    finally:
        os.close(opened)
