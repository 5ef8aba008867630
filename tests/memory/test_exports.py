"""Export: a session as JSON, Markdown or HTML, and never a secret in any of them."""

import html
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import crossed, in_cells, left_to_more, tried
from tests.linecount import Lines, lines_of
from tests.strategies import messages as any_messages

from swink import Agent, ToolCall, tool
from swink.errors import InvalidInput
from swink.events.transcript import Transcript, lasting
from swink.memory import EXPORT_FORMATS, MemoryStore, export, read_export
from swink.memory.backend import Stored
from swink.memory.exports.clean import clean_record
from swink.memory.exports.markdown import fence, safe_markdown
from swink.memory.exports.prose import render
from swink.memory.meta import grown, new_meta
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Extension,
    Image,
    Message,
    ModelSpec,
    Text,
    Thinking,
    ToolResult,
    ToolResultMessage,
    UserMessage,
    register_custom,
)
from swink.messages.jsondata import encode
from swink.messages.records import (
    CallEnded,
    CallStarted,
    Compaction,
    Conversation,
    FilesChanged,
    Label,
    ModelChange,
    PendingApproval,
    PromptChange,
    QueueChange,
    Record,
    StateChange,
    TurnOpened,
    UnknownRecord,
    decode_record,
    encode_record,
    saved,
)
from swink.testing import ScriptedModel

KEY = "sk-ant-api03-" + "A1b2C3d4" * 11 + "-xYzAAA"
PNG = Image.from_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 16)


def of(*messages: Message) -> list[Record]:
    return [saved(message, number) for number, message in enumerate(messages)]


def stored(records: list[Record]) -> Stored:
    return Stored(grown(new_meta("A title", now=1.0), records, now=2.0), tuple(records))


class Login(msgspec.Struct):
    user: str
    password: int


register_custom("export-login", Login)

PLACES: dict[str, Callable[[str], list[Record]]] = {
    "prompt": lambda key: of(UserMessage(f"my key is {key}, keep it")),
    "reply": lambda key: of(UserMessage("x"), AssistantMessage(f"use `{key}`")),
    "thinking": lambda key: of(AssistantMessage((Thinking(f"so {key}"),))),
    "arguments": lambda key: of(
        AssistantMessage(
            (ToolCall("c", "bash", {"command": f"curl -H 'x-api-key: {key}' a", "deep": [{"k": key}]}),)
        )
    ),
    "malformed arguments": lambda key: of(AssistantMessage((ToolCall("c", "bash", {}, '{"key": "' + key),))),
    "result": lambda key: of(ToolResultMessage("c", "bash", f"KEY={key}\n")),
    "details": lambda key: of(
        ToolResultMessage("c", "bash", "ok", details={"env": {"A": key}, "full": [key]})
    ),
    "whole text of a result": lambda key: of(
        ToolResultMessage("c", "bash", "a[… 1 of 2 characters cut …]", details={"full_text": key})
    ),
    "diff": lambda key: of(
        AssistantMessage((ToolCall("c", "edit_file", {"path": "f", "edits": [{"old": key, "new": "b"}]}),)),
        ToolResultMessage(
            "c",
            "edit_file",
            "ok",
            details={
                "path": "f",
                "is_new_file": False,
                "old_content": f"a\n{key}\n",
                "new_content": "a\nb\n",
                "hash": "h",
            },
        ),
    ),
    "error": lambda key: of(AssistantMessage("", stop_reason="error", error_message=f"bad key {key}")),
    "custom message": lambda key: of(CustomMessage("note", {"text": key})),
    "extension": lambda key: of(UserMessage((Extension("x", {"k": key}),))),
    "image address": lambda key: of(UserMessage((Image.from_url(f"https://a.b/c?api_key={key}"),))),
    "system prompt": lambda key: [PromptChange(f"the key is {key}")],
    "state": lambda key: [StateChange({"note": key})],
    "queue": lambda key: [QueueChange([UserMessage(key)], [UserMessage(key)])],
    "compaction": lambda key: [Compaction([UserMessage(f"summary: {key}")])],
    "label": lambda key: [Label(key, 0)],
    "journal": lambda key: [
        TurnOpened(AssistantMessage((ToolCall("c", "bash", {"a": key}),))),
        CallStarted("c"),
        CallEnded("c", ToolResult(f"it is {key}", {"k": key})),
    ],
    "approval": lambda key: [
        TurnOpened(AssistantMessage((ToolCall("c", "bash", {"a": key}),))),
        PendingApproval("c", "bash", {"a": key}, {"a": key}),
    ],
    "directory of changed files": lambda key: [FilesChanged(0, f"/home/{key}/work", "before", "after")],
    "unknown record": lambda key: [UnknownRecord("new_kind", {"type": "new_kind", "text": key})],
    "split over two texts": lambda key: of(
        AssistantMessage((Text(f"it is {key[:30]}"), Thinking("hm"), Text(f"{key[30:]} there")))
    ),
    "split over three texts of a result": lambda key: of(
        ToolResultMessage("c", "bash", (Text(key[:20]), Text(key[20:40]), Text(key[40:])))
    ),
}


