"""Events as lines of JSON: the short way that most events take says the same as the long one."""

import json

import pytest

from swink.events import MessageUpdate, TextDelta, ThinkingDelta
from swink.events.eventlines import encode_event


@pytest.mark.parametrize("kind", [TextDelta, ThinkingDelta])
@pytest.mark.parametrize("text", ["", "plain", 'quoted "\\" and\n', "\u2028 é 😀", "\x00"])
def test_a_delta_is_written_with_the_names_of_python(kind: type, text: str):
    name = "text_delta" if kind is TextDelta else "thinking_delta"
    written = encode_event(MessageUpdate(kind(3, text)))
    assert json.loads(written) == {
        "type": "message_update",
        "delta": {"type": name, "index": 3, "text": text},
    }


def test_a_delta_with_half_a_character_is_still_a_line_of_json():
    assert b"\n" not in encode_event(MessageUpdate(TextDelta(0, "half \ud800 a")))
