"""Hugging Face: weights from a repository there, fetched by the hub client in a child process.

The client keeps what arrived of a broken download and goes on from there the next time.
"""

import importlib.util
from pathlib import Path

from swink.local.download import Download
from swink.local.states import Downloading, ExtraMissing, PullFailed
from swink.local.weights import HubName, choose_file, find_in_hub_cache, hub_dir, with_parts
from swink.system.extras import install_command
from swink.system.programs import environment, python_code

# Each answer on a line of its own, so that warnings of the client around them do no harm.
_LIST = """
import sys
from huggingface_hub import HfApi
for entry in HfApi().list_repo_tree(sys.argv[1], recursive=True):
    if entry.path.endswith(".gguf"):
        print("FILE", entry.size, entry.path)
"""
_FETCH = """
import sys
from huggingface_hub import hf_hub_download
for name in sys.argv[3:]:
    hf_hub_download(sys.argv[1], name, cache_dir=sys.argv[2])
"""


def pull_from_hub(name: HubName, download: Download) -> Path:
    """The file of a model in a repository, downloaded if need be."""
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ExtraMissing(
            f"local:hf/{name.repo} needs the Hugging Face client; install it with: {install_command('hub')}"
        )
    directory = hub_dir()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with download.hold(directory / f"{name.repo.replace('/', '--')}.lock"):
            if (found := find_in_hub_cache(name)) is not None:
                return found
            return _fetch(name, directory, download)
    except OSError as error:
        raise PullFailed(
            f"hf/{name.repo} could not be stored in {directory}: {error.strerror or error}. {_again(name)}"
        ) from error


def _fetch(name: HubName, directory: Path, download: Download) -> Path:
    download.report(Downloading(download.model))
    code, log = download.run(python_code(_LIST, name.repo, cwd=directory, env=_environ()), 0)
    lines = [line.split(" ", 2) for line in log.splitlines() if line.startswith("FILE ")]
    sizes = {path: int(size) for _, size, path in lines}
    if code != 0:
        raise PullFailed(f"hf/{name.repo}: {_reason(log)}. {_again(name)}")
    chosen = choose_file(sorted(sizes), name.file)
    if chosen is None:
        here = ", ".join(sorted(sizes)) or "no GGUF file at all"
        raise PullFailed(f"hf/{name.repo} has no file {name.file!r}; it has {here}")
    files = with_parts(chosen)
    total = sizes[chosen] if len(files) == 1 else 0
    command = python_code(_FETCH, name.repo, str(directory), *files, cwd=directory, env=_environ())
    code, log = download.run(command, total, growing=".incomplete")
    found = find_in_hub_cache(HubName(name.repo, chosen))
    if code != 0 or found is None:
        kept = f"What arrived is kept in {directory}, the next pull goes on from there."
        raise PullFailed(f"hf/{name.repo}/{chosen}: {_reason(log)}. {kept} {_again(name)}")
    return found


def _environ() -> dict[str, str]:
    return {**environment(), "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def _reason(log: str) -> str:
    lines = [line.strip() for line in log.strip().splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "the hub client said nothing"


def _again(name: HubName) -> str:
    return f"Start it again with: swink models pull hf/{name.repo}{'/' + name.file if name.file else ''}"