@crossed(place=[*PLACES], format=EXPORT_FORMATS)
def test_no_secret_is_in_any_export_wherever_it_was(place: str, format: Any):
    records = PLACES[place](KEY)
    text = export(stored(records), format)
    shown = html.unescape(re.sub(r"<[^>]*>", "", text))
    for part in (KEY, KEY[20:60], KEY[45:]):
        assert part not in text
        assert part not in shown
        assert part not in export(records, format)


def test_what_surrounds_a_secret_that_is_split_stays():
    (record,) = PLACES["split over two texts"](KEY)
    cleaned: Any = clean_record(record)
    assert cleaned.message.text == "it is [redacted] there"
    assert cleaned.message.thinking == "hm"


def test_a_secret_in_a_registered_class_is_redacted_even_if_the_class_takes_no_mark():
    (record,) = of(CustomMessage("export-login", Login("ann", 12345678)))
    cleaned: Any = clean_record(record)
    assert cleaned.message.data == {"user": "ann", "password": "[redacted]"}
    assert "12345678" not in export([record], "html")


def test_json_is_read_back_as_it_was():
    reply = AssistantMessage(
        (Text("a"), Thinking("b", "sig"), PNG, ToolCall("c", "t", {"x": [1, None, 1e300]})),
        "p",
        "m",
        timestamp=5.0,
    )
    records = [
        ModelChange(ModelSpec("p", "m")),
        PromptChange("be brief"),
        *of(
            UserMessage(("hi", PNG), 3.0),
            reply,
            ToolResultMessage("c", "t", "r", details={"n": 1}),
            CustomMessage("k", [1]),
        ),
        StateChange({"a": {"b": float("inf")}}),
        Compaction([1, UserMessage("sum", 9.0)], tokens_before=10, tokens_after=2),
        Label("here", 2),
        UnknownRecord("later", {"type": "later", "x": 1}),
        TurnOpened(reply),
        PendingApproval("c", "t", {"x": 1}, {"x": 1}),
    ]
    session = stored(records)
    again = read_export(export(session, "json"))
    assert again.meta == session.meta
    assert [encode_record(record) for record in again.records] == [
        encode_record(record) for record in records
    ]
    backend = MemoryStore().sync.backend
    backend.create(msgspec.structs.replace(again.meta, sequence=0), again.records)
    assert backend.read(again.meta.id).records == again.records


@tried(30, 1000)
@given(st.lists(any_messages, max_size=4))
def test_whatever_was_said_can_be_exported_and_json_comes_back(messages: list[Message]):
    records = of(*messages)
    expected = [decode_record(encode_record(clean_record(record))) for record in records]
    assert list(read_export(export(records, "json")).records) == expected
    export(records, "md").encode()
    export(records, "html").encode()


async def test_an_open_session_is_exported_like_its_records():
    @tool
    async def look(what: str) -> str:
        """Look."""
        return what

    store = MemoryStore()
    session = await store.create()
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([ToolCall("c", "look", {"what": "x"}), "done"]),
        tools=[look],
        session=session,
    )
    await agent.run("go")
    await session.append([], records=[Compaction([3]), Label("end", 4)])
    whole = store.sync.read(session.id)
    assert export(session, "md").replace("1 older", "") == export(whole, "md").replace("1 older", "")
    again = Conversation(read_export(export(session, "json")).records)
    assert again.messages == session.conversation.messages
    assert again.everything == session.conversation.everything
    assert again.labels == session.conversation.labels
    assert lasting(Transcript.of(again).blocks) == lasting(Transcript.of(session.conversation).blocks)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no exported session"),
        ("{", "no exported session"),
        ("[1]", "no session that was exported"),
        ('{"format":"other"}', "no session that was exported"),
        ('{"format":"swink-session","version":99}', "install a newer release"),
        ('{"format":"swink-session","version":1,"session":{}}', "damaged"),
        (b"\xff\xfe", "no exported session"),
    ],
)
def test_what_is_no_export_is_refused_with_the_reason(text: str | bytes, why: str):
    with pytest.raises(InvalidInput, match=why):
        read_export(text)


