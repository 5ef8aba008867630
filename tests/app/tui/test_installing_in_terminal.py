"""Installing packages in a real terminal: a project begins in an empty folder, and the network is asked about."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from command_line import Call, Place, Provider
from terminal import Terminal
from tests.app.loopback_indexes import PackageIndex, swink_with
from tests.counts import left_to_more

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox with domains is bubblewrap's")
PIP = f"{sys.executable} -m pip install --target lib -r requirements.txt"


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    with PackageIndex("alpha", "beta") as index:
        yield index


@pytest.fixture
def empty(place: Place, need: None) -> Place:
    """An empty folder, no index of the tester's own, and pip may warn."""
    place.environ["PYTHONWARNINGS"] = "default"
    for name in [name for name in place.environ if name.startswith("PIP_")]:
        del place.environ[name]
    return place


@pytest.fixture
def need() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")


def begin(place: Place, provider: Provider, *arguments: str, **names: str) -> Terminal:
    command = swink_with(place.home, names or {"index.test": "127.0.0.1"})
    options = ("--model", "openai:m", "--approve", "off", *arguments)
    terminal = Terminal(place, *options, env=provider.env, size=(110, 40), command=command, is_trusted=False)
    terminal.wait_for("idle", "Execute")
    return terminal


def requirements(index: PackageIndex) -> Call:
    host = f"index.test:{index.port}"
    lines = (f"--index-url http://{host}/simple", "--trusted-host index.test", "alpha", "beta", "")
    return Call("write_file", path="requirements.txt", content="\n".join(lines))


def last_result(provider: Provider) -> str:
    return str(provider.requests[-1]["messages"][-1]["content"])


def leave(terminal: Terminal) -> None:
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0


@left_to_more
def test_two_packages_are_installed_in_an_empty_folder_after_one_question(
    empty: Place, provider: Provider, index: PackageIndex
):
    use = f"{sys.executable} -c \"import sys; sys.path[:0] = ['lib']; import alpha, beta; print(alpha.NAME, beta.NAME)\""
    provider.replies = [
        [requirements(index)],
        [Call("bash", command=PIP)],
        [Call("bash", command=use)],
        ["Done."],
    ]
    with begin(empty, provider, "--approve", "sandboxed") as terminal:
        terminal.wait_for("sandboxed")
        terminal.type("begin a project with alpha and beta\r")
        terminal.wait_for("A command wants to reach", f"index.test:{index.port} at 127.0.0.1", "pip install")
        terminal.wait_for("The package index of this project", "pypi.org")
        assert index.requests == []
        terminal.pause(0.4)
        terminal.press("i")
        terminal.wait_for("Done.", "idle")
        assert "alpha beta" in last_result(provider)
        assert (empty.here / "lib" / "alpha.py").exists()
        assert "A command wants to reach" not in terminal.shown
        leave(terminal)


@left_to_more
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_installs_from_its_registry_after_one_question(
    empty: Place, provider: Provider, index: PackageIndex
):
    manifest = json.dumps({"name": "app", "version": "1.0.0", "dependencies": {"alpha": "1", "beta": "1"}})
    provider.replies = [
        [Call("write_file", path="package.json", content=manifest)],
        [
            Call(
                "bash", command=f"npm install --no-audit --no-fund --registry http://index.test:{index.port}/"
            )
        ],
        ["Done."],
    ]
    with begin(empty, provider) as terminal:
        terminal.type("install\r")
        terminal.wait_for("A command wants to reach", "npm install")
        terminal.pause(0.4)
        terminal.press("a")
        terminal.wait_for("Done.", "idle")
        assert (empty.here / "node_modules" / "beta" / "index.js").exists(), last_result(provider)
        leave(terminal)


def test_a_no_is_told_to_the_model_and_nothing_is_installed(
    empty: Place, provider: Provider, index: PackageIndex
):
    provider.replies = [[requirements(index)], [Call("bash", command=PIP)], ["As you wish."]]
    with begin(empty, provider) as terminal:
        terminal.type("install\r")
        terminal.wait_for("A command wants to reach")
        terminal.pause(0.4)
        terminal.press("n")
        terminal.wait_for("As you wish.", "idle")
        assert "was not reached: the user said no" in last_result(provider)
        assert index.requests == []
        assert not (empty.here / "lib").exists()
        leave(terminal)


@left_to_more
def test_with_the_network_off_model_and_person_are_told_and_nothing_is_reached(
    empty: Place, provider: Provider, index: PackageIndex
):
    empty.configure('[sandbox]\nnetwork = "off"\n')
    provider.replies = [[requirements(index)], [Call("bash", command=PIP)], ["It is off."]]
    with begin(empty, provider) as terminal:
        terminal.type("install\r")
        terminal.wait_for("It is off.", "idle", "the network is off")
        assert "the network is off" in last_result(provider)
        assert f"--network index.test:{index.port}@127.0.0.1" in last_result(provider)
        assert index.requests == []
        assert not (empty.here / "lib").exists()
        leave(terminal)


@left_to_more
def test_without_a_person_the_answer_is_no_with_the_setting_that_would_allow_it(
    empty: Place, provider: Provider, index: PackageIndex
):
    command = swink_with(empty.home, {"index.test": "127.0.0.1"})
    arguments = ("run", "--coding", "--approve", "off", "--model", "openai:m", "install")

    def run(*more: str) -> "subprocess.CompletedProcess[str]":
        provider.replies = [[requirements(index)], [Call("bash", command=PIP)], ["Ended."]]
        env = {**empty.environ, **provider.env}
        argv = [*command, *arguments, *more]
        streams = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        return subprocess.run(argv, cwd=empty.here, env=env, start_new_session=True, timeout=100, **streams)

    ended = run()
    allow = f"--network index.test:{index.port}@127.0.0.1"
    assert ended.returncode == 0, ended.stderr
    assert "nobody is there to allow it" in last_result(provider)
    assert allow in last_result(provider)
    assert allow in ended.stderr
    assert index.requests == []
    assert not (empty.here / "lib").exists()
    ended = run("--network", f"index.test:{index.port}@127.0.0.1")
    assert (empty.here / "lib" / "beta.py").exists(), (last_result(provider), ended.stderr)
