"""The real program is killed in the middle of its work: what was said is there again, and what is left is told."""

import signal
from collections.abc import Callable

import pytest
from command_line import STALL, Call, Place, Provider
from terminal import Terminal, only_more

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


def is_kept(place: Place, text: str) -> bool:
    files = [path for path in place.here.parent.rglob("*") if path.is_file()]
    return any(text.encode() in path.read_bytes() for path in files)


@only_more
@pytest.mark.parametrize(
    ("state", "kept", "told"),
    [
        (streaming, "tell me", ("tell me", "has no answer yet")),
        (asking, '"type":"approval"', ("tell me", "waits for your approval")),
        (queueing, "and then", ("tell me", "1 message is still queued")),
        (typing, "half a sent", ("tell me", "Once.", "half a sent")),
    ],
)
def test_after_a_kill_nothing_is_lost(
    place: Place,
    provider: Provider,
    state: Callable[[Terminal, Provider], None],
    kept: str,
    told: tuple[str, ...],
):
    place.trust()
    (place.here / "file").write_text("so that this is a project\n")
    with Terminal(place, *MODEL, env=provider.env, size=(100, 30)) as terminal:
        terminal.wait_for("idle")
        state(terminal, provider)
        terminal.wait_until(lambda: is_kept(place, kept), "what has to be kept")
        terminal.process.send_signal(signal.SIGKILL)
        terminal.wait_for_end(with_others=False)
    with Terminal(place, *MODEL, "--continue", env=provider.env, size=(100, 30)) as terminal:
        terminal.wait_for(*told)
        terminal.press("ctrl+q")