def test_an_unknown_format_is_refused_and_the_known_ones_are_named():
    with pytest.raises(InvalidInput, match="json, md, html"):
        export([], "pdf")  # pyright: ignore


@pytest.mark.parametrize("format", EXPORT_FORMATS)
def test_an_empty_session_has_an_export_too(format: Any):
    assert export([], format).endswith("\n")


@pytest.mark.parametrize("format", EXPORT_FORMATS)
def test_progress_is_told_in_order_to_its_end_and_not_too_often(format: Any):
    seen: list[tuple[int, int]] = []
    export(
        of(*[UserMessage(str(number)) for number in range(1000)]),
        format,
        progress=lambda *done: seen.append(done),
    )
    assert seen == sorted(seen)
    assert seen[-1] == (100, 100)
    assert len(seen) <= 120


@pytest.mark.parametrize("format", EXPORT_FORMATS)
def test_progress_of_a_short_session_is_told_too(format: Any):
    seen: list[tuple[int, int]] = []
    export(of(UserMessage("a"), UserMessage("b")), format, progress=lambda *done: seen.append(done))
    assert seen == sorted(seen)
    assert (50, 100) in seen
    assert seen[-1] == (100, 100)


def test_fences_survive_whatever_ticks_are_inside():
    assert fence("a ``` b", "text") == "````text\na ``` b\n````\n\n"
    text = export(of(ToolResultMessage("c", "bash", "```\n</details>\n# not a heading\n```")), "md")
    assert "````text\n```\n</details>\n# not a heading\n```\n````" in text


def test_markdown_of_a_reply_cannot_swallow_what_follows():
    assert safe_markdown("```py\nx").endswith("x\n```\n\n")
    assert safe_markdown("a <details> b `<b>` <!-- c") == "a &lt;details> b `<b>` &lt;!-- c\n\n"
    assert safe_markdown("<https://a.b> 1 < 2") == "<https://a.b> 1 < 2\n\n"
    assert safe_markdown("```\n<b>\n```\n<b>") == "```\n<b>\n```\n&lt;b>\n\n"


def test_markdown_has_its_facts_prompts_tools_and_diffs():
    details = {"path": "f", "is_new_file": True, "old_content": None, "new_content": "x\n", "hash": "h"}
    records = of(
        *[UserMessage(f"prompt {number}", 1e9) for number in range(5)],
        AssistantMessage((ToolCall("c", "write_file", {"path": "f"}),), "p", "m"),
        ToolResultMessage("c", "write_file", "created", details=details),
    )
    text = export(stored(records), "md")
    assert text.startswith("# A title\n")
    assert "1. [prompt 0](#prompt-1)" in text
    assert "## Prompt 5\n\n> prompt 4\n" in text
    assert "<summary>✓ <code>write_file</code> f (done)</summary>" in text
    assert "```diff\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+x\n```" in text


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        (
            "a *b* **c** ~~d~~ `e<f>`",
            "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e&lt;f&gt;</code></p>",
        ),
        ("# t", "<h3>t</h3>"),
        ("a\nb", "<p>a\nb</p>"),
        ("a  \nb", "<p>a<br>\nb</p>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li>b\n<ul><li>c</li></ul></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("> a\n> b", "<blockquote><p>a\nb</p></blockquote>"),
        ("---", "<hr>"),
        (
            "|a|b|\n|-|-:|\n|1|2|",
            '<div class="table" tabindex="0"><table><thead><tr><th>a</th><th class="right">b</th></tr></thead><tbody><tr><td>1</td><td class="right">2</td></tr></tbody></table></div>',
        ),
        ("[a](https://b.c)", '<p><a href="https://b.c" rel="noopener noreferrer nofollow">a</a></p>'),
        (
            "see https://b.c/d.",
            '<p>see <a href="https://b.c/d" rel="noopener noreferrer nofollow">https://b.c/d</a>.</p>',
        ),
        ("[a](javascript:alert(1))", "<p>a</p>"),
        ("[a](JaVaScRiPt:x)", "<p>a</p>"),
        ("[a](data:text/html,x)", "<p>a</p>"),
        (
            "![a](https://b.c/d.png)",
            '<p><a href="https://b.c/d.png" rel="noopener noreferrer nofollow">a</a></p>',
        ),
        (
            '[a](https://b"onclick=x)',
            '<p><a href="https://b&quot;onclick=x" rel="noopener noreferrer nofollow">a</a></p>',
        ),
        ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>"),
        ("snake_case_name and 2*3*4", "<p>snake_case_name and 2<em>3</em>4</p>"),
        (r"\*a\*", "<p>*a*</p>"),
        ("```\n<b>\n", '<figure class="code"><pre tabindex="0"><code>&lt;b&gt;\n</code></pre></figure>'),
    ],
)
def test_markdown_becomes_safe_html(markdown: str, expected: str):
    assert render(markdown) == expected


