"""Looks: every style on the screen by name, and the theme of Textual that matches it.

dark, light       calm, one accent; text is readable at WCAG's 4.5
high-contrast     the same at 7
ansi              the sixteen colours of the terminal, by name
plain             no colour at all: bold, underline and reverse alone
"""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct
from rich.style import Style
from textual.theme import Theme


class Syntax(Struct, frozen=True, kw_only=True):
    """How the parts of a program look."""

    comment: Style = Style()
    keyword: Style = Style()
    string: Style = Style()
    number: Style = Style()
    defined: Style = Style()
    """Names of functions, classes and tags where they stand out."""
    builtin: Style = Style()


class Look(Struct, frozen=True, kw_only=True):
    """The styles of a screen; painters know no others. What is not given is as the terminal has it."""

    name: str
    is_dark: bool = True
    background: str = "ansi_default"
    """What everything stands on: a colour of Textual's."""
    surface: str = "ansi_default"
    """A little raised: the editor, panels, code."""
    text: Style = Style()
    dim: Style = Style()
    strong: Style = Style()
    emphasis: Style = Style()
    strike: Style = Style()
    accent: Style = Style()
    border: Style = Style()
    """Lines: of tables, rules, quotes, panels."""
    prompt: Style = Style()
    thinking: Style = Style()
    heading: Style = Style()
    subheading: Style = Style()
    code: Style = Style()
    code_block: Style = Style()
    link: Style = Style()
    quote: Style = Style()
    added: Style = Style()
    removed: Style = Style()
    added_word: Style = Style()
    removed_word: Style = Style()
    ok: Style = Style()
    failed: Style = Style()
    warning: Style = Style()
    running: Style = Style()
    plan: Style = Style()
    selected: Style = Style()
    """The block that keys act on."""
    found: Style = Style()
    """What a search found."""
    cursor: Style = Style()
    """The end of a reply that is still arriving."""
    syntax: Syntax = Syntax()


class _Colours(Struct, frozen=True):
    """What a look of colours is made of."""

    background: str
    surface: str
    raised: str
    text: str
    strong: str
    dim: str
    border: str
    accent: str
    green: str
    red: str
    yellow: str
    violet: str
    orange: str
    added: str
    """Backgrounds from here on."""
    added_word: str
    removed: str
    removed_word: str


_TABLE = """
              dark     light    high-contrast
background    #15171c  #fbfbf9  #000000
surface       #1c1f26  #f1f1ed  #0c0c0c
raised        #262a33  #e5e6e1  #242424
text          #d4d8e0  #2a2d33  #ffffff
strong        #f4f6fa  #000000  #ffffff
dim           #8d95a3  #666b75  #c8c8c8
border        #4a515e  #b9bdc4  #9a9a9a
accent        #86b0ff  #1d5bc4  #7cc7ff
green         #87cf9a  #1c6b35  #7dff9b
red           #f2909a  #b3232f  #ffa3a3
yellow        #e3c07a  #7d5a00  #ffe066
violet        #c6a3f5  #7a3fb8  #e0b8ff
orange        #e8ac7d  #99440b  #ffc48a
added         #16281e  #e4f4e6  #002b10
added_word    #245c3a  #b2e3bb  #00591f
removed       #2e1a1e  #fbe7e8  #3a0008
removed_word  #712f39  #f4bfc3  #6e0013
"""


def _palettes() -> dict[str, _Colours]:
    names, *rows = [line.split() for line in _TABLE.strip().splitlines()]
    return {name: _Colours(**{row[0]: row[at] for row in rows}) for at, name in enumerate(names, 1)}


def _coloured(name: str, colours: _Colours, *, is_dark: bool) -> Look:
    return Look(
        name=name,
        is_dark=is_dark,
        background=colours.background,
        surface=colours.surface,
        text=Style(color=colours.text),
        dim=Style(color=colours.dim),
        strong=Style(color=colours.strong, bold=True),
        emphasis=Style(italic=True),
        strike=Style(color=colours.dim, strike=True),
        accent=Style(color=colours.accent),
        border=Style(color=colours.border),
        prompt=Style(color=colours.strong, bgcolor=colours.raised),
        thinking=Style(color=colours.dim, italic=True),
        heading=Style(color=colours.accent, bold=True),
        subheading=Style(color=colours.strong, bold=True),
        code=Style(color=colours.orange),
        code_block=Style(color=colours.text, bgcolor=colours.surface),
        link=Style(color=colours.accent, underline=True),
        quote=Style(color=colours.dim, italic=True),
        added=Style(color=colours.green, bgcolor=colours.added),
        removed=Style(color=colours.red, bgcolor=colours.removed),
        added_word=Style(color=colours.strong, bgcolor=colours.added_word),
        removed_word=Style(color=colours.strong, bgcolor=colours.removed_word),
        ok=Style(color=colours.green),
        failed=Style(color=colours.red),
        warning=Style(color=colours.yellow),
        running=Style(color=colours.accent),
        plan=Style(color=colours.violet),
        selected=Style(bgcolor=colours.raised),
        found=Style(color=colours.background, bgcolor=colours.yellow),
        cursor=Style(color=colours.accent),
        syntax=Syntax(
            comment=Style(color=colours.dim, italic=True),
            keyword=Style(color=colours.violet),
            string=Style(color=colours.green),
            number=Style(color=colours.orange),
            defined=Style(color=colours.accent),
            builtin=Style(color=colours.yellow),
        ),
    )


