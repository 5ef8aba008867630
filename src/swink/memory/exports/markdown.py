"""A conversation as Markdown that reads well on GitHub: tool calls folded, fences that no content can end."""

import html
import re
from collections.abc import Iterable, Iterator

from swink.events.transcript import (
    Block,
    Compacted,
    Custom,
    NoticeBlock,
    PromptBlock,
    ReplyBlock,
    Spent,
    ThinkingBlock,
    ToolBlock,
)
from swink.events.transcript.blockkinds import counted, json_of
from swink.memory.exports.facts import MARKS, NAMES, STATES, Facts, gist_of
from swink.messages import Base64Source, Image, UrlSource

_TICKS = re.compile(r"`+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"(`+)(.*?)(?<!`)\1(?!`)")
_LONG = 4
"""Prompts from which on there is a table of them."""
_LONGEST_LINE = 5_000
"""Characters of a line in which code is told from text; the search takes quadratic time."""


def write_markdown(facts: Facts, blocks: Iterable[Block]) -> Iterator[str]:
    """The parts of the page."""
    yield f"# {_plain(facts.title)}\n\n"
    figures = [facts.date, facts.model, counted(len(facts.prompts), "prompt")]
    figures += [counted(facts.tokens, "token") if facts.tokens else "", facts.cost]
    yield " · ".join(_plain(figure) for figure in figures if figure) + "\n\n"
    if len(facts.prompts) >= _LONG:
        for number, title in enumerate(facts.prompts, 1):
            yield f"{number}. [{_plain(title)}](#prompt-{number})\n"
        yield "\n"
    if facts.system_prompt:
        yield _folded("System prompt", fence(facts.system_prompt, "text"))
    number = 0
    for block in blocks:
        number += isinstance(block, PromptBlock)
        yield from _block(block, number)


def fence(content: str, language: str) -> str:
    """Content in a fence that is longer than any in it."""
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(content)), default=0))
    return f"{ticks}{language}\n{content.removesuffix(chr(10))}\n{ticks}\n\n"


def safe_markdown(text: str) -> str:
    """Markdown without HTML, with its last fence closed: it changes nothing that comes after it."""
    lines: list[str] = []
    opened = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if not opened:
            opened = mark[1] if mark else ""
            lines.append(line if mark else _without_html(line))
            continue
        lines.append(line)
        if mark and mark[1].startswith(opened) and not line.strip().strip(opened[0]):
            opened = ""
    return "\n".join([*lines, *([opened] if opened else [])]) + "\n\n"


def _block(block: Block, number: int) -> Iterator[str]:
    match block:
        case PromptBlock():
            yield f"## Prompt {number}\n\n"
            lines = safe_markdown(block.text).rstrip().split("\n")
            yield "".join(f"> {line}".rstrip() + "\n" for line in lines)
            yield "\n" + "".join(map(_image, block.images))
        case ReplyBlock():
            yield safe_markdown(block.text) if block.text.strip() else ""
            yield from map(_image, block.images)
        case ThinkingBlock():
            text = "(kept by the provider)" if block.redacted and not block.text else block.text
            yield _folded("Thinking", safe_markdown(text)) if text.strip() else ""
        case ToolBlock():
            yield _tool(block)
        case NoticeBlock(notice=Spent() as spent):
            yield f"<sub>{html.escape(f'{spent.model} · {spent}')}</sub>\n\n"
        case NoticeBlock(notice=Custom(name, data) as custom) if custom.text or data is not None:
            shown = fence(custom.text, "text") if custom.text else fence(json_of(data), "json")
            yield _folded(html.escape(NAMES.get(name, name)), shown)
        case NoticeBlock(notice=Compacted(summary=summary) as compacted) if summary:
            yield _folded(html.escape(str(compacted)), fence(summary, "text"))
        case NoticeBlock(notice=notice):
            yield f"> **Note:** {_plain(str(notice))}\n\n"


def _tool(call: ToolBlock) -> str:
    gist, state = gist_of(call), STATES[call.state]
    summary = f"{MARKS[call.state]} <code>{html.escape(call.name)}</code> {html.escape(gist)} ({state})"
    parts = [fence(call.diff.unified, "diff")] if call.diff is not None else []
    if call.partial is not None:
        parts.append("Arguments, as they arrived:\n\n" + fence(call.partial, "text"))
    elif call.arguments and call.diff is None:
        parts.append("Arguments:\n\n" + fence(json_of(call.arguments), "json"))
    if call.text:
        parts.append("Result:\n\n" + fence(call.text, "text"))
    return _folded(summary, "".join([*parts, *map(_image, call.images)]))


def _folded(summary: str, body: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{body}</details>\n\n"


def _image(image: Image) -> str:
    match image.source:
        case UrlSource(url) if url.startswith(("http://", "https://")):
            return f"[image](<{url.replace('<', '%3C').replace('>', '%3E')}>)\n\n".replace("\n>", ">")
        case Base64Source(data, media_type):
            return f"*[image: {_plain(media_type)}, {len(data) * 3 // 4:,} bytes]*\n\n"
        case _:
            return "*[image]*\n\n"


def _plain(text: str) -> str:
    """Text in one line that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", " ".join(text.split()))


def _without_html(line: str) -> str:
    """A line of Markdown whose tags are shown instead of obeyed; code stays as it is."""
    if len(line) > _LONGEST_LINE:
        return _escape_tags(line)
    parts: list[str] = []
    at = 0
    for code in _CODE.finditer(line):
        parts += [_escape_tags(line[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, _escape_tags(line[at:])])


def _escape_tags(text: str) -> str:
    return re.sub(r"<(?=[A-Za-z/!?])(?!https?://[^\s<>]+>)", "&lt;", text)
