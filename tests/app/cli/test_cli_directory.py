"""Where a command works: -C, the tools of a directory, trust, and commands of the user's own."""

import json

import pytest
from command_line import STALL, Call, Place, Provider, Screen

from swink.app.cli.commands import parse_arguments
from swink.app.cli.screen import why_plain


def test_a_coding_run_has_the_tools_of_the_directory_that_is_named(place: Place, provider: Provider):
    project = place.here / "project"
    project.mkdir()
    (project / "main.py").write_text("print(42)\n")
    (project / "AGENTS.md").write_text("Speak like a pirate.")
    provider.replies = [[Call("read_file", path="main.py")], ["It prints 42."], ["Hi."]]
    done = place.swink("run", "--coding", "-C", "project", "-m", "openai:m", "What is it?", env=provider.env)
    assert (done.code, done.out) == (0, "It prints 42.\n")
    system, *_, result = provider.requests[1]["messages"]
    assert "print(42)" in result["content"]
    assert f"Directory: {project}" in system["content"]
    assert "pirate" not in system["content"]  # nobody has trusted it, and a run does not ask
    place.swink("run", "-m", "openai:m", "Hi", env=provider.env)
    assert "tools" not in provider.requests[2]


def test_a_directory_that_is_not_there_is_refused(place: Place):
    done = place.swink("run", "-C", "nowhere", "Hi")
    assert done.code == 2
    assert "-C nowhere: No such file or directory" in done.err


def test_the_plain_chat_asks_for_trust_once_and_runs_commands_of_the_users_own(
    place: Place, provider: Provider
):
    place.write("AGENTS.md", "Speak like a pirate.")
    (place.here / ".swink" / "commands").mkdir(parents=True)
    (place.here / ".swink" / "commands" / "ship.md").write_text("Ship $ARGUMENTS now.")
    provider.replies = [["Aye."], ["Aye aye."]]
    screen = Screen(place, "-m", "openai:m", env=provider.env, trusts=False)
    screen.wait_for("Do you trust the files in this folder?")
    screen.wait_for("trust it? [y/a/N] ")
    screen.type("y\n")
    screen.wait_for("> ")
    screen.type("!echo from-the-$((40+2))\n")
    screen.wait_for("from-the-42")
    screen.wait_for("> ")
    screen.type("!!echo secret-$((40+2)); exit 3\n")
    screen.wait_for("exit code 3")
    screen.wait_for("> ")
    screen.type("/ship it\n")
    screen.wait_for("Aye.")
    screen.wait_for("> ")
    screen.type("/quit\n")
    assert screen.end() == 0
    system, output, ship = provider.requests[0]["messages"]
    assert "pirate" in system["content"]
    assert '<output exit_code="0">\nfrom-the-42\n</output>' in output["content"]
    assert ship["content"] == "Ship it now."
    assert "secret-42" not in json.dumps(provider.requests)
    screen = Screen(place, "-m", "openai:m", env=provider.env, trusts=False)
    screen.wait_for("> ")
    screen.type("/quit\n")
    assert screen.end() == 0
    assert "Do you trust" not in screen.text


def test_the_plain_chat_asks_again_when_what_was_allowed_has_changed(place: Place, provider: Provider):
    commands = place.here / ".swink" / "commands"
    commands.mkdir(parents=True)
    (commands / "ship.md").write_text("Ship it.")
    place.trust()
    (commands / "ship.md").write_text("Ship it to the thief.")
    (commands / "new.md").write_text("New.")
    for is_asked in (True, False):
        screen = Screen(place, "-m", "openai:m", env=provider.env, trusts=False)
        if is_asked:
            screen.wait_for("You trust this folder, but have not seen this in it yet")
            assert "new: .swink/commands/new.md" in screen.wait_for("changed: .swink/commands/ship.md")
            screen.wait_for("trust it? [y/N] ")
            screen.type("y\n")
        screen.wait_for("> ")
        screen.type("/ship\n")
        screen.wait_for("Hello there.")
        screen.type("/quit\n")
        assert screen.end() == 0
        assert ("have not seen" in screen.text) == is_asked
        assert provider.requests[-1]["messages"][-1]["content"] == "Ship it to the thief."


