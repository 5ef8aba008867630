"""What the page makes of messages: Markdown as it streams, folded blocks, diffs, and many of them."""

import json
import random
from typing import Any

import pytest
from tests.counts import in_cells
from tests.export_pages import TOO_WIDE
from tests.serve.page.pages import open_page

from swink import tool
from swink.messages import (
    AssistantMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.testing import Pause

MARKDOWN = """# A *title*

Some **bold _nested_ text** with `code`, [a link](https://example.org/a_(b)) and https://example.org/x.

1. one
2. two
   - inner
     more

   after a blank line
- [ ] open
- [x] done

> quoted
> ```
> code in it
> ```

```python
def f(x):  # comment
    return "text", 1
```

| a | b |
|:--|--:|
| 1 | `x|y` |
| 2 | 3 |

~~~
unclosed ``` inside
~~~
***
snake_case and 2 * 3 * 4, **open, `open, [open](, ![img](https://example.org/i.png)
"""
STREAM = """async (pieces) => {
  const { Prose, prose } = await import("/page/markdown.js");
  const { flushAll } = await import("/page/dom.js");
  const whole = document.createElement("div");
  whole.append(...prose(pieces.join("")).childNodes);
  const node = document.createElement("div");
  const view = new Prose(node);
  for (const piece of pieces) { view.append(piece); flushAll(); }
  view.finish();
  flushAll();
  return [node.innerHTML, whole.innerHTML];
}"""


@tool
async def change(path: str) -> ToolResult:
    """Change a file."""
    old = "".join(f"line {number}\n" for number in range(1, 41))
    new = old.replace("line 20\n", "line twenty\nand more\n")
    details = {"path": path, "is_new_file": False, "old_content": old, "new_content": new, "hash": "h"}
    return ToolResult((Text("changed"),), details=details)


def pieces_of(text: str, seed: int) -> list[str]:
    chance, found, at = random.Random(seed), list[str](), 0
    while at < len(text):
        size = chance.choice((1, 1, 2, 5, 17, 80))
        found.append(text[at : at + size])
        at += size
    return found


@pytest.mark.parametrize(
    "text", [MARKDOWN, MARKDOWN.rstrip(), "```\nnot closed\n`` ", "* a\n* b\n\n\n* c\n\nd"]
)
def test_markdown_that_streams_ends_as_if_it_had_come_whole(browser: Any, text: str):
    with open_page(browser) as page:
        for seed in range(12):
            streamed, whole = page.ask(STREAM, pieces_of(text, seed))
            assert streamed == whole, seed


def test_markdown_is_shown_as_it_is_meant(browser: Any):
    with open_page(browser, [MARKDOWN]) as page:
        page.say("Go")
        page.wait_idle()
        count = lambda selector: page.tab.locator(f".reply {selector}").count()  # noqa: E731
        assert page.texts(".reply h3 em") == ["title"]
        assert page.texts(".reply strong em") == ["nested"]
        assert count("ol > li") == 2
        assert count("ul ul, ol ul") == 1
        assert count("table tbody tr") == 2
        assert count("blockquote pre") == 1
        assert page.texts(".reply pre .k") == ["def", "return"]
        assert count("a[href='https://example.org/a_(b)']") == 1
        assert count("img") == 0


@in_cells("mark", ["*", "_", "`", "[", "**a ", "`` ", "> ", "- ", "|", "#", "<", "![](", "~~"], every=4)
def test_hostile_markdown_takes_no_time_to_speak_of(browser: Any, mark: str):
    """Twenty times the text may take at most sixty times as long: what is quadratic takes four hundred."""
    script = """async (mark) => {
      const { prose } = await import("/page/markdown.js");
      const spent = (count) => {
        const text = mark.repeat(count), start = performance.now();
        prose(text);
        return performance.now() - start;
      };
      spent(200);
      return [Math.max(spent(500), 5), spent(10000)];
    }"""
    with open_page(browser) as page:
        tries = (page.ask(script, mark) for _ in range(5))  # one may be held up by a busy machine
        assert any(many < 60 * few for few, many in tries)


@in_cells("by", ["keyboard", "mouse"], every=2)
def test_thinking_and_tools_are_folded_and_unfold(browser: Any, by: str):
    script = [[Thinking("Hm, **so**."), ToolCall("1", "change", {"path": "a.txt"})], "Done."]
    with open_page(browser, script, agent={"tools": [change]}) as page:
        page.say("Go")
        page.wait_idle()
        assert page.ask("document.querySelectorAll('#log details[open]').length") == 0
        for kind in ("thinking", "tool"):
            summary = page.tab.locator(f".{kind} > summary")
            if by == "keyboard":
                summary.focus()
                page.press("Enter")
            else:
                summary.click()
        page.see("Hm, so.", ".thinking")
        page.see("line twenty", ".tool .diff .new")
        assert page.texts(".tool .count") == ["+2 −1"]


def test_a_change_stands_side_by_side_and_below_each_other_on_a_phone(browser: Any):
    where = """() => ['.old', '.new'].map((name) => {
      const box = document.querySelector(`.diff tr.changed ${name}`).getBoundingClientRect();
      return [Math.round(box.left), Math.round(box.top)];
    })"""
    with open_page(
        browser, [[ToolCall("1", "change", {"path": "a.txt"})], "."], agent={"tools": [change]}
    ) as page:
        page.say("Go")
        page.wait_idle()
        page.click(".tool > summary")
        page.see("line twenty", ".diff .new")
        (old, top), (new, level) = page.ask(where)
        assert old < new
        assert top == level
        page.tab.set_viewport_size({"width": 390, "height": 800})
        (old, top), (new, level) = page.ask(where)
        assert old == new
        assert top < level


@pytest.mark.parametrize(
    ("old", "new"), [("", "a\n"), ("a\n", ""), ("a\nb\nc\n", "a\nc\nd\n"), ("x\n" * 9, "y\n" * 7)]
)
def test_a_diff_tells_both_texts(browser: Any, old: str, new: str):
    script = """async ([old, fresh]) => (await import("/page/diff.js")).compare(old, fresh)"""
    with open_page(browser) as page:
        rows = page.ask(script, [old, new])
    assert [left for left, _ in rows if left is not None] == old.splitlines()
    assert [right for _, right in rows if right is not None] == new.splitlines()


def test_random_diffs_tell_both_texts(browser: Any):
    script = """async (pairs) => {
      const { compare } = await import("/page/diff.js");
      return pairs.map(([old, fresh]) => compare(old, fresh));
    }"""
    chance = random.Random(7)
    text = lambda: "".join(f"{chance.choice('abcde')}\n" for _ in range(chance.randrange(30)))  # noqa: E731
    pairs = [[text(), text()] for _ in range(300)]
    with open_page(browser) as page:
        for (old, new), rows in zip(pairs, page.ask(script, pairs), strict=True):
            assert [left for left, _ in rows if left is not None] == old.splitlines()
            assert [right for _, right in rows if right is not None] == new.splitlines()


def test_cost_and_context_are_told(browser: Any):
    with open_page(browser, ["Yes."], usage=Usage(1200, 300)) as page:
        page.say("Go")
        page.wait_idle()
        assert "1.5k" in page.texts("#figures")[0]


def many_messages(count: int) -> list[Any]:
    found: list[Any] = []
    for number in range(count // 4):
        call = ToolCall(f"c{number}", "read", {"path": f"file-{number}.txt"})
        said = Text(f"Part **{number}** with `code`.\n\n- one\n- two")
        found += [
            UserMessage(f"Prompt {number}"),
            AssistantMessage((said, call), "test:m", "tool_use"),
            ToolResultMessage(call.id, "read", (Text(f"content {number}\n" * 20),)),
            AssistantMessage((Text("Done."),), "test:m", "stop"),
        ]
    return found


OBSERVE = """() => {
  window.touched = { records: 0, nodes: 0, outside: 0, frames: [], busy: true };
  const last = document.querySelector('#log').lastElementChild;
  new MutationObserver((records) => {
    for (const record of records) {
      touched.records += 1;
      touched.nodes += record.addedNodes.length + record.removedNodes.length;
      if (last.contains(record.target)) touched.outside += 1;
    }
  }).observe(document.querySelector('#log'), { childList: true, subtree: true, characterData: true });
  let before = performance.now();
  const frame = (now) => {
    touched.frames.push(now - before);
    before = now;
    if (touched.busy) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""


def test_a_delta_touches_as_little_beside_two_thousand_blocks_as_beside_none(browser: Any):
    words = [part for number in range(200) for part in (f"word {number} ", Pause(0.005))]
    touched: list[Any] = []
    for history in (4, 2000):
        script = [
            *[message for message in many_messages(history) if isinstance(message, AssistantMessage)],
            words,
        ]
        with open_page(browser, script, agent={"messages": []}) as page:
            page.ask(
                """async (messages) => {
                  const { Transcript } = await import("/page/transcript.js");
                  const log = document.querySelector('#log');
                  await new Transcript(log, () => {}).load(messages, new AbortController().signal);
                  for (const _ of "ab") await new Promise(requestAnimationFrame);
                }""",
                [_json(message) for message in many_messages(history)],
            )
            assert page.tab.locator("#log .entry").count() >= history
            page.ask(OBSERVE)
            page.ask(
                """async (words) => {
                  const { Transcript } = await import("/page/transcript.js");
                  const log = document.querySelector('#log');
                  const transcript = Object.assign(new Transcript(document.createElement('div'), () => {}), { log });
                  for (const text of words) {
                    transcript.take({ type: "message_update", delta: { type: "text_delta", index: 0, text } });
                    await new Promise(requestAnimationFrame);
                  }
                  touched.busy = false;
                }""",
                [f"word {number} " for number in range(200)],
            )
            touched.append(page.ask("touched"))
    assert touched[1]["outside"] == touched[0]["outside"] == 0
    assert touched[1]["nodes"] <= touched[0]["nodes"] * 1.1 + 10
    frames = sorted(touched[1]["frames"])
    print(f"\n2,000 blocks: median frame {frames[len(frames) // 2]:.1f} ms, worst {frames[-1]:.1f} ms")


def _json(message: Any) -> Any:
    from swink.messages.jsondata import encode

    return json.loads(encode(message))


def test_what_is_too_wide_scrolls_by_itself(browser: Any):
    wide = f"{TOO_WIDE}\n\n```\n{TOO_WIDE}\n```\n\n| {TOO_WIDE} |\n|---|\n| {TOO_WIDE} |"
    for width in (360, 768, 1280):
        with open_page(browser, [wide], width=width) as page:
            page.say(TOO_WIDE)
            page.wait_idle()
            assert page.ask("document.documentElement.scrollWidth") <= width
            assert page.ask("document.querySelector('#scroll').scrollWidth") <= width
