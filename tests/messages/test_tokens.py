"""The token estimate (X1): how far it is from a tokenizer's count, and how it learns from a provider's."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.counts import in_cells

from swink import Agent, ModelSpec, Tool, Usage, tool
from swink.agent.context.prefixguard import TokenRatio
from swink.errors import ContextWindowOverflow, InvalidInput
from swink.messages import AssistantMessage, Image, ToolCall, UserMessage
from swink.messages.history import History
from swink.messages.tokens import count_tokens, estimate_tokens, overhead_tokens, text_size
from swink.stream import LlmContext
from swink.testing import ScriptedModel
from swink.tools import coding_tools

ROOT = Path(__file__).parents[2]
CHINESE = """\
这个程序读取一个目录中的所有文件，计算每个文件的行数，并把结果写入一张表格。如果文件无法读取，程序会记录错误，然后继续处理下一个文件。
用户可以在配置文件中设置超时时间和重试次数。服务器收到请求以后，先检查权限，再查询数据库，最后把结果以 JSON 格式返回给客户端。
昨天下午我们去了河边散步，天气很好，风也不大。孩子们在草地上放风筝，老人坐在树下聊天，远处的山在阳光里显得特别清楚。
请注意，升级之前应当备份数据；否则一旦出现问题，就无法恢复到原来的状态。测试通过以后，我们会在下个星期发布新的版本。
他说这本书写得不错，可惜结尾有些仓促。我却觉得正是这样的结尾才让人记得住，因为生活里的故事常常也没有答案。
委员会认为，第三季度的销售额比去年同期增长了百分之十二，主要原因是新产品上市以及出口订单增加；成本方面则基本保持稳定。
"""
"""Modern prose of several kinds; classical Chinese and lists of terms take up to a third more."""


def english() -> str:
    """Prose: the paragraphs of the pages, without their code."""
    pages = [path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    blocks = [block for page in pages for block in page.split("\n\n")]
    return "\n\n".join(block for block in blocks if block[:1].isalpha() and "`" not in block)


def code() -> str:
    return "\n".join(
        path.read_text("utf-8") for path in sorted((ROOT / "src" / "swink" / "agent" / "engine").glob("*.py"))
    )


def schemas(tmp_path: Path) -> list[Any]:
    return list(coding_tools(tmp_path, sandbox="none"))


def close(estimated: float, text: str) -> None:
    assert estimated == pytest.approx(count_tokens(text), rel=0.15)


@in_cells("size", [1_000, 4_000, 20_000, None], every=2)
def test_english_is_within_15_percent_of_a_tokenizer(size: int | None):
    pytest.importorskip("bpe_openai")
    text = english()[:size]
    close(text_size(text) / 4, text)


@pytest.mark.parametrize("size", [1_000, 4_000, 20_000, 100_000])
def test_code_is_within_15_percent_of_a_tokenizer(size: int):
    pytest.importorskip("bpe_openai")
    text = code()[:size]
    close(text_size(text) / 4, text)


@pytest.mark.parametrize("size", [150, 400, None])
@pytest.mark.parametrize("times", [1, 40])
def test_chinese_is_within_15_percent_of_a_tokenizer(size: int | None, times: int):
    pytest.importorskip("bpe_openai")
    text = CHINESE[:size] * times
    close(text_size(text) / 4, text)


def test_tool_schemas_are_within_15_percent_of_a_tokenizer(tmp_path: Path):
    pytest.importorskip("bpe_openai")
    tools = schemas(tmp_path)
    told = [{"name": x.name, "description": x.description, "parameters": x.parameters_schema} for x in tools]
    close(overhead_tokens("", tools), json.dumps(told, separators=(",", ":")))


def test_mixed_text_is_within_15_percent_of_a_tokenizer():
    pytest.importorskip("bpe_openai")
    parts = [english()[:3_000], CHINESE, code()[:3_000], json.dumps({"a": [1.5, True, None, "b"] * 80})]
    random.Random(7).shuffle(parts)
    text = "\n".join(parts)
    close(text_size(text) / 4, text)


def test_a_history_of_texts_is_measured_at_once_about_as_message_by_message():
    text = english()
    messages = [UserMessage(text[place : place + 700]) for place in range(0, 30_000, 700)]
    assert History(messages).most_tokens() == pytest.approx(sum(map(estimate_tokens, messages)), rel=0.1)


def test_images_calls_and_data_count():
    assert estimate_tokens(UserMessage((Image.from_url("https://a.b/c.png"),))) > 1_000
    assert estimate_tokens(AssistantMessage((ToolCall("1", "write", {"text": "word " * 400}),))) > 350
    assert text_size("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 40) > 4 * 700, "base64 is no words"


def test_a_text_that_cannot_be_encoded_has_a_size_too():
    assert text_size("\ud800" * 500) > 0


def test_an_unknown_encoding_is_an_error_and_a_known_one_is_exact():
    pytest.importorskip("bpe_openai")
    assert count_tokens("hello world") == 2


def test_without_the_tokenizer_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "bpe_openai", None)
    with pytest.raises(InvalidInput, match="install"):
        count_tokens("hello")


# Calibration

MODEL = ModelSpec("test", "m")


def taught(*reports: int, words: int = 2_000) -> tuple[TokenRatio, int]:
    """What is learnt from these counts of one request, and what it is estimated at."""
    tokens, context = TokenRatio(), LlmContext("", (UserMessage("word " * words),))
    for report in reports:
        tokens.learn(MODEL, context, Usage(input=report))
    return tokens, estimate_tokens(context.messages[0])


def test_the_estimate_follows_what_the_provider_counts():
    tokens, estimated = taught(3_000)
    assert tokens.ratio(MODEL) == pytest.approx(3_000 / estimated)
    assert tokens.ratio(ModelSpec("test", "other")) == 1, "each model has its own tokenizer"


def test_one_odd_count_moves_it_a_little():
    tokens, _ = taught(2_000, 2_000, 4_000)
    assert 1.2 < tokens.ratio(MODEL) < 1.5


@pytest.mark.parametrize("report", [0, 1, 200, 60_000])
def test_a_count_that_cannot_be_of_this_request_is_ignored(report: int):
    tokens, _ = taught(report)
    assert tokens.ratio(MODEL) == 1


def test_it_stays_within_bounds():
    tokens, estimated = taught(*[4_900] * 50)
    assert 4_900 / estimated > 2
    assert tokens.ratio(MODEL) == 2


def test_what_was_read_from_a_cache_counts_and_an_unknown_count_does_not():
    tokens, context = TokenRatio(), LlmContext("", (UserMessage("word " * 2_000),))
    tokens.learn(MODEL, context, Usage(input=3_000, unknown=True))
    assert tokens.ratio(MODEL) == 1
    tokens.learn(MODEL, context, Usage(input=100, cache_read=2_800, cache_write=100))
    assert tokens.ratio(MODEL) == pytest.approx(1.5, rel=0.05)


def test_another_prompt_or_other_tools_are_measured_again():
    @tool
    async def work() -> str:
        """Works hard, and for long."""
        return ""

    tokens, tools = TokenRatio(), (work,)
    for prompt, given in (("short", ()), ("longer " * 50, ()), ("longer " * 50, tools), ("short", ())):
        assert tokens.overhead(prompt, given) == overhead_tokens(prompt, given)


async def test_a_window_is_cut_earlier_if_the_provider_counts_more():
    spec = ModelSpec("test", "m", context_window=10_000)
    talk = [kind("word " * 100) for _ in range(30) for kind in (UserMessage, AssistantMessage)]
    sent = []
    for counted in (6_100, 12_000):
        model = ScriptedModel(["a", "b"], usage=Usage(input=counted, output=5))
        agent = Agent(spec, stream_fn=model, messages=talk)
        await agent.run("q")
        await agent.run("q")
        assert len(model.calls[0].messages) == 61
        sent.append(len(model.calls[1].messages))
    assert sent[0] == 63
    assert sent[1] < 45


async def test_large_tools_leave_less_room_for_messages():
    spec = ModelSpec("test", "m", context_window=10_000)
    talk = [kind("word " * 100) for _ in range(30) for kind in (UserMessage, AssistantMessage)]
    tool = Tool.raw("big", "word " * 4_000, {"type": "object"}, lambda call_id, arguments, ctx: "x")
    model = ScriptedModel(["a"])
    await Agent(spec, stream_fn=model, messages=talk, tools=[tool]).run("q")
    assert len(model.calls[0].messages) < 50


async def test_where_tools_take_all_the_room_after_an_overflow_all_that_may_go_is_dropped():
    spec = ModelSpec("test", "m", context_window=10_000)
    talk = [kind("word " * 100) for _ in range(5) for kind in (UserMessage, AssistantMessage)]
    tool = Tool.raw("big", "word " * 8_000, {"type": "object"}, lambda call_id, arguments, ctx: "x")
    model = ScriptedModel([ContextWindowOverflow("too long"), "a"])
    await Agent(spec, stream_fn=model, messages=talk, tools=[tool]).run("q")
    assert [len(context.messages) for context in model.calls] == [11, 2]
