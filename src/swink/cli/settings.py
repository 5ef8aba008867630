"""Settings: the directory and the file that hold what a person chose once.

config.toml    default_model = "provider:model"
"""

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

from msgspec import Struct

from swink.errors import MisuseError

KNOWN = ("default_model",)


class Settings(Struct, frozen=True):
    """What config.toml says; `unknown` are names in it that mean nothing here."""

    path: Path
    default_model: str | None = None
    unknown: tuple[str, ...] = ()


def config_dir() -> Path:
    """Where settings and keys are kept: XDG_CONFIG_HOME, else the platform's place for them."""
    if chosen := os.environ.get("XDG_CONFIG_HOME"):
        return Path(chosen).expanduser() / "swink"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "swink"
    if sys.platform == "win32" and (chosen := os.environ.get("APPDATA")):
        return Path(chosen) / "swink"
    return Path.home() / ".config" / "swink"


def load_settings() -> Settings:
    """The settings; raises `MisuseError` with the file and the place if they cannot be read."""
    path = config_dir() / "config.toml"
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Settings(path)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MisuseError(f"{path} cannot be read: {error}; correct it or delete it") from error
    model = data.get("default_model")
    if model is not None and not isinstance(model, str):
        raise MisuseError(
            f'{path}: default_model takes a text, e.g. default_model = "anthropic:claude-sonnet-4-6"'
        )
    return Settings(path, model, tuple(sorted(set(data) - set(KNOWN))))
