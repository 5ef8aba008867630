"""An editor that only hands on: it starts the agent of its arguments, says its pid, and copies lines both ways."""

import subprocess
import sys
import threading

agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert agent.stdin is not None
assert agent.stdout is not None
print(agent.pid, flush=True)


def hand_on() -> None:
    """What the test says, to the agent, until the test has nothing to say."""
    assert agent.stdin is not None
    for line in sys.stdin.buffer:
        agent.stdin.write(line)
        agent.stdin.flush()
    agent.stdin.close()


threading.Thread(target=hand_on, daemon=True).start()
for line in agent.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
