"""Git with real servers on loopback: pushes in the sandbox and once outside, and repositories that mean harm."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandscene import MODEL, Scene

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "tools" / "coding"))

from calling import call, named
from loopback_git import HttpGit, SshGit, heads, http_git, make_bare, ssh_git
from tests.counts import cell_of_more, in_cells

from swink.app.assistant.person import Once, Question, Refuse, Reply
from swink.app.assistant.rules import parse_rule
from swink.messages import ToolCall
from swink.testing import ScriptedModel
from swink.tools import ToolError
from swink.tools.coding import backends, coding_tools
from swink.tools.coding.outside import RefusedRun

IDENTITY = "git -c user.name=Ada -c user.email=ada@example.org"
FIRST = f"git init -b main && git add -A && {IDENTITY} commit -qm first"


@pytest.fixture
async def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, and a person with a home of their own."""
    if trouble := await backends.find_machine_trouble(("bubblewrap",), network=False):
        pytest.skip(trouble)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    root = tmp_path / "work"
    root.mkdir()
    (root / "main.py").write_text("print(1)\n")
    return root


@pytest.fixture
def served(tmp_path: Path) -> Path:
    place = tmp_path / "served"
    place.mkdir()
    make_bare(place)
    return place


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshGit]:
    with ssh_git(tmp_path_factory.mktemp("keys") / "ssh") as server:
        yield server


@pytest.fixture
def ssh(sshd: SshGit, served: Path, monkeypatch: pytest.MonkeyPatch) -> SshGit:
    """A server with the repository, and a person who has a key for it."""
    monkeypatch.setenv("GIT_SSH_COMMAND", sshd.command)
    sshd.served = served
    return sshd


@pytest.fixture
def http(served: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpGit]:
    """A server that sandboxed commands know as git.test."""

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host == "git.test" else []

    monkeypatch.setattr("swink.tools.coding.egress.resolve_host", resolve)
    with http_git(served) as server:
        yield server


