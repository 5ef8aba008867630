"""What stands in an exported conversation to the letter: costs, marks, links, tables and lists."""

from typing import Any

import pytest

from swink.memory import export
from swink.memory.exports.facts import cost_of
from swink.memory.exports.highlighting import render_line
from swink.memory.exports.prose import render
from swink.messages import AssistantMessage, Image, Message, ToolCall, ToolResultMessage, UserMessage
from swink.messages.records import Record, saved


def of(*messages: Message) -> list[Record]:
    return [saved(message, number) for number, message in enumerate(messages)]


def called(name: str, **arguments: Any) -> str:
    call = AssistantMessage((ToolCall("c", name, arguments),), "p", "m", "tool_use")
    return export(of(UserMessage("go on"), call, ToolResultMessage("c", name, "ok")), "html")


@pytest.mark.parametrize(
    ("cost", "is_whole", "shown"),
    [
        (0.0, True, ""),
        (0.1234, True, "$0.1234"),
        (0.5, True, "$0.5000"),
        (1.0, True, "$1.00"),
        (12.345, True, "$12.35"),
        (0.5, False, "more than $0.5000"),
    ],
)
def test_a_cost_below_a_dollar_has_four_places_and_any_other_two(cost: float, is_whole: bool, shown: str):
    assert cost_of(cost, is_whole=is_whole) == shown


def test_a_paragraph_of_more_brackets_than_can_be_links_is_shown_as_it_was_written():
    assert render("[" * 300 + "*a*") == f"<p>{'[' * 300}<em>a</em></p>"
    assert render("[" * 301 + "*a*") == f"<p>{'[' * 301}*a*</p>"


def test_quotes_beside_an_address_stay_quotes():
    link = '<a href="https://b.c/d" rel="noopener noreferrer nofollow">https://b.c/d</a>'
    assert render('"a" https://b.c/d "e"') == f'<p>"a" {link} "e"</p>'


def test_the_box_of_a_task_is_a_sign():
    items = "<li>☐ <em>a</em></li><li>☑ b <em>c</em></li><li>d [x]</li>"
    assert render("- [ ] *a*\n- [x] b *c*\n- d [x]") == f"<ul>{items}</ul>"


def test_marked_characters_stand_out_and_none_is_lost():
    line = [("k", "def"), ("", " add"), ("s", "'x'")]
    assert render_line(line, [(1, 5)]) == (
        '<span class="k">d</span><mark><span class="k">ef</span> a</mark>dd<span class="s">\'x\'</span>'
    )


@pytest.mark.parametrize(("prompts", "links"), [(3, 0), (4, 4)])
def test_there_is_a_table_of_prompts_from_four_on(prompts: int, links: int):
    text = export(of(*[UserMessage(f"prompt {number}") for number in range(prompts)]), "md")
    assert text.count("](#prompt-") == links


def test_an_address_of_an_image_is_shown_up_to_200_characters():
    address = "https://example.org/" + "a" * 300
    text = export(of(UserMessage((Image.from_url(address),))), "html")
    assert f">{address[:200]}</a>" in text
    assert f'href="{address}"' in text


def test_short_arguments_are_in_a_table_and_long_ones_or_lines_in_a_box():
    assert "<dt>word</dt><dd><code>short</code></dd>" in called("find", word="short")
    assert f"<dd><code>{'a' * 200}</code></dd>" in called("find", word="a" * 200)
    assert '<dt>word</dt><dd><figure class="code">' in called("find", word="a" * 201)
    assert '<dt>word</dt><dd><figure class="code">' in called("find", word="two\nlines")


def test_quotes_in_an_argument_stay_quotes():
    assert "<dd><code>say \"a\" &amp; &lt;b&gt; 'c'</code></dd>" in called("find", word="say \"a\" & <b> 'c'")


def test_a_reply_of_white_space_is_not_in_the_page():
    text = export(of(UserMessage("hi"), AssistantMessage("\n ")), "html")
    assert "<p>hi</p>" in text
    assert 'class="reply"' not in text
