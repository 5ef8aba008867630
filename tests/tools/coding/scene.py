"""The scene of an escape: a workspace, and around it everything an attacker could want.

As a script it sets the scene, runs the attacker at one level and prints what came of it as JSON; so that a test that runs as
root can have the same done by an ordinary user.
"""

import asyncio
import ctypes
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from swink.tools.coding.process import HeadAndTail, Limits, run
from swink.tools.coding.sandbox import Sandbox

CANARY = "CANARY-4f1d"
SIGHTING = re.compile(CANARY)
ATTACKER = Path(__file__).with_name("attacker.py")
SECRETS_IN_HOME = (
    ".ssh/id_ed25519",
    ".netrc",
    ".aws/credentials",
    ".config/swink/config.toml",
    ".local/share/swink/sessions/a.jsonl",
    "notes/private-secret.txt",
)
VICTIM = """
import ctypes, sys, time
memory = ctypes.create_string_buffer(b"%s-memory")
file = open(sys.argv[1])
print(ctypes.addressof(memory), file.fileno(), flush=True)
time.sleep(120)
"""


class Scene:
    """Everything outside the workspace, and what happened to it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.workspace = base / "workspace"
        self.home = base / "home"
        self.outside = base / "outside"
        self.store = base / "store"
        self.reached: list[str] = []
        for directory in (self.workspace, self.home, self.outside, self.store):
            directory.mkdir(parents=True)
        self.secrets = [
            self.outside / "secret",
            self.store / "secret.jsonl",
            *(self.home / name for name in SECRETS_IN_HOME),
        ]
        for secret in self.secrets:
            secret.parent.mkdir(parents=True, exist_ok=True)
            secret.write_text(f"{CANARY}-file {secret}\n")
        (self.home / ".bashrc").write_text("# intact\n")
        (self.outside / "victim").write_text("intact\n")
        shutil.copy(ATTACKER, self.workspace / "attacker.py")
        self._lay_repository()
        self.name = f"swink-escape-{os.getpid()}"
        self.directories = [
            str(self.outside),
            str(self.home),
            str(base),
            "/etc",
            "/usr/local/bin",
            "/tmp",
            "/var/tmp",
            "/dev/shm",
            "/",
        ]

    def _lay_repository(self) -> None:
        """A repository in the workspace, a directory that is none, and what a person keeps beside them."""
        repository = self.workspace / "repository"
        for root in (repository, repository / "library"):
            subprocess.run(["git", "init", "-q", str(root)], check=True)
        (repository / ".vscode").mkdir()
        (repository / ".vscode/settings.json").write_text("{}")
        self.obeyed = self._obeyed()

    def _obeyed(self) -> dict[str, str]:
        """Whatever in the workspace git, swink, editors or shells would obey, by its content."""
        names = {"config", "hooks", "commondir", "config.worktree"}
        found = {}
        for path in sorted(self.workspace.rglob("*")):
            inside = path.relative_to(self.workspace)
            is_obeyed = any(
                part in (".swink", ".mcp.json", ".vscode", ".idea", ".claude") for part in inside.parts
            )
            if (is_obeyed or names & {*inside.parts}) and path.is_file():
                found[str(inside)] = path.read_text(errors="replace")
        return found

    def __enter__(self) -> "Scene":
        environment = {"PATH": os.environ["PATH"], "SOME_API_KEY": f"{CANARY}-environment"}
        self.sleeper = subprocess.Popen(
            [sys.executable, "-c", VICTIM % CANARY, str(self.outside / "secret")],
            env=environment,
            cwd=self.outside,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.sleeper.stdout is not None
        self.address, self.open_file = map(int, self.sleeper.stdout.readline().split())
        self.listeners = _Listeners(self)
        self.key = _kernel_key()
        self.segment = _shared_memory()
        self.in_memory = Path("/dev/shm", f"swink-canary-{os.getpid()}")
        self.in_memory.write_text(f"{CANARY}-shm")
        self.before = self.fingerprint()
        return self

    def __exit__(self, *_: object) -> None:
        self.sleeper.kill()
        self.sleeper.wait()
        assert self.sleeper.stdout is not None
        self.sleeper.stdout.close()
        self.listeners.close()
        ctypes.CDLL(None).shmctl(self.segment, 0, None)
        self.in_memory.unlink(missing_ok=True)
        for directory in self.directories:
            path = Path(directory, self.name)
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)

    def fingerprint(self) -> dict[str, str]:
        """Every file outside, by its content."""
        found = {}
        for top in (self.home, self.outside, self.store):
            for path in sorted(top.rglob("*")):
                if not path.is_socket():
                    found[str(path)] = (
                        hashlib.sha256(path.read_bytes()).hexdigest()
                        if path.is_file() and not path.is_symlink()
                        else "directory"
                    )
        return found

    def targets(self, *, control: bool, namespaces: bool) -> dict[str, Any]:
        return {
            "control": control,
            "namespaces": namespaces,
            "base": str(self.base),
            "secrets": [*map(str, self.secrets), str(self.in_memory)],
            "victims": [
                str(self.outside / "victim"),
                str(self.home / ".bashrc"),
                str(self.home / ".ssh/id_ed25519"),
            ],
            "directories": self.directories,
            "name": self.name,
            "victim": self.sleeper.pid,
            "pids": [self.sleeper.pid] if control else [self.sleeper.pid, os.getpid()],
            "address": self.address,
            "open_file": self.open_file,
            "key": self.key,
            "shared_memory": self.segment,
            "disks": sorted(
                {
                    (os.major(found.st_dev), os.minor(found.st_dev))
                    for found in (os.stat("/"), os.stat(self.base))
                }
            ),
            "tcp": self.listeners.tcp,
            "udp": self.listeners.udp,
            "host": _own_address(),
            "unix": self.listeners.unix,
        }

    async def attack(self, box: Sandbox) -> dict[str, Any]:
        """Let the attacker loose and tell what came of it."""
        control = box.level == "none"
        namespaces = await box.backend() == "bubblewrap"
        launch = await box.launch(
            [sys.executable, "attacker.py", json.dumps(self.targets(control=control, namespaces=namespaces))],
            limits=Limits(wall=40, processes=100),
        )
        output = HeadAndTail(4_000_000)
        ending = await run(launch, output.add)
        await asyncio.sleep(0.05)
        text = output.text()
        after = self.fingerprint()
        return {
            "code": ending.code,
            "finished": "ATTACKED" in text,
            "holes": sorted({line for line in text.splitlines() if line.startswith("HOLE")}),
            "canaries": sorted(
                {
                    line[:40] + line[found.start() :][:300]
                    for line in text.splitlines()
                    for found in SIGHTING.finditer(line)
                }
            ),
            "written": sorted(
                path for path in {*self.before, *after} if self.before.get(path) != after.get(path)
            ),
            "appeared": [
                directory
                for directory in self.directories
                if os.path.lexists(os.path.join(directory, self.name))
            ],
            "reached": sorted(set(self.reached)),
            "victim_lives": self.sleeper.poll() is None,
            "planted": sorted(set(self._obeyed().items()) ^ set(self.obeyed.items())),
            "output": text[-6000:],
        }


class _Listeners:
    """Servers outside that take note of who gets through."""

    def __init__(self, scene: Scene) -> None:
        self._loop = asyncio.get_running_loop()
        self._scene = scene
        self._sockets: list[socket.socket] = []
        self.tcp = self._listen("tcp", socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0))[1]
        self.udp = self._listen("udp", socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", 0))[1]
        self.unix = [
            f"@swink-canary-{os.getpid()}",
            str(scene.outside / "socket"),
            f"/tmp/swink-{os.getpid()}.socket",
        ]
        for address in self.unix:
            self._listen(
                "abstract" if address.startswith("@") else "unix",
                socket.AF_UNIX,
                socket.SOCK_STREAM,
                address.replace("@", "\0", 1),
            )
        self._listen("abstract", socket.AF_UNIX, socket.SOCK_DGRAM, f"\0swink-canary-dgram-{os.getpid()}")
        self.unix.append(f"@swink-canary-dgram-{os.getpid()}")

    def _listen(self, label: str, family: int, kind: int, address: Any) -> Any:
        sock = socket.socket(family, kind)
        sock.setblocking(False)
        sock.bind(address)
        if kind == socket.SOCK_STREAM:
            sock.listen()
        self._sockets.append(sock)
        self._loop.add_reader(sock, self._heard, label, sock, kind)
        return sock.getsockname()

    def _heard(self, label: str, sock: socket.socket, kind: int) -> None:
        self._scene.reached.append(label)
        if kind == socket.SOCK_STREAM:
            sock.accept()[0].close()
        else:
            sock.recv(100)

    def close(self) -> None:
        for sock in self._sockets:
            self._loop.remove_reader(sock)
            sock.close()
        for address in self.unix:
            Path(address).unlink(missing_ok=True)


def _own_address() -> str:
    """An address of this machine other than loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # a datagram socket sends nothing by connecting
            return sock.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def _kernel_key() -> int:
    numbers = {"x86_64": 248, "aarch64": 217}
    payload = f"{CANARY}-key".encode()
    return ctypes.CDLL(None).syscall(
        numbers[platform.machine()], b"user", b"swink-canary", payload, ctypes.c_size_t(len(payload)), -5
    )


