"""Prose: Markdown as HTML that is safe to show: no tag of the text survives, a link leads to the web only.

CommonMark with tables and strikethrough, as in the terminal. Definitions of links are shown, not hidden, and
images are links: an exported page asks for nothing.
"""

import html
import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from swink.memory.exports.highlighting import highlight

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.tree import SyntaxTreeNode

_DEEPEST = 40
"""Levels of quotes and lists; the parser drops what is deeper, so that such a text is shown as it is."""
_MOST_BRACKETS = 300
"""Brackets of a paragraph up to which it is parsed: each may be the start of a link that ends anywhere."""
_LINK = re.compile(r"(?:https?://|mailto:)", re.I)
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]{1,1500}[^\s<>\"'`.,;:!?)\]}*_]")
_TASK = re.compile(r"\[([ xX])\][ \t]+")
_TAGS = {"em": "em", "strong": "strong", "s": "del"}


def render(text: str) -> str:
    """Markdown as HTML, in time that is linear in the text."""
    # Not at the top: it takes long to import, and most programs never export.
    from markdown_it.tree import SyntaxTreeNode

    tokens = _parser().parse(text)
    if any(token.level >= _DEEPEST - 2 for token in tokens):
        return f"<p>{html.escape(text, quote=False)}</p>"
    return _blocks(SyntaxTreeNode(tokens).children)


def link(target: str, label: str) -> str:
    """A link to the web; anything else is its label alone. The label is HTML."""
    if not _LINK.match(target):
        return label
    return f'<a href="{html.escape(target)}" rel="noopener noreferrer nofollow">{label}</a>'


def code_block(code: str, language: str = "", path: str = "", caption: str = "") -> str:
    """Code in a box that scrolls by itself."""
    head = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    body = f'<pre tabindex="0"><code>{highlight(code, language, path)}</code></pre>'
    return f'<figure class="code">{head}{body}</figure>'


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline", "reference"])
    parser.core.ruler.at("inline", _parse_paragraphs)
    # `link` decides where links may lead, and escapes them.
    parser.validateLink = lambda url: True
    parser.normalizeLink = lambda url: url
    return parser


def _parse_paragraphs(state: "StateCore") -> None:
    from markdown_it.token import Token

    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            if token.content.count("[") > _MOST_BRACKETS:
                token.children.append(Token("text", "", 0, content=token.content))
            else:
                state.md.inline.parse(token.content, state.md, state.env, token.children)


def _blocks(nodes: "Iterable[SyntaxTreeNode]", separator: str = "\n") -> str:
    return separator.join(map(_block, nodes))


def _block(node: "SyntaxTreeNode") -> str:
    match node.type:
        case "heading":
            level = min(6, int(node.tag[1]) + 2)  # the page has a title and a heading for each prompt
            return f"<h{level}>{_blocks(node.children)}</h{level}>"
        case "paragraph":
            return _blocks(node.children) if node.hidden else f"<p>{_blocks(node.children)}</p>"
        case "inline":
            return _inline(node.children)
        case "blockquote":
            return f"<blockquote>{_blocks(node.children)}</blockquote>"
        case "bullet_list" | "ordered_list":
            start = f' start="{node.attrs["start"]}"' if "start" in node.attrs else ""
            return f"<{node.tag}{start}>{_blocks(node.children, '')}</{node.tag}>"
        case "list_item":
            return f"<li>{_item(node)}</li>"
        case "table":
            return f'<div class="table" tabindex="0"><table>{_blocks(node.children, "")}</table></div>'
        case "thead" | "tbody" | "tr":
            return f"<{node.tag}>{_blocks(node.children, '')}</{node.tag}>"
        case "th" | "td":
            style = str(node.attrs.get("style", ""))
            name = ' class="middle"' if "center" in style else ' class="right"' if "right" in style else ""
            return f"<{node.tag}{name}>{_blocks(node.children)}</{node.tag}>"
        case "hr":
            return "<hr>"
        case _:  # code, fenced or indented
            language = (node.info.split() or [""])[0]
            return code_block(node.content, language, caption=language)


def _item(node: "SyntaxTreeNode") -> str:
    """What is in an item of a list; the box of a task is a sign."""
    first = node.children[0].children if node.children else []
    words = first[0].children if first and first[0].type == "inline" else []
    if words and words[0].type == "text" and (task := _TASK.match(words[0].content)):
        token = words[0].token
        assert token is not None
        token.content = f"{'☐' if task[1] == ' ' else '☑'} {token.content[task.end() :]}"
    return _blocks(node.children)


def _inline(nodes: "Iterable[SyntaxTreeNode]", is_linked: bool = False) -> str:
    parts: list[str] = []
    for node in nodes:
        match node.type:
            case "text":
                parts.append(_text(node.content, is_linked))
            case "softbreak":
                parts.append("\n")
            case "hardbreak":
                parts.append("<br>\n")
            case "code_inline":
                parts.append(f"<code>{html.escape(node.content, quote=False)}</code>")
            case "link" | "image":
                target = str(node.attrs.get("href") or node.attrs.get("src") or "")
                label = _inline(node.children, is_linked=True) or html.escape(target, quote=False)
                parts.append(label if is_linked else link(target, label))
            case kind:
                tag = _TAGS[kind]
                parts.append(f"<{tag}>{_inline(node.children, is_linked)}</{tag}>")
    return "".join(parts)


def _text(text: str, is_linked: bool) -> str:
    """Text with its addresses as links, unless it is the label of one."""
    parts: list[str] = []
    at = 0
    for address in () if is_linked else _ADDRESS.finditer(text):
        label = html.escape(address[0], quote=False)
        parts += [html.escape(text[at : address.start()], quote=False), link(address[0], label)]
        at = address.end()
    return "".join([*parts, html.escape(text[at:], quote=False)])
