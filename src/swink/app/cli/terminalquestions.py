"""Questions on the terminal, even while standard input is a pipe: tool calls to approve, forms to fill in."""

import asyncio
import os
import select
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from swink.app.assistant.approvalmodes import ApprovalWord
from swink.app.assistant.forms import NOBODY, Form, Item
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import (
    ABSENT,
    NOT_UNDERSTOOD,
    Always,
    DomainQuestion,
    Question,
    Refuse,
    Reply,
    domain_options,
    domain_reply,
    parse_reply,
)
from swink.app.assistant.previews import CONTENT
from swink.app.assistant.toolcalls import json_line
from swink.app.assistant.trust import Trust, answer
from swink.app.cli.terminal import say
from swink.messages.redact.shown import escape_invisible
from swink.system.threads import in_thread
from swink.tools import ToolError
from swink.tools.coding.workspace import Workspace

_TICK = 0.1
_TIMES = 3


class TerminalPerson:
    """Asks on the terminal, one question at a time."""

    def __init__(self) -> None:
        self._alone = asyncio.Lock()

    def permissions(
        self, word: ApprovalWord, directory: str | Path = ".", servers: Mapping[str, str] | None = None
    ) -> Permissions:
        """Permissions for a directory that ask here."""
        asking: Any = {"ask": self.ask, "ask_domain": self.ask_domain, "tell": say}
        return Permissions(word, workspace=Workspace(directory), servers=servers, **asking)

    async def ask(self, question: Question) -> Reply:
        """The reply to a question about a call; a refusal where there is no terminal."""
        async with self._alone:
            name = escape_invisible(question.request.name)
            answers = f"y allows it, a allows {question.always} in this session, n refuses"
            answers = "y allows it this once, n refuses" if question.is_once else answers
            answers = f"y allows it {question.offers}, n does not" if question.offers else answers
            last = question.title or f"allow {name}?"
            text = f"{format_question(question)}\nswink: {answers}\nswink: {last} [y/N] "
            for _ in range(_TIMES):
                answer = await _answer_to(text)
                if answer is None and question.offers:
                    say(f"{last} There is no terminal to ask on, so it allows nothing.", "warning")
                    return Refuse(by=ABSENT)
                if answer is None and question.is_once:
                    say(f"{question.notice} There is no terminal to ask on, so it stays inside.", "warning")
                    return Refuse(by=ABSENT)
                if answer is None:
                    hint = "--approve off allows such calls, --approve deny refuses them without a word"
                    why = question.notice or hint
                    say(f"{name} needs approval and there is no terminal to ask on; {why}", "warning")
                    return Refuse(question.notice, by=ABSENT)
                reply = parse_reply(answer)
                if isinstance(reply, Always) and question.is_once:
                    reply = None
                if isinstance(reply, Always):
                    say(f"allowed from now on in this session: {question.always}", "dim")
                if reply is not None:
                    return reply
                text = f"swink: please answer {'y' if question.is_once else 'y, a'} or n: {last} [y/N] "
            return Refuse(by=NOT_UNDERSTOOD)

    async def ask_domain(self, question: DomainQuestion) -> Reply:
        """The reply to a question about a host; a refusal where there is no terminal."""
        async with self._alone:
            options = {option.key: option for option in domain_options(question) if option.key != "r"}
            keys = "\n".join(f"  {key}  {escape_invisible(option.text)}" for key, option in options.items())
            text = f"{format_domain(question)}\n{keys}\nswink: allow it? [{'/'.join(options)}] "
            for _ in range(_TIMES):
                answer = await _answer_to(text)
                if answer is None:
                    return Refuse(by=ABSENT)
                key = answer.strip().lower()[:1] or "n"
                if key in options:
                    return domain_reply(question, key)
                text = f"swink: please answer {', '.join(options)}: "
            return Refuse(by=NOT_UNDERSTOOD)

    async def ask_trust(self, trust: Trust, before: Trust) -> Trust:
        """What the person says of a project that has changed; without an answer it is as before."""
        async with self._alone:
            lines = [str(trust.project), trust.question, *(f"  {change}" for change in trust.changes)]
            lines += [f"  {key}  {meaning}" for key, meaning in trust.answers.items()]
            shown = "\n".join(map(escape_invisible, lines))
            typed = await _answer_to(f"{shown}\nswink: trust it? [{'/'.join(trust.answers)}] ")
            key = (typed or "").strip().lower()[:1]
            return await in_thread(answer, trust, key) if key in trust.answers else before

    async def fill_in(self, form: Form) -> list[str] | None:
        """The answers to what the agent asks, by number or in words; None if one is left empty."""
        async with self._alone:
            answers: list[str] = []
            for item in form.items:
                answer = await _answer_to(format_item(item, form.asker))
                if answer is None:
                    raise ToolError(NOBODY)
                if not (answer := item.parse_typed(answer.strip())):
                    return None
                answers.append(answer)
            return answers


