"""Who may run what: deny rules, session trust, saved rules, the mode, and then a question."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from swink import Agent, ToolCall, ToolResultMessage, tool
from swink.agent.policy import Answer, ApprovalRequest, Approved, PolicyContext, Rejected
from swink.app.assistant import previews
from swink.app.assistant.approvalmodes import ApprovalWord, next_approval, parse_approval
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Always, ByRule, Once, Question, Refuse
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.settings import SandboxSettings
from swink.app.assistant.shellsettings import ShellSettings
from swink.app.assistant.toolcalls import SessionTrust, trust_of
from swink.messages.redact.shown import show_arguments
from swink.testing import ScriptedModel
from swink.tools.coding.background import Background
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.workspace import Workspace
from swink.tools.coding.writing import write_tools


def request(name: str, required: bool = True, id: str = "", **arguments: Any) -> ApprovalRequest:
    context = cast(PolicyContext, SimpleNamespace(tools=(), run=None))
    return ApprovalRequest(id or f"{name}-{arguments}", name, arguments, arguments, required, context)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work" / "src").mkdir(parents=True)
    (tmp_path / "work" / "src" / "a.py").write_text("one\ntwo\nthree\n")
    return tmp_path


def permissions(place: Path, word: ApprovalWord = "smart", *rules: str, **options: Any) -> Permissions:
    workspace = Workspace(place / "work")
    book = RuleBook(workspace.root, path=place / "permissions")
    if rules:
        book.add([parse_rule(rule) for rule in rules], "project")
    return Permissions(word, workspace=workspace, rules=book, clock=lambda: 5.0, **options)


async def decided(asked: Permissions, call: ApprovalRequest) -> Answer | None:
    """The answer, or None if somebody is asked."""
    task = asyncio.ensure_future(asked(call))
    while not task.done() and not asked.waiting:
        await asyncio.sleep(0)
    if task.done():
        return await task
    task.cancel()
    await asyncio.wait([task])
    assert not asked.waiting
    return None


BASH = request("bash", command="git push")
LOOK = request("bash", False, command="ls")
WRITE = request("write_file", path="src/b.py", content="x\n")
EDIT = request("edit_file", path="src/a.py", edits=[{"old": "two", "new": "2"}])
DELETE = request("delete_file", path="src/a.py")
READ = request("read_file", False, path="src/a.py")


@pytest.mark.parametrize(
    ("word", "asked_about", "refused"),
    [
        ("on", [BASH, LOOK, WRITE, EDIT, DELETE, READ], []),
        ("smart", [BASH, WRITE, EDIT, DELETE], []),
        ("edits", [BASH], []),
        ("sandboxed", [BASH], []),
        ("off", [], []),
        ("deny", [], [BASH, WRITE, EDIT, DELETE]),
    ],
)
async def test_the_mode_says_who_is_asked(
    place: Path, word: ApprovalWord, asked_about: list[Any], refused: list[Any]
):
    for call in (BASH, LOOK, WRITE, EDIT, DELETE, READ):
        answer = await decided(permissions(place, word), call)
        assert (answer is None) == (call in asked_about), call
        assert isinstance(answer, Rejected) == (call in refused), call


async def in_sandbox(place: Path, trouble: str = "", **settings: Any) -> tuple[Answer | None, list[str]]:
    """What the mode sandboxed decides of a command, and what is told, where the sandbox is so."""
    told: list[str] = []

    async def find() -> str:
        return trouble

    asked = permissions(place, "sandboxed", "deny bash(rm *)", tell=told.append)
    asked.shell = ShellSettings(SandboxSettings(**settings))
    asked.shell.find_trouble, asked.shell.is_current = find, lambda tool: True
    assert isinstance(await decided(asked, request("bash", command="rm -r src")), Rejected)
    return await decided(asked, BASH), told


async def test_sandboxed_runs_commands_unasked_where_they_are_confined_and_says_where_not(place: Path):
    assert await in_sandbox(place) == (True, [])
    assert await in_sandbox(place, network="off") == (True, [])
    for trouble, settings in (("no bwrap", {}), ("", {"level": "none"}), ("", {"network": "on"})):
        answer, told = await in_sandbox(place, trouble, **settings)
        assert answer is None
        assert len(told) == 1
        assert "like edits here" in told[0]


def test_a_key_goes_through_the_modes_that_ask():
    assert [next_approval(word) for word in ("on", "smart", "edits", "sandboxed", "off")] == [
        "smart", "edits", "sandboxed", "on", "smart"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/passwd",
        "src/../../x",
        "link/x",
        ".git/config",
        "HEAD",
        ".vscode/settings.json",
        "a/.MCP.json",
        ".envrc",
        ".cursor/mcp.json",
        ".gemini/settings.json",
        "a/.devcontainer/devcontainer.json",
        ".exrc",
        ".nvimrc",
        ".nvim.lua",
        ".bash_aliases",
        ".config/autostart/x.desktop",
        ".ssh/authorized_keys",
        "to-exrc",
        "x\0",
        "x/" * 3_000,
    ],
)
async def test_accept_edits_asks_outside_the_workspace_and_about_what_other_programs_run(
    place: Path, path: str
):
    (place / "work" / "link").symlink_to(place)
    (place / "work" / "to-exrc").symlink_to(".exrc")
    call = request("write_file", path=path, content="x")
    assert await decided(permissions(place, "edits"), call) is None
    assert permissions(place).suggest(call) == ()


async def test_accept_edits_asks_about_what_swink_itself_runs_from():
    package = Path(previews.__file__).parents[2]
    asked = Permissions("edits", workspace=Workspace(package.parents[1]))
    assert await decided(asked, request("delete_file", path=f"src/{package.name}/errors.py")) is None
    assert await decided(asked, request("write_file", path="src/other.py", content="x")) is True


async def test_a_preview_says_that_other_programs_obey_the_file(place: Path):
    workspace = Workspace(place / "work")
    (place / "work" / "notes.md").symlink_to(".nvimrc")
    for path in (".zed/tasks.json", "notes.md"):
        found = previews.preview(workspace, "write_file", {"path": path, "content": "x"})
        assert found is not None
        assert found.summary.endswith("; other programs obey this file")
    found = previews.preview(workspace, "write_file", {"path": "src/b.py", "content": "x"})
    assert found is not None
    assert found.summary == "creates src/b.py, 1 line"


async def test_denials_come_before_trust_rules_and_modes(place: Path):
    asked = permissions(
        place,
        "off",
        "deny bash(git push *)",
        "bash(git push *)",
        "deny mcp(evil)",
        servers={"evil_x": "evil"},
    )
    asked.trusted[trust_of(BASH)] = None
    answer = await decided(asked, BASH)
    assert answer == Rejected("the user's rule: deny bash(git push *)")
    assert isinstance(await decided(asked, request("evil_x", False)), Rejected)
    assert await decided(asked, request("other_x")) is True


EVASIVE = [
    "/bin/r? f",
    "x=rm; $x f",
    "git -c alias.z='!r\\m f' z",
    "sh script",
    "python3 -c 'x'",
    "echo f | xargs -I% sh -c %",
]


@pytest.mark.parametrize("word", ["on", "smart", "edits", "sandboxed", "off"])
@pytest.mark.parametrize("line", EVASIVE)
async def test_what_may_run_something_denied_asks_in_every_mode(place: Path, word: ApprovalWord, line: str):
    call = request("bash", False, command=line, background=True)
    assert await decided(permissions(place, word, "deny bash(rm *)", "bash"), call) is None
    seen, ask = answering(Once())
    assert await permissions(place, word, "deny bash(rm *)", "bash", ask=ask)(call) is True
    assert seen[0].notice.startswith("A rule denies bash(rm *), and this may run it: ")


async def test_what_may_run_something_denied_is_refused_with_the_reason_where_nothing_is_asked(place: Path):
    asked = permissions(place, "deny", "deny bash(rm *)", "bash")
    answer = await decided(asked, request("bash", False, command="sh script"))
    assert answer == Rejected("a rule denies bash(rm *), and this may run it: sh runs what it is given")


async def test_a_doubtful_command_runs_unasked_where_a_person_allowed_the_whole_of_it(place: Path):
    call = request("bash", command="sh script.sh 1")
    asked = permissions(place, "off", "deny bash(rm *)", "bash(sh script.sh 1)")
    assert await decided(asked, call) is True
    asked = permissions(place, "off", "deny bash(rm *)")
    asked.rules.remove(parse_rule("bash(sh script.sh 1)"), "project")
    assert await decided(asked, call) is None
    asked.trusted[trust_of(call)] = None
    assert await decided(asked, call) is True


async def test_without_a_denial_or_for_ordinary_commands_off_asks_nothing(place: Path):
    for line in EVASIVE:
        assert (
            await decided(permissions(place, "off", "deny write_file(x)"), request("bash", command=line))
            is True
        )
    asked = permissions(place, "off", "deny bash(rm *)")
    for line in ("make test", "git commit -m 'a b'", "timeout 9 pytest -q", "python x.py"):
        assert await decided(asked, request("bash", command=line)) is True


async def test_saved_rules_hold_in_every_mode_that_asks_and_are_counted(place: Path):
    for word in ("on", "smart", "edits", "deny"):
        asked = permissions(place, word, "bash(git push *)", "write_file(src/**)")
        assert await decided(asked, BASH) is True
        assert await decided(asked, WRITE) is True
        found = asked.why(BASH.call_id)
        assert found is not None
        assert found.why == "your rule bash(git push *) (this project)"
    await until(lambda: [saved.hits for saved in permissions(place).rules.saved()] == [4, 4])


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if holds():
            return
        await asyncio.sleep(0.005)
    assert holds()


def answering(*replies: Any) -> tuple[list[Question], Any]:
    """Somebody who gives these replies, and what they were asked."""
    seen: list[Question] = []
    left = iter(replies)

    async def ask(question: Question) -> Any:
        seen.append(question)
        return next(left)

    return seen, ask


async def test_always_covers_the_tool_but_of_bash_that_command_with_all_its_arguments_alone(place: Path):
    seen, ask = answering(Always(), Always())
    asked = permissions(place, ask=ask)
    assert await asked(WRITE) is True
    assert seen[0].always == "every call of write_file"
    assert await asked(request("write_file", path="other", content="")) is True
    assert await asked(BASH) is True
    assert seen[1].always == "this command, with the very same arguments"
    assert await asked(request("bash", id="again", command="git push")) is True
    assert len(seen) == 2
    for other in ("git push ", "git push -f", "git push; ls", "git  push"):
        assert await decided(permissions_like(asked, place), request("bash", command=other)) is None
    for more in ({"directory": "src"}, {"background": True}, {"timeout": 9}):
        call = request("bash", command="git push", **more)
        assert await decided(permissions_like(asked, place), call) is None, more
    asked.forget(trust_of(WRITE))
    assert await decided(permissions_like(asked, place), WRITE) is None


def test_the_very_same_arguments_are_those_that_the_tool_would_see(place: Path):
    workspace = Workspace(place / "work")
    tools = bash_tools(workspace, Sandbox(workspace.root, "none"), background=Background())
    context = cast(PolicyContext, SimpleNamespace(tools=tools))

    def trust(**arguments: Any) -> SessionTrust:
        return trust_of(ApprovalRequest("x", "bash", arguments, arguments, True, context))

    plain = trust(command="make")
    assert trust(command="make", timeout=120, directory=None, background=False) == plain
    assert str(plain) == "bash: make"
    assert trust(command="make", timeout=9) == trust(timeout=9.0, command="make")
    others = [{"timeout": 9}, {"directory": "src"}, {"background": True}, {"unknown": 1}]
    assert len({plain, *(trust(command="make", **other) for other in others)}) == 5
    assert str(trust(command="make", background=True)) == 'bash: make {"background":true}'


def permissions_like(other: Permissions, place: Path) -> Permissions:
    made = permissions(place)
    made.trusted = other.trusted
    return made


async def test_every_answer_is_kept_with_its_reason(place: Path):
    rule = parse_rule("bash(git push *)")
    _, ask = answering(
        Once(), Once({"command": "ls"}, "use ls"), Refuse("not today"), Refuse(), ByRule((rule,), "project")
    )
    asked = permissions(place, ask=ask)
    answers = [
        await asked(request("bash", id=str(number), command=f"git push {number}")) for number in range(6)
    ]
    assert answers == [
        True, Approved({"command": "ls"}, "use ls"), Rejected("the user said no: not today"), Rejected("the user said no"),
        True, True,
    ]  # fmt: skip
    assert [decision.why for decision in reversed(asked.decisions)] == [
        "you allowed it", "you allowed it with other arguments: use ls", "the user said no: not today", "the user said no",
        "you allowed it with the rule bash(git push *)", "your rule bash(git push *) (this project)",
    ]  # fmt: skip
    assert [decision.allowed for decision in reversed(asked.decisions)] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert asked.why("nobody") is None
    await until(lambda: [saved.hits for saved in asked.rules.saved()] == [1])


async def test_five_parallel_calls_are_answered_one_by_one(place: Path):
    asked = permissions(place)
    calls = [request("bash", id=str(number), command=f"rm {number}") for number in range(5)]
    tasks = [asyncio.ensure_future(asked(call)) for call in calls]
    await until(lambda: len(asked.waiting) == 5)
    assert [question.request.call_id for question in asked.waiting] == ["0", "1", "2", "3", "4"]
    first = asked.waiting[0]
    for number in range(5):
        question = asked.waiting[0]
        assert question.request.call_id == str(number)
        assert asked.questions.answer(question, Once() if number % 2 else Refuse())
        assert not asked.questions.answer(question, Once())
    assert not asked.questions.answer(first, Once())
    assert [await task for task in tasks] == [Rejected("the user said no"), True] * 2 + [
        Rejected("the user said no")
    ]


async def test_what_always_or_another_mode_covers_is_no_longer_asked(place: Path):
    asked = permissions(place)
    writes = [
        asyncio.ensure_future(asked(request("write_file", id=str(n), path=f"{n}", content="")))
        for n in range(3)
    ]
    other = asyncio.ensure_future(asked(BASH))
    await until(lambda: len(asked.waiting) == 4)
    write = next(question for question in asked.waiting if question.request.name == "write_file")
    asked.questions.answer(write, Always())
    assert [await write for write in writes] == [True, True, True]
    assert [question.request for question in asked.waiting] == [BASH]
    asked.word = "off"
    assert await other is True
    assert asked.why(BASH.call_id) is not None


async def test_a_cancelled_run_withdraws_its_questions(place: Path):
    asked = permissions(place)
    changes: list[int] = []
    asked.changed = lambda: changes.append(len(asked.waiting))
    model = ScriptedModel([[ToolCall("c", "write_file", {"path": "x", "content": "y"})]])
    agent = Agent(
        "test:m",
        stream_fn=model,
        tools=write_tools(Workspace(place / "work")),
        approve=asked,
        approval_mode="on",
    )
    run = asyncio.ensure_future(agent.run("write"))
    await until(lambda: bool(asked.waiting))
    question = asked.waiting[0]
    agent.abort()
    result = await run
    assert result.stop_reason == "aborted"
    assert not asked.waiting
    assert not asked.questions.answer(question, Once())
    assert changes == [1, 0]
    assert not (place / "work" / "x").exists()


async def test_a_question_says_what_would_change(place: Path):
    seen, ask = answering(*[Once()] * 5)
    asked = permissions(place, ask=ask)
    (place / "work" / "image").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    for call in (
        WRITE,
        EDIT,
        DELETE,
        request("write_file", path="image", content="x"),
        request("write_file", path="new/deep/x", content="x"),
    ):
        await asked(call)
    assert [question.preview.summary for question in seen if question.preview] == [
        "creates src/b.py, 1 line", "changes src/a.py: +1 -1", "deletes src/a.py, 3 lines",
        "replaces image, which is an image (image/png)", "creates new/deep/x, 1 line",
    ]  # fmt: skip
    assert [question.is_destructive for question in seen] == [False, False, True, False, False]


async def test_nobody_is_asked_about_a_call_that_cannot_succeed(place: Path):
    asked = permissions(place)
    answer = await decided(
        asked, request("edit_file", path="src/a.py", edits=[{"old": "nowhere", "new": "x"}])
    )
    assert isinstance(answer, Rejected)
    assert "nowhere" in str(answer.reason)
    model = ScriptedModel([[ToolCall("c", "write_file", {"path": 3})], "Done."])
    tools = write_tools(Workspace(place / "work"))
    agent = Agent("test:m", stream_fn=model, tools=tools, approve=asked, approval_mode="on")
    await asyncio.wait_for(agent.run("write"), 60)
    result = agent.messages[-2]
    assert isinstance(result, ToolResultMessage)
    assert "content" in result.text
    assert "rejected" not in result.text
    found = asked.why("c")
    assert found is not None
    assert "invalid" in found.why


async def test_a_file_that_changed_meanwhile_is_asked_about_again(place: Path):
    path = place / "work" / "src" / "a.py"
    seen: list[Question] = []

    async def ask(question: Question) -> Any:
        seen.append(question)
        if len(seen) == 1:
            path.write_text("one\ntwo\nthree\nfour\n")
        return Once()

    asked = permissions(place, ask=ask)
    assert await asked(EDIT) is True
    assert len(seen) == 2
    assert not seen[0].notice
    assert "has changed" in seen[1].notice


@pytest.mark.parametrize(
    ("call", "rules"),
    [
        (request("bash", command="git status -s"), ["bash(git status *)"]),
        (request("bash", command="git commit -m 'a b'"), ["bash(git commit -m 'a b')"]),
        (request("bash", command="git commit -m 'a\nb'"), []),
        (request("bash", command="sudo ls"), []),
        (request("bash", command="curl x | sh"), []),
        (WRITE, ["write_file(src/**)"]),
        (request("write_file", path="x.py", content=""), ["write_file(x.py)"]),
        (request("write_file", path="../x.py", content=""), []),
        (request("write_file", path=".vscode/x", content=""), []),
        (DELETE, []),
        (request("weather", city="Oslo"), ["weather"]),
    ],
)
async def test_the_suggested_rule_fits_the_call(place: Path, call: ApprovalRequest, rules: list[str]):
    seen, ask = answering(Once())
    await permissions(place, ask=ask)(call)
    assert [str(rule) for rule in seen[0].suggested] == rules


async def test_no_rule_is_suggested_for_a_command_with_a_secret(place: Path):
    arguments = {"command": f"deploy --token=ghp_{'a1B2' * 9}"}
    context = cast(PolicyContext, SimpleNamespace(tools=()))
    call = ApprovalRequest("x", "bash", arguments, show_arguments(arguments), True, context)
    assert permissions(place).suggest(call) == ()


async def test_rules_that_cannot_be_saved_are_told_and_the_call_is_allowed_once(place: Path):
    (place / "permissions").mkdir()
    told: list[str] = []
    _, ask = answering(ByRule((parse_rule("bash(git push *)"),)))
    assert await permissions(place, ask=ask, tell=told.append)(BASH) is True
    assert len(told) == 2
    assert "the call is allowed this time" in told[1]


async def test_an_id_that_comes_twice_loses_no_decision(place: Path):
    asked = permissions(place, "off")
    for command in ("one", "two"):
        await asked(request("bash", id="call_0", command=command))
    assert [decision.call for decision in asked.decisions] == ['bash(command="two")', 'bash(command="one")']
    assert asked.why("call_0") == asked.decisions[0]


async def test_ten_megabytes_are_kept_as_one_short_line(place: Path):
    asked = permissions(place, "off")
    await asked(request("write_file", id="big", path="x", content="\x1b[2J\n" * 2_000_000))
    found = asked.why("big")
    assert found is not None
    assert len(found.call) <= 200
    assert found.call.isprintable()


def test_accept_edits_is_a_word_of_its_own():
    assert parse_approval("edits") == "edits"
    with pytest.raises(Exception, match="is now 'edits'"):
        parse_approval("accept-edits")


async def test_a_tool_of_the_same_name_without_a_path_asks_in_accept_edits(place: Path):
    @tool
    def write_file(text: str) -> str:
        """Write."""
        return text

    assert await decided(permissions(place, "edits"), request(write_file.name, text="x")) is None


async def test_rules_that_do_not_hold_are_told_at_once_and_each_only_once(place: Path):
    (place / "permissions").write_text("deny bash(git push\n")
    told: list[str] = []
    asked = permissions(place, "off", tell=told.append)
    assert len(told) == 1
    assert "permissions:1:" in told[0]
    (place / "permissions").write_text("deny bash(git push *)\n")
    (place / "permissions").chmod(0o664)
    assert await asked(BASH) is True
    assert await asked(BASH) is True
    assert len(told) == 2
    assert "chmod 600" in told[1]


async def test_a_rule_that_cannot_be_saved_for_a_directory_lets_the_call_run(place: Path):
    told: list[str] = []
    book = RuleBook("/work/n\udcffon", path=place / "permissions")
    asked = Permissions("smart", workspace=Workspace(place / "work"), rules=book, tell=told.append)
    answer = asyncio.ensure_future(asked(BASH))
    while not asked.waiting:
        await asyncio.sleep(0)
    asked.questions.answer(asked.waiting[0], ByRule((parse_rule("bash(git push *)"),)))
    assert await answer is True
    assert "the call is allowed this time" in told[0]


def test_no_rule_is_suggested_for_a_path_that_would_be_read_as_a_pattern(place: Path):
    asked = permissions(place)
    for path in ("**/x.py", "*", "a?/b.py", "**"):
        assert asked.suggest(request("write_file", path=path, content="")) == ()
    assert [str(rule) for rule in asked.suggest(WRITE)] == ["write_file(src/**)"]


def test_a_long_change_is_previewed_without_a_look_at_each_line_and_hides_its_secrets(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    looked: list[object] = []
    monkeypatch.setattr(
        previews, "show_arguments", lambda given: (looked.append(given), show_arguments(given))[1]
    )
    lines = [f"line {number}" for number in range(3_000)]
    lines[2_000] = "token ghp_" + "a1B2" * 9
    found = previews.preview(
        Workspace(place / "work"), "write_file", {"path": "new", "content": "\n".join(lines)}
    )
    assert found is not None
    assert found.diff is not None
    shown = [line.text for hunk in found.diff.hunks for line in hunk.lines]
    assert [number for number, text in enumerate(shown) if text != lines[number]] == [2_000]
    assert "ghp_" not in shown[2_000]
    assert len(looked) <= 100
