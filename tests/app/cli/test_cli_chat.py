"""The chat: `swink` without a command, in a terminal and without one."""

from command_line import STALL, TOOLS, Call, Place, Provider, Refusal, Screen, without_styles


def test_a_conversation_line_by_line(place: Place, provider: Provider):
    provider.replies = [["Hello!"], ["Fine."], Refusal(400, "no good"), ["Who?"]]
    screen = Screen(place, env=provider.env)
    assert "swink: using openai:gpt-5 (OPENAI_API_KEY is set" in screen.wait_for("/help")
    screen.wait_for("> ")
    screen.type("hi\n")
    screen.wait_for("Hello!\n")
    screen.type("how are you?\n")
    screen.wait_for("Fine.\n")
    screen.type("what?\n")
    screen.wait_for("no good")
    screen.type("/clear\n")
    screen.wait_for("forgotten")
    screen.type("/model\n")
    screen.wait_for("openai:gpt-5\n")
    screen.type("/model opnai:x\n")
    assert "unknown provider 'opnai'" in without_styles(screen.wait_for("did you mean"))
    screen.type("/model openai:other\n")
    screen.wait_for("switched to openai:other")
    screen.type("remember me?\n")
    screen.wait_for("Who?\n")
    screen.type("/nonsense\n")
    screen.wait_for("there is no /nonsense")
    screen.type("/quit\n")
    assert screen.end() == 0
    assert [len(request["messages"]) for request in provider.requests] == [
        2,
        4,
        6,
        2,
    ]  # the first is the prompt
    assert [request["model"] for request in provider.requests] == ["gpt-5", "gpt-5", "gpt-5", "other"]


def test_ctrl_c_stops_the_reply_and_the_conversation_goes_on(place: Place, provider: Provider):
    provider.replies = [["Once upon", STALL], ["The end."]]
    screen = Screen(place, "--model", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type("a story\n")
    screen.wait_for("Once upon")
    screen.type("\x03")
    screen.wait_for("interrupted")
    screen.wait_for("> ")
    screen.type("go on\n")
    screen.wait_for("The end.")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    assert [message["content"] for message in provider.requests[1]["messages"][1:]] == [
        "a story",
        "Once upon",
        "go on",
    ]


def test_the_chat_asks_again_and_ctrl_c_at_the_question_only_stops_the_reply(
    place: Place, provider: Provider
):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("delete", path="x")], ["Well then."]]
    screen = Screen(place, "--tool", "tools:delete", "--model", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type("delete it\n")
    screen.wait_for("[y/N] ")
    screen.type("perhaps\n")
    screen.wait_for("please answer y, a or n")
    screen.type("\x03")
    screen.wait_for("interrupted")
    screen.wait_for("> ")
    screen.type("leave it\n")
    screen.wait_for("Well then.")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    assert not (place.here / "deleted.txt").exists()


def test_the_second_ctrl_c_leaves(place: Place, provider: Provider):
    provider.replies = [["Once upon", STALL]]
    screen = Screen(place, "--model", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type("a story\n")
    screen.wait_for("Once upon")
    screen.type("\x03")
    screen.wait_for("interrupted")
    screen.wait_for_prompt()
    screen.type("\x03")
    assert screen.end() == 130


def test_one_ctrl_c_at_the_prompt_only_says_how_to_leave(place: Place, provider: Provider):
    screen = Screen(place, "--model", "openai:m", env=provider.env)
    screen.wait_for_prompt()
    screen.type("\x03")
    screen.wait_for("(Ctrl-C again, Ctrl-D or /quit leaves)")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    assert provider.requests == []


def test_the_chat_changes_when_it_asks(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    weather, delete = [Call("weather", city="Oslo")], [Call("delete", path="x")]
    provider.replies = [weather, ["One."], delete, ["Two."], weather, ["Three."], delete, ["Four."]]
    screen = Screen(place, "--tool", "tools:both", "--model", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type("/approve\n")
    screen.wait_for("smart: ask for tools that require approval")
    screen.type("a\n")
    assert "[y/N]" not in screen.wait_for("One.")
    screen.type("/approve always\n")
    screen.wait_for("'always' is now 'off'")
    screen.type("/approve deny\n")
    screen.wait_for("deny: refuse what would ask")
    screen.type("b\n")
    assert "[y/N]" not in screen.wait_for("Two.")
    assert not (place.here / "deleted.txt").exists()
    screen.type("/approve on\n")
    screen.wait_for("on: ask for every call")
    screen.type("c\n")
    screen.wait_for("allow weather? [y/N] ")
    screen.type("y\n")
    screen.wait_for("Three.")
    screen.type("/approve off\n")
    screen.wait_for("off: ask for none")
    screen.type("d\n")
    assert "[y/N]" not in screen.wait_for("Four.")
    assert (place.here / "deleted.txt").exists()
    screen.type("/quit\n")
    assert screen.end() == 0


STUCK = '''
import asyncio, time

async def blocks() -> str:
    """Wait in a thread, for ever."""
    await asyncio.to_thread(time.sleep, 1e6)

async def swallows() -> str:
    """Wait, whatever happens."""
    while True:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            pass

both = [blocks, swallows]
'''


def test_a_tool_that_is_stuck_does_not_keep_the_chat_from_ending(place: Place, provider: Provider):
    place.write("stuck.py", STUCK)
    provider.replies = [[Call("blocks"), Call("swallows")]]
    screen = Screen(place, "--tool", "stuck:both", env=provider.env)
    screen.wait_for("> ")
    screen.type("go\n")
    screen.wait_for("→ blocks")
    screen.wait_for("→ swallows")
    screen.type("\x03")
    screen.wait_for("interrupted")
    screen.wait_for("> ")
    screen.type("/quit\n")
    assert screen.end() == 0
