"""A conversation as one HTML page that needs nothing else: no request, no server, no script to be read."""

import base64
import hashlib
import html
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from swink.events.transcript import (
    Block,
    Compacted,
    Custom,
    Diff,
    Ended,
    Hunk,
    Line,
    NoticeBlock,
    PromptBlock,
    ReplyBlock,
    Spent,
    ThinkingBlock,
    ToolBlock,
)
from swink.events.transcript.blockkinds import json_of
from swink.events.transcript.diffs import changed_words
from swink.memory.exports.facts import MARKS, NAMES, STATES, Facts, date_of, gist_of
from swink.memory.exports.highlighting import Piece, highlight_lines, render_line
from swink.memory.exports.prose import code_block, link, render
from swink.messages import Base64Source, Image, UrlSource

_SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
_LONG = 4
"""Prompts from which on there is a table of them."""
_COMMANDS = {"command": "bash", "script": "bash", "code": "", "sql": "sql", "query": ""}
"""Arguments that are code, and in which language."""


def write_page(facts: Facts, blocks: Iterable[Block]) -> Iterator[str]:
    """The parts of the page."""
    title = html.escape(facts.title)
    head, end = page_frame("swink.memory.exports", title)
    yield head
    yield from _header(facts, title)
    yield '<main id="conversation">\n'
    number, is_open = 0, False
    for block in blocks:
        if isinstance(block, PromptBlock):
            yield "</section>\n" * is_open
            number, is_open = number + 1, True
            yield f'<section class="turn" id="prompt-{number}">\n'
        yield _block(block, number)
    yield "</section>\n" * is_open
    yield f"</main>\n<footer>Exported by swink</footer>\n{end}"


