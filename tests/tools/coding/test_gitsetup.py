"""Git commands that set a repository up: what they write, and what is never written for them."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from calling import call, named
from tests.counts import crossed

from swink.tools.coding import Background, coding_tools
from swink.tools.coding.gitcommands import describe_setups
from swink.tools.coding.gitconfiguration import ConfigLine, Configuration, check_url, find_host, is_ssh
from swink.tools.coding.gitfolder import GitFolder, SetupRefused
from swink.tools.coding.gitsetup import GitFailed, carry_out, parse_setup
from swink.tools.coding.gittransfer import check_objects, parse_transfer

IDENTITY = "git -c user.name=Ada -c user.email=ada@example.org"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "work"
    root.mkdir()
    return root


def repository(work: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "main", str(work)], check=True)
    return work


def with_commit(work: Path, url: str) -> Path:
    """A repository with a commit, and the remote `o`."""
    git = ["git", "-C", str(repository(work)), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True)
    subprocess.run([*git, "remote", "add", "o", url], check=True)
    return work


def bare_repository(place: Path, hook: str) -> None:
    """A repository to push to, and what it does then."""
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    (place / "hooks").mkdir(exist_ok=True)
    (place / "hooks" / "post-receive").write_text(f"#!/bin/sh\n{hook}\n")
    (place / "hooks" / "post-receive").chmod(0o755)


def git_of(work: Path) -> GitFolder:
    return GitFolder(str(work), str(work / ".git"))


def lines_of(work: Path, command: str) -> list[str] | None:
    setup = parse_setup(command.split(), str(work), str(work))
    return None if setup is None else [str(line) for line in setup.lines]


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("git config user.name Ada", ["[user] name = Ada"]),
        ("git config --local user.email a@b.c", ["[user] email = a@b.c"]),
        ("git config push.autoSetupRemote true", ["[push] autoSetupRemote = true"]),
        ("git config branch.main.remote origin", ['[branch "main"] remote = origin']),
        (
            "git remote add up git@host.example:a/b.git",
            [
                '[remote "up"] url = git@host.example:a/b.git',
                '[remote "up"] fetch = +refs/heads/*:refs/remotes/up/*',
            ],
        ),
        ("git config user.name", None),
        ("git config --get user.name x", None),
        ("git config --global user.name Ada", None),
        ("git config --unset user.name", None),
        ("git remote -v", None),
        ("git remote remove up", None),
        ("git remote add -f up https://a.example/b", None),
        ("git branch -a", None),
        ("git push origin main", None),
        ("git -c core.pager=x config user.name Ada", None),
        ("git --git-dir=x config user.name Ada", None),
    ],
)
def test_a_command_in_a_known_form_becomes_lines(work: Path, command: str, lines: list[str] | None):
    assert lines_of(repository(work), command) == lines


@pytest.mark.parametrize(
    "command",
    [
        "git config core.hooksPath hooks",
        "git config core.sshCommand touch",
        "git config core.fsmonitor x",
        "git config core.pager less",
        "git config core.editor vi",
        "git config core.worktree /home",
        "git config alias.st status",
        "git config credential.helper store",
        "git config filter.x.clean cat",
        "git config diff.external cat",
        "git config gpg.program x",
        "git config commit.gpgsign true",
        "git config include.path /tmp/x",
        "git config url.ext::x.insteadOf https://",
        "git config remote.origin.receivepack x",
        "git config remote.origin.uploadpack x",
        "git config remote.origin.vcs x",
        "git config protocol.ext.allow always",
        "git config user.name a\\b",
        "git config core.symlin\u212as false",
        "git remote add origin ext::sh",
        "git remote add origin ssh://-oProxyCommand=x/y",
        "git remote add origin ssh://u@-oProxyCommand=x/y",
        "git remote add origin fd::3",
        "git config remote.origin.url ext::sh",
        "git config remote.origin.pushurl ext::sh",
    ],
)
def test_what_makes_git_run_a_program_is_refused_with_the_reason(work: Path, command: str):
    with pytest.raises(SetupRefused) as refused:
        lines_of(repository(work), command)
    assert str(refused.value)


def test_what_git_itself_would_refuse_fails_as_git_says_it(work: Path):
    repository(work)
    Configuration(git_of(work)).write([ConfigLine("remote", "origin", "url", "https://a.example/b")])
    with pytest.raises(GitFailed, match="remote origin already exists") as failed:
        lines_of(work, "git remote add origin https://a.example/c")
    assert failed.value.code == 3
    with pytest.raises(GitFailed, match="No such remote 'other'"):
        lines_of(work, "git remote set-url other https://a.example/c")
    with pytest.raises(GitFailed, match="'origin/main' does not exist"):
        lines_of(work, "git branch -u origin/main")


def test_written_lines_are_what_git_reads_and_all_others_stay(work: Path):
    repository(work)
    config = work / ".git" / "config"
    config.write_text(config.read_text() + "# a comment\n[user]\n\tname = Old\n[color]\n\tui = auto")
    Configuration(git_of(work)).write([
        ConfigLine("user", None, "name", "Ada Lovelace; countess"),
        ConfigLine("user", None, "email", "ada@example.org"),
        ConfigLine("remote", "origin", "url", "https://a.example/b#c"),
    ])  # fmt: skip
    read = subprocess.check_output(["git", "-C", str(work), "config", "--local", "--list"], text=True)
    assert "user.name=Ada Lovelace; countess\nuser.email=ada@example.org\ncolor.ui=auto\n" in read
    assert "remote.origin.url=https://a.example/b#c\n" in read
    assert "Old" not in read
    assert "# a comment" in config.read_text()
    assert not (work / ".git" / "config.lock").exists()


def test_a_lock_of_another_git_is_respected(work: Path):
    repository(work)
    (work / ".git" / "config.lock").touch()
    with pytest.raises(SetupRefused, match="another git process holds"):
        Configuration(git_of(work)).write([ConfigLine("user", None, "name", "Ada")])
    assert "Ada" not in (work / ".git" / "config").read_text()


@pytest.mark.parametrize("text", ["[a]\n\tb = x\\\n\ty\n", '[a "x\\"y"]\n\tb = c\n', "[a\n", "[a] b = c\n"])
def test_a_configuration_that_is_not_plain_is_left_alone(work: Path, text: str):
    repository(work)
    (work / ".git" / "config").write_text(text)
    with pytest.raises(SetupRefused, match="not plain enough"):
        lines_of(work, "git config user.name Ada")


def test_a_repository_that_is_elsewhere_is_not_written(work: Path, tmp_path: Path):
    other = repository(tmp_path / "other")
    (work / ".git").write_text(f"gitdir: {other}/.git\n")
    with pytest.raises(SetupRefused, match="not a plain directory"):
        lines_of(work, "git config user.name Ada")
    (work / ".git").unlink()
    (work / ".git").symlink_to(other / ".git")
    with pytest.raises(SetupRefused, match="not a plain directory"):
        lines_of(work, "git config user.name Ada")
    (work / ".git").unlink()
    assert lines_of(work, f"git -C {other} config user.name Ada") is None


def test_a_configuration_behind_a_link_is_not_written(work: Path, tmp_path: Path):
    repository(work)
    (work / ".git" / "config").rename(tmp_path / "config")
    (work / ".git" / "config").symlink_to(tmp_path / "config")
    with pytest.raises(SetupRefused, match="not a plain file"):
        lines_of(work, "git config user.name Ada")


@pytest.mark.parametrize(
    "command", ["git -C sub remote set-url o https://b.example/c", "git -C sub/new init"]
)
def test_nothing_is_written_where_a_link_leads_that_is_swapped_in_meanwhile(
    work: Path, tmp_path: Path, command: str
):
    for place in (work / "sub", tmp_path / "victim"):
        with_commit(place, "https://a.example")
        (place / "new").mkdir()
    before = (tmp_path / "victim" / ".git" / "config").read_text()
    setup = parse_setup(command.split(), str(work), str(work))
    assert setup is not None
    (work / "sub").rename(work / "aside")
    (work / "sub").symlink_to(tmp_path / "victim")
    with pytest.raises(SetupRefused, match="sub is a link"):
        carry_out(setup)
    assert (tmp_path / "victim" / ".git" / "config").read_text() == before
    assert not list((tmp_path / "victim" / "new").iterdir())


async def test_a_hook_that_swaps_the_repository_during_a_push_has_nothing_written_elsewhere(
    need, work: Path, tmp_path: Path
):
    need("bubblewrap")
    victim = repository(tmp_path / "victim")
    before = (victim / ".git" / "config").read_text()
    sub = with_commit(work / "sub", "../there")
    bare_repository(work / "there", f"mv {sub} {work}/aside && ln -s {victim} {sub}")
    result = await call(shell(work), command="cd sub && git push -u o main")
    assert sub.is_symlink(), result.text
    assert "sub is a link" in result.text
    assert (victim / ".git" / "config").read_text() == before


async def test_a_push_with_another_directory_pushes_what_is_there(need, work: Path):
    need("bubblewrap")
    for place, there in ((work, "one"), (work / "sub", "two")):
        with_commit(place, str(work / there))
        bare_repository(work / there, f"touch {work}/{there}/pushed")
    result = await call(shell(work), command="git -C sub push -u o main")
    assert not result.is_error, result.text
    assert (work / "two" / "pushed").exists()
    assert not (work / "one" / "pushed").exists()
    assert '[branch "main"]' in (work / "sub" / ".git" / "config").read_text()


async def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(work: Path):
    repository(work)
    Configuration(git_of(work)).write([ConfigLine("remote", "o", "url", "https://a.example/b")])
    (work / ".git" / "HEAD").unlink()
    os.mkfifo(work / ".git" / "HEAD")
    for command in ("git push -u o HEAD", "git branch -u o/main"):
        with pytest.raises(SetupRefused, match="HEAD is not a plain file"):
            lines_of(work, command)
    (work / ".git" / "HEAD").unlink()
    with (work / ".git" / "HEAD").open("w") as file:
        file.truncate(2 << 20)
    with pytest.raises(SetupRefused, match="HEAD is not a plain file of at most"):
        lines_of(work, "git push -u o HEAD")


@pytest.mark.parametrize(
    ("url", "ssh"),
    [
        ("https://a.example/b", False),
        ("ssh://git@a.example/b", True),
        ("git@a.example:b/c.git", True),
        ("host:path", True),
        ("/srv/git/x.git", False),
    ],
)
def test_urls_that_are_written(url: str, ssh: bool):
    assert check_url(url) == url
    assert is_ssh(url) == ssh


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://ada:p%40w@A.example./b", "a.example:443"),
        ("http://a.example:8080", "a.example:8080"),
        ("ssh://git@a.example:2222/b", "a.example:2222"),
        ("git@a.example:b/c@d.git", "a.example:22"),
        ("ssh://[::1]/b", "::1:22"),
        ("ssh://ada%40evil.test%2F@a.example/b", None),
        ("ssh://ev%69l.test/b", None),
        ("https://a.example\\@evil.test/b", None),
        ("https://a.example?@evil.test/b", None),
    ],
)
def test_the_host_of_a_url_is_known_or_it_is_refused(url: str, host: str | None):
    if host is None:
        with pytest.raises(SetupRefused, match="no host that is understood"):
            find_host(url)
    else:
        assert f"{find_host(url).name}:{find_host(url).port}" == host


def test_a_push_that_tracks_is_a_push_and_two_lines(work: Path):
    repository(work)
    subprocess.run(f"{IDENTITY} commit -q --allow-empty -m a", shell=True, check=True, cwd=work)
    Configuration(git_of(work)).write([ConfigLine("remote", "origin", "url", "git@a.example:b")])
    for command, pushed in [
        ("git push -u origin main", ("push", "origin", "main")),
        ("git push --set-upstream origin HEAD", ("push", "origin", "HEAD")),
        ("git push -u", ("push", "origin", "HEAD")),
        ("git push -q origin main -u", ("push", "-q", "origin", "main")),
    ]:
        setup = parse_setup(command.split(), str(work), str(work))
        assert setup is not None
        assert setup.push == pushed
        assert [str(line) for line in setup.lines] == [
            '[branch "main"] remote = origin', '[branch "main"] merge = refs/heads/main',
        ]  # fmt: skip
    transfer = parse_transfer(["git", *pushed], str(work), str(work))
    assert transfer is not None
    assert (transfer.url, transfer.remote) == ("git@a.example:b", "origin")
    sha = subprocess.check_output(["git", "-C", str(work), "rev-parse", "HEAD"], text=True).strip()
    assert transfer.specs == ((sha, "main", "refs/heads/main"),)


@pytest.mark.parametrize("place", ["packed-refs", "refs", "refs/heads", "refs/heads/main"])
def test_no_branch_behind_a_link_is_pushed(work: Path, tmp_path: Path, place: str):
    secret = with_commit(tmp_path / "secret", "https://a.example/b") / ".git"
    with_commit(work, "https://a.example/b")
    if place == "packed-refs":
        subprocess.run(["git", "-C", str(secret), "pack-refs", "--all"], check=True)
        (work / ".git" / "refs" / "heads" / "main").unlink()
    else:
        (work / ".git" / place).rename(tmp_path / "aside")
    (work / ".git" / place).symlink_to(secret / place)
    with pytest.raises(SetupRefused, match=r"link|not a plain"):
        parse_transfer(["git", "push", "ssh://a.example/b", "main"], str(work), str(work))


@pytest.mark.parametrize("name", ["x\n", 'x"\r', "x\x7f"])
def test_no_name_of_a_folder_adds_a_second_place_to_take_objects_from(work: Path, name: str):
    check_objects(git_of(with_commit(work / "plain ünïcode", "https://a.example/b")))
    with pytest.raises(SetupRefused, match="rename the folder"):
        check_objects(git_of(with_commit(work / name, "https://a.example/b")))


def shell(work: Path, **options: Any) -> Any:
    return named(coding_tools(work, is_trusted=lambda: True, **options), "bash")


async def test_a_project_begins_with_git_init_in_an_empty_folder(need, work: Path):
    need("bubblewrap")
    bash = shell(work)
    result = await call(
        bash, command="git init -b main && touch a && git add a && git status --short; echo done"
    )
    assert result.text.startswith(
        f"Initialized empty Git repository in {work}/.git/\nA  a\ndone\n[exit code 0]\n"
    )
    assert "[written by swink outside the sandbox, as git would: it makes a git repository in" in result.text
    assert not (work / ".git" / "hooks").exists()
    assert (await call(bash, command="git init")).text.startswith("Reinitialized existing")
    result = await call(bash, command=f"{IDENTITY} commit -qm first && git branch --show-current")
    assert result.text == "main\n[exit code 0]"


async def test_a_command_that_fails_ends_a_row_and_a_semicolon_goes_on(need, work: Path):
    need("bubblewrap")
    bash = shell(work)
    result = await call(bash, command="false && git init; echo after")
    assert result.text == "after\n[exit code 0]"
    assert not (work / ".git").exists()
    result = await call(bash, command="git init -q && git config core.pager x && touch made")
    assert result.text.startswith("core.pager is not written")
    assert not (work / "made").exists()
    assert result.is_error
    await call(bash, command="mkdir -p sub && cd sub && git init -q && touch 'a b' && git add *")
    assert (work / "sub" / ".git" / "HEAD").exists()
    assert (work / "sub" / ".git" / "index").exists()


async def test_without_trust_nothing_is_written(need, work: Path):
    need("bubblewrap")
    bash = named(coding_tools(work, is_trusted=lambda: False), "bash")
    result = await call(bash, command="git init")
    assert result.is_error
    assert not (work / ".git" / "HEAD").exists()


async def test_a_line_that_is_more_than_a_row_of_commands_stays_in_the_sandbox(need, work: Path):
    need("bubblewrap")
    repository(work)
    before = (work / ".git" / "config").read_text()
    bash = shell(work)
    for command in (
        "git config user.name $USER",
        "(git config user.name Ada)",
        "true | git config user.name Ada",
    ):
        assert (await call(bash, command=command)).is_error
    assert (work / ".git" / "config").read_text() == before


async def test_a_repository_is_not_made_while_another_command_runs(need, work: Path):
    need("bubblewrap")
    background = Background()
    bash = shell(work, background=background)
    await call(bash, command="sleep 1000", background=True)
    result = await call(bash, command="git init")
    assert "another command runs in this workspace and would undo it; stop it first" in result.text
    await background.aclose()
    assert (await call(bash, command="git init")).text.startswith("Initialized")


def test_what_is_written_is_described_for_the_question(work: Path):
    repository(work)
    where = str(work)
    assert describe_setups("git remote add o https://a.example/b && git status", where, where) == (
        'writes to .git/config: [remote "o"] url = https://a.example/b; '
        '[remote "o"] fetch = +refs/heads/*:refs/remotes/o/*'
    )
    assert (
        describe_setups("cd sub; git init", where, where) == "writes what 'git init' sets"
    )  # it is not there yet
    assert describe_setups("git init new", where, where) == f"makes a git repository in {where}/new"
    for command in (
        "git status",
        "echo git init",
        "git config core.pager x",
        "git init | cat",
        "git config user.name",
    ):
        assert describe_setups(command, where, where) == ""


def test_what_is_written_is_described_in_a_workspace_behind_a_link(work: Path, tmp_path: Path):
    (tmp_path / "behind").symlink_to(repository(work))
    where = str(tmp_path / "behind")
    shown = describe_setups("git config user.name Ada", where, where)
    assert shown == "writes to .git/config: [user] name = Ada"


@pytest.mark.parametrize(
    "command",
    [
        "git -C link remote set-url o https://b.example/c",
        "git -C link config user.name Ada",
        "git -C link branch -u o/main",
        "git -C link push -u o main",
        "git push -u o later",
        "git push -u later main",
        "git remote add o https://b.example/c",
        "git init",
    ],
)
def test_what_other_commands_may_make_it_write_is_described_too(work: Path, command: str):
    """A command of the line, or another one, may change what is there before it runs."""
    (with_commit(work, "https://a.example/b") / "link").symlink_to("/usr")
    shown = describe_setups(f"ln -sfn . link && {command}", str(work), str(work))
    assert shown == f"writes what {command!r} sets"
    assert describe_setups(command, str(work), str(work)) == shown


def test_a_long_row_of_commands_is_described_in_part_and_says_so(work: Path):
    with_commit(work, "https://a.example/b")
    names = [f"user{at}" for at in range(40)]
    command = "; ".join(f"git config user.name {name}" for name in names)
    shown = describe_setups(command, str(work), str(work))
    assert "user29;" in shown
    assert "user30" not in shown
    assert shown.endswith("; writes what further commands set")
    assert lines_of(work, f"git push -u o {' '.join(names)}") is None
    assert describe_setups(f"git push -u o {' '.join(names)}", str(work), str(work)) == ""


def test_packed_branches_are_found(work: Path):
    with_commit(work, "ssh://a.example/b")
    subprocess.run(["git", "-C", str(work), "tag", "v1.0"], check=True)
    before = [
        parse_transfer(["git", "push", "o", *what], str(work), str(work)) for what in (["main"], ["--tags"])
    ]
    subprocess.run(["git", "-C", str(work), "pack-refs", "--all"], check=True)
    assert not (work / ".git" / "refs" / "heads" / "main").exists()
    after = [
        parse_transfer(["git", "push", "o", *what], str(work), str(work)) for what in (["main"], ["--tags"])
    ]
    assert before == after


def test_a_row_of_commands_is_described_as_it_will_be(work: Path):
    """Each command as if those before it had succeeded."""
    command = (
        "git init -b main && git config user.name Ada && git add . && git commit -m x"
        " && git remote add o https://a.example/b && git push -u o HEAD"
    )
    shown = describe_setups(command, str(work), str(work))
    assert shown == (
        f"makes a git repository in {work}; writes to .git/config: [user] name = Ada; "
        'writes to .git/config: [remote "o"] url = https://a.example/b; '
        '[remote "o"] fetch = +refs/heads/*:refs/remotes/o/*; '
        'writes to .git/config: [branch "main"] remote = o; [branch "main"] merge = refs/heads/main '
        "if the push succeeds"
    )
    assert not (work / ".git").exists()


def test_signing_can_be_switched_off_and_not_on(work: Path):
    assert lines_of(repository(work), "git config commit.gpgsign false") == ["[commit] gpgsign = false"]


async def test_a_token_in_a_url_is_not_repeated(need, work: Path):
    need("bubblewrap")
    repository(work)
    url = "https://ada:ghp_0123456789012345678901234567890123456@a.example/b"
    result = await call(shell(work), command=f"git remote add origin {url}")
    assert "ghp_" not in result.text
    assert url in (work / ".git" / "config").read_text()


@crossed(
    command=["git push -u o main", "git push o main", "git remote set-url o https://b/c"],
    line=['url = "{url}"', 'url = "{url}" # \\', "url = {pad}{url} \\"],
)
async def test_a_token_in_a_configuration_that_is_not_plain_is_not_repeated(
    need, work: Path, command: str, line: str
):
    need("bubblewrap")
    config = with_commit(work, "https://a.example/b") / ".git" / "config"
    token = "ghp_0123456789012345678901234567890123456"
    line = line.format(url=f"https://ada:{token}@a.example/b", pad=" " * 65)
    config.write_text(config.read_text().replace("url = https://a.example/b", line))
    result = await call(shell(work), command=command)
    assert result.is_error
    assert "not plain enough" in result.text
    assert token[:12] not in result.text


async def test_cancelled_it_leaves_no_lock_and_no_half_repository(need, work: Path):
    need("bubblewrap")
    bash = shell(work)
    for ticks in range(12):
        task = asyncio.ensure_future(call(bash, command="git init -q && git config user.name Ada"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert not (await call(bash, command="git init -q && git config user.name Ada")).is_error
    assert not (work / ".git" / "config.lock").exists()
    assert "name = Ada" in (work / ".git" / "config").read_text()
