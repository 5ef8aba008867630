"""Models from Hugging Face: the real client, against a repository on loopback."""

import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from swink.local import ExtraMissing, PullFailed, locate, models, pull, remove
from swink.system.extras import install_command

FILES = {"x-Q4_K_M.gguf": b"GGUF" + bytes(3000), "x-Q8_0.gguf": b"GGUF" + bytes(5000), "README.md": b"# x"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A hub with one repository, `owner/repo`; the paths that were asked for."""
    pytest.importorskip("huggingface_hub")
    asked: list[str] = []

    class Pages(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            asked.append(f"{self.command} {path}")
            if path == "/api/models/owner/repo/tree/main":
                tree = [
                    {"type": "file", "path": name, "size": len(data), "oid": COMMIT}
                    for name, data in FILES.items()
                ]
                self._answer(200, json.dumps(tree).encode(), {"content-type": "application/json"})
            elif path.startswith("/owner/repo/resolve/") and (name := path.rpartition("/")[2]) in FILES:
                self._answer(
                    200, FILES[name], {"etag": f'"{name}"', "x-repo-commit": COMMIT, "accept-ranges": "bytes"}
                )
            else:
                self._answer(404, b'{"error":"Repository not found"}', {"x-error-code": "RepoNotFound"})

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_model_is_pulled_from_the_hub_listed_and_removed(hub: list[str]):
    path = pull("hf/owner/repo")
    assert path.read_bytes() == FILES["x-Q4_K_M.gguf"]
    assert pull("hf/owner/repo/Q8_0").read_bytes() == FILES["x-Q8_0.gguf"]
    asked = len(hub)
    assert pull("hf/owner/repo/x-Q8_0.gguf") == locate("hf/owner/repo/q8_0")
    assert len(hub) == asked  # what is here is not asked for again
    assert {entry.name for entry in models() if entry.source == "hub"} == {
        "hf/owner/repo/x-Q4_K_M.gguf",
        "hf/owner/repo/x-Q8_0.gguf",
    }
    assert remove("hf/owner/repo/x-Q8_0.gguf") == len(FILES["x-Q8_0.gguf"])
    assert locate("hf/owner/repo/Q8_0") is None
    assert locate("hf/owner/repo") == path
    assert remove("hf/owner/repo") >= len(FILES["x-Q4_K_M.gguf"])
    assert locate("hf/owner/repo") is None


def test_a_file_that_is_not_there_is_answered_with_those_that_are(hub: list[str]):
    with pytest.raises(PullFailed, match=r"no file 'Q2_K'; it has x-Q4_K_M\.gguf, x-Q8_0\.gguf"):
        pull("hf/owner/repo/Q2_K")


def test_a_repository_that_is_not_there_is_an_error(hub: list[str]):
    with pytest.raises(PullFailed, match=r"hf/owner/other.*swink models pull hf/owner/other"):
        pull("hf/owner/other")


def test_without_the_client_the_error_says_how_to_get_it(own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ExtraMissing, match=re.escape(install_command("hub"))):
        pull("hf/owner/repo")
