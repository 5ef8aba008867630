"""Package indexes on loopback, and a program that finds them by name: what tests of installing share.

PackageIndex   a server that is a Python index (/simple/) and an npm registry, and keeps what it was asked for
swink_with     the command line that runs swink on a machine whose file of hosts names the indexes
"""

import base64
import hashlib
import io
import json
import sys
import tarfile
import threading
import zipfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_PROGRAM = """
import socket, sys
names, hosts = {names!r}, {hosts!r}
real = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **others: real(names.get(host, host), *rest, **others)
from swink.tools.coding import addresses
addresses.HOSTS = hosts
from swink.app.cli import main
sys.exit(main())
"""


class PackageIndex:
    """An index of packages that each hold one module with `NAME`."""

    def __init__(self, *packages: str) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self._pages: dict[str, bytes] = {}
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requests.append(self.path)
                found = index.answer(self.path.partition("?")[0])
                self.send_response(404 if found is None else 200)
                self.send_header(
                    "Content-Type", "application/json" if found and found[:1] == b"{" else "text/html"
                )
                self.send_header("Content-Length", str(len(found or b"")))
                self.end_headers()
                self.wfile.write(found or b"")

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        for name in packages:
            self.add(name)

    def __enter__(self) -> "PackageIndex":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, name: str) -> None:
        """Offer a package, to pip and to npm."""
        self.files[f"/files/{name}-1.0-py3-none-any.whl"] = make_wheel(name)
        self.files[f"/{name}/-/{name}-1.0.0.tgz"] = make_npm_package(name)

    def answer(self, path: str) -> bytes | None:
        """A file, a page of the Python index or the description of an npm package."""
        match path.strip("/").split("/"):
            case ["simple", name] if (wheel := f"/files/{name}-1.0-py3-none-any.whl") in self.files:
                digest = hashlib.sha256(self.files[wheel]).hexdigest()
                return f'<a href="{wheel}#sha256={digest}">{wheel.rpartition("/")[2]}</a>'.encode()
            case [name] if (archive := f"/{name}/-/{name}-1.0.0.tgz") in self.files:
                sha = base64.b64encode(hashlib.sha512(self.files[archive]).digest()).decode()
                dist = {"tarball": f"http://{{host}}{archive}", "integrity": f"sha512-{sha}"}
                version = {"name": name, "version": "1.0.0", "dist": dist}
                whole = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
                return json.dumps(whole).replace("{host}", f"index.test:{self.port}").encode()
            case _:
                return self.files.get(path)


def make_wheel(name: str) -> bytes:
    """A wheel with one module."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": f'NAME = "{name}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return out.getvalue()


def make_npm_package(name: str) -> bytes:
    """A package with one module."""
    files = {
        "package/package.json": json.dumps({"name": name, "version": "1.0.0", "main": "index.js"}),
        "package/index.js": f'exports.NAME = "{name}";\n',
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def swink_with(place: Path, names: Mapping[str, str], *, in_hosts: bool = True) -> list[str]:
    """The command line of swink where names have these addresses, by the file of hosts or only by a resolver."""
    hosts = place / "hosts"
    lines = [f"{address} {name}\n" for name, address in names.items()] if in_hosts else []
    hosts.write_text("".join(["127.0.0.1 localhost\n", *lines]))
    program = place / "swink_with_names.py"
    program.write_text(_PROGRAM.format(names=dict(names), hosts=str(hosts)))
    return [sys.executable, str(program)]
