"""Selecting with the mouse in a real terminal: what is copied is what was written."""

import base64
import re

from command_line import Place, Provider
from terminal import Terminal
from tests.counts import left_to_more

REPLY = """\
Done with **all of it**, and this sentence is so long that it goes over the end of the line:

- one `x`
- two

```python
def f():
    print(1)
```
"""


@left_to_more
def test_a_drag_of_the_mouse_and_ctrl_c_copy_the_source(place: Place, provider: Provider):
    place.trust()
    provider.replies = [[REPLY]]
    with Terminal(place, "--model", "openai:m", env=provider.env, size=(60, 28)) as terminal:
        terminal.wait_for("idle", "Execute")
        terminal.type("look\r")
        terminal.wait_for("print(1)", "tokens in", "idle")
        rows = [line.rstrip() for line in terminal.screen.display]
        first = next(number for number, line in enumerate(rows, 1) if "Done with" in line)
        last = next(number for number, line in enumerate(rows, 1) if "print(1)" in line)
        terminal.type(f"\x1b[<0;3;{first}M")
        for row in range(first, last + 1):
            terminal.type(f"\x1b[<32;30;{row}M")
        terminal.type(f"\x1b[<0;30;{last}m")
        terminal.press("ctrl+c")
        terminal._wait(lambda: "\x1b]52;c;" in terminal.text, "the clipboard")
        (copied,) = re.findall(r"\x1b\]52;c;([A-Za-z0-9+/=]+)", terminal.text)
        assert base64.b64decode(copied).decode() == REPLY.rstrip("`\n").rstrip()
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
