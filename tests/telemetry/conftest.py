"""Telemetry of a test alone, taken down at its end."""

from collections.abc import Iterator

import pytest
from tests.telemetry.seen import Seen

from swink.stream import observer
from swink.telemetry import uninstrument


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    seen.instrument()
    yield seen
    uninstrument()
    seen.close()
    assert observer.current is None