def page_frame(package: str, title: str) -> tuple[str, str]:
    """The beginning and the end of a page, its style and script from a package; the title is HTML."""
    style, script = _asset(package, "page.css"), _asset(package, "page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="generator" content="swink">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )
    return head, f"<script>{script}</script>\n</body>\n</html>\n"


def _header(facts: Facts, title: str) -> Iterator[str]:
    count = len(facts.prompts)
    figures = [
        ("Date", facts.date),
        ("Model", facts.model),
        ("Turns", f"{count:,}"),
        ("Tokens", f"{facts.tokens:,}" if facts.tokens else ""),
        ("Cost", facts.cost),
    ]
    yield '<a class="skip" href="#conversation">Skip to the conversation</a>\n<header>\n<div class="bar">'
    yield '<span class="brand">swink</span><span class="tools" hidden>'
    yield '<button type="button" id="fold">Unfold all</button>'
    yield '<button type="button" id="theme">Theme: auto</button></span></div>\n'
    yield f"<h1>{title}</h1>\n<dl>"
    for name, figure in figures:
        if figure:
            yield f"<div><dt>{name}</dt><dd>{html.escape(figure)}</dd></div>"
    yield "</dl>\n"
    if facts.system_prompt:
        yield _folded("system", "System prompt", _pre(facts.system_prompt))
    yield "</header>\n"
    if count >= _LONG:
        links = [
            f'<li><a href="#prompt-{number}">{html.escape(title)}</a></li>'
            for number, title in enumerate(facts.prompts, 1)
        ]
        summary = f"<summary>{count:,} prompts</summary>"
        yield f'<nav aria-label="Prompts"><details>{summary}<ol>{"".join(links)}</ol></details></nav>\n'


def _block(block: Block, number: int) -> str:
    match block:
        case PromptBlock():
            when = f"<time>{date_of(block.timestamp)}</time>" if block.timestamp else ""
            head = f'<h2><a href="#prompt-{number}">Prompt {number}</a>{when}</h2>'
            images = "".join(map(_image, block.images))
            text = f"<p>{html.escape(block.text, quote=False)}</p>" if block.text.strip() else ""
            return f'<div class="prompt">{head}{text}{images}</div>\n'
        case ReplyBlock():
            if not block.text.strip() and not block.images:
                return ""
            return f'<div class="reply">{render(block.text)}{"".join(map(_image, block.images))}</div>\n'
        case ThinkingBlock():
            kept = "The provider keeps this thinking to itself."
            text = kept if block.redacted and not block.text else block.text
            return _folded("thinking", "Thinking", render(text)) if text.strip() else ""
        case ToolBlock():
            return _tool(block)
        case NoticeBlock(notice=Spent() as spent):
            return f'<p class="usage">{html.escape(f"{spent.model} · {spent}")}</p>\n'
        case NoticeBlock(notice=Custom(name, data) as custom) if custom.text or data is not None:
            shown = render(custom.text) if custom.text else code_block(json_of(data), "json")
            return _folded("custom", html.escape(NAMES.get(name, name)), shown)
        case NoticeBlock(notice=Compacted(summary=summary) as compacted) if summary:
            return _folded("custom", html.escape(str(compacted)), render(summary))
        case NoticeBlock(notice=notice):
            kind = "failed" if isinstance(notice, Ended) and notice.stop_reason == "error" else "notice"
            return f'<p class="note {kind}">{html.escape(str(notice))}</p>\n'


def _tool(call: ToolBlock) -> str:
    state = STATES[call.state]
    told = f'<span class="mark" title="{state}">{MARKS[call.state]}</span> <b>{html.escape(call.name)}</b>'
    told += f' <span class="gist">{html.escape(gist_of(call))}</span>'
    diff = call.diff
    if diff is not None:
        told += f' <span class="count"><ins>+{diff.added}</ins> <del>−{diff.removed}</del></span>'
    told += f' <span class="state">{state}</span>' if call.state != "done" else ""
    parts: list[str] = []
    if call.partial is not None:
        parts.append(_labelled("Arguments, as they arrived", _pre(call.partial)))
    elif diff is None and call.arguments:
        parts.append(_arguments(call.arguments))
    if diff is not None:
        parts.append(_diff(diff))
    if call.text:
        path = call.arguments.get("path")
        path = path if isinstance(path, str) and diff is None and call.state == "done" else ""
        parts.append(_labelled("Result", code_block(call.text, "", path)))
    parts += map(_image, call.images)
    return _folded(f"tool {call.state}", told, "".join(parts) or "<p>(no result)</p>")


def _arguments(arguments: Mapping[str, Any]) -> str:
    """Short ones in a table, long texts and code below each other."""
    rows: list[str] = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json_of(value)
        if name in _COMMANDS or "\n" in text or len(text) > 200:
            path = arguments.get("path")
            language = _COMMANDS.get(name, "") if isinstance(value, str) else "json"
            shown = code_block(text, language, path if isinstance(path, str) and not language else "")
        else:
            shown = f"<code>{html.escape(text, quote=False)}</code>"
        rows.append(f"<div><dt>{html.escape(name)}</dt><dd>{shown}</dd></div>")
    return f'<dl class="arguments">{"".join(rows)}</dl>'


def _pre(text: str) -> str:
    return f"<pre>{html.escape(text, quote=False)}</pre>"


def _labelled(label: str, body: str) -> str:
    return f'<div class="label">{label}</div>{body}'


def _folded(kind: str, summary: str, body: str) -> str:
    return f'<details class="{kind}"><summary>{summary}</summary><div class="body">{body}</div></details>\n'


def _diff(diff: Diff) -> str:
    """Old and new lines: below each other, or side by side where there is room."""
    hunks = "".join(_hunk(hunk, diff.path) for hunk in diff.hunks) or "<p>(nothing changed)</p>"
    caption = f"<figcaption>{html.escape(diff.path)} · {diff.kind}</figcaption>"
    return f'<figure class="diff">{caption}{hunks}</figure>'


def _hunk(hunk: Hunk, path: str) -> str:
    # Read in one go, old and new lines alike: a lexer takes longer than everything else here.
    coloured = highlight_lines("\n".join(line.text for line in hunk.lines), path)
    segments = [f'<div class="at">{hunk.header}</div>']
    removed: list[tuple[Line, list[Piece]]] = []
    added: list[tuple[Line, list[Piece]]] = []
    for line, pieces in zip(hunk.lines, coloured, strict=True):
        if line.kind == "removed":
            removed.append((line, pieces))
        elif line.kind == "added":
            added.append((line, pieces))
        else:
            segments.append(_changed(removed, added))
            removed, added = [], []
            text = render_line(pieces)
            sides = f"{_line('same', line.old, text)}{_line('same twin', line.new, text)}"
            segments.append(f'<div class="pair">{sides}</div>')
    segments.append(_changed(removed, added))
    return "".join(segments)


def _changed(removed: list[tuple[Line, list[Piece]]], added: list[tuple[Line, list[Piece]]]) -> str:
    if not removed and not added:
        return ""
    words = [changed_words(old.text, new.text) for (old, _), (new, _) in zip(removed, added, strict=False)]
    lines: list[str] = []
    for at, (line, pieces) in enumerate(removed):
        lines.append(_line("old", line.old, render_line(pieces, words[at][0] if at < len(words) else ())))
    for at, (line, pieces) in enumerate(added):
        lines.append(_line("new", line.new, render_line(pieces, words[at][1] if at < len(words) else ())))
    return f'<div class="pair">{"".join(lines)}</div>'


def _line(kind: str, number: int | None, text: str) -> str:
    return f'<div class="line {kind}"><i>{number}</i><code>{text}</code></div>'


def _image(image: Image) -> str:
    match image.source:
        case Base64Source(data, media_type) if media_type in _SHOWN_IMAGES:
            return f'<img alt="image" src="data:{media_type};base64,{html.escape(data)}">\n'
        case UrlSource(url) if url.startswith(tuple(f"data:{kind};base64," for kind in _SHOWN_IMAGES)):
            return f'<img alt="image" src="{html.escape(url)}">\n'
        case UrlSource(url):
            return f'<p class="note notice">image: {link(url, html.escape(url[:200], quote=False))}</p>\n'
        case Base64Source(media_type=media_type):
            return f'<p class="note notice">image ({html.escape(media_type)})</p>\n'
        case _:
            return '<p class="note notice">image</p>\n'


@cache
def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8").strip()


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
