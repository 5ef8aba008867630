"""PathGuard: nothing leads outside the root, however it is written and whatever its argument is called."""

import asyncio
import base64
import inspect
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import Scene, call
from tests.counts import left_to_more

from swink import ToolCall
from swink.agent.policy import PolicyContext
from swink.messages.jsondata import DEEPEST
from swink.policies import PathGuard

NO_RUN = cast(PolicyContext, SimpleNamespace(run=None))


def skipped(policy: PathGuard, name: str = "act", **arguments: Any) -> bool:
    verdict = policy.pre_dispatch(NO_RUN, ToolCall("1", name, arguments))
    if inspect.isawaitable(verdict):

        async def wait() -> Any:
            return await verdict

        verdict = asyncio.run(wait())
    return verdict is not None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "sub" / "chain").symlink_to("../link")
    (tmp_path / "root" / "relative").symlink_to("../outside")
    (tmp_path / "root" / "file_link").symlink_to(tmp_path / "outside" / "secret")
    (tmp_path / "root" / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "root" / "circle").symlink_to("circle")
    (tmp_path / "root" / "inner_link").symlink_to(tmp_path / "root" / "sub")
    (tmp_path / "root-other").mkdir()
    return tmp_path / "root"


OUTSIDE = [
    "..",
    "../outside/secret",
    "sub/../../outside",
    "./../outside",
    "/",
    "/etc/passwd",
    "/nowhere/at/all",
    "//etc/passwd",
    "/proc/self/root/etc/passwd",
    "/dev/fd/0",
    "~",
    "~/.ssh/id_rsa",
    "~root/x",
    "~+/x",
    "$HOME/.ssh/id_rsa",
    "${HOME}/.ssh/id_rsa",
    "$HOME",
    "$NO_SUCH_VARIABLE/etc/passwd",
    "%HOME%/x",
    "%NO_SUCH_VARIABLE%\\x",
    "$env:HOME\\x",
    "$(pwd)/../x",
    "link/secret",
    "link/../secret",
    "link/new/file",
    "sub/chain/secret",
    "relative",
    "file_link",
    "dangling",
    "dangling/new/file",
    "circle",
    "inner_link/../../outside",
    "../root-other/x",
    "lin*/secret",
    "*/secret",
    "sub/*/secret",
    "[l]ink/secret",
    "C:",
    "${HOME:-x}",
    "${NO_SUCH_VARIABLE:-/etc/passwd}",
    " /etc/passwd",
    "/etc/passwd ",
    "\t../x",
    "link/secret\n",
    " .. / .. /x",
    "'/etc/passwd'",
    '"../x"',
    "file:///etc/passwd",
    "FILE:///etc/%70asswd",
    "file:/etc/passwd",
    "file:../x",
    "file://../x",
    "file://localhost/etc/passwd",
    "file://server/share/x",
    "view-source:file:///etc/passwd",
    "sqlite:////etc/x.db",
    "%2e%2e/x",
    "%2e%2e%2fx",
    "..%2fx",
    "%252e%252e%252fx",
    "%2Fetc%2Fpasswd",
    "%25252525252525252fetc",
    "..\\x",
    "sub\\..\\..\\x",
    "\\etc\\passwd",
    "C:\\Windows\\System32",
    "c:/Users",
    "\\\\server\\share",
    "\\\\?\\C:\\x",
    "\uff0fetc\uff0fpasswd",
    "\uff0e\uff0e\uff0fx",
    "\u2025/x",
    "..\u2215x",
    "..\u2044x",
    "\ufeff/etc/passwd",
    ".\u200b./x",
    "/etc/\u202epasswd",
    "sub\0/../../x",
    "/etc/passwd\0.txt",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_outside_is_not_run(root: Path, path: str):
    assert skipped(PathGuard(root), path=path)
    assert not PathGuard(root).contains(path)


@pytest.mark.parametrize("name", ["x", "url", "value", "args", "id", "route"])
def test_the_name_of_the_argument_does_not_matter(root: Path, name: str):
    guard = PathGuard(root)
    for path in OUTSIDE:
        assert skipped(guard, **{name: path}), path
        assert skipped(guard, **{name: [{"deep": [path]}]}), path
        assert skipped(guard, **{name: {path: 1}}), path


@pytest.mark.parametrize(
    "text",
    [
        "a.txt,/etc/passwd",
        "a.txt, ../x",
        "a.txt;link/secret",
        "a:/etc/passwd",
        "sub:link/secret",
        "/usr/bin:/etc",
        "a.txt\n/etc/passwd",
        "a.txt\r\nlink\r\n",
        "a.txt\t/etc/passwd",
        "a|../x",
        "--output=/etc/x",
        "--output=../x",
        "-o/etc/x",
        "-I../x",
        "-o /etc/x",
        "--file ~/x",
        "@/etc/passwd",
        "@../x",
        "key=../../x",
        "key=link/secret",
        "if=/dev/sda",
        ">/etc/x",
        "2>>../x",
        "</etc/passwd",
        "{a,/etc/passwd}",
        "(../x)",
        "host:/etc/passwd",
        "file=@/etc/passwd;type=x",
        "--config=$HOME/x",
        "--config=%2fetc%2fpasswd",
        '["a", "../x"]',
        '{"nested": ["link/secret"]}',
        "https://example.com,/etc/passwd",
        "my notes.txt\n/etc/passwd",
        "a.txt /etc/passwd",
        "src/a.py ../x --verbose",
        "my notes.txt, file_link",
    ],
)
@pytest.mark.parametrize("name", ["path", "x", "args"])
def test_paths_are_found_inside_lists_options_and_assignments(root: Path, name: str, text: str):
    assert skipped(PathGuard(root), **{name: text})


@pytest.mark.parametrize("name", ["path", "files", "target_file"])
def test_a_path_argument_may_be_a_list_with_blanks(root: Path, name: str):
    assert skipped(PathGuard(root), **{name: "a.txt /etc/passwd"})
    assert skipped(PathGuard(root), **{name: "my notes.txt link/secret"})


@pytest.mark.parametrize(
    "name", ["content", "text", "command", "query", "pattern", "input", "message", "code", "old", "title"]
)
@pytest.mark.parametrize(
    "text",
    [
        "link/secret",
        "link",
        "file_link",
        "../outside/secret",
        "/etc/passwd",
        " /etc/passwd",
        "file:///etc/passwd",
    ],
)
def test_a_text_that_is_nothing_but_a_path_of_something_outside_is_one(root: Path, name: str, text: str):
    assert skipped(PathGuard(root), **{name: text})


@pytest.mark.parametrize(
    "arguments",
    [
        {"target_file": "link/secret"},
        {"edits": [{"file": "a"}, {"file": "link/x"}]},
        {"files": ["a", "../x"]},
        {"files": {"../x": "content"}},
        {"files": [{"name": "link/x", "content": "fine"}]},
        {"options": {"deep": {"cwd": "/"}}},
        {"tuple": ("a", "../x")},
        {"../x": 1},
        {"path": Path("/etc/passwd")},
        {"path": "a.txt", "content": "link"},
    ],
)
def test_paths_are_found_wherever_they_stand(root: Path, arguments: dict[str, Any]):
    assert skipped(PathGuard(root), **arguments)


INSIDE = [
    "a.txt",
    "sub/new/file",
    "sub/../a",
    ".",
    "",
    "inner_link/x",
    "...",
    "a..b",
    "sub/..hidden",
    "no such",
    "link_to",
    "src/**/*.py",
    "*",
]


@pytest.mark.parametrize("path", INSIDE)
def test_a_path_inside_is_let_pass(root: Path, path: str):
    for name in ("path", "x", "content"):
        assert not skipped(PathGuard(root), **{name: path})
        assert not skipped(PathGuard(root), **{name: str(root / path)})
        assert not skipped(PathGuard(root), **{name: quote(path)})


CODE = """#!/bin/sh
# see /etc/passwd and ../x
cat "$HOME/.profile" | grep '/usr/bin' > /dev/null
/etc/passwd
"""


@pytest.mark.parametrize(
    "arguments",
    [
        # Texts and commands
        {"path": "run.sh", "content": CODE},
        {"content": CODE},
        {"path": "a.py", "content": "x = '../..'"},
        {"path": "a.py", "content": "// a comment\n/* another */"},
        {"path": ".gitignore", "content": "/bin"},
        {"path": "a.ts", "edits": [{"old": "../utils", "new": "../lib/utils"}]},
        {"path": "a.sh", "old_string": "/bin/bash", "new_string": "/usr/bin/env bash"},
        {"path": "a.md", "old_text": "~", "new_text": "/"},
        {"file_path": "a.c", "diff": "--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-/* old */\n+/* new */\n"},
        {"command": "ls -la /etc ../x"},
        {"command": "/bin/ls ../x"},
        {"command": "cd /tmp && make > /dev/null 2>&1"},
        {"command": "/usr/bin/env python -m pytest tests/x.py::test_y"},
        {"command": "cat <<'EOF' > a.txt\n/etc/passwd\nEOF"},
        {"command": "sed -i 's/a/b/g' a.txt", "timeout": 10},
        {"code": "print('/etc/passwd')"},
        {"message": "Fix: paths like /etc/x and ../y are refused"},
        {"note": "see\n/etc/passwd"},
        {"prompt": "Compare /etc/hosts with ../x, then tell me."},
        {"task": "/review the last change"},
        {"description": "~5 items, $5.00 each, 100% sure"},
        # Patterns
        {"pattern": "/foo/"},
        {"pattern": "/api/.*"},
        {"pattern": "/foo/", "path": "."},
        {"pattern": r"\bdef\s+\w+\("},
        {"regex": r"^/usr/(local/)?lib"},
        {"pattern": r"\.\./"},
        {"query": "SELECT * FROM a WHERE b = '/x'"},
        {"query": "how to use a/b testing?"},
        {"xpath": "//div[@id='a']/span"},
        {"glob": "src/**/*.{ts,tsx}"},
        # Values that only resemble paths
        {"url": "https://example.com/a/../b?file=/etc/passwd"},
        {"urls": ["http://a.example/x", "https://b.example:8080/y,z"]},
        {"repo": "git@github.com:owner/name.git"},
        {"repo": "ssh://git@github.com/owner/name.git"},
        {"email": "a.b@example.com"},
        {"to": "mailto:a@example.com"},
        {"model": "anthropic:claude-sonnet-4-6"},
        {"image": "docker.io/library/python:3.12-slim"},
        {"date": "2026-10-01", "time": "12:30:00+02:00", "when": "01/10/2026 12:30"},
        {"format": "%Y/%m/%d %H:%M"},
        {"ratio": "3/4", "range": "1..5", "version": ">=1.0,<2.0", "percent": "100%"},
        {"price": "$5.00", "about": "~5", "jsonpath": "$.store.book[0].title"},
        {"filter": {"$and": [{"age": {"$gt": 5}}, {"name": {"$in": ["a", "b"]}}]}},
        {"schema": {"$ref": "#/definitions/x", "$schema": "https://json-schema.org/draft/2020-12/schema"}},
        {"mime": "application/json; charset=utf-8", "accept": "text/html, application/json"},
        {"timezone": "Europe/Oslo", "branch": "feature/x", "range": "HEAD~3..HEAD", "ref": "origin/main^"},
        {"answer": "Yes, and/or no. See https://example.com/x."},
        {"answer": "The file is at /somewhere/else, I think."},
        {"emoji": "🙂／", "japanese": "これはテストです。", "fraction": "1⁄2"},
        {"data": '{"a": 1, "b": ["x", "y"]}'},
        {"image": base64.b64encode(b"\xff\xd8\xff\xe0" * 100).decode()},
        {"image": base64.b64encode(bytes(range(256)) * 20).decode()},
        {"src": "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 20).decode()},
        {"integrity": "sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC"},
        {
            "dsn": "postgres://user:word@db.example/name",
            "bucket": "s3://bucket/key",
            "broker": "redis://:word@localhost:6379/0",
        },
        {"formula": r"\frac{1}{2}", "tex": r"\alpha", "shrug": r"\_(o)_/"},
        {"cron": "*/5 * * * *", "accept": "text/html;q=0.9"},
        {"data": "function f(a) {\n  // a comment\n  return a.split('/'); /x/.test(a)\n}\n/** more */"},
        {"rows": "a,b,c\n1,2/3,4\n5,6,7"},
        {"args": ["log", "--oneline", "HEAD~3..HEAD", "--", "src/a.py"]},
        {"args": ["-k", "test_a or test_b", "--maxfail=1", "-x", "tests/a.py::test_b[x/y]"]},
        {"template": "Hello ${name}, ${user.title}!", "css": "a:hover", "yaml": "a: b"},
        {"items": ["milk", "eggs and/or flour", "1/2 l water"]},
        {"count": 3, "flag": True, "nothing": None, "ratio": 0.5},
        {"language": "French", "target": "French"},
        {"target": "x86_64-unknown-linux-gnu", "output": "json"},
        {"name": "x" * 5_000},
        {"answer": "a long answer " * 1_000},
    ],
    ids=lambda arguments: json.dumps(arguments)[:60],
)
def test_ordinary_calls_are_let_pass(root: Path, arguments: dict[str, Any]):
    assert not skipped(PathGuard(root), **arguments)


@pytest.mark.parametrize(
    "name", ["content_file", "message_path", "bodyFile", "text_output", "description-folder"]
)
def test_the_last_word_of_a_name_says_what_the_argument_is(root: Path, name: str):
    assert skipped(PathGuard(root), **{name: str(root.parent / "outside" / "new")})
    assert not skipped(PathGuard(root), file_content="/nowhere/at/all", output_message="/nowhere/at/all")


@pytest.mark.parametrize(
    "url",
    [
        "http://a/../../../outside/secret",
        "data:x/../../outside/secret",
        "https://h/%2e%2e/%2e%2e/%2e%2e/outside/new",
    ],
)
@pytest.mark.parametrize("name", ["path", "url", "value"])
def test_a_url_that_climbs_out_as_a_path_is_one(root: Path, name: str, url: str):
    assert skipped(PathGuard(root), **{name: url})


@pytest.mark.parametrize(
    "pattern",
    [
        "link/*",
        "link/**/*",
        "../*",
        "../outside/s*",
        "/etc/*",
        "/**/*.pem",
        "/usr/*/*/nowhere",
        "sub/chain/[s]ecret",
    ],
)
def test_a_pattern_for_what_lies_outside_is_not_run(root: Path, pattern: str):
    assert skipped(PathGuard(root), pattern=pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "/*",
        "/**",
        "//.*",
        "/api/.*",
        "^/etc/.*",
        "**/*.py",
        "/.*/.*",
        "sub/*",
        "inner_link/*",
        "/*/*/*/*/*/nowhere",
    ],
)
def test_patterns_for_text_are_let_pass(root: Path, pattern: str, monkeypatch: pytest.MonkeyPatch):
    searched: list[Any] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda *path: searched.append(path) or scandir(*path))
    assert not skipped(PathGuard(root), pattern=pattern)
    outside = [path for path in searched if not str(path[0]).startswith(str(root.parent))]
    assert len(outside) < 5, "no file system is searched for it"


