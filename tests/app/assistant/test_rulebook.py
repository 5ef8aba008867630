"""Saved rules: a private file of the user's, shared by processes, whose bad lines are reported."""

import stat
import threading
from pathlib import Path

import pytest

from swink.app.assistant.rulebook import RuleBook, RulesNotSaved
from swink.app.assistant.rules import CallRule, JudgedCall, parse_rule
from swink.system.places import NoHome

GIT = parse_rule("bash(git status *)")
TESTS = parse_rule("bash(make test)")


def book(tmp_path: Path, project: str = "/p/one") -> RuleBook:
    return RuleBook(project, path=tmp_path / "swink" / "permissions", clock=lambda: 100.0)


def test_a_project_has_its_own_rules_and_those_of_the_user(tmp_path: Path):
    one, two = book(tmp_path), book(tmp_path, "/p/two")
    one.add([GIT], "project")
    one.add([TESTS], "user")
    assert one.rules == [GIT, TESTS]
    assert two.rules == [TESTS]
    assert [(saved.rule, saved.scope) for saved in one.saved()] == [(GIT, "project"), (TESTS, "user")]
    assert one.denies(JudgedCall("bash", {"command": "git status"})) is None
    assert [used.scope for used in one.allows(JudgedCall("bash", {"command": "git status; make test"}))] == [
        "project",
        "user",
    ]


def test_the_file_is_private_and_nothing_else_is_left(tmp_path: Path):
    rules = book(tmp_path)
    rules.add([GIT], "project")
    rules.use(rules.allows(JudgedCall("bash", {"command": "git status"})))
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in rules.path.parent.iterdir()} == {
        "permissions": 0o600,
        "permissions.uses": 0o600,
    }


def test_bad_lines_are_reported_with_their_number_and_the_rest_applies(tmp_path: Path):
    rules = book(tmp_path)
    rules.path.parent.mkdir()
    rules.path.write_text(
        "# mine\nallow bash(git status *)\nallow bash(git *; rm *)\nbash(ls)\n\n[relative]\nallow ls\n[/p/one]\ndeny bash(rm *)\n"
        "allow bash(sudo *)\n"
    )
    rules.path.chmod(0o600)
    assert rules.rules == [parse_rule("deny bash(rm *)"), GIT]
    assert [problem.removeprefix(f"{rules.path}:").split(":")[0] for problem in rules.problems] == [
        "3",
        "4",
        "6",
        "10",
    ]


def test_adding_and_removing_leave_every_other_line_alone(tmp_path: Path):
    rules = book(tmp_path)
    rules.path.parent.mkdir()
    before = "# mine\nnonsense\nallow bash(git status *)  \n\n[/p/two]\nallow bash(git status *)\n# end\n"
    rules.path.write_text(before)
    rules.path.chmod(0o600)
    rules.add([TESTS, TESTS], "project")
    rules.add([TESTS], "project")
    rules.add([GIT], "user")
    text = rules.path.read_text()
    assert text == before + "\n[/p/one]\nallow bash(make test)\n"
    assert rules.remove(TESTS, "project")
    assert not rules.remove(TESTS, "project")
    assert rules.remove(GIT, "user")
    assert rules.path.read_text() == before.replace("allow bash(git status *)  \n", "", 1) + "\n[/p/one]\n"
    assert rules.rules == []


def test_a_project_whose_path_is_odd_keeps_its_rules(tmp_path: Path):
    for project in ("/p/with ]", "/p/line\nbreak", '/"quoted"', "/p/ ends "):
        rules = book(tmp_path, project)
        rules.add([GIT], "project")
        assert book(tmp_path, project).rules == [GIT]
    assert book(tmp_path, "/p").rules == []


def test_a_file_that_others_may_change_does_not_count(tmp_path: Path):
    rules = book(tmp_path)
    rules.add([GIT], "user")
    rules.path.chmod(0o622)
    other = book(tmp_path)
    assert other.rules == []
    assert "chmod 600" in other.problems[0]
    with pytest.raises(RulesNotSaved, match="nothing was changed"):
        other.add([TESTS], "user")
    rules.path.chmod(0o600)
    rules.path.write_bytes(b"\xff\xfe")
    assert book(tmp_path).problems


def test_what_another_process_saved_holds_at_once_and_uses_are_counted(tmp_path: Path):
    one, other = book(tmp_path), book(tmp_path)
    assert one.rules == []
    other.add([GIT], "project")
    assert one.rules == [GIT]
    call = JudgedCall("bash", {"command": "git status"})
    one.use(one.allows(call))
    other.use(other.allows(call))
    assert [(saved.hits, saved.last) for saved in one.saved()] == [(2, 100.0)]
    (one.path.parent / "permissions.uses").write_bytes(b"damaged")
    assert [(saved.hits, saved.last) for saved in one.saved()] == [(0, None)]


def test_two_at_once_lose_nothing_of_each_other(tmp_path: Path):
    def add(number: int) -> None:
        rules = book(tmp_path)
        for step in range(5):
            rules.add([CallRule(f"tool_{number}_{step}")], "project")

    # Locks are of the open file, so threads exclude each other as processes do.
    workers = [threading.Thread(target=add, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(book(tmp_path).rules) == 15


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "swink").write_text("a file")
    with pytest.raises(RulesNotSaved, match="nothing was changed"):
        book(tmp_path).add([GIT], "user")


async def test_without_a_place_for_settings_there_are_no_rules_and_calls_are_asked_about(
    monkeypatch: pytest.MonkeyPatch,
):
    def nowhere() -> Path:
        raise NoHome("no home")

    monkeypatch.setattr("swink.app.assistant.rulebook.config_dir", nowhere)
    rules = RuleBook("/p/one")
    assert rules.rules == []
    assert rules.saved() == []
    assert rules.problems == ("no home",)
    rules.use([])
