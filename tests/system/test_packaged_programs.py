"""Programs that installed packages bring: found by the package alone, and always the same one."""

import os
from pathlib import Path
from typing import Any

import pytest

from swink.system import programs
from swink.system.programs import ProgramChanged, packaged_program


def test_the_program_of_a_package_is_found_whatever_the_path(monkeypatch: Any):
    monkeypatch.setenv("PATH", "")
    found = packaged_program("pydantic-monty-runtime", "monty")
    assert found is not None
    assert os.access(found, os.X_OK)


@pytest.mark.parametrize(
    ("package", "name"), [("no-such-package", "monty"), ("pydantic-monty-runtime", "python")]
)
def test_what_no_package_brings_is_not_found(package: str, name: str):
    assert packaged_program(package, name) is None


def test_another_program_in_its_place_is_refused(monkeypatch: Any, tmp_path: Path):
    found = packaged_program("pydantic-monty-runtime", "monty")
    assert found is not None
    monkeypatch.setitem(programs._pinned, found, (0, 0))
    with pytest.raises(ProgramChanged):
        packaged_program("pydantic-monty-runtime", "monty")
