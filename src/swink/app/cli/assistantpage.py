"""`swink serve assistant`: the coding agent of this folder for a browser, or a program, on this machine."""

import argparse
import asyncio

from swink.app.assistant.sessionfacts import working_directory
from swink.app.assistant.settings import load_settings
from swink.app.cli.agentsetup import use_local_models, watch_downloads
from swink.app.cli.directory import change_directory, trust_without_person
from swink.app.cli.servedassistant import ServedAssistant
from swink.app.cli.terminal import say
from swink.errors import AgentError, MisuseError
from swink.memory import JsonlStore, MemoryStore, Store, sessions_dir
from swink.serve.agentapp import AgentApp, agent_app
from swink.serve.asgi import serve_app
from swink.serve.hosting import FolderClaims, ServeLimits
from swink.serve.page import Entry, PageDoor
from swink.system.interrupts import interruptible
from swink.system.threads import run_to_end

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LIMITS = ServeLimits(approval_seconds=24 * 3600.0, idle_seconds=3600.0)
"""A person may look at a question tomorrow."""


def serve_assistant_command(arguments: argparse.Namespace) -> int:
    """Serve the coding agent of this folder until a signal comes."""
    if arguments.host not in _LOOPBACK:
        remedy = f"from elsewhere, tunnel to it: ssh -L {arguments.port}:127.0.0.1:{arguments.port} HOST"
        raise MisuseError(f"the assistant works with your rights, so it is served on loopback only; {remedy}")
    change_directory(arguments)
    load_settings()  # what is wrong in them is said now
    use_local_models()
    return run_to_end(_serve(arguments))


async def _serve(arguments: argparse.Namespace) -> int:
    stopped = asyncio.Event()
    app, assistant, entry = make_app(arguments)
    _tell_downloads(assistant)
    try:
        with interruptible(stopped.set):
            async with serve_app(app, arguments.host, arguments.port) as url:
                _tell(url, entry, with_page=arguments.page)
                await stopped.wait()
                await app.aclose()
    except OSError as error:
        where = f"{arguments.host}:{arguments.port}"
        raise MisuseError(
            f"{where} cannot be served: {error.strerror or error}; --port 0 takes a free one"
        ) from error
    finally:
        await assistant.aclose()
    say("stopped")
    return 0


def make_app(arguments: argparse.Namespace) -> tuple[AgentApp, ServedAssistant, Entry]:
    """The application, the agents behind it, and the way in."""
    store, entry = _store(), Entry()
    trust = trust_without_person()
    assistant = ServedAssistant(arguments, store, trust)
    app = agent_app(
        assistant.make,
        store=store,
        authorize=entry.authorize,
        directory=working_directory(),
        limits=_LIMITS,
        claims=FolderClaims(sessions_dir() / "claims") if isinstance(store, JsonlStore) else None,
        page=(lambda host: PageDoor(host, assistant, entry)) if arguments.page else False,
    )
    return app, assistant, entry


def _tell_downloads(assistant: ServedAssistant) -> None:
    """Tell pages that wait for it that a local model is being fetched, once for each."""
    told: set[str] = set()

    def listen(model: str, size: str) -> None:
        if model not in told:
            told.add(model)
            assistant.tell(f"fetching local:{model} ({size}), once; the answer follows")

    watch_downloads(listen)


def _tell(url: str, entry: Entry, *, with_page: bool) -> None:
    if with_page:
        print(f"{url}/?token={entry.token}", flush=True)
        say("open this address in a browser: it works once, for one browser; Ctrl-C stops it")
    else:
        print(f"{url}\nAuthorization: Bearer {entry.key}", flush=True)
        say("programs send this header; --page serves a page too; Ctrl-C stops it")


def _store() -> Store:
    """Where the command line keeps its sessions, or memory if nothing is to be kept."""
    if load_settings().save:
        try:
            return JsonlStore()
        except (AgentError, OSError) as error:
            say(f"conversations are not saved: {error}", "warning")
    return MemoryStore()
