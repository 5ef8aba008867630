"""A project as people begin one: in an empty folder, from its first file to a push, in a real terminal."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Call, Place, Provider
from terminal import Terminal
from tests.app.loopback_git import HttpGit, SshGit, heads, http_git, make_bare, ssh_git
from tests.app.loopback_indexes import PackageIndex, swink_with
from tests.counts import left_to_more

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox with domains is bubblewrap's"),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]
NAMES = {"index.test": "127.0.0.1", "git.test": "127.0.0.1"}
PIP = f"{sys.executable} -m pip install --target lib -r requirements.txt"
TEST = """import sys
sys.path[:0] = ["lib"]
import alpha, beta
print("tests passed:", alpha.NAME, beta.NAME)
"""
COMMIT = "git add -A && git -c user.name=Ada -c user.email=ada@example.org commit -qm first"


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    with PackageIndex("alpha", "beta") as index:
        yield index


@pytest.fixture
def served(tmp_path: Path) -> Path:
    place = tmp_path / "served"
    place.mkdir()
    make_bare(place, "project.git")
    make_bare(place, "backup.git")
    return place


@pytest.fixture
def http(served: Path) -> Iterator[HttpGit]:
    with http_git(served) as server:
        yield server


@pytest.fixture
def ssh(tmp_path: Path, served: Path) -> Iterator[SshGit]:
    with ssh_git(tmp_path / "keys") as server:
        server.served = served
        yield server


@pytest.fixture
def empty(place: Place) -> Place:
    """An empty folder, no index of the tester's own, and pip may warn."""
    place.environ["PYTHONWARNINGS"] = "default"
    for name in [name for name in place.environ if name.startswith("PIP_")]:
        del place.environ[name]
    return place


def files(index: PackageIndex) -> list[Call]:
    host = f"index.test:{index.port}"
    lines = (f"--index-url http://{host}/simple", "--trusted-host index.test", "alpha", "beta", "")
    return [
        Call("write_file", path="requirements.txt", content="\n".join(lines)),
        Call("write_file", path=".gitignore", content="lib/\n"),
        Call("write_file", path="test_project.py", content=TEST),
    ]


def results(provider: Provider) -> str:
    return "\n".join(str(message["content"]) for message in provider.requests[-1]["messages"])


@left_to_more
def test_a_project_is_begun_installed_tested_committed_and_pushed(
    empty: Place, provider: Provider, index: PackageIndex, served: Path, http: HttpGit, ssh: SshGit
):
    origin = f"http://git.test:{http.port}/project.git"
    provider.replies = [
        files(index),
        [Call("bash", command="git init -b main")],
        [Call("bash", command=PIP)],
        [Call("bash", command=f"{sys.executable} test_project.py")],
        [Call("bash", command=COMMIT)],
        [Call("bash", command=f"git remote add origin {origin} && git push -u origin main")],
        [Call("bash", command=f"git remote add backup {ssh.url('backup.git')}")],
        [Call("bash", command="git push backup main")],
        ["It is pushed to both."],
    ]
    env = {**provider.env, "GIT_SSH_COMMAND": ssh.command}
    options = ("--model", "openai:m", "--approve", "sandboxed")
    command = swink_with(empty.home, NAMES)
    with Terminal(empty, *options, env=env, size=(120, 45), command=command, is_trusted=False) as terminal:
        terminal.wait_for("idle", "Execute", "sandboxed")
        terminal.type("begin a project with alpha and beta, and push it\r")
        answer(terminal, "y", "swink itself makes a git repository", "git init -b main")
        answer(terminal, "i", "A command wants to reach", f"index.test:{index.port}", "The package index")
        answer(terminal, "y", "git remote add origin", origin, '[branch "main"]', "if the push succeeds")
        answer(terminal, "a", "A command wants to reach", f"git.test:{http.port}", "git push -u origin main")
        answer(terminal, "y", "git remote add backup")
        answer(terminal, "y", "Run it once outside the sandbox?", "git push backup main")
        terminal.wait_for("It is pushed to both.", "idle")
        assert "tests passed: alpha beta" in results(provider)
        assert heads(served / "project.git") == {"main": "first"}
        assert heads(served / "backup.git") == {"main": "first"}
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0


@left_to_more
def test_with_the_network_off_and_nobody_there_it_ends_with_clear_messages_and_nothing_half_done(
    empty: Place, provider: Provider, index: PackageIndex, served: Path, http: HttpGit
):
    provider.replies = [
        [*files(index), Call("bash", command="git init -b main")],
        [Call("bash", command=PIP)],
        [Call("bash", command=COMMIT)],
        [Call("bash", command=f"git remote add origin http://git.test:{http.port}/project.git")],
        [Call("bash", command="git push -u origin main")],
        ["It could not be pushed."],
    ]
    options = ("run", "--coding", "--approve", "off", "--network", "off", "--model", "openai:m", "begin")
    ended = subprocess.run(
        [*swink_with(empty.home, NAMES), *options],
        cwd=empty.here, env={**empty.environ, **provider.env}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, start_new_session=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "the network is off" in results(provider)
    assert "the network is off" in ended.stderr
    assert index.requests == http.requests == []
    assert not (empty.here / "lib").exists()
    assert heads(served / "project.git") == {}
    assert "[branch" not in (empty.here / ".git" / "config").read_text()


def answer(terminal: Terminal, key: str, *shown: str) -> None:
    """Answer the question that shows this, once keys count."""
    terminal.wait_for(*shown)
    terminal.pause(0.5)
    terminal.press(key)
