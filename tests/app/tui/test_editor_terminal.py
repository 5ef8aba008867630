"""The editor of the real program in a real terminal: pastes, the queue, a draft after SIGKILL."""

from command_line import STALL, Place, Provider
from terminal import Terminal


def test_what_is_pasted_queued_and_half_typed_is_never_lost(place: Place, provider: Provider):
    place.write("notes.md", "the sea is blue\n")
    place.trust()
    provider.replies = [["Once ", STALL]]
    env = {**provider.env, "XDG_STATE_HOME": str(place.home / "state")}
    with Terminal(place, "--model", "openai:m", env=env) as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("first\rsecond\r")  # a paste that the terminal does not mark
        terminal.wait_for("│ first", "│ second")
        terminal.press("ctrl+c")
        terminal.wait_for("Ask anything")
        assert not provider.requests
        terminal.paste("x = 1\r" * 56 + "\x1b[31mred\r")
        terminal.wait_for("[pasted #1, 57 lines]")
        terminal.type(" explain it with @notes.md\r")
        terminal.wait_for("Once", "running")
        asked = str(provider.requests[-1]["messages"][-1]["content"])
        assert asked.count("x = 1") == 56
        assert "the sea is blue" in asked
        terminal.type("rather in German\r")
        terminal.wait_for("queued  rather in German")
        terminal.type("and then in French")
        terminal.press("alt+enter")
        terminal.wait_for("queued, after  and then in French")
        terminal.press("up")
        terminal.wait_for("│ and then in French")
        terminal.wait_until_gone("queued, after")
        terminal.type(", please")
        drafts = place.home / "state" / "swink" / "drafts"
        terminal.wait_until(lambda: any("please" in each.read_text() for each in drafts.glob("*.json")))
        terminal.process.kill()
        terminal.wait_for_end(with_others=False)
    with Terminal(place, "--model", "openai:m", env=env) as terminal:
        terminal.wait_for("│ and then in French, please")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