def test_an_argument_can_be_ignored_everywhere_or_for_one_tool(root: Path):
    assert skipped(PathGuard(root), route="/api/users")
    assert not skipped(PathGuard(root, ignore=["route"]), route="/api/users")
    assert not skipped(PathGuard(root, ignore=["route"]), deep=[{"route": {"/api": "/users"}}])
    assert not skipped(PathGuard(root, ignore=["go.route"]), "go", route="/api/users")
    assert skipped(PathGuard(root, ignore=["go.route"]), "come", route="/api/users")


def test_relative_paths_are_taken_from_the_base(root: Path, tmp_path: Path):
    assert skipped(PathGuard(root, base=tmp_path), path="outside/secret")
    assert not skipped(PathGuard(root, base=tmp_path), path="root/sub")


def test_a_root_that_is_a_link_is_resolved(root: Path, tmp_path: Path):
    (tmp_path / "alias").symlink_to(root)
    assert not skipped(PathGuard(tmp_path / "alias"), path=str(tmp_path / "alias" / "sub"))


def test_a_directory_that_may_not_be_read_is_outside(root: Path):
    # A name that is too long stands for whatever the system cannot resolve; root may read everything else.
    assert skipped(PathGuard(root), path="sub/" + "x" * 300 + "/../../../outside")
    assert skipped(PathGuard(root), path="/" + "x/" * 3_000)


