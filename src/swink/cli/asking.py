"""Asking a person: approval of a tool call on the terminal, even while standard input is a pipe."""

import asyncio
import os
import select
import sys
import threading
from contextlib import suppress

from swink.approvals import ApprovalWord
from swink.assistant.calls import json_line
from swink.cli.terminal import say
from swink.policy import ApprovalRequest, Rejected
from swink.redact.shown import escape_invisible

Verdict = bool | Rejected

_TICK = 0.1
_TIMES = 3


class Approver:
    """The approval callback of a conversation; its word may change from call to call."""

    def __init__(self, word: ApprovalWord) -> None:
        self.word: ApprovalWord = word

    async def __call__(self, request: ApprovalRequest) -> Verdict:
        match self.word:
            case "off":
                return True
            case "smart" | "edits" | "deny" if not request.requires_approval:
                return True
            case "deny":
                return Rejected("the user allows no call that needs approval")
            case _:
                return await _ask(request)


def format_question(request: ApprovalRequest) -> str:
    """The whole call, one argument a line; a bar before the lines of longer texts tells them from ours."""
    lines = [f"swink: {escape_invisible(request.name)} wants to run with"]
    for key, value in request.shown.items():
        text = value if isinstance(value, str) else json_line(value)
        first, *rest = text.split("\n") if text else ['""']
        lines += [f"  {key}: {first}" if not rest else f"  {key}:"]
        lines += [f"  │ {line}" for line in (first, *rest)] if rest else []
    return "\n".join(lines if request.shown else [f"swink: {escape_invisible(request.name)} wants to run"])


async def _ask(request: ApprovalRequest) -> Verdict:
    name = escape_invisible(request.name)
    question = f"{format_question(request)}\nswink: allow {name}? [y/N] "
    for _ in range(_TIMES):
        answer = await _answer_to(question)
        if answer is None:
            say(
                f"{name} needs approval and there is no terminal to ask on; "
                "--approve off allows such calls, --approve deny refuses them without a word",
                "warning",
            )
            return Rejected("nobody is there to approve this call")
        match answer.strip().lower():
            case "y" | "yes":
                return True
            case "" | "n" | "no":
                return Rejected("the user said no")
            case _:
                question = f"swink: please answer y or n: allow {name}? [y/N] "
    return Rejected("the user gave no answer that is understood")


async def _answer_to(question: str) -> str | None:
    """The line somebody types, empty at the end of input; None where there is no terminal.

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
