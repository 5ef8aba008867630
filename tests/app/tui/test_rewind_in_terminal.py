"""The real program: a command changes files, the program is killed, resumed, and everything is rewound."""

import signal

from command_line import Call, Place, Provider
from terminal import Terminal

MODEL = ["--model", "openai:gpt-4.1", "--approve", "off"]


def test_after_a_kill_the_conversation_is_resumed_and_its_files_rewound(place: Place, provider: Provider):
    place.trust()
    work = place.here
    (work / "kept.txt").write_text("kept\n")
    (work / "old.txt").write_text("old\n")
    command = "rm old.txt; printf 'a\\000b' > made.bin; mkdir -p deep/er; echo new >> kept.txt"
    provider.replies = [
        [Call("bash", command=command)],
        ["All changed."],
        [Call("bash", command="echo half > half.txt; touch started; sleep 1000")],
        ["Finished."],
    ]
    with Terminal(place, *MODEL, env=provider.env, size=(100, 30)) as terminal:
        terminal.wait_for("idle")
        terminal.type("change things")
        terminal.press("enter")
        terminal.wait_for("All changed.")
        terminal.type("go on")
        terminal.press("enter")
        terminal.wait_until(lambda: (work / "started").exists(), "the command")
        terminal.process.send_signal(signal.SIGKILL)
        terminal.wait_for_end(with_others=False)
    assert (work / "half.txt").exists()
    with Terminal(place, *MODEL, "--resume", env=provider.env, size=(100, 30)) as terminal:
        terminal.wait_for("Enter resume", "> go on")
        terminal.press("enter")
        terminal.wait_for("/continue finishes it")
        terminal.wait_for("All changed.")
        terminal.type("/rewind")
        terminal.press("enter")
        terminal.wait_for("Enter goes back")
        terminal.press("up")
        terminal.wait_for("old.txt")
        terminal.press("enter")
        terminal.wait_for("of them changed since")
        terminal.press("down", "down", "down", "enter")
        terminal.wait_for("files are restored")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
    found = {str(path.relative_to(work)): path for path in work.rglob("*")}
    assert sorted(name for name in found if not name.startswith(".")) == ["kept.txt", "old.txt"]
    assert (work / "kept.txt").read_text() == "kept\n"
    assert (work / "old.txt").read_text() == "old\n"
