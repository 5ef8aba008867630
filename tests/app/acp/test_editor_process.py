"""`swink acp` as an editor starts it: a process, of whose output every line is the protocol's."""

import json
import signal

from command_line import STALL, Call, Place, Provider
from editor_process import Process

NOISY = '''
import os, subprocess
print("loaded")

def shout() -> str:
    """Say something everywhere."""
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"])
    return "said"
'''


def test_nothing_but_the_protocol_gets_to_standard_output(place: Place, provider: Provider):
    place.trust()
    place.write("noisy.py", NOISY)
    provider.replies = [[Call("shout")], ["Done."]]
    agent = Process(place, "-t", "noisy:shout", "--approve", "off", env=provider.env)
    session = agent.open(place)
    ended = agent.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Shout"}])
    assert ended["stopReason"] == "end_turn"
    rest, told = agent.process.communicate(timeout=60)
    assert all(json.loads(line) for line in rest.splitlines())
    for word in (b"loaded", b"printed", b"written", b"echoed"):
        assert word in told
    assert agent.process.returncode == 0


def test_a_process_that_is_killed_loses_nothing_that_was_saved(place: Place, provider: Provider):
    place.trust()
    provider.replies = [["One."], ["half ", STALL], ["Two."]]
    agent = Process(place, env=provider.env)
    session = agent.open(place)
    agent.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "First"}])
    agent.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Second"}])
    while "half" not in agent.words():
        agent.read()
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    again = Process(place, env=provider.env)
    again.ask("initialize", protocolVersion=1)
    again.ask("session/load", sessionId=session, cwd=str(place.here), mcpServers=[])
    assert again.words().startswith("FirstOne.Second")
    again.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "/continue"}])
    assert again.words().endswith("Two.")
    again.process.communicate(timeout=60)
