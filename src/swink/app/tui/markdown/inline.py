"""Inline: a paragraph's words in their styles. Everything but Markdown is literal."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token
from rich.cells import cell_len
from rich.style import Style

from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.strips import Piece, text_of

PARSER = (
    MarkdownIt("commonmark", {"maxNesting": 40})
    .enable(["table", "strikethrough"])
    # HTML is shown, not hidden; definitions are shown and known beforehand (`definitions`).
    .disable(["html_block", "html_inline", "reference"])
)
MOST_DEFINITIONS = 50
"""Definitions of links that count; each new one has the whole reply painted again."""
_MOST_BRACKETS = 300
"""Brackets of a paragraph up to which links are looked for in it: each may be the start of all the others."""
_WRAPPED = 60  # columns from which on a line counts as one of wrapped prose
_DEFINITION = re.compile(
    r"^ {0,3}\[(?P<label>[^\]\[\n]{1,200})\]:[ \t]*<?(?P<href>[^\s<>]{1,500})>?[ \t]*"
    r"(?:[\"'(].{0,200})?\r?\n",
    re.M,
)
_PLAIN = re.compile(r"[^\\`*_~\[\]!<&\n]*")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`|]+[^\s<>\"'`|.,;:!?)\]}*_]")
_SAFE_LINK = re.compile(r"https?://[!-~]{1,2000}")

Definition = dict[str, str]
Definitions = Mapping[str, Definition]
"""Addresses by the normalised labels that links refer to them by."""


def definitions(text: str, start: int, known: Definitions) -> dict[str, Definition]:
    """The definitions of links on whole lines that are new: `[label]: https://example.com`."""
    found: dict[str, Definition] = {}
    if text.find("]:", start) < 0:
        return found
    for match in _DEFINITION.finditer(text, start):
        if len(known) + len(found) >= MOST_DEFINITIONS:
            break
        label = normalizeReference(match["label"])
        if label not in known and label not in found:
            found[label] = {"title": "", "href": PARSER.normalizeLink(match["href"])}
    return found


def paint_inline(content: str, look: Look, base: Style, known: Definitions) -> list[list[Piece]]:
    """The lines of a paragraph: short ones stay apart as in the source, those of wrapped prose are joined."""
    if content.count("[") > _MOST_BRACKETS:
        return [[(visible(line), base)] for line in content.split("\n")]
    if _PLAIN.fullmatch(content):
        return [_addresses(visible(content), look, base)]
    if content.startswith("[") and all(map(_DEFINITION.fullmatch, f"{content}\n".splitlines(keepends=True))):
        return [_addresses(visible(line), look, look.dim) for line in content.split("\n")]
    tokens: list[Token] = []
    PARSER.inline.parse(content, PARSER, {"references": known}, tokens)
    return _paint(tokens, look, base)


def _paint(tokens: list[Token], look: Look, base: Style) -> list[list[Piece]]:
    lines: list[list[Piece]] = [[]]
    styles = [base]
    link: tuple[str, int, int] | None = None  # the address, and where its text starts
    joined = 0  # where the last line of the source starts in this one
    added = {"strong_open": look.strong, "em_open": look.emphasis, "s_open": look.strike}
    for token in tokens:
        match token.type:
            case "text" | "text_special":
                text = visible(token.content).replace("\n", " ")
                lines[-1] += [(text, styles[-1])] if link else _addresses(text, look, styles[-1])
            case "softbreak" if cell_len(text_of(lines[-1][joined:])) >= _WRAPPED:
                joined = len(lines[-1])
                lines[-1].append((" ", styles[-1]))
            case "softbreak" | "hardbreak":
                lines.append([])
                joined = 0
            case "code_inline":
                lines[-1].append((visible(token.content).replace("\n", " "), styles[-1] + look.code))
            case "image":
                parts = token.children or []
                name = "".join("\n" if part.type == "softbreak" else part.content for part in parts)
                lines[-1].append((f"[image: {visible(name)}]".replace("\n", " "), look.dim))
            case "link_open":
                link = str(token.attrGet("href") or ""), len(lines), len(lines[-1])
                styles.append(styles[-1] + look.link + _link_to(link[0]))
            case "link_close":
                styles.pop()
                if link is not None:
                    label = text_of(lines[link[1] - 1][link[2] :]) if len(lines) == link[1] else ""
                    lines[-1] += _address_of(link[0], label, look)
                    link = None
            case "strong_close" | "em_close" | "s_close":
                styles.pop()
            case opened:
                if opened in added:
                    styles.append(styles[-1] + added[opened])
    return lines


def _address_of(href: str, label: str, look: Look) -> Iterator[Piece]:
    """Where a link leads, unless its text says so."""
    shown = visible(PARSER.normalizeLinkText(href)).replace("\n", " ")
    plain = re.sub(r"^(?:https?://|mailto:)|/$", "", shown)
    if shown and label.strip() not in (shown, plain, f"{plain}/"):
        yield f" ({shown})", look.dim


def _addresses(text: str, look: Look, style: Style) -> list[Piece]:
    """Text whose bare addresses can be followed."""
    if "://" not in text:
        return [(text, style)]
    pieces: list[Piece] = []
    at = 0
    for found in _ADDRESS.finditer(text):
        pieces += [(text[at : found.start()], style), (found[0], style + look.link + _link_to(found[0]))]
        at = found.end()
    return [*pieces, (text[at:], style)]


@lru_cache(maxsize=256)
def _link_to(address: str) -> Style:
    """A terminal's own link: to pages of the web alone, and of characters that cannot end the sequence."""
    return Style(link=address) if _SAFE_LINK.fullmatch(address) else Style()
