"""Servers of one's own that speak like OpenAI or Anthropic: `[providers.NAME]` of config.toml.

add_provider, remove_provider    write the table into the file, or take it out; other lines stay
register_providers(settings)     from then on NAME:model is a model like any other, and is listed
await learn_models(settings)     asks those that list no models which they have, once

A key is never stored here: the table names the environment variable that holds it.
"""

import asyncio
import importlib
import os
import re
import tomllib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.settings import (
    OwnProvider,
    UserSettings,
    line_in,
    load_settings,
    rewrite_settings,
    toml_of,
)
from swink.errors import AgentError, MissingKey, MisuseError, NetworkError
from swink.messages import ModelSpec
from swink.messages.redact import hold, redact_text
from swink.models import catalog
from swink.providers.endpoint import check_base_url
from swink.providers.http import Request, client_for
from swink.stream import AssistantMessageEvent, LlmContext, StreamFn, StreamOptions, Timeout
from swink.stream.urls import is_loopback, is_private

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"\s*\[\[?([^\]]+)\]")
_SECONDS = 5.0
"""How long a server may take to list its models."""
_MOST_MODELS = 1_000
_LONGEST_LIST = 10_000_000


class OwnServer(Struct, frozen=True):
    """Makes the stream function of one server."""

    name: str
    provider: OwnProvider

    @property
    def key(self) -> str:
        """The key; empty if the server needs none, or if its variable is not set."""
        return os.environ.get(self.provider.key_env or "", "").strip()

    @property
    def lacks_key(self) -> bool:
        """Whether the variable that the table names is not set."""
        return self.provider.key_env is not None and not self.key

    @property
    def url(self) -> str:
        """The address, as the adapter takes it."""
        url = check_base_url(self.provider.base_url)
        return url.removesuffix("/v1") if self.provider.kind == "anthropic" else url

    def missing_key(self) -> MissingKey:
        """What a request without the key ends with."""
        variable = self.provider.key_env
        return MissingKey(f"no API key for {self.name}: set {variable}, which [providers.{self.name}] names")

    def __call__(self) -> StreamFn:
        if self.lacks_key:
            return _Keyless(self)
        hold(self.key)
        module, _, name = catalog.PROVIDERS[self.provider.kind].partition(":")
        return getattr(importlib.import_module(module), name)(base_url=self.url, api_key=self.key)


class _Keyless:
    """A stream function that sends nothing: the variable with the key is not set."""

    def __init__(self, server: OwnServer) -> None:
        self._server = server
        self.base_url = server.url

    def check_key(self, options: StreamOptions) -> None:
        raise self._server.missing_key()

    async def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        raise self._server.missing_key()
        yield  # which makes it a generator


def add_provider(
    name: str, kind: str, base_url: str, key_env: str | None = None, models: Sequence[str] = ()
) -> Path:
    """Write the table of a server into config.toml, and register it; returns the file."""
    provider = check_provider(name, kind, base_url, key_env, models)
    lines = [f"[providers.{name}]", f"kind = {toml_of(kind)}", f"base_url = {toml_of(provider.base_url)}"]
    lines += [f"key_env = {toml_of(provider.key_env)}"] if provider.key_env else []
    lines += [f"models = {toml_of(provider.models)}"] if provider.models else []
    table = "\n".join(lines)

    def change(text: str) -> str:
        return f"{text.rstrip()}\n\n{table}\n" if text.strip() else f"{table}\n"

    path = rewrite_settings(change, f"write into it:\n{table}")
    _register(name, provider)
    return path


def check_provider(
    name: str, kind: str, base_url: str, key_env: str | None = None, models: Sequence[str] = ()
) -> OwnProvider:
    """The server, if it can be added; `MisuseError` with what is wrong with it."""
    given = {"kind": kind, "base_url": base_url.strip(), "key_env": key_env or None, "models": models}
    try:
        provider = msgspec.convert(given, OwnProvider)
    except msgspec.ValidationError as error:
        hint = "kind is openai or anthropic, base_url begins with https:// or http://"
        raise MisuseError(f"{name}: {error}; {hint}") from error
    if problem := _problem_with(name, provider):
        raise MisuseError(problem)
    if name in load_settings().providers:
        raise MisuseError(f"there is a server {name} already; first: swink providers remove {name}")
    return provider


def remove_provider(name: str) -> Path:
    """Take the table of a server out of config.toml; returns the file."""
    settings = load_settings()
    by_hand = f"delete [providers.{name}] there"

    def change(text: str) -> str:
        data: dict[str, Any] = tomllib.loads(text)
        if name not in data.get("providers", {}):
            known = ", ".join(settings.providers) or "none"
            raise MisuseError(f"there is no server {name} in {settings.path}; there are: {known}")
        changed = _without_table(text, name)
        del data["providers"][name]
        left = tomllib.loads(changed)
        if {"providers": {}, **left} != {"providers": {}, **data}:
            raise MisuseError(f"{settings.path} says it in a way that cannot be changed here; {by_hand}")
        return changed

    path = rewrite_settings(change, by_hand)
    catalog.unregister_provider(name)
    return path


