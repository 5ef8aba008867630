"""Which hosts the commands of the coding agent reach, and what a person is asked about the others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swink.app.assistant.allowances import entries
from swink.app.assistant.approvalmodes import APPROVAL_WORDS
from swink.app.assistant.networkrules import NetworkRules
from swink.app.assistant.packageindexes import find_indexes
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import (
    ABSENT,
    Always,
    AlwaysIndex,
    ByRule,
    DomainQuestion,
    Once,
    Refuse,
    Reply,
    domain_options,
)
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.settings import SandboxSettings
from swink.app.assistant.shellsettings import ShellSettings
from swink.app.assistant.toolcalls import SessionTrust
from swink.errors import MisuseError
from swink.tools.coding.wishes import Wish

PYPI = Wish("pypi.org", 443)
INSIDE = Wish("index.corp", 443, ("10.0.0.5",))


class Scene:
    """Rules for a folder, and a person who answers when the test says so."""

    def __init__(
        self, place: Path, network: Any = "ask", *rules: str, word: Any = "smart", **options: Any
    ) -> None:
        self.place = place
        self.told: list[str] = []
        self.book = RuleBook(place, path=place / "permissions")
        if rules:
            self.book.add([parse_rule(rule) for rule in rules], "project")
        self.permissions = Permissions(word, rules=self.book, **options)
        self.shell = ShellSettings(SandboxSettings(network=network))
        self.rules = NetworkRules(self.permissions, self.shell, place, self.told.append)

    def want(self, wish: Wish, command: str = "pip install x") -> "asyncio.Task[str]":
        return asyncio.create_task(asyncio.wait_for(self.rules.refuses(wish, command), 30))

    async def question(self, count: int = 1) -> DomainQuestion:
        async with asyncio.timeout(10):
            while (
                not self.permissions.domains.waiting
                or len(self.permissions.domains.waiting[0].commands) < count
            ):
                await asyncio.sleep(0.005)
        return self.permissions.domains.waiting[0]

    async def say(self, reply: Reply, count: int = 1) -> DomainQuestion:
        question = await self.question(count)
        self.permissions.domains.answer(question, reply)
        return question


async def test_the_question_names_command_and_domain_and_a_yes_is_for_this_command_alone(tmp_path: Path):
    scene = Scene(tmp_path)
    wanted = scene.want(PYPI, "pip install \u202ex --token=sk-ant-REDACTED")
    question = await scene.say(Once())
    assert await wanted == ""
    assert question.wish == PYPI
    assert "pip install" in question.commands[0]
    assert "\u202e" not in question.commands[0]
    again = scene.want(PYPI)
    await scene.say(Refuse("no packages"))
    assert await again == "the user said no: no packages"
    assert [(one.name, one.allowed) for one in scene.permissions.decisions] == [("net", False), ("net", True)]


async def test_a_yes_for_the_session_covers_that_name_at_that_address(tmp_path: Path):
    scene = Scene(tmp_path)
    wanted = scene.want(INSIDE)
    await scene.say(Always())
    assert await wanted == ""
    assert await scene.want(INSIDE) == ""
    assert await scene.want(Wish("index.corp", 443)) == ""
    for other in (Wish("index.corp", 443, ("10.0.0.6",)), Wish("index.corp", 8443, ("10.0.0.5",)), PYPI):
        asked = scene.want(other)
        await scene.say(Refuse())
        assert await asked == "the user said no"
    (trust,) = scene.permissions.trusted_hosts
    assert not scene.permissions.trusted
    assert f"always {trust}" in [entry.text for entry in entries(scene.permissions, 0.0)]
    assert str(trust) == "net: index.corp@10.0.0.5"
    scene.permissions.forget(trust)
    asked = scene.want(INSIDE)
    await scene.say(Refuse())
    assert await asked


async def test_a_saved_rule_holds_for_the_next_program_and_is_read_as_written(tmp_path: Path):
    scene = Scene(tmp_path)
    wanted = scene.want(INSIDE)
    question = await scene.question()
    await scene.say(ByRule(question.rules))
    assert await wanted == ""
    assert "allow net(index.corp@10.0.0.5)" in (tmp_path / "permissions").read_text()
    assert await Scene(tmp_path).want(INSIDE) == ""


async def test_the_package_index_is_one_answer_that_names_every_host(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text('[[tool.uv.index]]\nurl = "https://user:pw@index.corp/simple"\n')
    scene = Scene(tmp_path)
    wanted = scene.want(PYPI)
    question = await scene.say(AlwaysIndex())
    assert question.index == ("pypi.org", "files.pythonhosted.org", "index.corp")
    assert [option.key for option in domain_options(question)] == ["y", "a", "i", "p", "n", "r"]
    assert await wanted == ""
    assert await scene.want(Wish("files.pythonhosted.org", 443)) == ""
    assert await scene.want(Wish("index.corp", 443)) == ""
    other = scene.want(Wish("example.org", 443))
    assert (await scene.say(Refuse())).index == ()
    assert await other


async def test_trust_of_a_tool_with_the_name_of_these_rules_is_no_trust_of_a_host(tmp_path: Path):
    scene = Scene(tmp_path)
    scene.permissions.trusted[SessionTrust("net", "pypi.org")] = None
    wanted = scene.want(PYPI)
    await scene.say(Refuse())
    assert await wanted == "the user said no"


async def test_several_commands_that_want_a_host_are_one_question(tmp_path: Path):
    scene = Scene(tmp_path)
    first, second = scene.want(PYPI, "pip install a"), scene.want(PYPI, "pip install b")
    question = await scene.question(2)
    assert sorted(question.commands) == ["pip install a", "pip install b"]
    first.cancel()
    await asyncio.wait([first])
    assert question.commands == ["pip install b"]
    await scene.say(Once())
    assert await second == ""
    assert not scene.permissions.domains.waiting


async def test_a_question_goes_with_the_last_command_that_wants_it(tmp_path: Path):
    scene = Scene(tmp_path)
    wanted = [scene.want(PYPI, name) for name in "ab"]
    await scene.question(2)
    for task in wanted:
        task.cancel()
    await asyncio.wait(wanted)
    await asyncio.sleep(0)
    assert not scene.permissions.domains.waiting
    again = scene.want(PYPI)
    await scene.say(Once())
    assert await again == ""


@pytest.mark.parametrize("word", APPROVAL_WORDS)
@pytest.mark.parametrize("network", ["ask", "on", ("evil.test",)])
async def test_a_denied_domain_is_denied_in_every_mode(tmp_path: Path, word: str, network: Any):
    scene = Scene(
        tmp_path, network, "deny net(*.evil.test)", "deny net(evil.test)", "allow net(evil.test)", word=word
    )
    for name in ("evil.test", "x.evil.test"):
        assert await scene.want(Wish(name, 8080)) in (
            "the user's rule: deny net(*.evil.test)",
            "the user's rule: deny net(evil.test)",
        )
    assert scene.rules.has_denials
    assert any("was kept from evil.test:8080" in told for told in scene.told)


async def test_without_a_question_the_setting_that_would_allow_it_is_named(tmp_path: Path):
    async def nobody(question: DomainQuestion) -> Reply:
        return Refuse(by=ABSENT)

    how = '--network index.corp@10.0.0.5, or network = ["index.corp@10.0.0.5"] in [sandbox] of config.toml'
    for scene in (
        Scene(tmp_path, "off"),
        Scene(tmp_path, ("pypi.org",)),
        Scene(tmp_path, "ask", ask_domain=nobody),
    ):
        assert how in await scene.want(INSIDE)
        assert how in scene.told[0]
    assert "allows nothing" in await Scene(tmp_path, "ask", word="deny").want(INSIDE)


async def test_a_change_of_the_settings_answers_what_waits(tmp_path: Path):
    scene = Scene(tmp_path)
    wanted = scene.want(PYPI)
    await scene.question()
    scene.shell.choose("network", "off")
    scene.permissions.reconsider()
    assert "the network is off" in await wanted
    scene.shell.choose("network", "pypi.org,*.corp.test")
    assert await scene.want(PYPI) == ""
    assert "not among the domains" in await scene.want(Wish("example.org", 443))
    scene.shell.choose("network", "on")
    assert await scene.want(INSIDE) == ""
    assert await scene.want(Wish("metadata.google.internal", 80))


def test_rules_for_hosts_are_checked_when_they_are_written():
    assert parse_rule("deny net(*.evil.test)").line == "deny net(*.evil.test)"
    for wrong in ("net", "net()", "net(10.0.0.5)", "net(a@8.8.8.8)"):
        with pytest.raises(MisuseError):
            parse_rule(wrong)


def test_indexes_are_found_by_the_files_of_tool_chains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert find_indexes(tmp_path) == ()
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / ".npmrc").write_text("registry=https://npm.corp:8443/\n; see https://elsewhere.test\n")
    (tmp_path / "Cargo.toml").touch()
    (tmp_path / "go.mod").touch()
    monkeypatch.setenv("GOPROXY", "https://go.corp,direct")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(
        '[remote "o"]\n\turl = https://git.corp/x.git\n\turl = git@ssh.corp:x\n'
    )
    found = find_indexes(tmp_path)
    assert {
        "registry.npmjs.org",
        "npm.corp:8443",
        "index.crates.io",
        "proxy.golang.org",
        "go.corp",
        "git.corp",
    } <= {*found}
    assert not {"elsewhere.test", "ssh.corp"} & {*found}


HOSTS = st.sampled_from(["a.test", "b.test", "x.b.test"])
WISHES = st.builds(
    Wish, HOSTS, st.sampled_from([80, 8080]), st.sampled_from([(), ("10.0.0.1",), ("10.0.0.1", "10.0.0.2")])
)
PATTERNS = st.sampled_from(
    ["a.test", "*.b.test", "b.test:8080", "a.test@10.0.0.1", "b.test@10.0.0.1,10.0.0.2"]
)


@given(
    wish=WISHES,
    network=st.one_of(st.sampled_from(["ask", "off"]), st.lists(PATTERNS, min_size=1, max_size=3).map(tuple)),
    allow=st.lists(PATTERNS, max_size=3),
    deny=st.lists(st.sampled_from(["a.test", "*.b.test", "b.test:8080"]), max_size=2),
)
def test_what_is_reached_unasked_is_named_by_a_setting_or_a_rule_and_denied_by_none(
    tmp_path_factory: pytest.TempPathFactory, wish: Wish, network: Any, allow: list[str], deny: list[str]
):
    place = tmp_path_factory.mktemp("rules")
    scene = Scene(
        place, network, *[f"allow net({text})" for text in allow], *[f"deny net({text})" for text in deny]
    )
    verdict = scene.rules.judge(wish)
    named = allow if network == "ask" else () if network == "off" else network
    names = [pattern.partition("@")[0].partition(":")[0] for pattern in named]
    is_named = any(wish.name == name or (name[:2] == "*." and wish.name.endswith(name[1:])) for name in names)
    addresses = {part for pattern in named for part in pattern.partition("@")[2].split(",")}
    if verdict == "":
        assert is_named
        assert {*wish.addresses} <= addresses
    if any(wish.name == name or (name[:2] == "*." and wish.name.endswith(name[1:])) for name in deny):
        assert verdict
