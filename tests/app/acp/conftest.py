"""Every test has a home of its own."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "cli"))
sys.path.append(str(Path(__file__).parents[1] / "tui"))

import pytest
from command_line import place as place
from command_line import provider as provider


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "editor-home"
    home.mkdir()
    for name, below in (("HOME", ""), ("SWINK_CONFIG_DIR", "config"), ("SWINK_STATE_DIR", "state")):
        monkeypatch.setenv(name, str(home / below))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder, about which nothing is asked."""
    place = tmp_path / "project"
    place.mkdir()
    return place
