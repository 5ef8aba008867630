"""Git servers on loopback: `git http-backend` behind a small HTTP server, and sshd with keys of its own.

with http_git(tmp_path / "served") as url:                   push to f"{url}/project.git"
with ssh_git(tmp_path / "ssh", tmp_path / "served") as ssh:  push to ssh.url("project.git"), with ssh.command
"""

import getpass
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SSHD = shutil.which("sshd") or ("/usr/sbin/sshd" if os.path.exists("/usr/sbin/sshd") else None)


def make_bare(served: Path, name: str = "project.git") -> Path:
    """An empty repository that takes pushes."""
    place = served / name
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    subprocess.run(["git", "-C", str(place), "config", "http.receivepack", "true"], check=True)
    return place


def heads(repository: Path) -> dict[str, str]:
    """The branches of a repository, and the subject of the last commit of each."""
    form = "%(refname:short) %(contents:subject)"
    done = subprocess.run(
        ["git", f"--git-dir={repository}", "for-each-ref", f"--format={form}", "refs/heads"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


class HttpGit:
    """The address of the server, and the requests that came."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[str] = []
        self.password: str | None = None
        """What clients have to know for the user `ada`; None for anybody."""


@contextmanager
def http_git(served: Path) -> Iterator[HttpGit]:
    """Serve the repositories of a directory by HTTP."""
    served.mkdir(parents=True, exist_ok=True)
    backend = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip(), "git-http-backend")
    if not backend.exists():
        pytest.skip("needs git http-backend")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None: ...

        def _answer(self) -> None:
            git.requests.append(self.path)
            if git.password is not None and self.headers.get("Authorization") != _basic("ada", git.password):
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            body = self._body()
            environment = {
                "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(served), "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "REMOTE_ADDR": "127.0.0.1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "REMOTE_USER": "ada",
            }  # fmt: skip
            done = subprocess.run([str(backend)], input=body, capture_output=True, env=environment)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            lines = [line.split(": ", 1) for line in head.decode().split("\r\n") if line]
            status = next((int(value.split()[0]) for name, value in lines if name == "Status"), 200)
            self.send_response(status)
            for name, value in lines:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    git = HttpGit(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield git
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _basic(user: str, password: str) -> str:
    import base64

    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class SshGit:
    """A server, and how a person reaches it."""

    def __init__(self, port: int, key: Path, command: str) -> None:
        self.port, self.key = port, key
        self.command = command
        """What the person has in GIT_SSH_COMMAND."""
        self.served = Path("/")
        """Where the repositories are."""

    def url(self, name: str = "project.git") -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{self.served}/{name}"


@contextmanager
def ssh_git(place: Path) -> Iterator[SshGit]:
    """Serve by a real sshd, with a host key and a user key of its own."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("needs sshd (package openssh-server)")
    place.mkdir(parents=True)
    place.chmod(0o700)
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
        subprocess.run(key, check=True)
    (place / "authorized").write_text((place / "user.pub").read_text())
    (place / "authorized").chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": place / "host", "PidFile": "none",
        "AuthorizedKeysFile": place / "authorized", "StrictModes": "no", "UsePAM": "no",
        "PasswordAuthentication": "no", "PermitRootLogin": "prohibit-password", "PrintMotd": "no",
    }  # fmt: skip
    (place / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    host = (place / "host.pub").read_text().split()[:2]
    (place / "known").write_text(f"[127.0.0.1]:{port} {' '.join(host)}\n")
    log = (place / "log").open("wb")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # where root's sshd confines itself
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(place / "sshd_config")], stderr=log)
    options = f"-F /dev/null -i {place}/user -o IdentitiesOnly=yes -o UserKnownHostsFile={place}/known"
    try:
        _wait_for(port, server, place / "log")
        yield SshGit(port, place / "user", f"{shutil.which('ssh')} {options}")
    finally:
        server.terminate()
        server.wait()
        log.close()


def _wait_for(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 60  # only bounds a hang
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.skip(
                f"sshd does not start here (package openssh-server): {log.read_text().strip()[-200:]}"
            )
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(log.read_text())
