"""What a skill is allowed by its allowed-tools: asked for once, never more than a person could allow."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.agent import Agent
from swink.agent.policy import ApprovalRequest, PolicyContext, Rejected
from swink.app.assistant import allowances
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.allowedtools import read_allowed_tools
from swink.app.assistant.approvalmodes import ApprovalWord
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import ABSENT, Once, Question, Refuse, Reply, answer_options, default_key
from swink.app.assistant.planning import plan_tools
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.skillpermissions import SkillPermissions
from swink.app.assistant.skillplaces import FoundSkills
from swink.app.assistant.trust import answer, look_up
from swink.app.cli.terminalquestions import TerminalPerson, format_question
from swink.messages import ModelSpec, ToolCall, ToolResultMessage, UserMessage
from swink.testing import ScriptedModel
from swink.tools.coding.workspace import Workspace
from swink.tools.skills import Skill, enter_text

LARGE = ModelSpec("test", "large", context_window=200_000)
linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program of Linux")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def project(home: Path) -> Path:
    place = home.parent / "project"
    (place / ".git").mkdir(parents=True)
    (place / "main.py").write_text("x\n")
    answer(look_up(place), "y")
    return place


def made(place: Path, allowed: str, name: str = "forms") -> None:
    (place / name).mkdir(parents=True, exist_ok=True)
    head = f"name: {name}\ndescription: Fills in forms.\nallowed-tools: {allowed}"
    (place / name / "SKILL.md").write_text(f"---\n{head}\n---\nDo it.\n")


class Person:
    """Says the same to every question about a skill, and no to any other."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.offers: list[Question] = []
        self.others: list[str] = []

    async def __call__(self, question: Question) -> Reply:
        if question.offers:
            self.offers.append(question)
            return self.reply
        if question.request.name == "skill":
            return Once()
        self.others.append(str(question.request.arguments.get("command") or question.request.name))
        return Refuse()


YES, NO, NOBODY = Once(), Refuse(), Refuse(by=ABSENT)
Open = Callable[..., Awaitable[tuple[AgentEnvironment, Permissions, Person]]]


@pytest.fixture
def opened(project: Path) -> Open:
    async def open_one(
        reply: Reply = YES, word: ApprovalWord = "smart", rules: tuple[str, ...] = (), hooks: Any = ()
    ) -> tuple[AgentEnvironment, Permissions, Person]:
        settings = UserSettings(project.parent / "config.toml", hooks=hooks)
        environment = AgentEnvironment(project, look_up(project), settings)
        person, book = Person(reply), RuleBook(project, path=project.parent / "permissions")
        book.add([parse_rule(rule) for rule in rules], "user")
        permissions = Permissions(word, workspace=Workspace(project), rules=book, ask=person)
        environment.attend(permissions)
        await environment.open()
        return environment, permissions, person

    return open_one


def enters(name: str = "forms", id: str = "s") -> list[ToolCall]:
    return [ToolCall(id, "skill", {"name": name})]


def bash(command: str, id: str = "b") -> list[ToolCall]:
    return [ToolCall(id, "bash", {"command": command})]


async def run(
    environment: AgentEnvironment, permissions: Permissions, *script: Any, **terms: Any
) -> list[ToolResultMessage]:
    """The results of the calls of a new conversation."""
    model = ScriptedModel([*script, "done"])
    agent = environment.make_agent(LARGE, stream_fn=model, approve=permissions, **terms)
    await agent.run("go on")
    return [message for message in agent.messages if isinstance(message, ToolResultMessage)]


# ── what it never allows ──


