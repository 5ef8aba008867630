"""Looks: readable text, the terminal's own colours, none at all, and widgets that match."""

import msgspec
import pytest
from rich.style import Style
from textual.color import Color

from swink.app.tui.look import LOOKS, Look, theme, theme_name


def styles(look: Look) -> dict[str, Style]:
    named = {**msgspec.structs.asdict(look), **msgspec.structs.asdict(look.syntax)}
    return {name: style for name, style in named.items() if isinstance(style, Style)}


def luminance(colour: str) -> float:
    parts = [part / 255 for part in Color.parse(colour).rgb]
    red, green, blue = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("name", "least"), [("dark", 4.5), ("light", 4.5), ("high-contrast", 7.0)])
def test_text_is_readable_against_what_it_stands_on(name: str, least: float):
    look = LOOKS[name]
    grounds = {look.background, look.surface}
    for part, style in styles(look).items():
        if part == "border" or style.color is None:
            continue
        for ground in [style.bgcolor.name] if style.bgcolor else grounds:
            assert contrast(style.color.name, ground) >= least, (part, ground)
    for ground in (look.added.bgcolor, look.removed.bgcolor):
        assert ground is not None
        for style in msgspec.structs.astuple(look.syntax):
            assert style.color is None or contrast(style.color.name, ground.name) >= least, style


def test_the_ansi_look_names_the_colours_of_the_terminal_alone():
    for style in styles(LOOKS["ansi"]).values():
        for colour in (style.color, style.bgcolor):
            assert colour is None or (colour.is_system_defined and colour.number is not None)


def test_the_plain_look_has_no_colour_and_no_other_emphasis_than_bold_underline_and_reverse():
    for style in styles(LOOKS["plain"]).values():
        assert style.without_color == style
        assert not any((style.dim, style.italic, style.strike, style.blink))


def test_widgets_match_every_look():
    for look in LOOKS.values():
        made = theme(look)
        assert made.name == theme_name(look)
        assert Color.parse(made.to_color_system().generate()["background"]) == Color.parse(look.background)
