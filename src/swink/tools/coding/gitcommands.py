"""Lines for bash that set up a repository or transfer its branches, taken command by command.

    git init, git remote add, …     written by us, outside (`gitsetup.py`)
    git push, fetch by HTTP         in the sandbox; once outside if the server wants credentials
    git push, fetch by ssh          once outside (`gittransfer.py`), after a question
    everything else of the line     in the sandbox

Only lines of simple commands joined by `&&`, `;` or newlines are taken, in folders that are trusted.
"""

import os
import re
import shlex
import shutil
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from swink.messages.redact import redact_text
from swink.system.threads import in_thread
from swink.tools import ToolContext
from swink.tools.coding.baseline import find_running
from swink.tools.coding.command import Completed, run_launch
from swink.tools.coding.gitconfiguration import is_http, is_ssh
from swink.tools.coding.gitfolder import SetupRefused
from swink.tools.coding.gitsetup import (
    GitFailed,
    GitSetup,
    carry_out,
    may_write,
    parse_setup,
    skip_directories,
)
from swink.tools.coding.gittransfer import CleanRoom, GitTransfer, check_objects, parse_transfer
from swink.tools.coding.outside import AskOutside, RefusedRun, mark_outside
from swink.tools.coding.process import ExitStatus
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.syntax import SimpleCommand, Word, read_commands

RunLine = Callable[[str, str], Awaitable[Completed]]
"""Runs a line in the sandbox, in a directory."""

_WANTS_CREDENTIALS = re.compile(
    r"could not read Username|could not read Password|Authentication failed|terminal prompts disabled"
    r"|returned error: 40[13]",
    re.I,
)
_NOT_REACHED = re.compile(r"was not reached|not among the domains of this sandbox|so it is not reached")
"""What our proxy, which answers 403, or the note about it says of a host that is refused."""
_MOST_SHOWN = 30
"""Of one line: a person reads no more, and nothing else goes on while it is described."""


class _Step(Struct, frozen=True):
    """A command of a line: how it follows the one before, its words, and the command as bash takes it."""

    link: str
    words: tuple[str, ...]
    line: str


def describe_setups(command: str, directory: str, root: str) -> str:
    """What a line writes outside the sandbox, for the person who is asked; empty if nothing. Blocking."""
    found: list[str] = []
    ahead: list[GitSetup] = []
    here, root = directory, os.path.realpath(root)
    for step in _read_steps(command) or ():
        if len(found) == _MOST_SHOWN:
            found.append("writes what further commands set")
            break
        here = _follow(step, here)
        try:
            setup = parse_setup(step.words, here, root, ahead)
        except (SetupRefused, GitFailed, OSError):
            setup = None
        if setup is not None:
            ahead.append(setup)
        if setup is not None and (written := setup.describe(root)):
            found.append(written)
        elif may_write(step.words):
            # Other commands may change what is there before it runs: at least the command itself is shown.
            found.append(f"writes what {step.line!r} sets")
    return "; ".join(found)


