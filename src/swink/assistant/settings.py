"""Settings: the file that holds what a person chose once.

config.toml    default_model = "provider:model"
               approve = "on" | "smart" | "off" | "deny"
               save = true | false
               title = "words" | "model"
"""

import tomllib
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from swink.approvals import APPROVAL_WORDS, ApprovalWord, parse_approval
from swink.errors import MisuseError
from swink.keys.store import config_dir

KNOWN = ("default_model", "approve", "save", "title")
TITLES = ("words", "model")


class UserSettings(Struct, frozen=True):
    """What config.toml says; `unknown` are names in it that mean nothing here."""

    path: Path
    default_model: str | None = None
    approve: ApprovalWord = "smart"
    save: bool = True
    title: Literal["words", "model"] = "words"
    unknown: tuple[str, ...] = ()

    def describe_unknown(self) -> str:
        """What to say about the names that mean nothing."""
        return f"{self.path} sets {', '.join(self.unknown)}, which means nothing; known: {', '.join(KNOWN)}"


def load_settings() -> UserSettings:
    """The settings; raises `MisuseError` with the file and the place if they cannot be read."""
    path = config_dir() / "config.toml"
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return UserSettings(path)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MisuseError(f"{path} cannot be read: {error}; correct it or delete it") from error
    model = data.get("default_model")
    if model is not None and not isinstance(model, str):
        raise MisuseError(
            f'{path}: default_model takes a text, e.g. default_model = "anthropic:claude-sonnet-4-6"'
        )
    save, title = data.get("save", True), data.get("title", "words")
    if not isinstance(save, bool):
        raise MisuseError(f"{path}: save takes true or false, without quotes, e.g. save = false")
    if title not in TITLES:
        raise MisuseError(f'{path}: title takes one of {", ".join(TITLES)}, e.g. title = "words"')
    approve = _approval(path, data.get("approve", "smart"))
    return UserSettings(path, model, approve, save, title, tuple(sorted(set(data) - set(KNOWN))))


def _approval(path: Path, value: Any) -> ApprovalWord:
    if not isinstance(value, str):
        raise MisuseError(f'{path}: approve takes one of {", ".join(APPROVAL_WORDS)}, e.g. approve = "smart"')
    try:
        return parse_approval(value)
    except MisuseError as error:
        raise MisuseError(f"{path}: approve: {error}") from error
