"""Fixtures of the interface's tests: those of the command line's."""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "cli"))

import pytest
from command_line import place as place
from command_line import provider as provider
from command_line import weights as weights

from swink.app.tui.commands.commandapp import CommandApp


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