def test_a_run_without_a_terminal_does_not_use_what_has_changed_and_says_what_to_do(
    place: Place, provider: Provider
):
    place.write("main.py", "print(42)\n")
    place.write("AGENTS.md", "Speak like a pirate.")
    place.trust()
    arguments = ("run", "--coding", "-m", "openai:m", "Hi")
    assert "brings along" not in place.swink(*arguments, env=provider.env).err
    place.write(".mcp.json", json.dumps({"mcpServers": {"evil": {"command": "touch", "args": ["pwned"]}}}))
    done = place.swink(*arguments, env=provider.env)
    assert done.code == 0
    assert "new: server evil of .mcp.json: touch pwned" in done.err
    assert "to allow it, run swink trust in that folder" in done.err
    assert not (place.here / "pwned").exists()
    systems = [request["messages"][0]["content"] for request in provider.requests]
    assert ["pirate" in system for system in systems] == [True, False]
    listed = place.swink("mcp", "list", env=provider.env)
    assert "evil" not in listed.out
    assert "what you have not allowed yet" in listed.err
    assert "have not allowed yet" in place.swink("doctor", env=provider.env).out


def test_max_turns_bounds_a_run_and_its_sub_agents_together(place: Place, provider: Provider):
    place.write("main.py", "print(42)\n")
    provider.replies = [
        [Call("task", task="Look.")],
        *[[Call("read_file", path="main.py", offset=number + 1)] for number in range(40)],
    ]
    done = place.swink(
        "run", "--coding", "--max-turns", "3", "--approve", "off", "-m", "openai:m", "Go", env=provider.env
    )
    assert done.code == 1
    assert "max turns: 3 of 3 model calls made" in done.err
    assert len(provider.requests) == 3


def test_max_turns_bounds_the_agents_that_a_tool_starts(place: Place, provider: Provider):
    place.write(
        "mine.py",
        "from swink import Agent\nfrom swink.teams import agent_tool\n"
        "research = agent_tool(lambda: Agent('openai:m'), 'research', 'Finds out.')\n",
    )
    provider.replies = [[Call("research", task="Look.")], [Call("nothing")]]
    done = place.swink(
        *("run", "--tool", "mine:research", "--max-turns", "3", "--approve", "off", "-m", "openai:m", "Go"),
        env=provider.env,
    )
    assert done.code == 1
    assert len(provider.requests) == 3


def test_the_limits_and_options_of_a_run_reach_its_sub_agents(place: Place, provider: Provider):
    place.write("main.py", "print(42)\n")
    read = Call("read_file", path="main.py")
    provider.replies = [[Call("task", task="Look.")], [read], [STALL]]
    done = place.swink(
        *(
            "run",
            "--coding",
            "--deadline",
            "2",
            "--approve",
            "off",
            "-m",
            "openai:gpt-5",
            "--max-tokens",
            "77",
        ),
        *("--thinking", "low", "Go"),
        env=provider.env,
    )
    assert done.code == 1
    assert "deadline" in done.err
    assert len(provider.requests) == 3
    for name in ("max_tokens", "max_completion_tokens", "reasoning_effort"):
        assert len({request.get(name) for request in provider.requests}) == 1
    assert 77 in provider.requests[2].values()
    assert "print(42)" in provider.requests[2]["messages"][-1]["content"]  # nobody had to approve it


def test_a_sub_agent_is_stopped_before_it_exceeds_the_budget(place: Place, provider: Provider):
    place.write("main.py", "print(42)\n")
    provider.replies = [[Call("task", task="Look. " + "word " * 20_000)], ["Too dear."]]
    done = place.swink(
        *("run", "--coding", "--budget", "0.03", "--approve", "off", "-m", "openai:gpt-5", "Go"),
        env=provider.env,
    )
    assert done.out == "Too dear.\n"
    assert "'task' was stopped: budget" in provider.requests[1]["messages"][-1]["content"]
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("arguments", "environ", "why"),
    [
        (["--plain"], {"TERM": "xterm"}, ""),
        ([], {"TERM": "xterm", "SWINK_PLAIN": "1"}, ""),
        ([], {"TERM": "dumb"}, "TERM=dumb cannot show it"),
        ([], {"TERM": "xterm"}, "standard output is no terminal"),
    ],
)
def test_the_plain_chat_says_why_it_is_one(
    arguments: list[str], environ: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("SWINK_PLAIN", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    has_terminal = "dumb" in environ["TERM"]
    monkeypatch.setattr("sys.stdin.isatty", lambda: has_terminal, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: has_terminal, raising=False)
    assert why_plain(parse_arguments(arguments)) == why