def test_arguments_nested_as_deep_as_can_be_are_judged(root: Path):
    value: Any = "/etc/passwd"
    for _ in range(DEEPEST - 1):
        value = [value]
    assert skipped(PathGuard(root), x=value)


@left_to_more
def test_much_is_judged_in_time_and_off_the_event_loop(root: Path):
    policy = PathGuard(root)
    names = [f"sub/file{number}" for number in range(5_000)]
    verdict = policy.pre_dispatch(NO_RUN, ToolCall("1", "act", {"files": names}))
    assert inspect.iscoroutine(verdict)
    verdict.close()
    assert skipped(policy, files=[*names, "../x"])
    assert not skipped(policy, content="/x" * 125_000)
    assert not skipped(policy, content="../" * 75_000 + "x")
    assert not skipped(policy, answer="a, b = c: d; " * 12_500)
    skipped(policy, x="%25" * 75_000)


@given(
    st.lists(st.sampled_from(["..", ".", "sub", "a", "~", "/", "", "sub/", "file:", " "]), max_size=8).map(
        "/".join
    )
)
def test_what_passes_is_inside_once_resolved(path: str):
    policy = PathGuard("/nonexistent/root")
    if not skipped(policy, path=path) and path:
        resolved = os.path.realpath(os.path.join("/nonexistent/root", os.path.expanduser(path)))
        assert Path(resolved).is_relative_to("/nonexistent/root")


async def test_the_path_guard_tells_the_model_and_the_batch_goes_on(root: Path):
    scene = Scene(PathGuard(root), [[call(0, path="/etc/passwd"), call(1, path="a")], "done"])
    result = await scene.run()
    assert [arguments for _, arguments in scene.ran] == [{"path": "a"}]
    assert "outside" in result.messages[2].text
    assert result.messages[2].is_error
