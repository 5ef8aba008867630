"""The command about the worktree that this conversation works in."""

from swink.app.assistant.gitprogram import GitProgram
from swink.app.assistant.worktreechange import TreeChange, keep_change, read_change
from swink.app.assistant.worktreereview import TreeReview
from swink.app.assistant.worktrees import Worktree
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.errors import MisuseError
from swink.events.transcript.blockkinds import counted
from swink.system.shorten import clip_list
from swink.system.threads import in_thread

_NAMED = 10


@command("/worktree", "[take | keep]", choices=lambda context: ("take", "keep"))
async def worktree(context: CommandContext, rest: str) -> None:
    """the worktree of swink -w: what is changed in it; take the change, or commit it to its branch"""
    environment = context.environment
    if environment is None or environment.worktree is None:
        raise MisuseError("this conversation works in no worktree; swink -w NAME begins one that does")
    if rest not in ("", "take", "keep"):
        raise MisuseError(
            "write /worktree, /worktree take or /worktree keep; leaving asks what becomes of it"
        )
    if rest and context.driver.is_running:
        raise MisuseError(f"the agent is at work; Esc stops it, then /worktree {rest}")
    git, change = await in_thread(_read, environment.worktree)
    if rest == "take":
        await _take(context, TreeReview(git, change))
    elif rest == "keep":
        made = await in_thread(keep_change, git, change)
        done = "all of it was committed already" if made is None else f"committed as {made[:12]}"
        context.say(f"{done}, on the branch {change.worktree.branch}")
    else:
        named = ", ".join(clip_list([file.path for file in change.files], _NAMED))
        what = f"{change.summary}: {named}" if change.files else "nothing is changed"
        where = f"worktree {change.worktree.name}, branch {change.worktree.branch}, in {change.worktree.path}"
        context.say(f"{where}\n{what}; /worktree take brings it into {git.directory}")


def _read(worktree: Worktree) -> tuple[GitProgram, TreeChange]:
    git = GitProgram.at(worktree.main)
    return git, read_change(git, worktree)


async def _take(context: CommandContext, review: TreeReview) -> None:
    """Ask about each file as about a call of the agent, and take what is wanted."""
    files = await in_thread(review.files)
    if not files:
        context.say(f"there is nothing to take: {review.git.directory} has all of it")
        return
    for file in files:
        preview = await in_thread(review.preview, file)
        if preview.fails:
            context.say(preview.summary)
            continue
        reply = await context.permissions.questions.ask(review.question(file, preview))
        await in_thread(review.judge, file, reply)
    taken = await in_thread(review.take)
    if not taken:
        context.say("nothing was taken")
    else:
        named = ", ".join(clip_list(taken, _NAMED))
        count = counted(len(taken), "file")
        context.say(f"taken into {review.git.directory}, not committed: {count} ({named})")
    if (message := review.message) is not None:
        context.driver.queue(message)
