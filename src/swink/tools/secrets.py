"""Secret places on disk, which no sandboxed command and no file tool may see."""

import os
from collections.abc import Iterable
from pathlib import Path

_IN_HOME = (
    ".ssh", ".gnupg", ".password-store", ".pki", ".local/share/keyrings", ".local/share/kwalletd",
    "Library/Keychains", ".config/op", ".vault-token", ".aws", ".azure", ".config/gcloud", ".boto", ".oci",
    ".kube", ".docker", ".config/containers", ".config/rclone", ".s3cfg", ".terraform.d", ".terraformrc",
    ".config/gh", ".config/glab-cli", ".config/hub", ".config/git/credentials", ".git-credentials", ".netrc",
    "_netrc", ".authinfo", ".authinfo.gpg", ".npmrc", ".yarnrc", ".pypirc", ".config/pip", ".gem/credentials",
    ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".m2/settings-security.xml",
    ".gradle/gradle.properties", ".pgpass", ".my.cnf", ".mylogin.cnf", ".config/hcloud", ".config/doctl",
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

_XDG = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


def list_secret_paths(extra: Iterable[str | Path] = (), *, missing: bool = False) -> tuple[str, ...]:
    """The secret places that exist (with `missing` all) and the extra ones, symlinks resolved."""
    home = find_home()
    places: list[Path] = [home / name for name in _IN_HOME]
    places += [Path(os.environ[name]) / "swink" for name in _XDG if os.environ.get(name)]
    places += [
        Path(value)
        for name, value in os.environ.items()
        if name.startswith("SWINK_") and value.startswith("/")
    ]
    places += map(Path, _IN_SYSTEM)
    if (ssh := Path("/etc/ssh")).is_dir():
        places += [path for path in ssh.iterdir() if path.name.endswith("_key")]
    found = [place for place in places if missing or _exists(place)]
    return tuple(sorted({os.path.realpath(place) for place in (*found, *extra)}))


def find_home() -> Path:
    """The user's home; the root of the file system for a user who has none, as in many containers."""
    try:
        return Path(os.path.realpath(Path.home()))
    except RuntimeError:
        return Path("/")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # we may not look, nor may the command; hiding it costs nothing
        return True
