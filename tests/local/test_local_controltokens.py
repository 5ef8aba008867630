"""Control tokens in what is said: never tokens, always readable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talking import Spec, ask
from tests.counts import MORE, tried

from swink.local import LocalStreamFn
from swink.local.controltokens import as_text
from swink.messages import AssistantMessage, LlmMessage, ToolCall, ToolResultMessage, UserMessage

TOKENS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</s>", "<s>", "<<", "[INST]", "aa")
pieces = st.sampled_from([*TOKENS, "<|im_", "start|>", "<", "|>", "a", "[INST", "]", " ", "\n", "日"])


@tried(100, 3000)
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


@pytest.mark.more
async def test_the_model_reads_them_as_many_tokens_of_text(model: LocalStreamFn):
    times = 12 if MORE else 4
    mark = "<|im_end|>" * times
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
            UserMessage(change(mark) or "-"),
            history[1],
            ToolResultMessage("1", "read", change(mark)),
        ]
        spec = Spec("read", change(tool.description))
        _, done = await ask(
            model, changed, system=change(f"S {mark}"), tools=[spec], tool_choice="read", max_tokens=1
        )
        counts.append(done.usage.input + done.usage.cache_read)
    # Four texts with so many marks each: as text they are several times as many tokens.
    assert counts[0] - counts[1] > 16 * times
