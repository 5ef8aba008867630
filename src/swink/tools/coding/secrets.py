"""Secret places on disk, which no sandboxed command and no file tool may see."""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from swink.system.places import NoHome, home_dir

try:
    import pwd
except ImportError:  # Windows has no such list of users
    pwd = None

_IN_HOME = (
    ".ssh", ".gnupg", ".password-store", ".pki", ".local/share/keyrings", ".local/share/kwalletd",
    "Library/Keychains", ".config/op", ".vault-token", ".aws", ".azure", ".config/gcloud", ".boto", ".oci",
    ".kube", ".docker", ".config/containers", ".config/rclone", ".s3cfg", ".terraform.d", ".terraformrc",
    ".config/gh", ".config/glab-cli", ".config/hub", ".config/git/credentials", ".git-credentials", ".netrc",
    "_netrc", ".authinfo", ".authinfo.gpg", ".npmrc", ".yarnrc", ".pypirc", ".config/pip", ".gem/credentials",
    ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".m2/settings-security.xml",
    ".gradle/gradle.properties", ".local/share/uv/credentials", ".dotnet/corefx", ".pgpass", ".my.cnf",
    ".mylogin.cnf", ".config/hcloud", ".config/doctl",
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history",
    ".node_repl_history", ".local/share/fish/fish_history", ".mozilla", ".thunderbird",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
    "Library/Application Support/Google/Chrome", "Library/Cookies", ".claude", ".claude.json", ".codex",
    ".gemini", ".config/github-copilot", ".config/anthropic", ".config/openai", ".huggingface",
    ".cache/huggingface/token", ".config/swink", ".local/share/swink", ".local/state/swink", ".cache/swink",
    ".swink", "Library/Application Support/swink",
)  # fmt: skip

_IN_SYSTEM = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
    "/etc/security/opasswd", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt",
    "/etc/krb5.keytab", "/etc/wireguard", "/etc/openvpn", "/etc/ppp", "/etc/ipsec.secrets",
    "/etc/NetworkManager/system-connections", "/etc/kubernetes", "/etc/rancher", "/etc/docker",
    "/etc/machine-id.secret",
)  # fmt: skip

_PEOPLE = range(1000, 65_534)  # numbers of users that are people, and not services

_XDG = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


def list_secret_paths(
    extra: Iterable[str | Path] = (), *, root: str | Path | None = None, missing: bool = False
) -> tuple[str, ...]:
    """The secret places that exist (with `missing` all) and the extra ones, symlinks resolved.

    They are in our homes and, if other people's lie in the root of a workspace, in these.
    """
    homes = {*_own_homes(), *(find_homes(root) if root else ())}
    places = [f"{home}/{name}" for home in homes for name in _IN_HOME]
    places += [f"{os.environ[name]}/swink" for name in _XDG if os.environ.get(name)]
    ours = [value for name, value in os.environ.items() if name.startswith("SWINK_")]
    places += [value for value in ours if value.startswith("/")]
    places += _IN_SYSTEM
    if os.path.isdir("/etc/ssh"):
        places += [f"/etc/ssh/{name}" for name in os.listdir("/etc/ssh") if name.endswith("_key")]
    found = [place for place in places if missing or _exists(place)]
    return tuple(sorted({os.path.realpath(place) for place in (*found, *extra)}))


def find_home() -> Path:
    """The user's home; the root of the file system for a user who has none, as in many containers."""
    try:
        return Path(os.path.realpath(home_dir()))
    except NoHome:
        return Path("/")


def find_homes(root: str | Path) -> list[str]:
    """The homes that a directory is or holds: ours and, for root, who may write there, other people's."""
    homes = set(_own_homes())
    if pwd is not None and os.getuid() == 0:
        homes.update(os.path.realpath(user.pw_dir) for user in pwd.getpwall() if user.pw_uid in _PEOPLE)
    inside = os.path.join(root, "")
    return sorted(home for home in homes if os.path.join(home, "").startswith(inside))


def _own_homes() -> list[str]:
    """Our home by $HOME, and by the list of users, which login programs and ssh go by."""
    homes = [str(find_home())]
    if pwd is not None:
        with suppress(KeyError):
            homes.append(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    return homes


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # we may not look, nor may the command; hiding it costs nothing
        return error.errno != errno.ELOOP
    return True
