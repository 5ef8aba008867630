"""Prose: Markdown as HTML that is safe to show: no tag of the text survives, a link leads to the web only.

Headings, paragraphs, lists, quotes, tables, rules, fences; emphasis, code, links. The time is linear in the
text: whatever would take longer is shown as plain text.
"""

import html
import re
from collections.abc import Callable, Sequence

from swink.memory.exports.code import highlight

_FENCE = re.compile(r"( *)(`{3,}+|~{3,}+)([^`]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"( *)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|$)")
_QUOTE = re.compile(r" {0,3}> ?")
_TABLE_RULE = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_TASK = re.compile(r"\[([ xX])\][ \t]+")
_DEEPEST = 8
_LONGEST = 4_000
"""Characters of a paragraph in which emphasis and links are looked for."""
_INLINE = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?<!`)(?P<ticks>`{1,8})(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|!?\[(?P<label>[^\[\]\n]{0,300})\]"
    r"\((?P<target>[^()\s<>]{1,1500}(?:\([^()\s<>]{0,200}\))?)(?:[ \t]+\"[^\"\n]{0,200}\")?\)"
    r"|<(?P<auto>https?://[^\s<>]{1,1500})>"
    r"|(?P<bare>https?://[^\s<>\"'`]{1,1500}[^\s<>\"'`.,;:!?)\]}*_])"
    r"|\*\*(?P<bold>\S|\S.{0,400}?\S)\*\*"
    r"|(?<!\w)__(?P<bold2>\S|\S.{0,400}?\S)__(?!\w)"
    r"|~~(?P<strike>\S|\S.{0,400}?\S)~~"
    r"|\*(?P<italic>[^\s*]|[^\s*][^*]{0,400}[^\s*])\*"
    r"|(?<!\w)_(?P<italic2>[^\s_]|[^\s_].{0,400}?[^\s_])_(?!\w)"
    r"|(?P<rest>(?: {2,}|\\)\n)",
    re.S,
)
_LINK = re.compile(r"(?:https?://|mailto:)", re.I)


def render(text: str) -> str:
    """Markdown as HTML."""
    return _render(text.replace("\r\n", "\n").expandtabs(4).split("\n"), 0)


def link(target: str, label: str) -> str:
    """A link to the web; anything else is its label alone. The label is HTML."""
    if not _LINK.match(target):
        return label
    return f'<a href="{html.escape(target)}" rel="noopener noreferrer nofollow">{label}</a>'


def render_inline(text: str, depth: int = 0) -> str:
    """A line of Markdown as HTML."""
    if len(text) > _LONGEST or depth > _DEEPEST:
        return html.escape(text, quote=False)
    parts: list[str] = []
    at = 0
    for found in _INLINE.finditer(text):
        parts += [html.escape(text[at : found.start()], quote=False), _inline(found, depth + 1)]
        at = found.end()
    return "".join([*parts, html.escape(text[at:], quote=False)])


def _inline(found: re.Match[str], depth: int) -> str:
    kind = found.lastgroup
    match kind:
        case "escape":
            return html.escape(found[0][1:], quote=False)
        case "ticks" | "code":
            code = found["code"] or ""
            stripped = code[1:-1] if code[:1] == code[-1:] == " " and code.strip() else code
            return f"<code>{html.escape(stripped, quote=False)}</code>"
        case "label" | "target":
            label = render_inline(found["label"], depth) or html.escape(found["target"], quote=False)
            return link(found["target"], label)
        case "auto" | "bare":
            target = found[kind]
            return link(target, html.escape(target, quote=False))
        case "bold" | "bold2":
            return f"<strong>{render_inline(found[kind], depth)}</strong>"
        case "italic" | "italic2":
            return f"<em>{render_inline(found[kind], depth)}</em>"
        case "strike":
            return f"<del>{render_inline(found[kind], depth)}</del>"
        case _:
            return "<br>\n"


def _render(lines: Sequence[str], depth: int) -> str:
    if depth > _DEEPEST:
        return f"<p>{html.escape(chr(10).join(lines), quote=False)}</p>"
    parts: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        for read in _READERS:
            made = read(lines, at, depth)
            if made is not None:
                part, at = made
                parts.append(part)
                break
    return "\n".join(parts)


_Made = tuple[str, int] | None
"""The HTML of a block and the line after it; None where there is no such block."""


def _read_fence(lines: Sequence[str], at: int, depth: int) -> _Made:
    opened = _FENCE.match(lines[at])
    if opened is None:
        return None
    indent, mark, info = opened.groups()
    language = (info.split() or [""])[0]
    body: list[str] = []
    at += 1
    while at < len(lines):
        line = lines[at].strip()
        if line.startswith(mark) and not line.strip(mark[0]):
            break
        body.append(lines[at].removeprefix(indent) if lines[at].startswith(indent) else lines[at].lstrip())
        at += 1
    return code_block("\n".join(body), language, caption=language), at + 1


def code_block(code: str, language: str = "", path: str = "", caption: str = "") -> str:
    """Code in a box that scrolls by itself."""
    head = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    body = f'<pre tabindex="0"><code>{highlight(code, language, path)}</code></pre>'
    return f'<figure class="code">{head}{body}</figure>'