def _shared_memory() -> int:
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(0, 4096, 0o1600)
    at = libc.shmat(segment, None, 0)
    ctypes.memmove(at, f"{CANARY}-shared".encode(), 20)
    libc.shmdt(ctypes.c_void_p(at))
    return segment


async def play(base: Path, level: Any, backend: Any) -> dict[str, Any]:
    """Set the scene, attack once, and tell what came of it."""
    with Scene(base) as scene:
        os.environ["HOME"] = str(scene.home)
        os.environ["EXAMPLE_API_KEY"] = f"{CANARY}-own-environment"
        # Landlock cannot hide what is in the workspace, and refuses there; so only bubblewrap has secrets to keep in it.
        if backend == "bubblewrap":
            for name in (".env", "deep/er/.env.production", "keys/id_rsa", "later/place"):
                path = scene.workspace / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{CANARY}-inside {name}")
        inside = ["later"] if backend == "bubblewrap" else []
        first = await scene.attack(
            Sandbox(scene.workspace, level, hidden=[scene.store, *inside], backends=(backend,))
        )
        if level == "none":
            return first
        # A second command builds on what the first has left.
        return await scene.attack(
            Sandbox(scene.workspace, level, hidden=[scene.store, *inside], backends=(backend,))
        )


def main() -> None:
    level, backend = sys.argv[1:3]
    signal.alarm(60)
    with tempfile.TemporaryDirectory(prefix="scene-") as scratch:
        print(json.dumps(asyncio.run(play(Path(scratch).resolve() / "base", level, backend))))


if __name__ == "__main__":
    main()
