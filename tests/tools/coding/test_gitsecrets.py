"""Git prints no credentials unasked, of today, of the index or of the past; in ordinary repositories it asks nothing."""

import functools
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell_scene import git
from tests.counts import MORE, in_cells, tried

from swink.tools import Tool
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.gitviews import VIEWS
from swink.tools.coding.sandbox import Level, Sandbox
from swink.tools.coding.workspace import Workspace

KEY = "-----BEGIN PRIVATE KEY-----\nsecret-key-{}\n-----END PRIVATE KEY-----\n"


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)


def ordinary(root: Path) -> None:
    root.mkdir()
    git(root, "init", "-q", "--template=")
    for number in range(6):
        write(
            root,
            **{
                "a.txt": f"one\ntwo {number}\n",
                f"src__m{number}.py": f"x = {number}\n",
                "docs__d__e.md": "x\n" * number,
            },
        )
        write(root, **{"cert.pem": f"-----BEGIN CERTIFICATE-----\n{number}\n"})
        commit(root, f"commit {number}")
    git(root, "tag", "-a", "v1", "-m", "v1", "HEAD~2")
    git(root, "branch", "old", "HEAD~3")
    write(root, **{"a.txt": "stashed\n"})
    git(root, "stash", "-q")
    write(root, **{"a.txt": "one\nstaged\n"})
    git(root, "add", "a.txt")
    write(root, **{"a.txt": "one\nchanged\n", "src__m0.py": "y\n"})


def deleted_long_ago(root: Path) -> None:
    ordinary(root)
    git(root, "stash", "-q")
    git(root, "stash", "drop", "-q")
    write(root, _dot_env="KEY=secret-old\n", **{"a.txt": "x\n"})
    commit(root, "add")
    git(root, "rm", "-q", ".env")
    write(root, **{"a.txt": "y\n"})
    commit(root, "remove")
    for number in range(3):
        write(root, **{"a.txt": f"after {number}\n"})
        commit(root, f"after {number}")


def tracked(root: Path) -> None:
    ordinary(root)
    git(root, "stash", "-q")
    write(
        root, _dot_env="KEY=secret-one\n", keys__id_rsa="secret-key\n", src___dot_npmrc="token=secret-npm\n"
    )
    commit(root, "secrets")
    write(root, _dot_env="KEY=secret-two\n")


def only_staged(root: Path) -> None:
    ordinary(root)
    write(root, id_rsa="secret-staged\n")
    git(root, "add", "id_rsa")
    (root / "id_rsa").unlink()


def staged_deletion(root: Path) -> None:
    ordinary(root)
    write(root, sub___dot_env="KEY=secret-deleted\n")
    commit(root, "secret")
    git(root, "rm", "-q", "--cached", "sub/.env")
    (root / "sub/.env").unlink()


def key_that_was_replaced(root: Path) -> None:
    ordinary(root)
    git(root, "stash", "-q")
    write(root, **{"cert.pem": KEY.format(1)})
    commit(root, "oh")
    write(root, **{"cert.pem": "-----BEGIN CERTIFICATE-----\nx\n"})
    commit(root, "better")


def stashed(root: Path) -> None:
    ordinary(root)
    write(root, _dot_env="KEY=secret-stashed\n")
    git(root, "stash", "-q", "-u")


def on_a_branch(root: Path) -> None:
    ordinary(root)
    git(root, "stash", "-q")
    git(root, "switch", "-q", "-c", "feature")
    write(root, prod_dot_env="KEY=secret-branch\n")
    commit(root, "feature")
    git(root, "switch", "-q", "main")
    write(root, **{"a.txt": "main\n"})
    commit(root, "main")
    git(root, "merge", "-q", "-m", "merge", "feature")
    git(root, "rm", "-q", "prod.env")
    git(root, "commit", "-q", "-m", "gone")


