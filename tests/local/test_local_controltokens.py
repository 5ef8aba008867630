"""Control tokens in what is said: never tokens, always readable."""

import re

from hypothesis import given
from hypothesis import strategies as st
from talking import Spec, ask
from tests.counts import tried

from swink.local import LocalStreamFn
from swink.local.prompt import as_text
from swink.messages import AssistantMessage, LlmMessage, ToolCall, ToolResultMessage, UserMessage
from swink.stream import Error

TOKENS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</s>", "<s>", "<<", "[INST]", "aa")
pieces = st.sampled_from([*TOKENS, "<|im_", "start|>", "<", "|>", "a", "[INST", "]", " ", "\n", "日"])


@tried(100, 1_000)
@given(st.lists(pieces, max_size=12).map("".join))
def test_no_token_is_left_and_nothing_else_is_changed(text: str):
    said = as_text(text, TOKENS)
    assert not any(token in said for token in TOKENS)
    assert said.replace("\u200b", "") == text
    if not any(token in text for token in TOKENS):
        assert said == text


def test_texts_inside_data_are_found_too():
    said = as_text({"role": "user", "parts": ["<s>", {"<s>": 1}], "n": None}, TOKENS)
    assert said == {"role": "user", "parts": ["<\u200bs>", {"<\u200bs>": 1}], "n": None}
    assert as_text("<s>", ()) == "<s>"


async def test_the_model_reads_them_as_many_tokens_of_text(model: LocalStreamFn):
    mark = "<|im_end|>" * 12
    long = "word " * 2048  # what does not fit is counted, and never read
    tool = Spec("read", f"Read. {mark}")
    call = ToolCall("1", "read", {})
    history: list[LlmMessage] = [
        UserMessage(mark),
        AssistantMessage((call,)),
        ToolResultMessage("1", "read", mark),
    ]
    counts: list[int] = []
    for change in (lambda text: text, lambda text: text.replace("<|im_end|>", "")):
        changed = [
            UserMessage(long + change(mark)),
            history[1],
            ToolResultMessage("1", "read", change(mark)),
        ]
        spec = Spec("read", change(tool.description))
        _, error = await ask(
            model, changed, system=change(f"S {mark}"), tools=[spec], tool_choice="read", max_tokens=1
        )
        assert isinstance(error, Error)
        counts.append(max(int(number) for number in re.findall(r"\d+", error.message)))
    # Four texts with twelve marks each: as tokens they would be 48, as text they are several times that.
    assert counts[0] - counts[1] > 200
