"""AWS keys and region: of the keywords, else the environment, else the shared AWS files."""

import configparser
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from swink.errors import MissingKey, StreamError
from swink.providers.bedrock.sigv4 import Credentials

_ELSEWHERE = ("role_arn", "sso_session", "sso_start_url", "credential_process", "web_identity_token_file")


def find_credentials(profile: str | None = None, environ: Mapping[str, str] | None = None) -> Credentials:
    """The key pair of the caller.

    A profile named by keyword wins over keys in the environment; a profile named by AWS_PROFILE does not.
    Keys are read on each call, so that rotated ones are seen.
    """
    environ = os.environ if environ is None else environ
    if profile is None and environ.get("AWS_ACCESS_KEY_ID"):
        return _pair("the environment", environ)
    name = profile_name(profile, environ)
    sections = _profile_sections(name, environ)
    for config in sections:
        if "aws_access_key_id" in config:
            return _pair(f"profile {name}", {key.upper(): value for key, value in config.items()})
    unsupported = [key for key in _ELSEWHERE for config in sections if key in config]
    if unsupported:
        raise MissingKey(
            f"bedrock: AWS profile {name!r} gets its keys through {unsupported[0]}, "
            "which needs the AWS tools: run `aws configure export-credentials --format env`, "
            "or pass credentials="
        )
    raise MissingKey(
        "bedrock: no credentials: set AWS_BEARER_TOKEN_BEDROCK, "
        "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
        f"or run: swink keys set bedrock, or fill the AWS profile {name!r}, or pass api_key= or credentials="
    )


def find_region(
    region: str | None = None, profile: str | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """The region: keyword, AWS_REGION, AWS_DEFAULT_REGION, profile."""
    environ = os.environ if environ is None else environ
    found = region or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if found:
        return found
    for config in _profile_sections(profile_name(profile, environ), environ):
        if config.get("region"):
            return config["region"]
    raise StreamError("bedrock: no region: pass region=, or set AWS_REGION, or give the AWS profile one")


def profile_name(profile: str | None, environ: Mapping[str, str]) -> str:
    """The name of the AWS profile: the keyword's, else the environment's, else "default"."""
    return profile or environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"


def _pair(where: str, given: Mapping[str, str]) -> Credentials:
    """The keys, by the names of their variables."""
    if not (secret_key := given.get("AWS_SECRET_ACCESS_KEY")):
        raise MissingKey(f"bedrock: {where} has an access key id but no secret access key")
    token = given.get("AWS_SESSION_TOKEN") or given.get("AWS_SECURITY_TOKEN") or None
    return Credentials(given["AWS_ACCESS_KEY_ID"], secret_key, token)


def _profile_sections(name: str, environ: Mapping[str, str]) -> list[dict[str, str]]:
    """What the credentials file and the config file say about a profile, in the order in which they count."""
    credentials = _read(environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials")
    config = _read(environ.get("AWS_CONFIG_FILE") or "~/.aws/config")
    sections = [credentials.get(name)]
    for title, section in config.items():
        words = _words(title)
        if words == ["profile", name] or (name == "default" and words == ["default"]):
            sections.append(section)
    return [section for section in sections if section is not None]


def _words(title: str) -> list[str]:
    try:
        return shlex.split(title)
    except ValueError:
        return []


def _read(path: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    # AWS gives no section the power to supply defaults to the others.
    parser.default_section = ""
    try:
        parser.read_string(Path(os.path.expandvars(path)).expanduser().read_text())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return {}
    except (configparser.Error, UnicodeDecodeError, OSError) as error:
        # The parser's own message quotes the offending line, which may hold a key.
        raise MissingKey(f"bedrock: {path} cannot be read: {type(error).__name__}") from None
    return {title: dict(parser.items(title)) for title in parser.sections()}
