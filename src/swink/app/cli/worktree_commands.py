"""Worktrees on the command line: `swink -w NAME` from its start to its end, and `swink worktree`."""

import argparse
import os
import sys
from pathlib import Path

from swink.app.assistant.gitprogram import GitProgram
from swink.app.assistant.person import Once, Refuse, Reply
from swink.app.assistant.previews import WRITE, Preview
from swink.app.assistant.reviewing import Review
from swink.app.assistant.worktreechange import TreeChange, keep_change, read_change
from swink.app.assistant.worktreereview import (
    TreeReview,
    describe_ignored,
    drop,
    drop_unread,
    how_to_go_on,
)
from swink.app.assistant.worktrees import (
    OpenedWorktree,
    Worktree,
    check_programs,
    find_tree,
    find_worktree,
    find_worktrees,
    open_worktree,
)
from swink.app.cli.directory import known_trust
from swink.app.cli.terminal import ask_line, say, table, with_bold_head
from swink.errors import MisuseError
from swink.messages.redact.shown import escape_invisible
from swink.system.oneline import strip_controls
from swink.system.shorten import clip_list
from swink.system.startup import put_last

_MOST_LINES = 200
_NAMED = 5
_ANSWERS = {
    "t": "take it: look at each part, and bring what you choose into {main}",
    "k": "keep it: what is not committed is committed to {branch}",
    "d": "drop it: the worktree and its branch are deleted",
}
_PARTS = "y takes it, n leaves it out, a takes this and all that follows, q ends without taking anything"


class _LeftReview(Exception):
    """The person left the review: nothing is taken."""


# The session


def enter_worktree(name: str) -> OpenedWorktree:
    """Change into the worktree of a name, which is made if there is none; raises `MisuseError`."""
    git = _git()
    opened = open_worktree(git, name)
    os.chdir(opened.worktree.path)
    put_last(os.getcwd())
    return opened


def end_session(opened: OpenedWorktree) -> None:
    """Ask what shall become of the change, once the conversation is over."""
    try:
        git, change = _leave(opened.worktree)
    except (MisuseError, OSError) as error:  # the main tree was moved, say: nothing is lost
        say(f"worktree {opened.worktree.name} stays as it is: {error}", "warning")
        return
    if not change.files:
        _end_unchanged(git, change, opened)
        return
    review = TreeReview(git, change)
    if review.is_whole:
        _drop_if_empty(git, change, f"all of its change is in {git.directory}")
        return
    print(f"worktree {change.worktree.name}: {' and '.join(_what_is_lost(git, change))}")
    for key, meaning in _ANSWERS.items():
        print(f"  {key}  {meaning.format(main=git.directory, branch=change.worktree.branch)}")
    said = (ask_line("what shall become of it? [t/K/d] ") or "").lower()[:1]
    try:
        if said == "t":
            _take(review)
        elif said == "d":
            say(drop(git, change))
        else:
            _keep(git, change)
    except MisuseError as error:
        say(str(error), "warning")
        say(how_to_go_on(change.worktree))


def end_run(opened: OpenedWorktree) -> None:
    """Keep what a run without a person changed, and say how to take it."""
    try:
        git, change = _leave(opened.worktree)
        if change.files:
            _keep(git, change)
        else:
            _end_unchanged(git, change, opened)
    except MisuseError as error:
        say(f"worktree {opened.worktree.name}: {error}", "warning")
        say(how_to_go_on(opened.worktree))


def _leave(worktree: Worktree) -> tuple[GitProgram, TreeChange]:
    """Back to the main tree, so that nothing holds the worktree; and what was changed."""
    os.chdir(worktree.main)
    git = GitProgram.at(worktree.main)
    return git, read_change(git, worktree)


def _end_unchanged(git: GitProgram, change: TreeChange, opened: OpenedWorktree) -> None:
    if opened.is_new and change.tip == change.base:
        _drop_if_empty(git, change, "nothing was changed")
    else:
        say(f"nothing is changed in worktree {change.worktree.name}; {how_to_go_on(change.worktree)}")


def _drop_if_empty(git: GitProgram, change: TreeChange, why: str) -> None:
    """Drop a worktree unasked, unless it has files that would be lost."""
    if lost := describe_ignored(git, change.worktree):
        name = change.worktree.name
        say(f"{why}; worktree {name} stays because of {lost}: swink worktree drop {name} deletes that too")
    else:
        say(f"{why}: {drop(git, change)}")


# The commands


def list_command(arguments: argparse.Namespace) -> int:
    """`swink worktree list`: the worktrees of this repository."""
    git = _git()
    found = find_worktrees(git)
    if not found:
        say("no worktrees here; swink -w NAME makes one")
        return 0
    rows: list[tuple[str, ...]] = [("NAME", "CHANGE", "WHERE")]
    for worktree in found:
        where = str(worktree.path) if worktree.is_there else f"only the branch {worktree.branch}"
        rows.append((worktree.name, _read_and_describe(git, worktree), strip_controls(where)))
    print(with_bold_head(table(rows)))
    return 0