PLANTED: list[Callable[[Path], None]] = [
    deleted_long_ago, tracked, only_staged, staged_deletion, key_that_was_replaced, stashed, on_a_branch,
]  # fmt: skip
REVISIONS = [
    "HEAD", "HEAD~1", "HEAD~2", "HEAD~3", "HEAD^", "HEAD~4", "@", "main", "old", "v1", "feature", "stash", "stash@{0}", "HEAD@{1}", "old..", "old..main",
    "old...main", "main...feature", "HEAD~4..HEAD~1", "HEAD~3...HEAD", "^old", "HEAD~3..HEAD~2", "refs/heads/main", "HEAD^{tree}", "HEAD~3^{tree}", "v1^{}", "main~2^2",
]  # fmt: skip
PATHS = [
    "a.txt", "src", ".", "*.txt", ":/", ".env", "keys", "id_rsa", "cert.pem", "sub", "src/.npmrc", ":(top)", ":(exclude)a.txt", "*", "prod.env", "'*env'", "src/m0.py", "docs",
]  # fmt: skip
CONTENTS = [
    "HEAD:.env", ":.env", ":0:.env", ":0:id_rsa", ":id_rsa", "HEAD:a.txt", "HEAD~3:.env", "HEAD~3:./.env", "HEAD:keys/id_rsa", "stash^3:.env", "HEAD:src/.npmrc", "HEAD:cert.pem",
    "HEAD~1:cert.pem", "HEAD:sub/.env", ":0:cert.pem", "HEAD:src", "HEAD:", ":/add", ":a.txt", "feature:prod.env", "old:a.txt", "HEAD:./src/.npmrc",
]  # fmt: skip
COMMANDS = [
    "git diff", "git diff --cached", "git diff HEAD", "git diff --stat", "git status", "git status -v", "git status -vv", "git show", "git log", "git log -p", "git log -p -1",
    "git log -p -2", "git log -p --all", "git log -L1,1:.env", "git log -L1,2:a.txt", "git log -L1,1:cert.pem", "git log --follow -p a.txt", "git stash show", "git stash show -p", "git stash show -p -u", "git stash list -p",
    "git reflog -p", "git whatchanged -p", "git log -c", "git log --cc", "git log -m -p", "git diff --check", "git diff --word-diff", "git show --stat", "git show --stat -p", "git grep secret",
    "git grep --cached secret", "git grep secret HEAD", "git grep -l secret HEAD~3", "git blame a.txt", "git blame .env", "git blame cert.pem", "git blame HEAD~1 -- cert.pem", "git diff-tree -p HEAD", "git diff-tree -p HEAD~3 HEAD",
    "git log -U1", "git log -W", "git log --patch-with-stat", "git log --binary", "git show -s", "git diff --name-only", "git diff -C --find-copies-harder HEAD~1", "git archive HEAD", "git log -p -- a.txt", "git log -p a.txt",
    "git log -p -g", "git diff --merge-base old", "git show --all", "git log -p --branches", "git log -p --tags --remotes", "git log -p --not old", "git rev-list -p HEAD", "git shortlog -p", "git log -p --first-parent", "git log -p --reverse -2",
    "git log -S secret", "git log -p -S secret", "git log --graph -p -2", "git log -p --no-merges -1", "git log -p --author=A -1", "git log --oneline -p -3", "git cat-file -p HEAD", "git cat-file -p HEAD^{tree}", "git show HEAD~1 HEAD~3", "git log -1 -p HEAD~1",
]  # fmt: skip
TABLE = [
    *COMMANDS,
    *[f"git {name} {operand}" for name in ("show", "cat-file -p", "cat-file blob", "diff HEAD") for operand in CONTENTS],
    *[f"git {name} {revision}" for name in ("show", "diff", "log -p", "diff --cached", "diff-tree -p", "grep secret", "stash show -p") for revision in REVISIONS],
    *[f"git {name} {path}" for name in ("diff --", "log -p --", "diff HEAD --", "grep secret --", "grep --cached secret --", "show --", "diff", "log -p", "blame", "diff HEAD~3 --") for path in PATHS],
    *[f"git diff {one} {other}" for one in REVISIONS[:12:2] for other in REVISIONS[:12:3]],
]  # fmt: skip


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)


@functools.lru_cache
def tool(root: Path, level: Level) -> Tool:
    return bash_tools(Workspace(root), Sandbox(root, level))[0]


def asks(root: Path, line: str, level: Level = "none") -> bool:
    return tool(root, level).needs_approval({"command": line})


def output(root: Path, line: str) -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root.parent),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    ran = subprocess.run(
        ["bash", "--norc", "-c", line], cwd=root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=30
    )  # fmt: skip
    return ran.stdout


# Each day those that are not among the `ASKED` of the day.
@pytest.fixture(scope="module", params=PLANTED if MORE else PLANTED[1::2], ids=lambda plant: plant.__name__)
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted") / "work"
    request.param(root)
    return root


