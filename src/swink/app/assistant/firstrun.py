"""The first run: no key, no model chosen; what to begin with, and how the choice is remembered."""

import asyncio
import os
from collections.abc import Callable
from threading import Event

from msgspec import Struct

from swink.agent import Agent
from swink.agent.retry import ExponentialBackoff
from swink.app.assistant.modelchoice import LOCAL, parse_model
from swink.app.assistant.settings import UserSettings, change_setting
from swink.errors import AgentError
from swink.messages.redact import redact_text
from swink.models.keys.accounts import ACCOUNTS, ProviderAccount
from swink.models.keys.store import KeyStoreError, key_places, keys_file, store_key
from swink.stream import StreamFn, StreamOptions
from swink.system.threads import in_thread

EMBEDDED = LOCAL
BRIGHTER = "local:qwen2.5-coder-1.5b"
BRIGHTER_SIZE = 1_092_845_809
"""Bytes to fetch."""
_SECONDS = 30.0


class Beginning(Struct, frozen=True):
    """One way to begin, as the first screen offers it."""

    id: str
    title: str
    about: str


BEGINNINGS = (
    Beginning("embedded", "The embedded model, now", "small, offline, free; to try things out"),
    Beginning(
        "brighter",
        "A brighter local model",
        f"{BRIGHTER_SIZE / 1e9:.1f} GB to fetch once, {BRIGHTER_SIZE / 10e6 / 60:.0f} minutes at 10 MB/s; "
        "then offline and free; better at code than the embedded one",
    ),
    Beginning("key", "An API key", "a provider's large model: the best at work, at its price"),
    Beginning("server", "A server of my own", "any address that speaks like OpenAI or Anthropic"),
)


def is_first_run(settings: UserSettings, named: str | None) -> bool:
    """Whether no model is configured and there is no key either."""
    if named or settings.default_model or settings.providers or os.environ.get("SWINK_MODEL", "").strip():
        return False
    try:
        stored = key_places()
    except KeyStoreError:
        return False  # reported where a key is needed
    return not any(account.variable or account.key_name in stored for account in ACCOUNTS.values())


def providers() -> list[ProviderAccount]:
    """The providers that a key can be given for, those with a model of their own first."""
    listed = [account for account in ACCOUNTS.values() if not account.shares and account.variables]
    return sorted(listed, key=lambda account: account.default_model is None)


def problem_with(key: str) -> str | None:
    """What is wrong with what was typed, if it can be no key."""
    if not key.strip():
        return "no key was given"
    if not key.isascii() or not key.isprintable() or " " in key.strip():
        return "that is no key: it has spaces or characters that no key has"
    return None


async def check_key(account: ProviderAccount, key: str, *, stream_fn: StreamFn | None = None) -> str | None:
    """Send one tiny request with a key; what went wrong, in words, or None if it works."""
    if account.default_model is None:
        return None  # which model to ask is not known
    model, options = f"{account.provider}:{account.default_model}", StreamOptions(max_tokens=16, api_key=key)
    agent = Agent(model, options=options, retry=ExponentialBackoff(max_attempts=1), stream_fn=stream_fn)
    try:
        async with asyncio.timeout(_SECONDS):
            result = await agent.run("Say yes.")
    except TimeoutError:
        return f"{account.provider} did not answer within {_SECONDS:g} s"
    except AgentError as error:
        return redact_text(str(error)).replace(key, "…")
    return None if result.error is None else redact_text(result.error).replace(key, "…")


async def remember_key(account: ProviderAccount, key: str) -> tuple[str | None, str]:
    """Store a key, and its provider's model as the default; that model, and where the key is."""
    place = await in_thread(store_key, account.key_name, key.strip())
    where = "your keychain" if place == "keychain" else str(keys_file())
    if account.default_model is None:
        return None, where
    model = f"{account.provider}:{account.default_model}"
    await remember_model(model)
    return model, where


async def remember_model(model: str) -> None:
    """Make a model the default."""
    parse_model(model)
    await in_thread(change_setting, "default_model", model)


async def fetch_brighter(progress: Callable[[str], None], stop: Event) -> str:
    """Download the brighter model; `progress` is told, from a thread, how far it is. Raises `AgentError`."""
    from swink.local import Downloading, State, bar, pull

    def show(state: State) -> None:
        if isinstance(state, Downloading) and state.total:
            progress(bar(state))

    await in_thread(lambda: pull(BRIGHTER.removeprefix("local:"), progress=show, stop=stop))
    await remember_model(BRIGHTER)
    return BRIGHTER
