"""What is allowed and why, for people to read and to remove."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from swink.agent.policy import ApprovalRequest, PolicyContext
from swink.app.assistant.allowances import ago, entries, remove
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import JudgedCall, parse_rule
from swink.app.assistant.toolcalls import SessionTrust


async def test_the_list_says_what_holds_and_why_calls_ran_and_its_rules_can_be_removed(tmp_path: Path):
    book = RuleBook(tmp_path, path=tmp_path / "permissions", clock=lambda: 1_000.0)
    book.add([parse_rule("bash(git status *)")], "project")
    book.add([parse_rule("deny bash(git push *)")], "user")
    book.use(book.allows(JudgedCall("bash", {"command": "git status"})))
    permissions = Permissions("deny", rules=book, clock=lambda: 1_000.0)
    permissions.trusted[SessionTrust("bash", "make")] = None
    context = cast(PolicyContext, SimpleNamespace(tools=(), run=None))
    for command in ("git push", "make", "other"):
        arguments = {"command": command}
        await permissions(ApprovalRequest(command, "bash", arguments, arguments, True, context))
    found = entries(permissions, 1_000.0 + 7_300)
    assert [(entry.kind, entry.text, entry.about) for entry in found] == [
        ("mode", "deny", "refuse what would ask"),
        ("trust", "always bash: make", "in this session"),
        ("rule", "allow bash(git status *)", "this project · used 1×, 2 h ago"),
        ("rule", "deny bash(git push *)", "everywhere · not used yet"),
        ("decision", '✗ bash(command="other")', "the user allows no call that needs approval · 2 h ago"),
        ("decision", '✓ bash(command="make")', "you always allow this command in this session · 2 h ago"),
        ("decision", '✗ bash(command="git push")', "the user's rule: deny bash(git push *) · 2 h ago"),
    ]
    assert [remove(permissions, entry) for entry in found] == [False, True, True, True, False, False, False]
    assert not [entry for entry in entries(permissions, 0) if entry.kind in ("trust", "rule")]


def test_times_are_rough():
    assert [ago(1_000_000, 1_000_000 - age) for age in (0, 59, 60, 3_600, 90_000)] == [
        "just now", "just now", "1 min ago", "1 h ago", "1 d ago",
    ]  # fmt: skip
