"""What the sandbox kept from a command: recognised where it did, and nowhere else."""

import os
import socket
from pathlib import Path

import pytest
from calling import call, named

from swink.tools.coding import coding_tools
from swink.tools.coding.guarded import Guard
from swink.tools.coding.mounts import Mounts
from swink.tools.coding.outside import OWN_LIMITS, RefusedRun
from swink.tools.coding.refusals import find_refusal
from swink.tools.coding.sandboxplan import SandboxPlan


@pytest.fixture
def plan(tmp_path: Path) -> SandboxPlan:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id_rsa").write_text("key")
    mounts = Mounts(
        str(root), str(tmp_path / "home"), ("/usr",), (str(tmp_path / "home" / ".ssh"),), (str(root),)
    )
    return SandboxPlan(mounts, Guard(read_only=(f"{root}/.git/config",)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("touch: cannot touch '/usr/x': Read-only file system", "it may not write /usr/x"),
        ("error: could not lock config file .git/config: Read-only file system", "read-only"),
        ("OSError: [Errno 30] Read-only file system: 'a/b'", "it may not write a/b"),
        ("cat: {home}/.ssh/id_rsa: No such file or directory", "it cannot see {home}/.ssh/id_rsa"),
        ("fatal: Could not resolve host: example.org", "it has no network there, and wants example.org"),
        ("curl: (6) Could not resolve host: pypi.org", "and wants pypi.org"),
        ("ssh: Could not resolve hostname git.example.org: Temporary failure", "and wants git.example.org"),
        ("npm error getaddrinfo EAI_AGAIN registry.npmjs.org", "and wants registry.npmjs.org"),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "it has no network there"),
        ("connect: Network is unreachable", "it has no network there"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "services nor the devices"),
        ("unshare: unshare failed: Operation not permitted", "services nor the devices"),
    ],
)
def test_a_refused_path_domain_or_device_is_recognised(plan: SandboxPlan, text: str, why: str):
    home = plan.mounts.home
    found = find_refusal(plan, "bubblewrap", f"before\n{text.format(home=home)}\n", network=False)
    assert why.format(home=home) in found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AssertionError: 1 != 2",
        "cat: missing: No such file or directory",
        "cat: /nowhere/at/all: No such file or directory",
        "bash: nosuchprogram: command not found",
        "/usr/bin/env: No such file or directory",
        "Permission denied (publickey).",
        "connect to 127.0.0.1 port 1: Connection refused",
        "open /dev/null: Permission denied",
    ],
)
def test_what_fails_by_itself_is_no_refusal(plan: SandboxPlan, text: str):
    assert find_refusal(plan, "bubblewrap", text, network=False) == ""


def test_with_a_network_a_name_that_is_not_found_is_no_refusal(plan: SandboxPlan):
    assert find_refusal(plan, "bubblewrap", "Could not resolve host: nowhere", network=True) == ""


def test_a_port_of_this_machine_counts_if_something_listens_there(plan: SandboxPlan):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = f"ssh: connect to host 127.0.0.1 port {port}: Connection refused"
        assert find_refusal(plan, "bubblewrap", text, network=False) == (
            f"it cannot reach port {port} of this machine"
        )
    assert find_refusal(plan, "bubblewrap", text, network=False) == ""


def test_under_landlock_and_seatbelt_a_denied_path_is_a_refusal(plan: SandboxPlan):
    for backend, said in [("landlock", "Permission denied"), ("seatbelt", "Operation not permitted")]:
        assert (
            find_refusal(plan, backend, f"touch: '/etc/x': {said}", network=False)
            == "it may not write /etc/x"
        )


async def test_the_one_who_is_asked_decides_and_the_result_says_where_it_ran(need, tmp_path: Path):
    need("bubblewrap")
    (root := tmp_path / "work").mkdir()
    (tmp_path / "secret.txt").write_text("seen")
    asked: list[RefusedRun] = []

    async def yes(run: RefusedRun) -> str | None:
        asked.append(run)
        return None

    bash = named(coding_tools(root, outside=yes, keep_directory=True), "bash")
    result = await call(bash, command=f"cat {tmp_path}/secret.txt")
    assert result.text.startswith("seen\n[exit code 0]\n[this ran outside the sandbox, once")
    assert (result.details["sandbox"], result.details["outside"]) == ("none", True)
    assert result.details["timeout"] == OWN_LIMITS.wall
    (run,) = asked
    assert (run.command, run.directory) == (f"cat {tmp_path}/secret.txt", str(root))
    assert "outside" not in (await call(bash, command="echo a")).details
    assert len(asked) == 1


async def test_without_anyone_to_ask_nothing_is_offered(need, tmp_path: Path):
    need("bubblewrap")
    (root := tmp_path / "work").mkdir()
    (tmp_path / "secret.txt").write_text("seen")
    result = await call(named(coding_tools(root), "bash"), command=f"cat {tmp_path}/secret.txt")
    assert "outside" not in result.text
    assert os.fspath(tmp_path) in result.text