def test_odd_line_ends_and_marks_lose_nothing_in_a_diff():
    old, new = "\ufeffx = 1\na\rb\nc\x0bd\n", "\ufeffx = 2\na\rb\nc\x0bd\n\r\r"
    details = {"path": "f.py", "is_new_file": False, "old_content": old, "new_content": new, "hash": "h"}
    text = export(of(ToolResultMessage("c", "edit_file", "ok", details=details)), "html")
    assert text.count('class="line same"') == 2
    assert (text.count('class="line old"'), text.count('class="line new"')) == (1, 2)


TAG = re.compile(r"<(/?)([a-z0-9]+)((?: [a-z]+=\"[^\"<>]*\")*)>")
VOID = {"br", "hr"}


@tried(300, 1_000)
@given(st.text(st.sampled_from("ab <>\"'&`*_~[]()!#-+|:.\\/1\n>"), max_size=60))
def test_html_of_any_markdown_is_well_formed_and_has_no_foreign_tag(text: str):
    made = render(text)
    open_tags: list[str] = []
    rest = TAG.sub("", made)
    assert "<" not in rest.replace("&lt;", "")
    for closing, name, _ in TAG.findall(made):
        if name in VOID:
            continue
        if closing:
            assert open_tags.pop() == name
        else:
            open_tags.append(name)
    assert not open_tags


@in_cells(
    "piece",
    [
        "[",
        "*",
        "**a ",
        "`",
        "`a``",
        "> ",
        "- ",
        "  - ",
        "|",
        "|-",
        "#",
        "# ",
        "~~~",
        "```a",
        "\\",
        "_a ",
        "[a](",
        "https://",
        "<",
        "1. ",
    ],
    every=5,
)
def test_hostile_markdown_takes_linear_work(piece: str):
    def lines(count: int) -> int:
        return lines_of(lambda: render(piece * count) + render("x\n" + (piece + "\n") * (count // 8)))

    lines(8)  # what is imported and compiled the first time
    assert lines(1_600) < 6 * lines(400) + 1_000


@left_to_more
def test_ten_thousand_messages_are_exported_in_linear_time():
    def lines(count: int, format: Any) -> int:
        records = of(
            *[
                message
                for number in range(count // 2)
                for message in (
                    UserMessage(f"question {number}"),
                    AssistantMessage(f"**answer** `{number}`\n\n- one\n- two"),
                )
            ]
        )
        with Lines() as run:
            text = export(records, format)
        assert f"question {count // 2 - 1}" in text
        return run.count

    for format in ("md", "html"):
        lines(4, format)  # what is imported and compiled the first time
        assert lines(400, format) < 5 * lines(100, format)


def test_the_shape_of_the_json_document_is_the_documented_one():
    data = msgspec.json.decode(export(stored(of(UserMessage("hi", 3.0))), "json"))
    assert sorted(data) == ["format", "records", "session", "version"]
    assert data["records"] == [
        {"type": "message", "message": msgspec.json.decode(encode(UserMessage("hi", 3.0))), "number": 0}
    ]
    assert (data["format"], data["version"], data["session"]["title"], data["session"]["turns"]) == (
        "swink-session",
        1,
        "A title",
        1,
    )