def take_command(arguments: argparse.Namespace) -> int:
    """`swink worktree take`: bring a change into this tree, after a look at it."""
    git, change = _named(arguments.name)
    review = TreeReview(git, change)
    if not change.files or review.is_whole:
        say(f"there is nothing to take: {git.directory} has all of it; swink worktree drop {arguments.name}")
        return 0
    if not arguments.yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        how = f"swink worktree take {arguments.name} --yes takes all of it"
        raise MisuseError(f"there is no terminal to look at {_describe(change)} on; {how}")
    return _take(review, everything=arguments.yes)


def keep_command(arguments: argparse.Namespace) -> int:
    """`swink worktree keep`: have all of a change on its branch."""
    _keep(*_named(arguments.name))
    return 0


def drop_command(arguments: argparse.Namespace) -> int:
    """`swink worktree drop`: delete a worktree and its branch."""
    git = _git()
    worktree = find_worktree(git, arguments.name)
    try:
        change, what = read_change(git, worktree), ""
    except MisuseError as error:
        change, what = None, f"a change that cannot be read ({error})"
    if change is not None:
        what = " and ".join(_what_is_lost(git, change))
    if what and not arguments.yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise MisuseError(f"{what} would be lost; swink worktree drop {arguments.name} --yes drops it")
        print(f"worktree {worktree.name}: {what}")
        if (ask_line("drop it? [y/N] ") or "").lower() not in ("y", "yes"):
            say("nothing was changed")
            return 1
    if Path.cwd().is_relative_to(worktree.path):
        os.chdir(git.directory)
    say(drop_unread(git, worktree) if change is None else drop(git, change))
    return 0


def _what_is_lost(git: GitProgram, change: TreeChange) -> list[str]:
    ignored = describe_ignored(git, change.worktree)
    return ([_describe(change)] if change.files else []) + ([ignored] if ignored else [])


def _read_and_describe(git: GitProgram, worktree: Worktree) -> str:
    try:
        return _describe(read_change(git, worktree))
    except MisuseError as error:  # it hides no other
        return strip_controls(f"cannot be read: {error}")


def _git() -> GitProgram:
    """git in the tree that the current directory belongs to, if it runs nothing that nobody trusts."""
    git = find_tree(Path.cwd())
    if not known_trust().is_trusted:
        check_programs(git)
    return git


def _named(name: str) -> tuple[GitProgram, TreeChange]:
    git = _git()
    return git, read_change(git, find_worktree(git, name))


def _describe(change: TreeChange) -> str:
    if not change.files:
        return "nothing changed"
    named = ", ".join(clip_list([strip_controls(file.path) for file in change.files], _NAMED))
    return f"{change.summary} ({named})"


def _keep(git: GitProgram, change: TreeChange) -> None:
    worktree = change.worktree
    made = keep_change(git, change)
    committed = "" if made is None else f"what was not committed is in {made[:12]}; "
    where = f"kept on the branch {worktree.branch} in {worktree.path}"
    say(f"worktree {worktree.name}: {_describe(change)}, {where}")
    say(f"{committed}{how_to_go_on(worktree)}")


def _take(review: TreeReview, *, everything: bool = False) -> int:
    """Ask about each file, part by part, and take what is wanted; 1 if that is nothing."""
    worktree = review.change.worktree
    try:
        for file in review.files():
            preview = review.preview(file)
            if preview.fails:
                say(preview.summary, "warning")
                continue
            reply: Reply = Once()
            if not everything:
                reply, everything = _ask(preview)
            review.judge(file, reply)
    except _LeftReview:
        say(f"nothing was taken; {how_to_go_on(worktree)}")
        return 1
    taken = review.take()
    if not taken:
        say(f"nothing was taken; {how_to_go_on(worktree)}")
        return 1
    say(f"taken into {review.git.directory}, not committed: {', '.join(clip_list(taken, _NAMED))}")
    if review.is_whole:
        _drop_if_empty(review.git, review.change, "that is all of it")
    else:
        say(f"the rest stays in the worktree; {how_to_go_on(worktree)}")
    return 0


def _ask(preview: Preview) -> tuple[Reply, bool]:
    """What the person says of a file, of one that is changed part by part; and whether of all others too."""
    print(f"\n{escape_invisible(preview.summary)}")
    if not preview.can_review:
        if preview.diff is not None:
            _show(preview.diff.unified.split("\n")[2:-1])
        said = _ask_part("take it?")
        return Refuse() if said == "n" else Once(), said == "a"
    review, said = Review(preview), ""
    for at, hunk in enumerate(review.diff.hunks):
        if said != "a":
            marks = {"same": " ", "removed": "-", "added": "+"}
            _show([hunk.header, *(marks[line.kind] + line.text for line in hunk.lines)])
            said = _ask_part(f"part {at + 1} of {len(review.verdicts)}: take it?")
        review.judge(at, said != "n")
    return review.reply(WRITE, {}), said == "a"


def _show(lines: list[str]) -> None:
    for line in lines[:_MOST_LINES]:
        print(f"  │ {escape_invisible(line)}")
    if len(lines) > _MOST_LINES:
        print(f"  │ … {len(lines) - _MOST_LINES:,} lines more")


def _ask_part(question: str) -> str:
    for _ in range(3):
        said = ask_line(f"{question} [y/n/a/q] ")
        if said is None or said.lower() in ("q", "quit"):
            raise _LeftReview
        if said.lower()[:1] in ("y", "n", "a"):
            return said.lower()[:1]
        print(_PARTS)
    raise _LeftReview