class GitCommands:
    """Takes the lines of one workspace that git's own commands are in."""

    def __init__(self, sandbox: Sandbox, ask: AskOutside | None, is_trusted: Callable[[], bool]) -> None:
        self._sandbox = sandbox
        self._ask = ask
        self._is_trusted = is_trusted
        self.root = str(sandbox.root)

    async def take(self, command: str, directory: str, ctx: ToolContext, run: RunLine) -> Completed | None:
        """What a line came to; None if it is to run in the sandbox as it stands."""
        if self._sandbox.level == "none" or self._sandbox.is_missing or not self._is_trusted():
            return None
        steps = _read_steps(command)
        if steps is None or not any(map(_is_ours, steps)):
            return None
        return await _Line(self, steps, directory, ctx, run).run()

    async def set_up(self, setup: GitSetup) -> str:
        """Write what a command writes, and say so."""
        if setup.branch is not None or setup.lines:
            backend = await self._sandbox.backend()
            if find_running(self.root).is_busy and (setup.branch is not None or backend != "bubblewrap"):
                raise SetupRefused("another command runs in this workspace and would undo it; stop it first")
            await in_thread(carry_out, setup)
        return replace(setup, push=()).describe(self.root)

    async def transfer(
        self, line: str, transfer: GitTransfer, why: str, ctx: ToolContext
    ) -> tuple[Completed, list[str]] | str:
        """A transfer outside, and lines for the sandbox that note it; or why there is none."""
        if self._ask is None:
            return "nobody can be asked"
        run = RefusedRun(
            ctx.call_id,
            line,
            transfer.git.directory,
            why,
            transfer.describe(),
            is_http(transfer.url),
            transfer.host,
        )
        if (no := await self._ask(run)) is not None:
            return no
        await in_thread(check_objects, transfer.git)
        with CleanRoom(transfer) as room:
            completed = mark_outside(await run_launch(room.launch(), run.directory, ctx))
            done = completed.status.code == 0 and transfer.remote is not None
            if done and transfer.kind == "fetch":
                return completed, await self._hand_over(room.path, transfer)
            return completed, _note_push(transfer) if done else []

    async def _hand_over(self, room: str, transfer: GitTransfer) -> list[str]:
        """Move what was fetched to where sandboxed commands find it, for them to take it over."""
        outside, inside = await self._sandbox.find_temp()
        name = os.path.basename(room)
        await in_thread(shutil.move, room, os.path.join(outside, name))
        heads = f"+refs/heads/*:refs/remotes/{transfer.remote}/*"
        taken = _spell(("git", "fetch", "-q", f"{inside}/{name}", heads, "refs/tags/*:refs/tags/*"))
        return [f"{taken}; code=$?; rm -rf {_spell((f'{inside}/{name}',))}; exit $code"]


def _note_push(transfer: GitTransfer) -> list[str]:
    """The lines that move the branches of the remote to what was pushed."""
    lines: list[str] = []
    for sha, _, there in transfer.specs:
        name = there.lstrip("+").removeprefix("refs/heads/")
        if not name.startswith("refs/"):
            ref = f"refs/remotes/{transfer.remote}/{name}"
            lines.append(_spell(("git", "update-ref", ref, sha) if sha else ("git", "update-ref", "-d", ref)))
    return lines


class _Line:
    """One line as it runs: what was written so far, and where the next command starts."""

    def __init__(
        self, git: GitCommands, steps: Sequence[_Step], directory: str, ctx: ToolContext, run: RunLine
    ) -> None:
        self._git, self._steps, self._ctx, self._run = git, steps, ctx, run
        self._here = self._start = directory
        self._waiting: list[_Step] = []
        self._output = ""
        self._notes: list[str] = []
        self._code = 0
        self._details: dict[str, object] = {}

    async def run(self) -> Completed:
        for step in self._steps:
            if not _is_ours(step):
                self._waiting.append(step)
                self._here = _follow(step, self._here)
                continue
            await self._flush()
            if step.link != "&&" or self._code == 0:
                await self._take(step)
        await self._flush()
        status = ExitStatus(self._code, notes=tuple(self._notes))
        return Completed(status, self._output, {**_EMPTY, **self._details, "exit_code": self._code})

    async def _flush(self) -> None:
        """Run the ordinary commands that wait, as one line."""
        waiting, self._waiting = self._waiting, []
        if waiting and not (waiting[0].link == "&&" and self._code):
            first, *rest = waiting
            line = first.line + "".join(f" {step.link or ';'} {step.line}" for step in rest)
            await self._sandboxed(line, self._start)
        self._start = self._here

    async def _sandboxed(self, line: str, directory: str) -> Completed:
        completed = await self._run(line, directory)
        self._add(completed)
        return completed

    def _add(self, completed: Completed) -> None:
        self._say(completed.output)
        self._notes += completed.status.notes
        self._code = completed.status.code
        self._details = completed.details

    def _say(self, text: str) -> None:
        self._output += text if not text or text.endswith("\n") else f"{text}\n"

    async def _take(self, step: _Step) -> None:
        try:
            setup = await in_thread(parse_setup, step.words, self._here, self._git.root)
            if setup is None or setup.push:
                await self._transfer(step if setup is None else _replace_push(step, setup.push))
                if self._code:
                    return
            if setup is not None:
                self._code = 0
                if written := await self._git.set_up(setup):
                    how = "written by swink outside the sandbox, as git would"
                    self._notes.append(f"[{how}: it {redact_text(written)}]")
                self._say(setup.said)
        except (SetupRefused, GitFailed) as error:
            self._say(redact_text(str(error)))
            self._code = error.code if isinstance(error, GitFailed) else 128

    async def _transfer(self, step: _Step) -> None:
        """A push, a fetch or a command of git's that is neither: in the sandbox, or outside."""
        transfer, trouble = None, ""
        try:
            transfer = await in_thread(parse_transfer, step.words, self._here, self._git.root)
        except (SetupRefused, GitFailed) as error:
            trouble = redact_text(str(error))
        why = "Git by ssh needs your keys and the network, which sandboxed commands do not have"
        if transfer is None or not is_ssh(transfer.url):
            completed = await self._sandboxed(step.line, self._here)
            if completed.status.code and trouble:
                self._notes.append(f"[it is not offered outside the sandbox: {trouble}]")
            if transfer is None or not _wants_credentials(completed):
                return
            why = "the server wants credentials, which sandboxed commands do not have"
        outcome = await self._git.transfer(step.line, transfer, why, self._ctx)
        if isinstance(outcome, str):
            self._notes.append(f"[{why}; it was not run outside: {outcome}]")
            self._code = self._code or 128
            return
        completed, lines = outcome
        self._add(completed)
        how = "this ran outside the sandbox, once, because the user allowed it"
        self._notes.append(f"[{how}: git {transfer.kind} {redact_text(transfer.url)}]")
        for line in lines:
            await self._sandboxed(line, transfer.git.directory)
        self._details = completed.details


