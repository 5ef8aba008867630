"""`swink serve model`: a local model for other programs; `swink serve proxy`: models by token."""

import argparse
import asyncio
import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from swink.app.assistant.modelchoice import unknown_provider
from swink.app.cli.model_commands import parse_local_name
from swink.app.cli.terminal import say
from swink.errors import MisuseError
from swink.messages import ModelSpec
from swink.models import catalog
from swink.models.keys.accounts import ACCOUNTS
from swink.models.keys.store import key_places, open_to_others
from swink.stream import StreamFn
from swink.system.interrupts import interruptible
from swink.system.threads import run_to_end

_MODEL_KEY = "SWINK_SERVE_KEY"
_TOKENS = "SWINK_PROXY_TOKENS"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_KEYLESS = ("ollama", "bedrock", "azure", "azure-responses", "vertex")
"""Providers that may work without a key."""


def serve_model_command(arguments: argparse.Namespace) -> int:
    """Serve a local model until a signal comes."""
    name = parse_local_name(arguments.name)
    key = os.environ.get(_MODEL_KEY, "").strip() or None
    if key is None and arguments.host not in _LOOPBACK:
        remedy = f"set {_MODEL_KEY} to a key that clients must send"
        raise MisuseError(f"serving on {arguments.host} lets the whole network use the model; {remedy}")
    return run_to_end(_serve_model(arguments, name, key))


async def _serve_model(arguments: argparse.Namespace, name: str, key: str | None) -> int:
    serving = asyncio.create_task(_serve_for_ever(arguments, name, key))
    with interruptible(serving.cancel):
        await asyncio.wait((serving,))
    if not serving.cancelled():
        serving.result()
    say("stopped")
    return 0


async def _serve_for_ever(arguments: argparse.Namespace, name: str, key: str | None) -> None:
    from swink.serve.modelserver import serve_model

    options = {option: getattr(arguments, option) for option in ("host", "port", "context", "threads")}
    async with serve_model(name, api_key=key, **options) as served:
        print(f"OpenAI    {served.openai_base_url}\nAnthropic {served.anthropic_base_url}", flush=True)
        say(f"serving local:{name}{' to holders of ' + _MODEL_KEY if key else ''}; Ctrl-C stops it")
        await asyncio.Event().wait()


def serve_command(arguments: argparse.Namespace) -> int:
    """`swink serve` alone: show what can be served."""
    say(
        "serve what? the coding agent of this folder: swink serve assistant --page; an agent of yours: "
        "swink serve agent MODULE:FACTORY; a local model: swink serve model; models by token: "
        "swink serve proxy --tokens FILE; swink serve --help shows the rest"
    )
    return 2


def serve_proxy_command(arguments: argparse.Namespace) -> int:
    """Serve the proxy until a signal comes."""
    tokens = load_tokens(arguments.tokens)
    return run_to_end(_serve_proxy(arguments, stream_fns_for(tokens), tokens))


async def _serve_proxy(
    arguments: argparse.Namespace, stream_fns: Mapping[str, StreamFn], tokens: Mapping[str, tuple[str, ...]]
) -> int:
    from swink.serve.proxyserver import serve_proxy

    stopped = asyncio.Event()
    host, port, tls = arguments.host, arguments.port, _tls(arguments.tls)
    try:
        with interruptible(stopped.set):
            async with serve_proxy(host, port, stream_fns, tokens, tls=tls) as url:
                print(url, flush=True)
                holders = f"{len(tokens)} {'token' if len(tokens) == 1 else 'tokens'}"
                say(f"serving {', '.join(sorted(stream_fns))} to {holders}; Ctrl-C stops it")
                if tls is None and host not in _LOOPBACK:
                    remedy = "use --tls, or a reverse proxy with https in front"
                    say(f"tokens and prompts travel in clear text; {remedy}", "warning")
                await stopped.wait()
    except OSError as error:
        raise MisuseError(f"{host}:{port} cannot be served: {error.strerror or error}") from error
    say("stopped")
    return 0


def load_tokens(file: str | None) -> dict[str, tuple[str, ...]]:
    """The models of each token, from a file or the environment: one token a line, # begins a comment."""
    if file is not None:
        path = Path(file)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MisuseError(f"the tokens in {file} cannot be read: {error}") from error
        if open_to_others(path):
            mend = f"close the file with: chmod 600 '{file}'"
            say(f"others on this machine may read the tokens; {mend}", "warning")
    else:
        text = os.environ.get(_TOKENS, "").replace(";", "\n")
    source = file or _TOKENS
    tokens: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        token, *models = words
        if len(token) < 8 or not models or not all(":" in model or model == "*" for model in models):
            # The error does not quote the line: it holds a secret.
            form = "write a token of at least 8 characters, then provider:model, with * for any part"
            raise MisuseError(f"{source}, line {number}: {form}")
        tokens[token] = tuple(models)
    if not tokens:
        raise MisuseError(
            f"there are no tokens{f' in {file}' if file else ''}, so nobody could use the proxy; "
            'write lines such as "SECRET anthropic:* openai:gpt-5" and start it with: '
            f"swink serve proxy --tokens FILE (or set {_TOKENS} to them)"
        )
    return tokens


def stream_fns_for(tokens: Mapping[str, tuple[str, ...]]) -> dict[str, StreamFn]:
    """The providers that some token may use; those named without a key to serve them with are refused."""
    patterns = {model.partition(":")[0] for models in tokens.values() for model in models}
    stored = key_places()
    keyed = {name for name, account in ACCOUNTS.items() if account.variable or account.key_name in stored}
    ready = keyed - {"proxy"} | {"local"}
    wanted = {name for name in patterns if "*" not in name}
    for name in sorted(wanted):
        if not catalog.has_provider(name):
            raise MisuseError(f"a token may use {name}:…, but: {unknown_provider(name)}")
        if name in ACCOUNTS and name not in ready and name not in _KEYLESS:
            how = f"store one with: swink keys set {ACCOUNTS[name].key_name}"
            raise MisuseError(f"a token may use {name}:…, but there is no key for it; {how}")
    _check_local({model for models in tokens.values() for model in models})
    found = {name: catalog.stream_fn_for(ModelSpec(name, "")) for name in sorted(wanted)}
    for name in sorted(ready - wanted) if any("*" in name for name in patterns) else ():
        try:
            found[name] = catalog.stream_fn_for(ModelSpec(name, ""))
        except MisuseError as error:
            say(f"{name} is not served: {error}", "warning")
    return found


def _check_local(patterns: set[str]) -> None:
    """Refuse local models that are named but not here: no client's request may download one."""
    for model in sorted(patterns):
        if not model.startswith("local:") or "*" in model:
            continue
        from swink.local import locate

        name = model.removeprefix("local:")
        path = locate(name)
        if path is None or not path.exists():
            how = f"get it with: swink models pull {name}"
            raise MisuseError(f"a token may use local:{name}, which is not on this machine; {how}")


def _tls(files: list[str] | None) -> ssl.SSLContext | None:
    if files is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(*files)
    except (OSError, ssl.SSLError) as error:
        pair = f"the certificate {files[0]} with the key {files[1]}"
        raise MisuseError(f"{pair} cannot be used: {error}") from error
    return context
