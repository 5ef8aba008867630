"""How full a context is, and with what."""

from swink import tool
from swink.app.assistant.contextuse import measure
from swink.messages import AssistantMessage, ModelSpec, Text, ToolResultMessage, UserMessage


@tool
def look(path: str) -> str:
    """Look at something."""
    return path


def test_every_part_of_the_context_is_counted_once():
    messages = [
        UserMessage("word " * 100),
        AssistantMessage("word " * 50),
        ToolResultMessage("1", "read_file", (Text("word " * 400),)),
        ToolResultMessage("2", "bash", (Text("word " * 200),)),
    ]
    use = measure(ModelSpec("test", "m", context_window=2_000), "Be brief. " * 20, [look], messages)
    tokens = {part.name: part.tokens for part in use.parts}
    assert [*tokens] == ["system", "tools", "history", "files", "tool results"]
    assert (
        tokens["files"] > tokens["tool results"] > tokens["history"] > tokens["system"] > tokens["tools"] > 0
    )
    assert use.free == 2_000 - sum(tokens.values())


def test_a_window_that_is_full_or_unknown_has_no_negative_room():
    full = measure(ModelSpec("test", "m", context_window=10), "word " * 100, (), ())
    assert full.free == 0
    assert measure(ModelSpec("test", "m"), "", (), ()).free is None
