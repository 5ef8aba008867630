"""Looks: every style on the screen by name, and the theme of Textual that matches it.

dark, light       calm, one accent; text is readable at WCAG's 4.5
high-contrast     the same at 7
ansi              the sixteen colours of the terminal, by name
plain             no colour at all: bold, underline and reverse alone
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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


_COLOURS = """
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
"""The last four are backgrounds."""
_STYLES = """
text         {text}                            |                     |
dim          {dim}                             | dim                 |
strong       bold {strong}                     | bold                | bold
emphasis     italic                            | italic              | underline
strike       strike {dim}                      | strike dim          |
accent       {accent}                          | cyan                | bold
border       {border}                          | dim                 |
prompt       {strong} on {raised}              | bold                | bold
thinking     italic {dim}                      | dim italic          |
heading      bold {accent}                     | bold cyan           | bold underline
subheading   bold {strong}                     | bold                | bold
code         {orange}                          | yellow              | bold
code_block   {text} on {surface}               |                     |
link         underline {accent}                | underline cyan      | underline
quote        italic {dim}                      | italic              |
added        {green} on {added}                | green               |
removed      {red} on {removed}                | red                 |
added_word   {strong} on {added_word}          | reverse green       | bold underline
removed_word {strong} on {removed_word}        | reverse red         | bold underline
ok           {green}                           | green               |
failed       {red}                             | red                 | bold
warning      {yellow}                          | yellow              | bold
running      {accent}                          | cyan                |
plan         {violet}                          | magenta             | bold
selected     on {raised}                       | bold                | bold
found        {background} on {yellow}          | black on yellow     | reverse
cursor       {accent}                          | cyan                | reverse
comment      italic {dim}                      | dim                 |
keyword      {violet}                          | magenta             |
string       {green}                           | green               |
number       {orange}                          | yellow              |
defined      {accent}                          | cyan                |
builtin      {yellow}                          | cyan                |
"""
"""With colours | ansi | plain. Bright black is unreadable in some palettes, so what recedes is dim."""
_THEME = """
primary                           {accent}     | {cyan}
secondary                         {violet}     | {magenta}
accent                            {accent}     | {cyan}
warning                           {yellow}     | {yellow}
error                             {red}        | {red}
success                           {green}      | {green}
foreground                        {text}       | {default}
background                        {background} | {default}
surface                           {surface}    | {default}
panel                             {raised}     | {default}
boost                                          | {default}
"""
_VARIABLES = """
ansi-background                                | {default}
ansi-foreground                                | {default}
border                            {accent}     |
border-blurred                    {border}     | {bright_black}
text-muted                        {dim}        |
text-disabled                     {dim}        |
block-cursor-background           {raised}     | {default}
block-cursor-foreground           {strong}     | {default}
block-cursor-text-style           bold         | bold underline
block-cursor-blurred-background   {raised}     |
block-cursor-blurred-foreground   {text}       |
block-cursor-blurred-text-style                | bold underline
input-cursor-background           {text}       | {default}
input-cursor-foreground           {background} | {default}
input-cursor-text-style                        | reverse
input-selection-background        {raised}     |
screen-selection-background       {border}     |
screen-selection-foreground       {strong}     |
footer-key-foreground             {accent}     |
scrollbar                         {border}     | {bright_black}
scrollbar-hover                   {dim}        |
scrollbar-active                  {accent}     |
scrollbar-background              {background} | {default}
scrollbar-background-hover        {background} | {default}
scrollbar-background-active       {background} | {default}
scrollbar-corner-color            {background} | {default}
"""
"""Lists never show "reverse"."""
_TERMINAL = ("default", "cyan", "magenta", "yellow", "red", "green", "bright_black")


def _palettes() -> dict[str, dict[str, str]]:
    names, *rows = [line.split() for line in _COLOURS.strip().splitlines()]
    return {name: {row[0]: row[at] for row in rows} for at, name in enumerate(names, 1)}


def _column(table: str, at: int, palette: Mapping[str, str]) -> dict[str, str]:
    """One column of a table by the names before it, with the colours of a palette."""
    rows = [(line.split()[0], line.partition(" ")[2].split("|")) for line in table.strip().splitlines()]
    return {name: cells[at].strip().format(**palette) for name, cells in rows}


def _look(name: str, column: int, palette: Mapping[str, str]) -> Look:
    styles = {style: Style.parse(text) for style, text in _column(_STYLES, column, palette).items()}
    syntax = Syntax(**{part: styles.pop(part) for part in Syntax.__struct_fields__})
    background, surface = (palette.get(ground, "ansi_default") for ground in ("background", "surface"))
    is_dark = name != "light"
    return Look(name=name, is_dark=is_dark, background=background, surface=surface, syntax=syntax, **styles)


_PALETTES = _palettes()
LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        **{name: _look(name, 0, palette) for name, palette in _PALETTES.items()},
        "ansi": _look("ansi", 1, {}),
        "plain": _look("plain", 2, {}),
    }
)


def theme(look: Look) -> Theme:
    """The theme of Textual with which widgets match a look; it is named `swink-dark` and so on.

    `ansi` and `plain` take the terminal's own foreground and background; `plain` has no other colours.
    """
    palette = _PALETTES.get(look.name)
    column = 0 if palette else 1
    if palette is None:
        palette = {name: "ansi_default" if look.name == "plain" else f"ansi_{name}" for name in _TERMINAL}
    colours: dict[str, Any] = {name: text for name, text in _column(_THEME, column, palette).items() if text}
    variables = {name: text for name, text in _column(_VARIABLES, column, palette).items() if text}
    is_ansi = column == 1
    return Theme(name=theme_name(look), ansi=is_ansi, dark=look.is_dark, variables=variables, **colours)


def theme_name(look: Look) -> str:
    """What Textual calls the theme of a look."""
    return f"swink-{look.name}"