@pytest.mark.more
def test_what_prints_a_secret_asks(planted: Path):
    table = TABLE if MORE else TABLE[::15]
    unasked = [line for line in table if not asks(planted, line)]
    assert [line for line in unasked if b"secret-" in output(planted, line)] == []
    git(planted, "gc", "-q")
    assert [line for line in table if not asks(planted, line)] == unasked


ASKED = {
    "deleted_long_ago": ["git log -p", "git show HEAD~3", "git diff HEAD~4", "git show HEAD~4:.env"],
    "tracked": ["git diff", "git diff HEAD", "git status -vv", "git log -L1,1:.env", "git show :0:.env", "git blame .env"],
    "only_staged": ["git diff --cached", "git diff", "git show :0:id_rsa", "git status -v", "git grep --cached x"],
    "staged_deletion": ["git diff --cached", "git status -v", "git diff HEAD"],
    "key_that_was_replaced": ["git log -p", "git show", "git diff HEAD~1", "git log -p -- cert.pem", "git show HEAD~1:cert.pem"],
    "stashed": ["git stash show -p -u", "git log -p --all", "git show stash^3"],
    "on_a_branch": ["git show HEAD~1", "git diff HEAD~2...feature", "git log -p feature"],
}  # fmt: skip
QUIET = [
    "git status",
    "git log",
    "git log --oneline -5",
    "git log --stat",
    "git diff -- a.txt",
    "git log -p -- a.txt",
    "git show --stat HEAD~1",
]


@in_cells("plant", PLANTED, every=2)
def test_secrets_ask_at_every_level_and_what_prints_none_does_not(
    tmp_path: Path, plant: Callable[[Path], None]
):
    root = tmp_path / "work"
    plant(root)
    for level in ("none", "workspace"):
        assert [line for line in ASKED[plant.__name__] if not asks(root, line, level)] == []
        assert [line for line in QUIET if asks(root, line, level)] == []


SILENT = [
    "git diff", "git diff HEAD", "git diff --cached", "git status", "git status -vv", "git log", "git log -p", "git log -p -1", "git log --oneline -p --all", "git show", "git show HEAD~2", "git show v1",
    "git diff HEAD~1", "git diff HEAD~3 HEAD", "git diff old..main", "git diff old...main", "git diff main...old", "git log -p old..", "git stash show -p", "git show old:a.txt", "git show :a.txt", "git show HEAD:src",
    "git grep x", "git grep --cached x", "git grep x HEAD~2", "git blame a.txt", "git log -L1,2:a.txt", "git log -p --follow a.txt", "git diff src", "git diff -- docs", "git diff-tree -p HEAD", "git cat-file -p HEAD",
    "git diff 'HEAD^!'", "git show 'HEAD@{0}'", "git log -p -- cert.pem", "git show HEAD:cert.pem",
]  # fmt: skip
IN_DOUBT = ["git diff 'HEAD^!'", "git show HEAD:cert.pem"]


def test_an_ordinary_repository_asks_nothing_loose_or_packed(tmp_path: Path):
    root = tmp_path / "work"
    ordinary(root)
    assert [line for line in SILENT if asks(root, line)] == IN_DOUBT
    git(root, "gc", "-q", "--aggressive")
    assert not list((root / ".git/objects").glob("[0-9a-f][0-9a-f]"))
    assert [line for line in SILENT if asks(root, line)] == IN_DOUBT


words = st.sampled_from([*REVISIONS, *PATHS, *CONTENTS, "--"])
options = st.sampled_from(sorted(name for name, view in VIEWS.items())).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.lists(st.sampled_from(sorted(VIEWS[name].options.options) or [""]), max_size=2),
        st.lists(words, max_size=2),
    )
)


@tried(5, 60)
@given(st.lists(options, min_size=5, max_size=10))
def test_no_declared_option_prints_a_secret_unasked(
    planted: Path, drawn: list[tuple[str, list[str], list[str]]]
):
    for name, given_options, operands in drawn:
        values = {"text": "=x", "number": "=3", "path": "=a.txt", "none": ""}
        kinds = VIEWS[name].options.options
        spelled = [
            option
            + (values[kinds[option]] if option.startswith("--") else values[kinds[option]].replace("=", ""))
            for option in given_options
            if option
        ]
        line = " ".join(["git", name, *spelled, *operands])
        assert asks(planted, line) or b"secret-" not in output(planted, line), line
