"""Fixtures of the interface's tests: those of the command line's."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "cli"))

import pytest
from command_line import place as place
from command_line import provider as provider
from command_line import weights as weights
from textual.css.stylesheet import Stylesheet

from swink.app.tui.commands.commandapp import CommandApp

_parse, _parsed = Stylesheet._parse_rules, dict[Any, Any]()


def parse_once(sheet: Stylesheet, css: str, *place: Any, **named: Any) -> Any:
    """Every app has the same styles, and to read them takes a sixth of a test."""
    key = (css, place, frozenset(named.items()), frozenset(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse(sheet, css, *place, **named)
    return _parsed[key]


Stylesheet._parse_rules = parse_once  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def no_failures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An unexpected error ends no app, so it would end no test either: it fails the test here."""
    told: list[Exception] = []
    tell = CommandApp.take_failure

    def take_failure(app: CommandApp, error: Exception, *, closed_screen: bool) -> None:
        told.append(error)
        tell(app, error, closed_screen=closed_screen)

    monkeypatch.setattr(CommandApp, "take_failure", take_failure)
    yield
    for error in told:
        raise error
