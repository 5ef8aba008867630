"""The real program is killed in the middle of its work: what was said is there again, and what is left is told."""

import signal
from collections.abc import Callable
from contextlib import suppress

import pytest
from command_line import STALL, Call, Place, Provider
from terminal import Terminal
from tests.counts import left_to_more

MODEL = ["--model", "openai:gpt-4.1"]


def streaming(terminal: Terminal, provider: Provider) -> None:
    provider.replies = [["Once ", STALL]]
    terminal.type("tell me\r")
    terminal.wait_for("Once", "running")


def asking(terminal: Terminal, provider: Provider) -> None:
    provider.replies = [[Call("write_file", path="a.txt", content="x")], ["Done."]]
    terminal.type("tell me\r")
    terminal.wait_for("write_file", "a.txt", "y ")


def queueing(terminal: Terminal, provider: Provider) -> None:
    streaming(terminal, provider)
    terminal.type("and then\r")
    terminal.wait_for("queued")


def typing(terminal: Terminal, provider: Provider) -> None:
    provider.replies = [["Once."]]
    terminal.type("tell me\r")
    terminal.wait_for("Once.", "idle")
    terminal.type("half a sent")
    terminal.wait_for("half a sent")


def is_kept(place: Place, folder: str, text: str) -> bool:
    """Whether a file below a folder of that name has it; what was said is in the history too, and earlier."""
    for path in place.here.parent.rglob("*"):
        with suppress(OSError):  # the program replaces and deletes files meanwhile
            if folder in path.parts and path.is_file() and text.encode() in path.read_bytes():
                return True
    return False


@left_to_more
@pytest.mark.parametrize(
    ("state", "folder", "kept", "told"),
    [
        (streaming, "sessions", "tell me", ("tell me", "has no answer yet")),
        (asking, "sessions", '"type":"approval"', ("tell me", "waits for your approval")),
        (queueing, "sessions", "and then", ("tell me", "1 message is still queued")),
        (typing, "drafts", "half a sent", ("tell me", "Once.", "half a sent")),
    ],
)
def test_after_a_kill_nothing_is_lost(
    place: Place,
    provider: Provider,
    state: Callable[[Terminal, Provider], None],
    folder: str,
    kept: str,
    told: tuple[str, ...],
):
    place.trust()
    (place.here / "file").write_text("so that this is a project\n")
    with Terminal(place, *MODEL, env=provider.env, size=(100, 30)) as terminal:
        terminal.wait_for("idle")
        state(terminal, provider)
        terminal.wait_until(lambda: is_kept(place, folder, kept), "what has to be kept")
        terminal.process.send_signal(signal.SIGKILL)
        terminal.wait_for_end(with_others=False)
    with Terminal(place, *MODEL, "--continue", env=provider.env, size=(100, 30)) as terminal:
        terminal.wait_for(*told)
        terminal.press("ctrl+q")