def register_providers(settings: UserSettings) -> list[str]:
    """Let the servers of the settings be asked, and no others; what is wrong with one, with its line."""
    problems: list[str] = []
    for name, provider in settings.providers.items():
        if problem := _problem_with(name, provider):
            text = settings.path.read_text("utf-8") if settings.path.exists() else ""
            problems.append(f"{settings.path}, line {line_in(text, 'providers', name)}: {problem}")
        else:
            _register(name, provider)
    for server in own_servers():
        if server.name not in settings.providers:
            catalog.unregister_provider(server.name)
    return problems


def own_servers() -> list[OwnServer]:
    """The servers that are registered."""
    makes = [catalog.registered(name) for name in catalog.registered_names()]
    return [make for make in makes if isinstance(make, OwnServer)]


def own_server(name: str) -> OwnServer | None:
    """The server of that name, if it is registered."""
    make = catalog.registered(name)
    return make if isinstance(make, OwnServer) else None


async def learn_models() -> list[str]:
    """Ask the servers whose models are not known, all at once; what failed, a line each."""
    unknown = [server for server in own_servers() if not catalog.models(server.name)]
    told = await asyncio.gather(*map(_learn, unknown))
    return [line for line in told if line is not None]


async def ask_models(server: OwnServer) -> tuple[str, ...]:
    """The models that a server says it has; raises `AgentError` with what failed."""
    if server.lacks_key:
        raise server.missing_key()
    url = f"{server.url}{'/v1' if server.provider.kind == 'anthropic' else ''}/models"
    headers = {"accept": "application/json"}
    if server.provider.kind == "anthropic":
        headers |= {"anthropic-version": "2023-06-01"} | ({"x-api-key": server.key} if server.key else {})
    elif server.key:
        headers["authorization"] = f"Bearer {server.key}"
    try:
        async with asyncio.timeout(_SECONDS):
            body = await _read(Request(url, headers, method="GET"))
    except TimeoutError:
        raise NetworkError(f"{url} does not answer within {_SECONDS:g} s") from None
    try:
        listed = msgspec.json.decode(body, type=_ModelList).data
    except msgspec.DecodeError:
        raise NetworkError(f"{url} answers with something else than a list of models") from None
    return tuple(dict.fromkeys(each.id for each in listed if each.id.isprintable()))[:_MOST_MODELS]


class _Listed(Struct):
    id: str


class _ModelList(Struct):
    data: list[_Listed]


async def _read(request: Request) -> bytes:
    response = await client_for(StreamOptions()).send(request, Timeout(connect=_SECONDS))
    try:
        if response.status != 200:
            raise NetworkError(f"{request.url} answers with HTTP {response.status}")
        body = b""
        async for chunk in response:
            body += chunk
            if len(body) > _LONGEST_LIST:
                raise NetworkError(f"{request.url} answers with too much")
        return body
    finally:
        await response.aclose()


async def _learn(server: OwnServer) -> str | None:
    try:
        models = await ask_models(server)
    except AgentError as error:
        why = redact_text(getattr(error, "message", "") or str(error))
        return f"the models of {server.name} are not known: {why}; name one as {server.name}:MODEL"
    catalog.register_provider(server.name, server, models)
    return None if models else f"{server.name} lists no models; name one as {server.name}:MODEL"


def _register(name: str, provider: OwnProvider) -> None:
    server, before = OwnServer(name, provider), own_server(name)
    if before is not None and replace(before.provider, models=()) == replace(provider, models=()):
        known = [spec.model_id for spec in catalog.models(name)]  # as the server has said
    else:
        known = []
    catalog.register_provider(name, server, provider.models or known)
    if server.key:
        hold(server.key)


def _problem_with(name: str, provider: OwnProvider) -> str | None:
    """Why a server cannot be used as it is described."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name for a server: small letters, digits, - and _"
    if own_server(name) is None and catalog.has_provider(name):
        return f"{name} is a provider that swink has already; choose another name"
    variable, url = provider.key_env, provider.base_url
    if variable is not None and (not _VARIABLE.fullmatch(variable) or redact_text(variable) != variable):
        # Not shown: it may be the key itself.
        return f"{name}: key_env takes the name of an environment variable, such as MY_KEY, and no key"
    if "@" in url.partition("//")[2].partition("/")[0]:
        return f"{name}: base_url must not hold credentials; name the variable with the key (key_env)"
    try:
        checked = urlsplit(check_base_url(url, allow_http=True))
    except MisuseError as error:
        return f"{name}: {error}"
    host = checked.hostname or ""
    is_open = checked.scheme == "http" and not is_loopback(host)
    if is_open and (variable is not None or not is_private(host)):
        return f"{name}: what is sent to {host} over http can be read on its way; use https"
    return None


def _without_table(text: str, name: str) -> str:
    """The text without the lines of a table; comments right above the next one stay with that."""
    kept: list[str] = []
    taken: list[str] = []
    inside = False
    for line in text.split("\n"):
        if header := _HEADER.match(line):
            parts = [part.strip(" \"'") for part in header[1].split(".")]
            inside, was_inside = parts[:2] == ["providers", name], inside
            if was_inside:
                kept += _end_comments(taken)
            taken = []
        (taken if inside else kept).append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join(kept) + "\n" if kept else ""


def _end_comments(lines: Sequence[str]) -> list[str]:
    """The blank lines and comments at the end of a table."""
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return [*lines[end:]]