DENIED = ["deny bash(git log *)", "deny bash(echo *)", "deny write_file", "deny edit_file(src/**)"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("bash", {"command": "git log --oneline"}),
    ("bash", {"command": "cd src && git log"}),
    ("bash", {"command": "echo hi; ls"}),
    ("write_file", {"path": "new.txt", "content": "x"}),
    ("edit_file", {"path": "src/a.py", "edits": [{"old": "a", "new": "b"}]}),
]
NAMES = """Bash Bash(git:*) Bash(git_log_--oneline) Bash(echo_hi) Bash(*) Write Edit Edit(src/**) bash write_file
edit_file(src/a.py) bash(echo_hi) * mcp__x allow_bash Bash(cd_src_&&_git_log) Bash(echo_hi;_ls)"""
words = st.one_of(
    st.sampled_from([name.replace("_", " ") if "(" in name else name for name in NAMES.split()]),
    st.text(max_size=30),
    st.builds("Bash({})".format, st.text("git loecho*: ;&|-()", max_size=30)),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("skills") / "work"
    (place / "src").mkdir(parents=True)
    (place / "src/a.py").write_text("a\n")
    RuleBook(place, path=place.parent / "permissions").add([parse_rule(rule) for rule in DENIED], "user")
    return place


def entered(skill: Skill, name: str, arguments: dict[str, Any]) -> ApprovalRequest:
    """A call in a conversation that the skill was entered into."""
    context = SimpleNamespace(tools=(), run=None, messages=[UserMessage(enter_text(skill))])
    return ApprovalRequest("1", name, arguments, arguments, True, cast(PolicyContext, context))


def attended(
    place: Path, skill: Skill, *, rules: str = "none"
) -> tuple[Permissions, SkillPermissions, Person]:
    book = RuleBook(place, path=place.parent / rules)
    person = Person(YES)
    permissions = Permissions("on", workspace=Workspace(place), rules=book, ask=person)
    agent = Agent("test:m", stream_fn=ScriptedModel([]))
    parts: Any = {"skills": lambda: FoundSkills([skill]), "agent": lambda: agent, "is_hooked": lambda: False}
    by_skill = SkillPermissions(permissions, tell=lambda text: None, **parts)
    permissions.ask_first(by_skill.answer)
    return permissions, by_skill, person


@tried(20, 1000)
@given(allowed=st.lists(words, max_size=6))
def test_whatever_a_skill_asks_for_a_call_that_rules_deny_is_denied(allowed: list[str], place: Path):
    skill = Skill("forms", "d", "b", place / "forms/SKILL.md", {"allowed-tools": " ".join(allowed)})

    async def denied() -> None:
        permissions, by_skill, person = attended(place, skill, rules="permissions")
        await by_skill.offer(skill)
        for name, arguments in CALLS:
            assert isinstance(await permissions(entered(skill, name, arguments)), Rejected)
        assert person.others == []

    asyncio.run(denied())


@tried(10, 150)
@given(allowed=st.lists(words, max_size=6))
def test_what_a_skill_is_allowed_is_what_the_person_was_shown(allowed: list[str], place: Path):
    skill = Skill("forms", "d", "b", place / "forms/SKILL.md", {"allowed-tools": " ".join(allowed)})

    async def shown() -> None:
        permissions, by_skill, person = attended(place, skill)
        await by_skill.offer(skill)
        for name, arguments in CALLS:
            answer = await permissions(entered(skill, name, arguments))
            lines = [] if not person.offers else person.offers[0].request.shown["allowed-tools"].split("\n")
            if not any(line.startswith(name) for line in lines):
                assert isinstance(answer, Rejected), (name, lines)

    asyncio.run(shown())


async def test_an_agent_whose_own_conversation_has_no_such_skill_is_allowed_nothing_by_it(place: Path):
    skill = Skill("forms", "d", "b", place / "forms/SKILL.md", {"allowed-tools": "Bash(touch:*)"})
    other = Skill("other", "d", "b", place / "other/SKILL.md")
    permissions, by_skill, person = attended(place, skill)
    await by_skill.offer(skill)
    assert await permissions(entered(skill, "bash", {"command": "touch a"})) is True
    assert isinstance(await permissions(entered(other, "bash", {"command": "touch b"})), Rejected)
    assert person.others == ["touch b"]


@pytest.mark.parametrize("reply", [NO, NOBODY])
async def test_without_a_yes_nothing_is_allowed_and_nobody_is_asked_again(
    home: Path, opened: Open, reply: Reply
):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, person = await opened(reply)
    results = await run(environment, permissions, enters(), bash("touch hi"), enters(), bash("touch ho"))
    assert [result.is_error for result in results] == [False, True, False, True]
    assert person.others == ["touch hi", "touch ho"]
    assert len(person.offers) == 1


async def test_without_a_terminal_it_is_said_once_and_nobody_is_asked(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    async def nobody(question: str) -> str | None:
        return None

    monkeypatch.setattr("swink.app.cli.terminalquestions._answer_to", nobody)
    made(home / ".agents/skills", "Bash(touch:*)")
    environment = AgentEnvironment(project, look_up(project))
    permissions = TerminalPerson().permissions("smart", project)
    environment.attend(permissions)
    await environment.open()
    results = await run(environment, permissions, enters(), bash("touch hi"), enters(), bash("touch ho"))
    assert [result.is_error for result in results] == [False, True, False, True]
    said = capsys.readouterr().err
    assert said.count("Allow what the skill forms asks for? There is no terminal to ask on") == 1


async def test_a_skill_that_was_not_entered_allows_nothing(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, person = await opened()
    await run(environment, permissions, bash("touch hi"))
    assert (person.offers, person.others) == ([], ["touch hi"])


@pytest.mark.parametrize("word", ["off", "deny"])
async def test_a_mode_that_asks_nothing_is_not_asked_about_a_skill(
    home: Path, opened: Open, word: ApprovalWord
):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, person = await opened(YES, word)
    results = await run(environment, permissions, enters(), bash("touch hi"))
    assert (person.offers, person.others) == ([], [])
    assert results[-1].is_error == (word == "deny")


async def test_the_mode_deny_holds_after_a_yes(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, _ = await opened()
    model = ScriptedModel([enters(), "entered", bash("touch hi"), "done"])
    agent = environment.make_agent(LARGE, stream_fn=model, approve=permissions)
    await agent.run("enter it")
    permissions.word = "deny"
    await agent.run("say hi")
    assert "allows no call that needs approval" in agent.messages[-2].text


@pytest.mark.parametrize(
    "command", ["rm -r src", "git push", "echo hi > x", "python3 -c 1", "echo $(ls)", "curl -T x http://h"]
)
async def test_what_destroys_publishes_or_is_not_understood_is_asked_about(
    home: Path, opened: Open, command: str
):
    made(home / ".agents/skills", "Bash")
    environment, permissions, person = await opened()
    await run(environment, permissions, enters(), bash(command))
    assert len(person.offers) == 1
    assert person.others == [command]


@linux
async def test_a_whole_command_that_a_skill_names_runs_also_if_it_may_destroy_something(
    home: Path, project: Path, opened: Open
):
    (project / "do.sh").write_text("echo done > out.txt")
    made(home / ".agents/skills", "Bash(sh do.sh)")
    environment, permissions, person = await opened()
    await run(environment, permissions, enters(), bash("sh do.sh"), bash("sh do.sh now"))
    assert person.others == ["sh do.sh now"]
    assert (project / "out.txt").read_text() == "done\n"


async def test_a_caution_is_put_to_the_person(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(git init) Bash(git remote add o http://h/x) Bash")
    environment, permissions, person = await opened()
    commands = ["git init", "git remote add o http://h/x"]
    await run(environment, permissions, enters(), *map(bash, commands))
    assert person.others == commands


async def test_a_doubt_about_a_denial_is_put_to_the_person(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(echo $HOME) Bash(env ls) Bash")
    environment, permissions, person = await opened(rules=("deny bash(ls secret *)",))
    await run(environment, permissions, enters(), bash("env -S 'ls x'"))
    assert person.others == ["env -S 'ls x'"]


async def test_files_that_other_programs_obey_are_asked_about(home: Path, project: Path, opened: Open):
    made(home / ".agents/skills", "Edit Write")
    (project / "way").symlink_to(".git")
    environment, permissions, person = await opened()
    paths = ["notes.txt", ".git/config", "way/config", ".envrc", ".vscode/settings.json"]
    calls = [[ToolCall("w", "write_file", {"path": path, "content": "x"})] for path in paths]
    results = await run(environment, permissions, enters(), *calls)
    assert len(person.others) == len(paths) - 1
    assert [result.is_error for result in results[1:]] == [False, True, True, True, True]


async def test_hidden_places_stay_hidden(home: Path, opened: Open):
    made(home / ".agents/skills", "Read Bash(cat:*) Write")
    (home / ".config/swink").mkdir(parents=True, exist_ok=True)
    (home / ".config/swink/keys").write_text("SECRET")
    environment, permissions, _ = await opened(word="on")
    path = str(home / ".config/swink/keys")
    reading = [ToolCall("r", "read_file", {"path": path})]
    results = await run(environment, permissions, enters(), reading, bash(f"cat {path}"))
    assert not any("SECRET" in result.text for result in results)


async def test_plan_mode_has_no_more_tools_for_a_skill(home: Path, project: Path, opened: Open):
    made(home / ".agents/skills", "Bash Write")
    environment, permissions, _ = await opened()
    writing = [ToolCall("w", "write_file", {"path": "a.txt", "content": "x"})]
    model = ScriptedModel([enters(), writing, bash("echo hi > b.txt"), "done"])
    agent = environment.make_agent(LARGE, stream_fn=model, approve=permissions)
    agent.tools = plan_tools(agent.tools)
    await agent.run("go on")
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert [result.is_error for result in results] == [False, True, True]
    assert not (project / "a.txt").exists()


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_hook_that_denies_is_not_lifted(home: Path, opened: Open, event: str):
    made(home / ".agents/skills", "Bash(touch:*)")
    denies = 'echo \'{"hookSpecificOutput": {"hookEventName": "PreToolUse", '
    denies += '"permissionDecision": "deny", "permissionDecisionReason": "NEVER"}}\''
    if event == "PermissionRequest":
        denies = "echo NEVER >&2; exit 2"
    hook = {"event": event, "matcher": "bash", "command": denies}
    environment, permissions, person = await opened(hooks=(hook,))
    results = await run(environment, permissions, enters(), bash("touch hi"))
    assert results[-1].is_error
    assert "NEVER" in results[-1].text
    assert person.others == []


# ── what cannot be said here ──


def read(allowed: str) -> tuple[list[str], tuple[str, ...]]:
    found = read_allowed_tools(Skill("x", "d", "b", Path("/p/x/SKILL.md"), {"allowed-tools": allowed}))
    return [str(rule) for rule in found.rules], found.problems


@pytest.mark.parametrize(
    ("allowed", "why"),
    [
        ("Bash(python:*)", "would allow anything"),
        ("Bash(git", "is no rule"),
        ("Bash(git*)", "elsewhere than at the end"),
        ("*", "is no rule"),
        ("WebFetch(domain:example.com)", "takes no pattern"),
        ("Write(/etc/hosts)", "an absolute path"),
        ("Edit(~/notes)", "an absolute path"),
        ("NotebookEdit", "no tool like"),
        ("net(pypi.org)", "a skill allows no hosts"),
        ("Bash(echo\u202e x)", "cannot be shown"),
        ("mcp__*", "no rule for a server"),
    ],
)
def test_what_cannot_be_translated_allows_nothing_and_says_why(allowed: str, why: str):
    rules, problems = read(f"Read {allowed}")
    assert rules == ["read_file"]
    assert len(problems) == 1
    assert why in problems[0]


def test_names_are_read_as_published_with_commas_as_lists_and_in_our_own_words():
    published = ["bash(git *)", "bash(git log)", "read_file", "edit_file", "write_file", "mcp(github)", "a_b"]
    text = "Bash(git:*) Bash(git log), Read  Edit,mcp__github__* mcp__a__b TodoWrite Task"
    assert read(text) == (published, ())
    assert read("bash(git log *) edit_file(src/**) mcp(gh)")[0] == [
        "bash(git log *)", "edit_file(src/**)", "mcp(gh)"
    ]  # fmt: skip
    several = Skill("x", "d", "b", Path("/p"), {"allowed-tools": ["Bash(git add *)", "Grep"]})
    assert [str(rule) for rule in read_allowed_tools(several).rules] == ["bash(git add *)", "search_text"]


async def test_what_cannot_be_had_is_told_once_and_not_asked_about(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(python:*) Foo")
    environment, permissions, person = await opened()
    await run(environment, permissions, enters(), enters(), bash("python x.py"))
    await run(environment, permissions, enters())
    told = [notice for notice in environment.take_notices() if "asks to be allowed" in notice]
    assert len(told) == 1
    assert "Bash(python:*)" in told[0]
    assert "Foo" in told[0]
    assert person.offers == []


async def test_what_is_not_asked_about_anyway_leads_to_no_question(home: Path, opened: Open):
    made(home / ".agents/skills", "Read Grep Glob Bash(touch:*)")
    environment, permissions, person = await opened(rules=("bash(touch *)",))
    await run(environment, permissions, enters(), bash("touch hi"))
    assert (person.offers, person.others) == ([], [])
    environment, permissions, person = await opened(word="on")
    await run(environment, permissions, enters())
    assert len(person.offers) == 1


# ── what it allows ──


@linux
async def test_after_a_yes_matching_calls_run_and_say_why(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(touch:*) Write")
    environment, permissions, person = await opened()
    writing = [ToolCall("w", "write_file", {"path": "new.txt", "content": "x"})]
    results = await run(environment, permissions, enters(), bash("touch hi"), writing, bash("mkdir x", "d"))
    assert [result.is_error for result in results] == [False, False, False, True]
    assert person.others == ["mkdir x"]
    decision = permissions.why("b")
    assert decision is not None
    assert decision.why == "you allowed the skill forms bash(touch *)"


async def test_the_question_says_what_is_asked_for_and_no_is_its_default(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash Edit(src/**)")
    environment, permissions, person = await opened()
    await run(environment, permissions, enters())
    question = person.offers[0]
    assert question.title == "Allow what the skill forms asks for?"
    assert question.request.shown["allowed-tools"] == (
        "bash (every call)\nedit_file(src/**)\nwrite_file(src/**)"
    )
    assert [option.key for option in answer_options(question)] == ["y", "n"]
    assert default_key(question) == "n"
    assert "│ bash (every call)" in format_question(question)


async def test_several_agents_that_enter_it_at_once_ask_once(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, person = await opened()
    environment.make_agent(LARGE, stream_fn=ScriptedModel([]), approve=permissions)
    assert environment.skills is not None
    assert environment.skill_permissions is not None
    skill, by_skill = environment.skills.skills["forms"], environment.skill_permissions
    await asyncio.gather(*(by_skill.offer(skill) for _ in range(5)))
    assert len(person.offers) == 1


async def test_a_question_that_is_cancelled_allows_nothing_and_comes_again(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, _, _ = await opened()
    permissions = Permissions(workspace=Workspace(environment.directory))
    environment.attend(permissions)
    agent = environment.make_agent(
        LARGE,
        stream_fn=ScriptedModel([enters(), enters(), bash("touch hi"), "done"]),
        approve=permissions,
    )
    task = asyncio.ensure_future(agent.run("enter it"))
    assert (await asked(permissions)).offers
    agent.abort()
    await task
    assert permissions.waiting == ()
    assert permissions.skills is not None
    assert permissions.skills.grants == []
    task = asyncio.ensure_future(agent.run("enter it"))
    for expects_offer in (True, False):
        question = await asked(permissions)
        assert bool(question.offers) == expects_offer
        permissions.questions.answer(question, NO)
    await task


async def asked(permissions: Permissions) -> Question:
    async with asyncio.timeout(20):
        while not permissions.waiting:
            await asyncio.sleep(0)
    return permissions.waiting[0]


# ── how long ──


def conversation_of(environment: AgentEnvironment, permissions: Permissions, script: list[Any]) -> Agent:
    return environment.make_agent(LARGE, stream_fn=ScriptedModel(script), approve=permissions)


async def test_in_another_conversation_it_is_gone_and_asked_for_again(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, person = await opened()
    await run(environment, permissions, enters())
    await run(environment, permissions, bash("touch hi"))
    assert person.others == ["touch hi"]
    assert permissions.skills is not None
    assert permissions.skills.grants == []
    await run(environment, permissions, enters(), bash("touch ho"))
    assert len(person.offers) == 2
    assert person.others == ["touch hi"]


@pytest.mark.parametrize(("kept", "is_gone"), [(1, True), (3, False)])
async def test_a_fork_before_it_has_nothing_of_it_and_a_later_one_has(
    home: Path, opened: Open, kept: int, is_gone: bool
):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, person = await opened()
    agent = conversation_of(environment, permissions, [enters(), "entered", bash("touch hi"), "done"])
    await agent.run("enter it")
    environment.agent = fork = agent.copy(messages=list(agent.messages)[:kept])
    await fork.run("say hi")
    assert person.others == (["touch hi"] if is_gone else [])


async def test_a_skill_that_asks_for_something_else_asks_again(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, person = await opened()
    script = [
        enters(),
        "entered",
        bash("touch hi"),
        "x",
        enters(),
        bash("mkdir -p x"),
        bash("touch ho"),
        "done",
    ]
    agent = conversation_of(environment, permissions, script)
    await agent.run("enter it")
    made(home / ".agents/skills", "Bash(mkdir:*)")
    await environment.open()
    await agent.run("say hi")
    assert person.others == ["touch hi"]
    await agent.run("again")
    assert len(person.offers) == 2
    assert person.others == ["touch hi", "touch ho"]


async def test_permissions_show_it_and_can_take_it_back(home: Path, opened: Open):
    made(home / ".agents/skills", "Bash(touch:*)")
    environment, permissions, person = await opened()
    agent = conversation_of(
        environment, permissions, [enters(), "entered", enters(), bash("touch hi"), "done"]
    )
    await agent.run("enter it")
    entry = next(each for each in allowances.entries(permissions, 0.0) if each.kind == "trust")
    assert entry.text == "always bash(touch *)"
    assert "the skill forms" in entry.about
    assert allowances.remove(permissions, entry)
    assert all(each.kind != "trust" for each in allowances.entries(permissions, 0.0))
    await agent.run("say hi")
    assert person.others == ["touch hi"]
    assert len(person.offers) == 1
