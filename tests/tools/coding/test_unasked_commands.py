"""Commands that run unasked, run for real: bash passes the words that were judged, and nothing is written, run or read outside."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell_corpus import harmless, hostile
from shell_scene import add_secrets, lay_out
from tests.counts import MORE, tried

from swink.tools import Tool
from swink.tools.coding import gitviews
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.options import OptionTable
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.syntax import SimpleCommand, read_commands
from swink.tools.coding.viewers import VIEWERS
from swink.tools.coding.workspace import Workspace

RECORD = 'w() { { printf "%s\\0" "$#" "$@"; } >> "$OUT"; }; eval "$1"'
PIECES = [
    " ", " ", " ", " ", "  ", "\t", "a", "b c", "-n", "--x=y", "'a b'", '"a b"', "'", '"', "\\", "\\ ", "\\'", '\\"', "\\$", "\\\\", "\\*", "\\\n", "\n", ";", "&&",
    "|", "&", "||", "$", "$?", "$x", "${x}", "$(w z)", "`w z`", "$'a'", '$"a"', "*", "?", "[a]", "[", "]", "{a,b}", "{", "}", "{}", "~", "~x", "a~1", "=", "x=y", "!", "#",
    " #c", "^", "%", "@", "@{0}", "+", ",", ":", "..", "/", "(", ")", "<", ">", "2>/dev/null", ">/dev/null", "2>&1", ">&2", "1", "2", "é", "à", "ß", "\u00a0", "\u200b", "\r",
    "\x01", "'é'", '"$"', '"a$"', '"\\a"', "'\\'", "if", "then", "time", "a=(b)", "\\é", '"!"', "=~", "==", "<<", "<<<", "|&", "&>", "-", "--", "=(a)", "+(a)", "a\\", '"\\\\"',
]  # fmt: skip


def passed_by_bash(line: str, directory: Path) -> list[list[str]]:
    """The arguments that each call of `w` in a line gets."""
    out = directory.parent / "out"
    out.write_bytes(b"")
    environment = {"PATH": os.environ["PATH"], "OUT": str(out), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        ["bash", "--norc", "-c", RECORD, "bash", line],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
    )
    fields = out.read_bytes().decode().split("\0")[:-1]
    calls: list[list[str]] = []
    while fields:
        count = int(fields[0])
        calls.append(fields[1 : count + 1])
        fields = fields[count + 1 :]
    return sorted(calls)


def judged(commands: list[SimpleCommand]) -> list[list[str]]:
    return sorted([word.text for word in command.words[1:]] for command in commands)


@tried(200, 1_000)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), min_size=1, max_size=3))
def test_bash_passes_the_words_that_are_judged(tmp_path_factory: pytest.TempPathFactory, parts: list[str]):
    line = "; ".join(f"w {part}" for part in parts)
    commands = read_commands(line)
    if commands is None or any(
        command.words[0].text != "w" or command.link == "||" or command.inputs for command in commands
    ):
        return
    directory = tmp_path_factory.mktemp("empty") / "here"
    directory.mkdir()
    assert passed_by_bash(line, directory) == judged(commands)


def test_bash_passes_the_words_of_harmless_lines(tmp_path: Path):
    (tmp_path / "here").mkdir()
    lines = [f"w {line}" for line in harmless() if not set("|&;<>$[:") & set(line)]
    commands = [read_commands(line) for line in lines]
    assert passed_by_bash("\n".join(lines), tmp_path / "here") == sorted(
        words for found in commands if found for words in judged(found)
    )


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = lay_out(tmp_path_factory.mktemp("scene"))
    add_secrets(root)
    return root


@pytest.fixture(scope="module")
def tool(scene: Path) -> Tool:
    hidden = [scene / ".store"]
    return bash_tools(Workspace(scene, hidden=hidden), Sandbox(scene, "none", hidden=hidden))[0]


def picture(top: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a directory: kinds, times and contents, but for git's own notes of what it has seen."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for directory, directories, files in os.walk(top):
        for name in (*directories, *files):
            path = os.path.join(directory, name)
            entry = os.lstat(path)
            content = Path(path).read_bytes() if os.path.isfile(path) and not os.path.islink(path) else b""
            found[path] = (
                entry.st_mode,
                0 if os.path.isdir(path) and ".git" in path else entry.st_mtime_ns,
                content,
            )
    return {path: entry for path, entry in found.items() if not path.endswith(("/.git/index", "/.git"))}


def run_for_real(scene: Path, line: str) -> bytes:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LC_"))}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "PAGER": "cat", "CANARY": str(scene.parent / "outside/pwned")}
    ended = subprocess.run(
        ["bash", "--norc", "-c", line],
        cwd=scene,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
    )
    return ended.stdout + ended.stderr


def assert_harmless(scene: Path, lines: list[str]) -> None:
    before = picture(scene.parent)
    for line in lines:
        output = run_for_real(scene, line)
        assert b"canary" not in output, line
        assert b"root:x:0" not in output, line
    assert picture(scene.parent) == before, lines


@pytest.mark.more
def test_harmless_lines_change_nothing_and_show_nothing_outside(scene: Path, tool: Tool):
    lines = [line for line in harmless() if not tool.needs_approval({"command": line})]
    assert len(lines) > 400
    lines = lines if MORE else lines[::8]
    for start in range(0, len(lines), 50):
        assert_harmless(scene, lines[start : start + 50])


PROGRAMS = [
    "ls", "cat", "head", "tail", "wc", "stat", "du", "cut", "tr", "nl", "tac", "diff", "cmp", "comm", "grep", "md5sum", "sort", "uniq", "shuf", "fold", "paste", "join",
    "od", "hexdump", "xxd", "strings", "base64", "date", "file", "tree", "rg", "fd", "sed", "jq", "find", "test", "[", "printf", "echo", "git", "git log", "git diff",
    "git show", "git status", "git branch", "git tag", "git stash", "git config", "git remote", "git grep", "git ls-files", "git -C", "cd", "type", "command", "python3",
    "readlink", "realpath", "column", "expr", "seq", "id", "egrep", "git blame", "git reflog", "git for-each-ref", "git worktree", "git cat-file",
]  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
WORDS = [
    "a.txt", "b.txt", "src", ".", "..", "link", "link-out", "dir-out", "dir-out/", "src/link", ".env", "keys/id_rsa", "keys", ".store", ".store/session", "list", "@list", "sums", "x", "new", "bare", "nested",
    "/etc/passwd", "../outside/secret.txt", "evil.sh", "./evil.sh", "*", "*.txt", "src/*", "l*", "*/*", "-", "--", "-o", "-ox", "--output=x", "--output", "-exec", "-delete",
    "';'", "+", "'{}'", "-c", "-r", "-R", "-L", "-f", "-i", "-e", "-n", "-z", "-v", "-l", "-p", "--pre=./evil.sh", "--pre", "'1p'", "'w x'", "'1e ./evil.sh'", "'s/a/b/e'",
    "'a[$(./evil.sh)]'", "'%n'", "'%s'", "-eq", "1", "=", "]", "!", "'('", "')'", "HEAD", "HEAD~1", "main", "list", "show", "get-url", "user.name", "--list", "--get", "--add",
    "--files0-from=list", "--check", "--follow", "-fprint", "-fls", "-newer", "-name", "--ext-diff", "--textconv", "--no-index", "-O./evil.sh", "--format=%G?", "--version",
    "--compress-program=./evil.sh", "--files", "--hidden", "-u", "--include=*", "-1", "-5", "5", "'import \"x\" as x; .'", ".name", "-D", "-H", "--no-dereference", "-s", "--stdin",
]  # fmt: skip
VALUES = ["1", "5", "a", "x", "new", ",", "a.txt", "src/link", "2,3", "/etc/passwd", "%s", "py", "list"]
PLAIN = st.builds(lambda letters: "-" + letters, st.text(LETTERS, min_size=1, max_size=3)) | st.sampled_from(
    WORDS
)


def words(options: OptionTable) -> st.SearchStrategy[str]:
    """A word for a program: junk, or one of its own options with some value."""
    if not options.options:
        return PLAIN
    name = st.sampled_from(sorted(options.options))
    valued = st.builds(
        lambda name, link, value: name + (link if name.startswith("--") else link.replace("=", "")) + value,
        name,
        st.sampled_from(["=", " "]),
        st.sampled_from(VALUES),
    )
    return name | valued | PLAIN


GRAMMARS = {name: viewer.options for name, viewer in VIEWERS.items()} | {
    f"git {name}": view.options for name, view in gitviews.VIEWS.items()
}
command = st.one_of(
    st.builds(
        lambda program, rest: " ".join([program, *rest]),
        st.sampled_from(PROGRAMS),
        st.lists(PLAIN, max_size=5),
    ),
    st.sampled_from(sorted(GRAMMARS)).flatmap(
        lambda name: st.lists(words(GRAMMARS[name]), max_size=5).map(lambda rest: " ".join([name, *rest]))
    ),
)
line = st.lists(
    st.tuples(st.sampled_from(["; ", " && ", " | ", " || "]), command), min_size=1, max_size=2
).map(lambda parts: "".join(link + text for link, text in parts).lstrip(";&| "))


@tried(7, 60)
@given(st.lists(line, min_size=20, max_size=60))
def test_whatever_runs_unasked_changes_nothing_and_shows_nothing_outside(
    scene: Path, tool: Tool, lines: list[str]
):
    unasked = [line for line in lines if not tool.needs_approval({"command": line})]
    if unasked:
        assert_harmless(scene, unasked)


@tried(80, 1_000)
@given(
    st.sampled_from(hostile()),
    st.sampled_from(["", "ls; ", "ls && ", "ls | "]),
    st.sampled_from(["", " ", "; ls", " | cat", " 2>/dev/null", "\n"]),
)
def test_a_hostile_line_stays_hostile_among_others(tool: Tool, line: str, before: str, after: str):
    if line.strip() and not line.endswith("\\"):
        assert tool.needs_approval({"command": before + line + after}), before + line + after