def _wants_credentials(completed: Completed) -> bool:
    """Whether a command failed since a server, and not our proxy, turned it away."""
    told = "\n".join((completed.output, *completed.status.notes))
    failed = completed.status.code != 0 and _WANTS_CREDENTIALS.search(completed.output) is not None
    return failed and _NOT_REACHED.search(told) is None


_EMPTY = {
    "signal": None, "reason": None, "seconds": 0.0, "cpu_seconds": 0.0, "bytes": 0, "cut": 0,
    "sandbox": "workspace", "backend": "none", "directory": "", "timeout": 0.0,
}  # fmt: skip


def _read_steps(command: str) -> list[_Step] | None:
    """The commands of a line; None if it is more than a row of simple ones."""
    commands = read_commands(command) or []
    if not commands or not all(map(_is_simple, commands)):
        return None
    return [
        _Step(one.link, tuple(word.text for word in one.words), " ".join(map(_spell_word, one.words)))
        for one in commands
    ]


def _is_simple(command: SimpleCommand) -> bool:
    joined = command.link in ("", "&&", ";")
    return joined and not command.inputs and not any(word.varies for word in command.words)


def _is_ours(step: _Step) -> bool:
    match skip_directories(step.words):
        case ["init" | "push" | "fetch" | "ls-remote" | "config", *_] | ["remote", "add" | "set-url", *_]:
            return True
        case ["branch", *others]:
            return any(word == "-u" or word.startswith("--set-upstream-to") for word in others)
        case _:
            return False


def _replace_push(step: _Step, push: Sequence[str]) -> _Step:
    """The command with other words from `push` on; the directories before it stay."""
    words = (*step.words[: -len(skip_directories(step.words))], *push)
    return _Step(step.link, words, _spell(words))


def _follow(step: _Step, here: str) -> str:
    """Where the shell is after a command, if it succeeds."""
    if step.words[0] == "cd" and len(step.words) == 2 and not step.words[1].startswith(("-", "~")):
        return os.path.normpath(os.path.join(here, step.words[1]))
    return here


def _spell(words: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, words))


def _spell_word(word: Word) -> str:
    """A word as bash takes it for the same one: wildcards bare, everything else quoted."""
    pieces: list[str] = []
    last = 0
    for at in word.wild:
        pieces += [shlex.quote(word.text[last:at])] if at > last else []
        pieces.append(word.text[at])
        last = at + 1
    rest = word.text[last:]
    return "".join([*pieces, shlex.quote(rest)] if rest or not pieces else pieces)
