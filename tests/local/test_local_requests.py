"""The requests of one reply: a call that has to be, and one that was made before."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

from talking import Spec

from swink.local.callgrammar import NO_CALL, CallGrammar, call_grammar, call_text
from swink.local.model import LocalModel
from swink.local.replyrequests import ReplyRequests
from swink.messages import AssistantMessage, ModelSpec, ToolCall, Usage
from swink.stream import Assembly, Start, StreamOptions

READ = Spec("read_file", "Read.", {"path": {"type": "string"}})
GRAMMAR = call_grammar([READ])
SEEN = ToolCall("1", "read_file", {"path": "a.py"})
MADE = [("read_file", '{"path":"a.py"}')]


class Writer:
    """Writes the same texts whatever it is asked, and keeps the grammars it was held to."""

    model_id = "writer"

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)
        self.grammars: list[str] = []

    async def generate(self, request: Mapping[str, Any], key: object) -> AsyncGenerator[dict[str, Any], None]:
        self.grammars.append(request["grammar"])
        for char in self._texts.pop(0):
            yield {"choices": [{"delta": {"content": char}}]}
        yield {"choices": [{"delta": {}, "finish_reason": "stop"}]}


async def chosen(
    writer: Writer, made: list[tuple[str, str]], *, must_call: bool, grammar: CallGrammar = GRAMMAR
) -> AssistantMessage:
    requests = ReplyRequests(cast(LocalModel, writer), StreamOptions(), "key")
    assembly = Assembly()
    assembly.feed(Start())
    async for event in requests.choice({"max_tokens": 50}, grammar, made, must_call=must_call):
        assembly.feed(event)
    return assembly.message(ModelSpec("local", "writer"), "stop", usage=Usage())


async def test_a_call_that_has_to_be_is_written_under_a_grammar_without_words():
    writer = Writer(call_text(SEEN))
    message = await chosen(writer, [], must_call=True)
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("read_file", {"path": "a.py"})]
    assert writer.grammars == [GRAMMAR.text]


async def test_the_same_call_again_becomes_words_even_where_a_call_has_to_be():
    writer = Writer(call_text(SEEN), "There is no such file.")
    message = await chosen(writer, MADE, must_call=True)
    assert (message.text, message.tool_calls) == ("There is no such file.", ())
    assert writer.grammars == [GRAMMAR.text, NO_CALL]


async def test_another_call_is_made_in_the_place_of_a_wrong_one():
    writer = Writer(call_text(ToolCall("2", "read_file", {"path": "b.py"})))
    message = await chosen(writer, MADE, must_call=True)
    assert [call.arguments for call in message.tool_calls] == [{"path": "b.py"}]


async def test_where_it_may_choose_the_first_character_tells_words_from_a_call():
    writer = Writer("Hello!")
    message = await chosen(writer, [], must_call=False)
    assert (message.text, message.tool_calls) == ("Hello!", ())
    assert writer.grammars == [GRAMMAR.or_words(None)]
