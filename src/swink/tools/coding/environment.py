"""The environment of commands: ours without its secrets, with settings for programs without a terminal."""

import os
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from swink.messages.redact import redact_text, sent_keys

QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}

_SECRET_PART = re.compile("TOKEN|PASS|SECRET|KEY|CREDENTIAL|AUTH")
_HARMLESS_WORDS = frozenset({
    "AUTHOR", "AUTHORS", "BYPASS", "COMPASS", "KEYBOARD", "KEYMAP", "KEYWORD", "KEYWORDS", "MONKEY",
    "PASSENGER", "PASSIVE", "PASSTHROUGH", "TOKENIZER", "TOKENIZERS",
})  # fmt: skip
"""Words with such a part that name no secret; any other word with one of the parts does."""
_SECRET_NAME = re.compile(
    r"""
      (?:^|_)(?:PAT|PWD|CREDS?|DSN|COOKIES?|SAS|PIN|JWT)\d*$
    | SIGNING | WEBHOOK | CONNECTION_?STRING
    | ^(?:AWS|AZURE|ARM|GOOGLE|GCP|GCLOUD|CLOUDSDK|DIGITALOCEAN|DO|CLOUDFLARE|CF|HEROKU|VAULT|CONSUL|NOMAD)_
    | ^(?:OCI|ALICLOUD|SWINK|SSH|GPG|KUBE|DOCKER|DBUS|KRB5)_
    | ^(?:KUBECONFIG|NETRC|BASH_ENV|ENV|PROMPT_COMMAND|WAYLAND_DISPLAY|DISPLAY|SHELLOPTS|BASHOPTS)$
    | ^BASH_FUNC_ | ^GIT_CONFIG_(?:COUNT$|KEY_|VALUE_|PARAMETERS$)
    """,
    re.X,
)
_HARMLESS_NAME = re.compile(r"^(?:PWD|OLDPWD)$|^(?:AWS|AZURE|GOOGLE)_(?:REGION|DEFAULT_REGION)$")
_GIT_SECTION = re.compile(r"\s*\[\s*([^\]]*?)\s*\]")
_GIT_SETTING = re.compile(r"\s*(name|email)\s*=\s*(.*?)\s*$", re.I)


def build_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """A command's environment: our variables without the secret ones, quiet settings, and the extra ones."""
    return {**clean_environment(os.environ), **QUIET, **extra}


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are neither named like a secret nor look like one, nor hold a key that is used."""
    used = {*sent_keys()}
    return {
        name: value
        for name, value in environment.items()
        if not (is_secret_variable(name, value) or value.strip() in used)
    }


@lru_cache(maxsize=1024)  # every command asks for every variable
def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable should stay outside."""
    return _is_secret_name(unicodedata.normalize("NFKC", name).upper()) or redact_text(value) != value


def _is_secret_name(name: str) -> bool:
    if _HARMLESS_NAME.search(name):
        return False
    words = re.findall(r"[^\W\d_]+", name)
    has_part = any(_SECRET_PART.search(word) and word not in _HARMLESS_WORDS for word in words)
    return has_part or _SECRET_NAME.search(name) is not None


def read_git_identity(home: str) -> dict[str, str]:
    """Name and email for commits, from the user's git configuration, which sandboxed commands cannot read."""
    found: dict[str, str] = {}
    for path in (Path(home, ".config/git/config"), Path(home, ".gitconfig")):
        try:
            lines = path.read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        section = ""
        for line in lines:
            if header := _GIT_SECTION.match(line):
                section = header[1].lower()
            elif section == "user" and (setting := _GIT_SETTING.match(line)):
                found[setting[1].lower()] = setting[2].strip('"')
    given = [(kind.upper(), value) for kind, value in found.items() if value]
    return {f"GIT_{role}_{kind}": value for kind, value in given for role in ("AUTHOR", "COMMITTER")}