def _read_heading(lines: Sequence[str], at: int, depth: int) -> _Made:
    found = _HEADING.match(lines[at])
    if found is None:
        return None
    level = min(6, len(found[1]) + 2)  # the page has a title and a heading for each prompt
    return f"<h{level}>{render_inline(found[2].rstrip().rstrip('#').rstrip())}</h{level}>", at + 1


def _read_rule(lines: Sequence[str], at: int, depth: int) -> _Made:
    return ("<hr>", at + 1) if _RULE.match(lines[at]) else None


def _read_quote(lines: Sequence[str], at: int, depth: int) -> _Made:
    if not _QUOTE.match(lines[at]):
        return None
    inner: list[str] = []
    while at < len(lines) and lines[at].strip() and (_QUOTE.match(lines[at]) or not _starts_block(lines[at])):
        inner.append(_QUOTE.sub("", lines[at], count=1))
        at += 1
    return f"<blockquote>{_render(inner, depth + 1)}</blockquote>", at


def _read_table(lines: Sequence[str], at: int, depth: int) -> _Made:
    if "|" not in lines[at] or at + 1 >= len(lines) or not _TABLE_RULE.match(lines[at + 1]):
        return None
    head, rule = _cells(lines[at]), _cells(lines[at + 1])
    if len(head) != len(rule):
        return None
    classes = [_alignment(cell) for cell in rule]
    rows: list[str] = []
    at += 2
    while at < len(lines) and lines[at].strip() and "|" in lines[at]:
        rows.append(_row("td", [*_cells(lines[at]), *[""] * len(head)][: len(head)], classes))
        at += 1
    table = f"<thead>{_row('th', head, classes)}</thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="table" tabindex="0"><table>{table}</table></div>', at


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    bare = bare[:-1] if bare.endswith("|") and not bare.endswith("\\|") else bare
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", bare)]


def _alignment(cell: str) -> str:
    right, left = cell.endswith(":"), cell.startswith(":")
    return ' class="middle"' if right and left else ' class="right"' if right else ""


def _row(tag: str, cells: Sequence[str], classes: Sequence[str]) -> str:
    made = [f"<{tag}{name}>{render_inline(cell)}</{tag}>" for cell, name in zip(cells, classes, strict=True)]
    return f"<tr>{''.join(made)}</tr>"


def _read_list(lines: Sequence[str], at: int, depth: int) -> _Made:
    first = _ITEM.match(lines[at])
    if first is None:
        return None
    indent, ordered = len(first[1]), first[2][-1] in ".)"
    items: list[list[str]] = []
    is_loose = False
    while at < len(lines):
        found = _ITEM.match(lines[at])
        if found is not None and len(found[1]) <= indent + 1 and (found[2][-1] in ".)") == ordered:
            items.append([found[3] or ""])
        elif not lines[at].strip():
            # A blank line ends the list, unless it goes on after it.
            following = next((line for line in lines[at + 1 : at + 3] if line.strip()), "")
            item = _ITEM.match(following)
            goes_on = _indent(following) > indent + 1 or (
                item is not None and len(item[1]) <= indent + 1 and (item[2][-1] in ".)") == ordered
            )
            if not following or not goes_on:
                break
            is_loose = is_loose or item is None or len(item[1]) <= indent + 1
            items[-1].append("")
        elif _indent(lines[at]) > indent or not _starts_block(lines[at]):
            items[-1].append(lines[at])
        else:
            break
        at += 1
    tag = "ol" if ordered else "ul"
    start = f' start="{int(first[2][:-1])}"' if ordered and int(first[2][:-1]) != 1 else ""
    body = "".join(_item(item, depth, is_loose=is_loose) for item in items)
    return f"<{tag}{start}>{body}</{tag}>", at


def _item(lines: Sequence[str], depth: int, *, is_loose: bool) -> str:
    first, *rest = lines
    task = _TASK.match(first)
    box = "" if task is None else "☑ " if task[1] in "xX" else "☐ "
    first = first if task is None else first[task.end() :]
    inner = min((_indent(line) for line in rest if line.strip()), default=0)
    html_of_all = _render([first, *[line[inner:] for line in rest]], depth + 1)
    if not is_loose:
        html_of_all = re.sub(r"\A<p>(.*?)</p>", r"\1", html_of_all, count=1, flags=re.S)
    return f"<li>{box}{html_of_all}</li>"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _starts_block(line: str) -> bool:
    patterns = (_FENCE, _HEADING, _RULE, _ITEM, _QUOTE)
    return any(pattern.match(line) for pattern in patterns)


def _read_paragraph(lines: Sequence[str], at: int, depth: int) -> _Made:
    body = [lines[at]]
    at += 1
    while at < len(lines) and lines[at].strip() and not _starts_block(lines[at]):
        if "|" in lines[at] and at + 1 < len(lines) and _TABLE_RULE.match(lines[at + 1]):
            break
        body.append(lines[at])
        at += 1
    text = "\n".join(line.lstrip() if line.endswith("  ") else line.strip() for line in body)
    return f"<p>{render_inline(text.strip())}</p>", at


_READERS: tuple[Callable[[Sequence[str], int, int], _Made], ...] = (
    _read_fence,
    _read_heading,
    _read_rule,
    _read_quote,
    _read_table,
    _read_list,
    _read_paragraph,
)
"""The kinds of blocks; the first that fits a line is taken, and a paragraph always fits."""