def _ansi() -> Look:
    """Bright black is unreadable in some palettes, so what recedes is dim instead."""
    return Look(
        name="ansi",
        dim=Style(dim=True),
        strong=Style(bold=True),
        emphasis=Style(italic=True),
        strike=Style(strike=True, dim=True),
        accent=Style(color="cyan"),
        border=Style(dim=True),
        prompt=Style(bold=True),
        thinking=Style(dim=True, italic=True),
        heading=Style(color="cyan", bold=True),
        subheading=Style(bold=True),
        code=Style(color="yellow"),
        link=Style(color="cyan", underline=True),
        quote=Style(italic=True),
        added=Style(color="green"),
        removed=Style(color="red"),
        added_word=Style(color="green", reverse=True),
        removed_word=Style(color="red", reverse=True),
        ok=Style(color="green"),
        failed=Style(color="red"),
        warning=Style(color="yellow"),
        running=Style(color="cyan"),
        plan=Style(color="magenta"),
        selected=Style(bold=True),
        found=Style(color="black", bgcolor="yellow"),
        cursor=Style(color="cyan"),
        syntax=Syntax(
            comment=Style(dim=True),
            keyword=Style(color="magenta"),
            string=Style(color="green"),
            number=Style(color="yellow"),
            defined=Style(color="cyan"),
            builtin=Style(color="cyan"),
        ),
    )


def _plain() -> Look:
    bold, underlined, reverse = Style(bold=True), Style(underline=True), Style(reverse=True)
    both = Style(bold=True, underline=True)
    return Look(
        name="plain",
        strong=bold,
        emphasis=underlined,
        accent=bold,
        prompt=bold,
        heading=both,
        subheading=bold,
        code=bold,
        link=underlined,
        added_word=both,
        removed_word=both,
        failed=bold,
        warning=bold,
        plan=bold,
        selected=bold,
        found=reverse,
        cursor=reverse,
    )


_PALETTES = _palettes()
LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        **{name: _coloured(name, colours, is_dark=name != "light") for name, colours in _PALETTES.items()},
        "ansi": _ansi(),
        "plain": _plain(),
    }
)
"""The looks by their names."""


def theme(look: Look) -> Theme:
    """The theme of Textual with which widgets match a look; it is named `swink-dark` and so on."""
    colours = _PALETTES.get(look.name)
    if colours is None:
        return _terminal_theme(look)
    return Theme(
        name=theme_name(look),
        primary=colours.accent,
        secondary=colours.violet,
        accent=colours.accent,
        warning=colours.yellow,
        error=colours.red,
        success=colours.green,
        foreground=colours.text,
        background=colours.background,
        surface=colours.surface,
        panel=colours.raised,
        dark=look.is_dark,
        variables={
            "border": colours.accent,
            "border-blurred": colours.border,
            "text-muted": colours.dim,
            "text-disabled": colours.dim,
            "block-cursor-background": colours.raised,
            "block-cursor-foreground": colours.strong,
            "block-cursor-text-style": "bold",
            "block-cursor-blurred-background": colours.raised,
            "block-cursor-blurred-foreground": colours.text,
            "input-cursor-background": colours.text,
            "input-cursor-foreground": colours.background,
            "input-selection-background": colours.raised,
            "screen-selection-background": colours.border,
            "screen-selection-foreground": colours.strong,
            "footer-key-foreground": colours.accent,
            "scrollbar": colours.border,
            "scrollbar-hover": colours.dim,
            "scrollbar-active": colours.accent,
            "scrollbar-background": colours.background,
            "scrollbar-background-hover": colours.background,
            "scrollbar-background-active": colours.background,
            "scrollbar-corner-color": colours.background,
        },
    )


def theme_name(look: Look) -> str:
    """What Textual calls the theme of a look."""
    return f"swink-{look.name}"


def _terminal_theme(look: Look) -> Theme:
    """The terminal's own foreground and background; `plain` has no other colours than those."""

    def colour(name: str) -> str:
        return "ansi_default" if look.name == "plain" else f"ansi_{name}"

    return Theme(
        name=theme_name(look),
        ansi=True,
        primary=colour("cyan"),
        secondary=colour("magenta"),
        accent=colour("cyan"),
        warning=colour("yellow"),
        error=colour("red"),
        success=colour("green"),
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        dark=look.is_dark,
        variables={
            "ansi-background": "ansi_default",
            "ansi-foreground": "ansi_default",
            "border-blurred": colour("bright_black"),
            "block-cursor-foreground": "ansi_default",
            "block-cursor-background": "ansi_default",
            "block-cursor-text-style": "bold underline",  # lists never show "reverse"
            "block-cursor-blurred-text-style": "bold underline",
            "input-cursor-background": "ansi_default",
            "input-cursor-foreground": "ansi_default",
            "input-cursor-text-style": "reverse",
            "scrollbar": colour("bright_black"),
            "scrollbar-background": "ansi_default",
            "scrollbar-background-hover": "ansi_default",
            "scrollbar-background-active": "ansi_default",
            "scrollbar-corner-color": "ansi_default",
        },
    )
