"""What a fresh installation must do, asked outside of a checkout: `python -I tools/smoke.py [EXTRA ...]`.

It needs no key and no network: the model is scripted, or a small server on this machine. Prints a line for
each thing that works, and ends with 1 at the first that does not.
"""

import asyncio
import importlib.metadata
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

import swink
from swink.memory import JsonlStore, SqliteStore
from swink.testing import ScriptedModel

DATA = [
    "py.typed", "models/data/models.json", "app/assistant/data/localmodels.json", "eval/cases.schema.json",
    "eval/reports/page.css", "memory/exports/page.js", "serve/page/static/index.html",
    "policies/injection.toml", "docs/reference/cli.md", "docs/project/changelog.md",
    "docs/project/contributing.md", "docs/project/security-policy.md",
]  # fmt: skip
IMPORTS = {
    "local": "xllamacpp", "hub": "huggingface_hub", "mcp": "mcp", "code": "pydantic_monty",
    "keyring": "keyring", "postgres": "psycopg", "tokens": "bpe_openai", "vertex": "google.auth",
    "tui": "textual", "eval": "yaml", "otel": "opentelemetry",
}  # fmt: skip
COMMAND = Path(sysconfig.get_path("scripts"), "swink.exe" if os.name == "nt" else "swink")
SAYS = "A light jacket will do."


class Server(BaseHTTPRequestHandler):
    """A model behind OpenAI's protocol that always says the same."""

    def do_POST(self) -> None:
        """Answer with a stream of two events."""
        self.rfile.read(int(self.headers["content-length"]))
        chunk = {"choices": [{"index": 0, "delta": {"content": SAYS}, "finish_reason": "stop"}]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main(extras: list[str]) -> None:
    """Try everything in a directory of its own."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HOME"] = os.environ["USERPROFILE"] = os.environ["XDG_CONFIG_HOME"] = directory
        os.chdir(directory)
        checks: list[Callable[[], str]] = [the_version, the_data, hello, sessions, the_pages, a_run]
        for check in checks:
            print(f"{check.__name__.replace('_', ' ')}: {check()}", flush=True)
        for extra in extras:
            __import__(IMPORTS[extra])
            print(f"extra {extra}: {IMPORTS[extra]}", flush=True)


def the_version() -> str:
    """One version, wherever one asks; and the package is not that of a checkout."""
    place = Path(swink.__file__).parent
    assert not (place.parents[1] / "pyproject.toml").exists(), f"{place} is a checkout"
    assert importlib.metadata.version("swink") == swink.__version__
    assert call("--version").strip() == f"swink {swink.__version__}"
    return swink.__version__


def the_data() -> str:
    """Every file that is no module."""
    missing = [name for name in DATA if not files("swink").joinpath(name).is_file()]
    assert not missing, missing
    return f"{len(DATA)} files"


def hello() -> str:
    """An agent with a tool."""

    @swink.tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"18 °C in {city}"

    model = ScriptedModel([swink.ToolCall("1", "weather", {"city": "Oslo"}), SAYS])
    result = swink.Agent("test:m", stream_fn=model, tools=[weather]).run_sync("A jacket?")
    assert result.text == SAYS
    assert result.messages[2].text == "18 °C in Oslo"
    return result.text


def sessions() -> str:
    """Conversations in both kinds of files."""
    asyncio.run(keep_and_open())
    return "JSONL and SQLite"


async def keep_and_open() -> None:
    """Save a conversation in each, and read it again."""
    for store in (JsonlStore("sessions"), SqliteStore("sessions.db")):
        async with store:
            session = await store.create()
            await swink.Agent("test:m", stream_fn=ScriptedModel([SAYS]), session=session).run("hi")
            again = await store.open(session.id)
            assert [message.text for message in again.messages] == ["hi", SAYS]


def the_pages() -> str:
    """The list of pages, and a page."""
    listed = call("docs").splitlines()
    assert call("docs", "reference/cli").startswith("# The command line")
    return f"{len(listed)} of them"


def a_run() -> str:
    """`swink run` with a model behind a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"http://127.0.0.1:{server.server_address[1]}/v1"
        env = {"OPENAI_BASE_URL": where, "OPENAI_API_KEY": "none"}
        said = call("run", "-m", "openai:m", "A jacket?", env=env).strip()
        server.shutdown()
    assert said == SAYS, said
    return said


def call(*words: str, env: dict[str, str] | None = None) -> str:
    """What the command prints."""
    given = {**os.environ, "PYTHONIOENCODING": "utf-8", **(env or {})}
    done = subprocess.run([COMMAND, *words], env=given, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


if __name__ == "__main__":
    main(sys.argv[1:])
