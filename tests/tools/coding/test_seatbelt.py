"""Seatbelt: the profile for macOS as text, and a trial of it that must not be believed blindly."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from calling import call, named

from swink.tools import coding_tools
from swink.tools.coding import backends, seatbelt
from swink.tools.coding.backends import find_machine_trouble, recall_machine_trouble
from swink.tools.coding.guarded import Guard
from swink.tools.coding.mounts import Mounts
from swink.tools.coding.process import Launch
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.sandboxplan import SandboxPlan

GOLDEN = Path(__file__).with_name("golden")
HOME = "/Users/ada"
ROOT = f"{HOME}/project"
PRIVATE = "/private/var/folders/x1/T/swink-1-a"
MOUNTS = Mounts(
    ROOT, HOME, ("/usr", "/opt/homebrew", f"{HOME}/.cargo"), (f"{HOME}/.ssh", f"{ROOT}/.env"), (ROOT,)
)
GUARD = Guard(
    read_only=(f"{ROOT}/.git/config", f"{ROOT}/.git/hooks", f"{ROOT}/.vscode"),
    steady=(f"{ROOT}/.git",),
    reserved=((f"{ROOT}/.mcp.json", b""), (f"{ROOT}/.idea", None)),
    kept=(f"{ROOT}/.git/config.worktree", f'{ROOT}/vendor/a b"c/.envrc'),
)
PLAN = SandboxPlan(MOUNTS, GUARD)
PROFILES = {
    "workspace": seatbelt.build_profile(PLAN, PRIVATE, network=False),
    "network": seatbelt.build_profile(PLAN, PRIVATE, network=True),
    "domains": seatbelt.build_profile(PLAN, PRIVATE, network=False)
    + seatbelt.build_proxied(49152, f"{PRIVATE}/proxy-1").replace(seatbelt.FORWARD, "/opt/swink/forward.py"),
    "empty": seatbelt.build_profile(
        SandboxPlan(Mounts(f'{HOME}/a "b" \\c', HOME, (), (), (f'{HOME}/a "b" \\c',))), PRIVATE, network=False
    ),
}


@pytest.mark.parametrize("name", PROFILES)
def test_the_profile_is_the_one_that_was_looked_at(name: str):
    """After a change that is meant, write the new text there and look at the difference."""
    assert PROFILES[name] == (GOLDEN / f"seatbelt-{name}.sb").read_text()


@pytest.mark.parametrize("name", PROFILES)
def test_brackets_and_quotes_of_a_profile_close(name: str):
    depth, quoted, escaped = 0, False, False
    for char in PROFILES[name]:
        if escaped or char == "\\":
            escaped = not escaped
        elif char == '"':
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, ")": -1}.get(char, 0)
            assert depth >= 0
    assert (depth, quoted) == (0, False)


def test_everything_hidden_or_kept_is_an_exception_of_what_is_allowed():
    text = PROFILES["workspace"]
    reading, writing = (
        text[text.index(f"(allow {what}") :] for what in ("file-read* file-map", "file-write*\n")
    )
    for path in MOUNTS.hidden:
        assert f'(require-not (subpath "{path}"))' in reading[: reading.index("(allow file-write*")]
        assert f'(require-not (subpath "{path}"))' in writing
    for path in GUARD.read_only:
        assert f'(require-not (subpath "{path}"))' in writing
    assert f'(require-not (literal "{ROOT}/.git"))' in writing
    assert "(deny default)" in text
    assert "network-outbound\n  (remote" not in text


def test_a_name_that_does_not_exist_yet_is_kept_in_every_spelling():
    text = PROFILES["workspace"]
    assert r"/\.[mM][cC][pP]\.[jJ][sS][oO][nN](/|$)" in text
    assert r"/[vV][eE][nN][dD][oO][rR]/[aA].+[bB].+[cC]/\.[eE][nN][vV][rR][cC](/|$)" in text


@pytest.fixture
def macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that is taken for a Mac, and the place of its sandbox-exec."""
    monkeypatch.setattr(backends, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(backends, "_verdicts", {})
    program = tmp_path / "sandbox-exec"
    monkeypatch.setattr(seatbelt, "SANDBOX_EXEC", str(program))
    return program


def install(program: Path, script: str) -> None:
    program.write_text(f"#!{sys.executable}\nimport os, sys\nassert sys.argv[1] == '-p'\n{script}")
    program.chmod(0o755)


async def test_a_sandbox_exec_that_does_not_confine_counts_as_none(macos: Path, tmp_path: Path):
    install(macos, "os.execv(sys.argv[4], sys.argv[4:])")
    root = tmp_path / "workspace"
    root.mkdir()
    assert recall_machine_trouble(["seatbelt"], network=False) is None
    box = Sandbox(root, backends=("seatbelt",), or_none=True)
    assert (box.is_proven, box.is_missing) == (False, False)
    assert await box.backend() == "none"
    assert (box.is_proven, box.is_missing) == (False, True)
    assert recall_machine_trouble(["seatbelt"], network=False) == "seatbelt: it runs but does not confine"


async def test_a_sandbox_exec_that_refuses_what_it_must_is_used(macos: Path, tmp_path: Path):
    """The stand-in refuses by the permissions of the file, which is all that the trial can see."""
    script = "c = os.environ['CANARY']; os.chmod(c, 0); os.environ['CANARY'] = '/nowhere/else'\n"
    install(macos, f"{script}os.spawnv(os.P_WAIT, sys.argv[4], sys.argv[4:]); os.chmod(c, 0o600)")
    assert await find_machine_trouble(["seatbelt"], network=False) == ""


async def test_without_sandbox_exec_the_reason_names_it(macos: Path):
    trouble = await find_machine_trouble(["seatbelt"], network=False)
    assert trouble == f"seatbelt: {macos} is not there"


async def test_the_command_runs_by_the_absolute_path_with_the_profile_and_a_home_of_its_own(macos: Path):
    install(macos, "")
    launch = seatbelt.confine(Launch(("/bin/ls",), ROOT, {"A": "b"}), PLAN, PRIVATE, network=False)
    assert launch.argv == (str(macos), "-p", PROFILES["workspace"], "--", "/bin/ls")
    assert launch.env["HOME"] == f"{PRIVATE}/home"
    assert launch.env["TMPDIR"] == f"{PRIVATE}/tmp"
    assert launch.env["A"] == "b"


def test_the_program_is_the_systems():
    assert seatbelt.SANDBOX_EXEC == "/usr/bin/sandbox-exec"


async def test_a_mac_without_a_sandbox_runs_commands_that_were_asked_about(macos: Path, tmp_path: Path):
    root = tmp_path / "workspace"
    root.mkdir()
    await find_machine_trouble(backends.USUAL, network=False)
    bash = named(coding_tools(root, or_none=True), "bash")
    assert "It is not sandboxed." in bash.description
    assert bash.needs_approval({"command": "ls"})
    result = await call(bash, command="echo works")
    assert result.text == "works\n[exit code 0]"
    assert result.details["sandbox"] == "none"
