"""Level, network and further roots of the shell: who may say what, and a project that can only take away."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from commandscene import Scene
from hypothesis import given
from hypothesis import strategies as st

from swink.agent.policy import ApprovalRequest, PolicyContext
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Once, Question
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.settings import SandboxSettings, UserSettings, load_settings
from swink.app.assistant.shellsettings import ShellSettings, narrow, parse_network
from swink.app.assistant.trust import decided, look_up
from swink.errors import MisuseError
from swink.messages import ToolCall
from swink.system.places import config_dir
from swink.tools.coding.backends import USUAL, find_machine_trouble
from swink.tools.coding.wishes import Wish, allowed_by
from swink.tools.coding.workspace import Workspace

LISTED = ("pypi.org", "*.corp.test")


@pytest.mark.parametrize(
    ("user", "project", "left", "beyond"),
    [
        ({"network": "ask"}, {"network": "off"}, "off", False),
        ({"network": "on"}, {"network": "ask"}, "ask", False),
        ({"network": "on"}, {"network": ["pypi.org"]}, ("pypi.org",), False),
        ({"network": "ask"}, {"network": "on"}, "ask", True),
        ({"network": "ask"}, {"network": ["evil.test"]}, "ask", True),
        ({"network": "off"}, {"network": "ask"}, "off", True),
        ({"network": LISTED}, {"network": ["x.corp.test", "evil.test"]}, ("x.corp.test",), True),
        ({"network": LISTED}, {"network": "ask"}, LISTED, True),
        ({"network": LISTED}, {"network": ["*.corp.test"]}, ("*.corp.test",), False),
        ({"network": ("x.corp.test",)}, {"network": ["*.corp.test"]}, (), True),
    ],
)
def test_the_network_of_a_project_is_within_the_users(user: Any, project: Any, left: Any, beyond: bool):
    now, told = narrow(SandboxSettings(**user), project)
    assert (now.network, bool(told)) == (left, beyond)
    assert not told or "it is not taken" in told[0]


def test_level_home_and_roots_of_a_project_are_within_the_users():
    assert narrow(SandboxSettings(level="none"), {"level": "workspace"})[0].level == "workspace"
    now, told = narrow(
        SandboxSettings(writable=("/a", "/b")), {"level": "none", "writable": ["/b", "/c"], "home": True}
    )
    assert (now.level, now.writable, now.home, len(told)) == ("workspace", ("/b",), False, 3)


NETWORKS = st.one_of(
    st.sampled_from(["ask", "off", "on"]),
    st.lists(st.sampled_from(["a.test", "*.a.test", "b.test:8080", "b.test@10.0.0.1"]), max_size=3).map(
        tuple
    ),
)
_ORDER = {"off": 0, "ask": 1, "on": 2}


@given(NETWORKS, NETWORKS, st.sampled_from(["a.test", "x.a.test", "b.test"]), st.sampled_from([443, 8080]))
def test_narrowing_never_reaches_more_unasked_nor_asks_where_nobody_is_to_be(
    user: Any, project: Any, name: str, port: int
):
    left = narrow(SandboxSettings(network=user), {"network": project})[0].network
    wish = Wish(name, port)
    if isinstance(left, tuple):
        assert user == "on" or not allowed_by(left, wish) or allowed_by(user, wish)
    else:
        assert _ORDER[left] <= (_ORDER[user] if isinstance(user, str) else 0)


def test_words_and_domains_are_checked_where_they_are_written():
    assert parse_network("pypi.org, *.corp.test") == ("pypi.org", "*.corp.test")
    for wrong in ("sometimes", "", "8.8.8.8", "a.test@8.8.8.8"):
        with pytest.raises(MisuseError):
            parse_network(wrong)
    with pytest.raises(MisuseError, match="workspace, none"):
        ShellSettings().choose("level", "open")


def test_a_wrong_domain_in_the_settings_is_told_and_nothing_is_reached():
    config_dir().mkdir(parents=True, exist_ok=True)
    path = config_dir() / "config.toml"
    path.write_text('[sandbox]\nnetwork = ["8.8.8.8"]\n')
    try:
        settings = load_settings()
    finally:
        path.unlink()
    assert settings.sandbox.network == "off"
    assert "line 2" in settings.problems[0]


def environment(place: Path, rules: Path, *, is_trusted: bool = True, **sandbox: Any) -> AgentEnvironment:
    settings = UserSettings(place / "config.toml", sandbox=SandboxSettings(**sandbox))
    made = AgentEnvironment(place, decided(look_up(place), is_trusted), settings)
    made.attend(Permissions(rules=RuleBook(place, path=rules)))
    return made


def bash_of(made: AgentEnvironment) -> str:
    return next(tool.description for tool in made.tools() if tool.name == "bash")


async def test_the_settings_take_effect_and_a_change_in_the_session_too(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    rules = tmp_path / "permissions"
    made = environment(work, rules)
    assert "asked about each domain" in bash_of(made)
    made.shell.choose("network", "off")
    assert "there is no network" in bash_of(made)
    made.shell.choose("network", "on")
    assert "The network can be used" in bash_of(made)
    RuleBook(work, path=rules).add([parse_rule("deny net(evil.test)")], "user")
    assert "by HTTP and HTTPS only" in bash_of(made)
    made.shell.choose("level", "none")
    assert "not sandboxed" in bash_of(made)


async def test_a_trusted_project_narrows_and_what_it_wants_beyond_is_told_once(tmp_path: Path):
    work = tmp_path / "work"
    (work / ".swink").mkdir(parents=True)
    (work / ".swink" / "config.toml").write_text(
        'theme = "dark"\n[sandbox]\nnetwork = "off"\nlevel = "none"\n'
    )
    made = environment(work, tmp_path / "permissions")
    await made.open()
    await made.open()
    told = [notice for notice in made.take_notices() if ".swink/config.toml" in notice]
    assert len(told) == 2
    assert (made.shell.now.network, made.shell.now.level) == ("off", "workspace")
    made.shell.choose("network", "on")
    assert made.shell.now.network == "off"
    (work / ".swink" / "config.toml").write_text("[sandbox]\nnetwork = 5\n")
    await made.open()
    assert any("cannot be used" in notice for notice in made.take_notices())
    assert made.shell.now.network == "off"
    stranger = environment(work, tmp_path / "permissions", is_trusted=False)
    await stranger.open()
    assert stranger.shell.now.network == "ask"


async def test_further_roots_are_for_tools_and_for_the_judge_and_what_cannot_be_is_told_once(tmp_path: Path):
    work, library = tmp_path / "work", tmp_path / "library"
    work.mkdir()
    library.mkdir()
    asked = Permissions(
        "edits", workspace=Workspace(work), rules=RuleBook(work, path=tmp_path / "permissions")
    )
    chosen = SandboxSettings(writable=(str(library), str(tmp_path), str(tmp_path / "gone")))
    made = AgentEnvironment(work, settings=UserSettings(tmp_path / "config.toml", sandbox=chosen))
    made.attend(asked)
    for _ in range(2):
        assert f"by absolute paths: {library}." in bash_of(made)
    assert len([notice for notice in made.take_notices() if "cannot be written" in notice]) == 2
    context = cast(PolicyContext, SimpleNamespace(tools=(), run=None))
    for name, is_unasked in (("a.py", True), (".vscode/settings.json", False), ("../a.py", False)):
        arguments = {"path": f"{library}/{name}", "content": "x"}
        call = asyncio.ensure_future(
            asked(ApprovalRequest(name, "write_file", arguments, arguments, True, context))
        )
        while not call.done() and not asked.waiting:
            await asyncio.sleep(0.01)
        assert call.done() == is_unasked, name
        call.cancel()
        await asyncio.wait([call])
    made.shell.choose("writable", str(work))
    with pytest.raises(MisuseError, match="no directory"):
        made.shell.choose("writable", str(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("name", "before", "now"), [("level", "none", "workspace"), ("network", "on", "ask")]
)
async def test_a_setting_of_the_shell_does_not_answer_for_the_tools_of_the_turn_it_was_changed_in(
    tmp_path: Path, name: str, before: str, now: str
):
    """They were made before it, and run commands as it was."""
    (work := tmp_path / "work").mkdir()
    (work / "notes.txt").write_text("x")

    def narrow_it(question: Question) -> Once:
        scene.environment.shell.choose(name, now)
        return Once()

    scene = Scene(work, word="sandboxed", reply=narrow_it)
    scene.environment.shell.choose(name, before)
    commands = ["touch one", "touch two"]
    first = [ToolCall(command, "bash", {"command": command}) for command in commands]
    later = [ToolCall("later", "bash", {"command": "touch three"})]
    if await find_machine_trouble(USUAL, network=False):
        pytest.skip("no sandbox works here")
    await scene.answer(first, later)
    assert [question.request.arguments["command"] for question in scene.asked] == commands
    assert (work / "three").exists()
