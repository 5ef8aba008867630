"""The release: what it is made of, and that it installs anywhere."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.counts import left_to_more
from tests.pages import ROOT

import swink
from tools import interpreters, lowest, sbom

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def program(place: Path, said: str) -> Path:
    """An interpreter that says it is of some version."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{said}\n")
    place.chmod(0o755)
    return place


def test_a_requirement_without_a_lower_bound_is_refused():
    project = {"name": "x", "dependencies": ["left"], "optional-dependencies": {}}
    with pytest.raises(ValueError, match=r"left in pyproject\.toml has no lower bound"):
        list(lowest.lower_bounds(project))


def test_every_requirement_of_ours_has_a_lower_bound():
    bounds = list(
        lowest.lower_bounds(PROJECT, [name for name in PROJECT["optional-dependencies"] if name != "dev"])
    )
    assert "psycopg==3.2.10" in bounds
    assert all("==" in line and "[" not in line for line in bounds)


def test_a_shim_that_starts_nothing_is_no_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program(tmp_path / "path/python3.99", "echo 'pyenv: version not installed' >&2; exit 127")
    right = program(tmp_path / "pyenv/versions/3.99.10/bin/python", "echo 3.99")
    program(tmp_path / "pyenv/versions/3.99.9/bin/python", "echo 3.99")
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=os.pathsep)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    assert interpreters.find("3.99") == str(right)


def test_a_version_that_is_not_here_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    assert interpreters.find("3.98") is None
    assert interpreters.explain_missing("3.98").startswith("Python 3.98: skipped")


def test_the_supported_versions_are_those_of_the_classifiers():
    prefix = "Programming Language :: Python :: 3."
    listed = [
        line.removeprefix("Programming Language :: Python :: ")
        for line in PROJECT["classifiers"]
        if line.startswith(prefix)
    ]
    assert listed == list(interpreters.VERSIONS)
    assert PROJECT["requires-python"] == f">={interpreters.VERSIONS[0]}"


def test_the_list_of_packages_names_everything_that_is_needed_once():
    made = sbom.document("swink", ["eval"])
    names = [one["name"].lower() for one in made["components"]]
    assert made["metadata"]["component"]["purl"] == f"pkg:pypi/swink@{swink.__version__}"
    assert len(set(names)) == len(names)
    assert {"msgspec", "aiohttp", "pyyaml", "multidict"} <= set(names)  # the last is aiohttp's
    assert "textual" not in names
    references = {one["bom-ref"] for one in [*made["components"], made["metadata"]["component"]]}
    assert {one["ref"] for one in made["dependencies"]} == references
    assert {need for one in made["dependencies"] for need in one["dependsOn"]} <= references
    assert json.dumps(made) == json.dumps(sbom.document("swink", ["eval"]))


@left_to_more
def test_a_wheel_installs_outside_of_the_checkout_and_does_what_it_must():
    """On this Python; `make test-pythons` tries all that are here, and the library's tests on each."""
    assert f"the version: {swink.__version__}" in tried("--smoke", HERE)


@left_to_more
def test_some_tests_of_the_library_pass_on_the_newest_other_python_that_is_here():
    others = [each for each in reversed(interpreters.VERSIONS) if each != HERE and interpreters.find(each)]
    if not others:
        pytest.skip(f"there is no Python here but {HERE}")
    said = tried("--sample", others[0])
    assert f"Python {others[0]}, pinned requirements: a sample of the tests" in said
    assert int(re.findall(r"(\d+) passed", said)[0]) > 100


def tried(part: str, version: str) -> str:
    """What the tool says of one Python, where everything was well."""
    command = [sys.executable, str(ROOT / "tools/pythons.py"), part, "--only", version]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