def run_git(*words: str, cwd: Path) -> None:
    """Git as a person runs it in a terminal, whatever comes of it."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    subprocess.run(["git", *words], cwd=cwd, env=environment, capture_output=True, check=False)


def networked(work: Path, http: HttpGit, net: list[str] | None = None, **options: Any) -> Any:
    """bash with the domain of the server allowed."""
    tools = coding_tools(
        work,
        sandbox="workspace+net",
        net=[f"git.test:{http.port}"] if net is None else net,
        fetch_from=["127.0.0.0/8"],
        is_trusted=lambda: True,
        **options,
    )
    return named(tools, "bash")


async def test_a_project_is_made_and_pushed_by_http_in_the_sandbox(work: Path, served: Path, http: HttpGit):
    asked: list[RefusedRun] = []

    async def ask(run: RefusedRun) -> str | None:
        asked.append(run)
        return "no"

    bash = networked(work, http, outside=ask)
    for command in (FIRST, f"git remote add origin http://git.test:{http.port}/project.git"):
        assert not (await call(bash, command=command)).is_error
    pushed = await call(bash, command="git push -u origin main")
    assert not pushed.is_error, pushed.text
    assert pushed.details["sandbox"] == "workspace+net"
    assert "branch 'main' set up to track 'origin/main'." in pushed.text
    assert heads(served / "project.git") == {"main": "first"}
    status = await call(bash, command="git status -sb")
    assert status.text.startswith("## main...origin/main\n")
    assert asked == []
    assert not (await call(bash, command="git fetch && git pull -q")).is_error


async def test_a_domain_that_is_not_allowed_is_not_reached_and_nothing_is_half_done(
    work: Path, served: Path, http: HttpGit
):
    asked: list[RefusedRun] = []

    async def ask(run: RefusedRun) -> str | None:
        asked.append(run)
        return "no"

    bash = networked(work, http, net=[], outside=ask)
    await call(bash, command=FIRST)
    await call(bash, command=f"git remote add origin http://git.test:{http.port}/project.git")
    before = (work / ".git" / "config").read_text()
    pushed = await call(bash, command="git push -u origin main")
    assert pushed.is_error
    assert asked == [], pushed.text
    assert http.requests == []
    assert (work / ".git" / "config").read_text() == before


async def test_a_server_that_wants_credentials_is_pushed_to_once_outside_with_the_persons_own(
    work: Path, served: Path, http: HttpGit, tmp_path: Path
):
    http.password = "pw-of-ada"
    home = tmp_path / "home"
    (home / ".gitconfig").write_text(
        f'[url "{http.url}/"]\n\tinsteadOf = http://git.test:{http.port}/\n'
        '[credential]\n\thelper = "!f() { echo username=ada; echo password=pw-of-ada; }; f"\n'
    )
    canary = tmp_path / "canary"
    asked: list[RefusedRun] = []

    async def yes(run: RefusedRun) -> str | None:
        asked.append(run)
        return None

    bash = networked(work, http, outside=yes)
    await call(bash, command=FIRST)
    await call(bash, command=f"git remote add origin http://git.test:{http.port}/project.git")
    with (work / ".git" / "config").open("a") as config:
        config.write(f"[credential]\n\thelper = !touch {canary}\n")
    pushed = await call(bash, command="git push -u origin main")
    assert not pushed.is_error, pushed.text
    assert heads(served / "project.git") == {"main": "first"}
    assert "pw-of-ada" not in pushed.text
    (run,) = asked
    assert run.why == "the server wants credentials, which sandboxed commands do not have"
    assert not canary.exists()


async def test_a_push_by_ssh_runs_once_outside_and_is_noted_in_the_repository(
    work: Path, served: Path, ssh: SshGit
):
    scene = Scene(work)
    *_, pushed, status = await scene.shell(
        FIRST, f"git remote add origin {ssh.url()}", "git push -u origin main", "git status -sb"
    )
    assert "[this ran outside the sandbox, once, because the user allowed it: git push ssh://" in pushed
    assert heads(served / "project.git") == {"main": "first"}
    assert status.startswith("## main...origin/main\n")
    (question,) = scene.outside
    assert "with your ssh keys and send main (" in question.notice
    assert "it runs no hook and no program that the repository names" in question.notice
    writing = [question.notice for question in scene.asked if "swink itself writes" in question.notice]
    assert '[remote "origin"] url = ssh://' in writing[0]
    assert '[branch "main"] merge = refs/heads/main if the push succeeds' in writing[1]


async def test_a_push_by_ssh_from_another_directory_is_noted_in_the_repository_there(
    work: Path, served: Path, ssh: SshGit
):
    scene = Scene(work)
    *_, status, top = await scene.shell(
        "git init -q && mkdir sub && touch sub/a",
        f"cd sub && {FIRST} && git remote add origin {ssh.url()}",
        "git -C sub push -u origin main",
        "git -C sub status -sb",
        "git for-each-ref",
    )
    assert heads(served / "project.git") == {"main": "first"}
    assert status.startswith("## main...origin/main\n")
    assert "origin" not in top


async def test_what_others_pushed_is_fetched_by_ssh_and_merged_in_the_sandbox(
    work: Path, served: Path, ssh: SshGit, tmp_path: Path
):
    scene = Scene(work)
    await scene.shell(FIRST, f"git remote add origin {ssh.url()}", "git push -u origin main")
    other = tmp_path / "other"
    run_git("clone", "-q", str(served / "project.git"), str(other), "-b", "main", cwd=tmp_path)
    run_git(
        "-c",
        "user.name=B",
        "-c",
        "user.email=b@c.d",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "second",
        cwd=other,
    )
    run_git("push", "-q", cwd=other)
    fetched, merged = await scene.shell(
        "git fetch", "git merge -q --ff-only origin/main && git log --format=%s"
    )
    assert "git fetch ssh://" in fetched
    assert merged.startswith("second\nfirst\n")


async def test_a_no_pushes_nothing_and_writes_nothing(work: Path, served: Path, ssh: SshGit):
    scene = Scene(work, reply=lambda question: Refuse("later") if question.is_once else Once())
    *_, pushed = await scene.shell(FIRST, f"git remote add origin {ssh.url()}", "git push -u origin main")
    assert "it was not run outside: the user said no: later]" in pushed
    assert heads(served / "project.git") == {}
    assert "[branch" not in (work / ".git" / "config").read_text()


async def test_keys_stay_hidden_from_sandboxed_commands(work: Path, ssh: SshGit):
    scene = Scene(work, reply=lambda question: Refuse() if question.is_once else Once())
    (told,) = await scene.shell(f"cat {ssh.key}")
    assert "PRIVATE KEY" in ssh.key.read_text()
    assert "PRIVATE KEY" not in told


async def test_without_trust_nothing_leaves_the_sandbox(work: Path, served: Path, ssh: SshGit):
    scene = Scene(work, trusted=False)
    made, _ = await scene.shell("git init", f"git push {ssh.url()} main")
    assert "Read-only file system" in made or "fatal" in made
    assert scene.outside == []
    assert heads(served / "project.git") == {}


async def test_a_rule_that_denies_pushes_holds(work: Path, served: Path, ssh: SshGit):
    scene = Scene(work)
    scene.permissions.rules.add([parse_rule("deny bash(git push *)")], "user")
    *_, pushed = await scene.shell(FIRST, f"git remote add origin {ssh.url()}", "git push -u origin main")
    assert "deny bash(git push *)" in pushed
    assert heads(served / "project.git") == {}


@pytest.mark.parametrize(
    "way", [cell_of_more("ssh://git@evil.test/x"), "git@evil.test:x", "http://evil.test/x"]
)
async def test_a_host_that_a_rule_denies_is_not_offered_outside(work: Path, way: str):
    scene = Scene(work)
    scene.permissions.rules.add([parse_rule("deny net(evil.test)")], "user")
    _, told = await scene.shell(FIRST, f"git push {way} main")
    assert scene.outside == []
    assert "deny net(evil.test)" in told
    assert "the server wants credentials" not in told


async def test_a_host_that_the_person_denies_meanwhile_is_not_reached(work: Path, served: Path, ssh: SshGit):
    def deny(question: Question) -> Reply:
        if question.is_once:
            scene.permissions.rules.add([parse_rule("deny net(git.test)")], "user")
        return Once()

    scene = Scene(work, reply=deny)
    _, told = await scene.shell(FIRST, "git push ssh://git.test/x main")
    assert "it was not run outside: the user's rule: deny net(git.test)]" in told


async def test_a_wide_rule_does_not_answer_for_what_is_written_outside(work: Path):
    scene = Scene(work)
    scene.permissions.rules.add([parse_rule("bash(git *)")], "user")
    await scene.shell("git init -q", "git status", "git config user.name Ada")
    assert [question.request.arguments["command"] for question in scene.asked] == [
        "git init -q",
        "git config user.name Ada",
    ]


async def test_no_link_hides_from_the_person_what_is_written(work: Path):
    scene = Scene(work, word="sandboxed", reply=Refuse("no"))
    *_, told = await scene.shell(
        "mkdir real && ln -s /usr link",
        "ln -sfn real link && git -C link init && git -C link config user.name Eve",
    )
    (question,) = scene.asked
    assert "swink itself writes what 'git -C link init' sets" in question.notice
    assert "the user said no: no" in told
    assert not (work / "real" / ".git").exists()


async def test_an_abort_ends_a_push_outside(
    work: Path, ssh: SshGit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\ntouch {tmp_path}/began\nexec sleep 1000\n")
    slow.chmod(0o755)
    scene = Scene(work)
    await scene.shell(FIRST, f"git remote add origin {ssh.url()}")
    monkeypatch.setenv("GIT_SSH_COMMAND", str(slow))
    model = ScriptedModel([[ToolCall("c", "bash", {"command": "git push origin main"})], "done"])
    await scene.environment.open()
    agent = scene.environment.make_agent(
        MODEL, approve=scene.permissions, approval_mode="on", stream_fn=model
    )
    running = asyncio.create_task(agent.run("go"))
    async with asyncio.timeout(60):
        while not (tmp_path / "began").exists():
            await asyncio.sleep(0.01)
    agent.abort()
    assert (await running).stop_reason == "aborted"
    await scene.environment.aclose()
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"swink-{os.getpid()}-git-*"))


PROGRAMS = """[core]
\tsshCommand = {bad}/run
\tfsmonitor = {bad}/run
\tgitProxy = {bad}/run
\talternateRefsCommand = {bad}/run
[credential]
\thelper = !{bad}/run
[remote "origin"]
\treceivepack = {bad}/run
\tuploadpack = {bad}/run
[alias]
\tpush = !{bad}/run
\tfetch = !{bad}/run
[push]
\tgpgSign = true
[gpg]
\tprogram = {bad}/run
[filter "x"]
\tclean = {bad}/run
\tprocess = {bad}/run
"""
HOSTILE = {
    "hooks": "",
    "hooks elsewhere": "[core]\n\thooksPath = {bad}/hooks\n",
    "programs": PROGRAMS,
    "included files": '[include]\n\tpath = {bad}/included\n[includeIf "gitdir:/"]\n\tpath = {bad}/included\n',
    "rewritten URLs": '[url "ext::{bad}/run %S "]\n\tinsteadOf = ssh://\n[protocol "ext"]\n\tallow = always\n',
    "a URL for pushes": '[remote "origin"]\n\tpushurl = ext::{bad}/run\n[protocol "ext"]\n\tallow = always\n',
}


def lay_traps(work: Path, tmp_path: Path, text: str) -> Path:
    """A repository that would make a mark when git runs what it names."""
    bad, mark = work / "bad", tmp_path / "mark"
    (bad / "hooks").mkdir(parents=True)
    script = f"#!/bin/sh\ntouch {mark}\nexit 1\n"
    hooks = [
        *(
            work / ".git" / "hooks" / name
            for name in ("pre-push", "reference-transaction", "post-index-change")
        )
    ]
    (work / ".git" / "hooks").mkdir(exist_ok=True)
    for path in (bad / "run", bad / "hooks" / "pre-push", *hooks):
        path.write_text(script)
        path.chmod(0o755)
    (bad / "included").write_text(f"[core]\n\tsshCommand = {bad}/run\n")
    with (work / ".git" / "config").open("a") as config:
        config.write(text.format(bad=bad))
    return mark


@in_cells("trap", HOSTILE, every=3)
async def test_nothing_that_a_hostile_repository_names_runs_outside(
    work: Path, served: Path, ssh: SshGit, tmp_path: Path, trap: str, monkeypatch: pytest.MonkeyPatch
):
    scene = Scene(work)
    await scene.shell(FIRST, f"git remote add origin {ssh.url()}")
    mark = lay_traps(work, tmp_path, HOSTILE[trap])
    pushed, fetched, _ = await scene.shell("git push -u origin main", "git fetch", "git config user.name Eve")
    assert not mark.exists(), f"{pushed}\n{fetched}"
    if trap != "a URL for pushes":
        assert heads(served / "project.git") == {"main": "first"}, pushed
    # The traps themselves: a plain push, as a person types it, runs what they name.
    if trap in ("programs", "included files"):
        monkeypatch.delenv("GIT_SSH_COMMAND")
    run_git("push", "origin", "main", cwd=work)
    assert mark.exists()


async def test_a_repository_that_borrows_objects_is_refused_with_the_reason(
    work: Path, ssh: SshGit, tmp_path: Path
):
    scene = Scene(work)
    await scene.shell(FIRST, f"git remote add origin {ssh.url()}")
    (work / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}/elsewhere\n")
    (told,) = await scene.shell("git push origin main")
    assert "the repository borrows objects from elsewhere, so it is not used outside" in told


@in_cells("place", ["objects", "objects/pack", "objects/info/alternates", "objects/pack/x.pack"], every=2)
async def test_what_is_swapped_in_while_the_person_is_asked_is_not_sent(
    work: Path, served: Path, ssh: SshGit, tmp_path: Path, place: str
):
    run_git("init", "-q", "-b", "main", str(tmp_path / "secret"), cwd=tmp_path)
    secret = tmp_path / "secret" / ".git" / "objects"

    def swap(question: Question) -> Reply:
        if question.is_once:
            spot = work / ".git" / place
            if spot.exists():
                spot.rename(tmp_path / "aside")
            spot.symlink_to(secret)
        return Once()

    scene = Scene(work, reply=swap)
    *_, told = await scene.shell(FIRST, f"git push {ssh.url()} main")
    assert len(scene.outside) == 1
    assert "is a link" in told
    assert heads(served / "project.git") == {}


async def test_other_git_commands_are_not_offered_outside(work: Path, tmp_path: Path):
    scene = Scene(work)
    (tmp_path / "elsewhere").mkdir()
    (told,) = await scene.shell(f"git clone {tmp_path}/elsewhere copy || cat {tmp_path}/elsewhere")
    assert scene.outside == []
    assert "git runs outside only as git push, git fetch or git ls-remote" in told or "does not exist" in told


async def test_git_is_taken_from_the_system_and_never_from_the_workspace(
    work: Path, ssh: SshGit, served: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    scene = Scene(work)
    await scene.shell(FIRST, f"git remote add origin {ssh.url()}")
    (work / "bin").mkdir()
    for name in ("git", "ssh", "true"):
        (work / "bin" / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/mark\n")
        (work / "bin" / name).chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{work}/bin:{os.environ['PATH']}")
        await scene.shell("git push origin main")
    assert not (tmp_path / "mark").exists()
    assert heads(served / "project.git") == {"main": "first"}


async def test_an_error_of_the_person_who_is_asked_is_one_of_the_call(work: Path, ssh: SshGit):
    async def broken(run: RefusedRun) -> str | None:
        raise ToolError("the terminal is gone")

    bash = named(coding_tools(work, outside=broken, is_trusted=lambda: True), "bash")
    await call(bash, command=FIRST)
    await call(bash, command=f"git remote add origin {ssh.url()}")
    with pytest.raises(ToolError, match="the terminal is gone"):
        await call(bash, command="git push origin main")