def format_item(item: Item, asker: str = "the agent") -> str:
    """A question of the agent's, or of a server, with its numbered choices."""
    lines = [f"  │ {line}" for line in escape_invisible(item.question).split("\n")]
    for number, choice in enumerate(item.choices, 1):
        lines.append(f"  {number}  {escape_invisible(choice).replace(chr(10), ' ')}")
    several = ", or several like 1,3" if item.several else ""
    how = f"a number{several}, or your own words" if item.choices else "your answer"
    first, last = f"swink: {escape_invisible(asker)} asks", f"swink: {how}; nothing to leave it unanswered: "
    return "\n".join([first, *lines, last])


def format_domain(question: DomainQuestion) -> str:
    """The commands, line by line with a bar before each, and the host that they want."""
    lines = ["swink: in the sandbox"]
    for command in question.commands:
        lines += [f"  │ {line}" for line in escape_invisible(command).split("\n")]
    lines.append(f"swink: wants to reach {question.wish}")
    if question.index:
        lines.append(f"swink: the package index of this project: {', '.join(question.index)}")
    return "\n".join(lines)


def format_question(question: Question) -> str:
    """The whole call, one argument a line; a bar before the lines of longer texts tells them from ours."""
    request, preview = question.request, question.preview
    with_diff = preview is not None and preview.diff is not None and bool(preview.diff.hunks)
    lines = [f"swink: {question.notice}"] if question.notice else []
    lines += [
        f"swink: {escape_invisible(request.name)} {'asks with' if question.offers else 'wants to run with'}"
    ]
    for key, value in request.shown.items():
        if with_diff and key == CONTENT.get(request.name):
            continue  # the diff says it better
        text = value if isinstance(value, str) else json_line(value)
        first, *rest = text.split("\n") if text else ['""']
        lines += [f"  {key}: {first}" if not rest else f"  {key}:"]
        lines += [f"  │ {line}" for line in (first, *rest)] if rest else []
    if not request.shown:
        lines = [*lines[:-1], f"swink: {escape_invisible(request.name)} wants to run"]
    if question.leads_to and preview is None:
        lines.append(f"swink: the path leads to {escape_invisible(question.leads_to)}")
    if preview is not None:
        lines.append(f"swink: it {escape_invisible(preview.summary)}")
        if with_diff and preview.diff is not None:
            lines += [f"  │ {escape_invisible(line)}" for line in preview.diff.unified.split("\n")[2:-1]]
    return "\n".join(lines)


async def _answer_to(question: str) -> str | None:
    """The line that is typed, empty at the end of input; None where there is no terminal.

    When it is cancelled, the terminal is free for others again.
    """
    windows = sys.platform == "win32"
    try:
        keyboard = os.open("CONIN$" if windows else "/dev/tty", os.O_RDWR)
        screen = os.open("CONOUT$", os.O_RDWR) if windows else os.dup(keyboard)
    except OSError:
        return None
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()
    leave = threading.Event()

    def listen() -> None:
        line = _read_line(keyboard, leave)
        os.close(keyboard)
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(lambda: answer.done() or answer.set_result(line))

    _drop_typed_keys(keyboard)
    with os.fdopen(screen, "wb") as file:
        file.write(question.encode("utf-8", "replace"))
    threading.Thread(target=listen, name="swink-ask", daemon=True).start()
    try:
        return await answer
    finally:
        leave.set()


def _read_line(keyboard: int, leave: threading.Event) -> str:
    typed = b""
    while not typed.endswith((b"\n", b"\r")) and not leave.is_set():
        if sys.platform == "win32" or select.select([keyboard], [], [], _TICK)[0]:
            if leave.is_set():  # what is typed after the question was cancelled is not for us
                break
            piece = os.read(keyboard, 1024)
            if not piece:
                return ""
            typed += piece
    return typed.decode("utf-8", "replace")


def _drop_typed_keys(keyboard: int) -> None:
    """Drop the keys pressed before the question was shown: they are no answer to it."""
    if sys.platform != "win32":
        import termios

        termios.tcflush(keyboard, termios.TCIFLUSH)
