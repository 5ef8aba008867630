"""Every way out leaves the terminal as it was, with a true exit code and no process behind."""

import signal

from command_line import STALL, Place, Provider
from terminal import Terminal


def test_leaving_keeps_the_last_reply_and_the_way_back_on_the_screen(place: Place, provider: Provider):
    with Terminal(place, "--model", "openai:m", env=provider.env) as terminal:
        terminal.wait_for("idle")
        assert {"alternate screen", "mouse", "paste", "focus", "no cursor"} <= terminal.modes
        terminal.type("hi\r")
        terminal.wait_for("Hello there.", "idle")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        terminal.assert_is_as_before()
        terminal.wait_for("Hello there.", "swink --resume ")


def test_sigterm_saves_what_arrived(place: Place, provider: Provider):
    provider.replies = [["Once ", STALL]]
    with Terminal(place, "--model", "openai:m", env=provider.env) as terminal:
        terminal.wait_for("idle")
        terminal.type("hi\r")
        terminal.wait_for("Once")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait_for_end() == 143
        terminal.assert_is_as_before()
        terminal.wait_for("Once", "swink --resume ")


def test_after_sigkill_the_watcher_restores_the_terminal(place: Place, provider: Provider):
    with Terminal(place, "--model", "openai:m", env=provider.env) as terminal:
        terminal.wait_for("idle")
        terminal.process.kill()
        assert terminal.wait_for_end() == -signal.SIGKILL
        terminal.assert_is_as_before()
