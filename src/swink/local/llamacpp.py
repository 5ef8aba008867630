"""The runtime: llama.cpp through xllamacpp, imported when the first model is loaded, and quiet by default."""

import ctypes
import ctypes.util
import importlib
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import Struct

from swink.errors import InvalidInput, MisuseError
from swink.local.gguf import GgufHead
from swink.local.states import ExtraMissing, LoadFailed
from swink.system.extras import install_command

_MAX_CONTEXT = 8192


class Settings(Struct, frozen=True):
    """How a model is loaded; agents with equal settings share it.

    `context` is in tokens, for each of `parallel` conversations; None takes the model's own, at most 8192.
    `gpu_layers` go to the GPU: as many as fit if it is None, and 0 leaves a GPU alone. A `batch` of tokens is
    read at a time; None chooses by how fast the model reads.

    Args:
        threads: how many write; None takes the physical cores less one
        chat_template: a template instead of the model's own
    """

    context: int | None = None
    threads: int | None = None
    parallel: int = 2
    gpu_layers: int | None = None
    batch: int | None = None
    chat_template: str | None = None

    def __post_init__(self) -> None:
        for name in ("context", "threads", "parallel", "batch"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidInput(f"{name} is {value!r}; it has to be a whole number of at least 1")


class LlamaServer(Protocol):
    """The part of xllamacpp's server object that is used here; dropping the last reference closes it."""

    def handle_chat_completions(
        self, request: Mapping[str, Any], callback: Callable[[dict[str, Any]], bool | None], /
    ) -> Any: ...
    def handle_completions(
        self, request: Mapping[str, Any], callback: Callable[[dict[str, Any]], bool | None], /
    ) -> Any: ...
    def handle_embeddings(self, request: Mapping[str, Any], /) -> dict[str, Any]: ...
    @property
    def listening_address(self) -> str: ...


def require_runtime() -> Any:
    """The xllamacpp module; raises `ExtraMissing` with the command that installs it."""
    if (loaded := sys.modules.get("xllamacpp")) is not None:
        return loaded
    policy = os.environ.get("OMP_WAIT_POLICY")
    try:
        # OpenMP reads it while the library is loaded. Spinning threads on busy cores are six times slower.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise ExtraMissing(
            f"local models need llama.cpp ({error}); install it with: {install_command('local')}"
        ) from error
    finally:
        if policy is None:
            os.environ.pop("OMP_WAIT_POLICY", None)  # child processes keep their own default


def open_model(
    path: Path, head: GgufHead, settings: Settings, *, key: str = "", states: Path | None = None
) -> LlamaServer:
    """Load a model for use in this process. Blocking; xllamacpp mostly holds the interpreter lock.

    Its HTTP port takes the key given, else one that nobody knows; states of slots are saved in `states`.
    """
    parameters = _parameters(path, head, settings)
    if not head.pooling:
        # Of the poolings, the last token's alone lets a text be read in several batches.
        parameters.embedding = True
        parameters.pooling_type = require_runtime().llama_pooling_type.LLAMA_POOLING_TYPE_LAST
    if key:
        parameters.api_keys = [key]
    if states is not None:
        parameters.slot_save_path = os.path.join(states, "")
        parameters.endpoint_slots = True
    return _open(parameters, path)


def open_embedder(path: Path, head: GgufHead, settings: Settings) -> LlamaServer:
    """Load a model for embeddings; every text has to fit into one batch."""
    parameters = _parameters(path, head, settings)
    parameters.embedding = True
    parameters.n_batch = parameters.n_ubatch = parameters.n_ctx // parameters.n_parallel
    if not head.pooling:  # a model that was not made for embeddings: the mean over all its tokens
        parameters.pooling_type = require_runtime().llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return _open(parameters, path)


def embeddings_of(server: LlamaServer, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request for embeddings; a refusal has `error` in it."""
    try:
        return server.handle_embeddings(request)
    except (ValueError, RuntimeError) as error:  # what xllamacpp raises for a refused request
        return {"error": {"message": str(error)}}


def gpu_names() -> list[str]:
    """The GPUs that the runtime can use, discrete, built in or Metal's; none with a build for CPUs."""
    devices = require_runtime().get_device_info()
    return [str(device["description"]) for device in devices if "GPU" in str(device["type"])]


def reads_on_cpu(settings: Settings) -> bool:
    """Whether no layer goes to a GPU."""
    return settings.gpu_layers == 0 or not gpu_names()


def thread_count(wanted: int | None = None) -> int:
    """How many threads write: as `wanted`, else SWINK_LOCAL_THREADS, else the physical cores less one."""
    if wanted is not None:
        return max(1, wanted)
    if text := os.environ.get("SWINK_LOCAL_THREADS"):
        if not text.isdecimal() or int(text) < 1:
            raise MisuseError(f"SWINK_LOCAL_THREADS is {text!r}; it takes a number of threads, at least 1")
        return int(text)
    return max(1, physical_cores() - 1)


def reading_threads(wanted: int | None = None) -> int:
    """How many threads read a prompt: as asked for, else all physical cores.

    Reading is products of matrices, where the threads seldom wait for each other: it is faster on all cores
    even beside other work, which writing is not.
    """
    if wanted is not None or os.environ.get("SWINK_LOCAL_THREADS"):
        return thread_count(wanted)
    return physical_cores()


def physical_cores() -> int:
    """The physical cores this process may use, within its affinity and container limits."""
    if sys.platform == "darwin":
        return _mac_cores() or os.cpu_count() or 1
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    place = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    cores = len({_read(place.format(cpu)) or str(cpu) for cpu in usable})
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    if quota.isdecimal() and period.isdecimal() and int(period):
        cores = min(cores, int(quota) // int(period))
    return max(1, cores)


def _mac_cores() -> int:
    """The fast cores: on a Mac with two kinds, a thread on a slow one delays all the others."""
    library = ctypes.CDLL(ctypes.util.find_library("c"))
    for name in (b"hw.perflevel0.physicalcpu", b"hw.physicalcpu"):
        value, size = ctypes.c_int(0), ctypes.c_size_t(4)
        if library.sysctlbyname(name, ctypes.byref(value), ctypes.byref(size), None, 0) == 0:
            return value.value
    return 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _parameters(path: Path, head: GgufHead, settings: Settings) -> Any:
    runtime = require_runtime()
    on_cpu = reads_on_cpu(settings)
    parameters = runtime.CommonParams()
    parameters.model.path = str(path)
    parameters.n_parallel = settings.parallel
    context = settings.context or min(head.context_length or _MAX_CONTEXT, _MAX_CONTEXT)
    parameters.n_ctx = context * settings.parallel
    parameters.cpuparams.n_threads = thread_count(settings.threads)
    parameters.cpuparams_batch.n_threads = reading_threads(settings.threads)
    # A request can be stopped between batches: small ones on a CPU, where large ones gain little. With one of
    # a single token llama.cpp ends the process.
    parameters.n_batch = max(2, settings.batch or (16 if on_cpu else 512))
    parameters.n_ubatch = min(parameters.n_batch, 512)
    parameters.cache_ram_mib = 512
    parameters.fit_params = not on_cpu
    parameters.warmup = False
    if settings.gpu_layers is not None:
        parameters.n_gpu_layers = settings.gpu_layers
        # Without layers there, a GPU would still be used for large products and the cache.
        parameters.no_op_offload = parameters.no_kv_offload = settings.gpu_layers == 0
    if settings.chat_template is not None:
        parameters.chat_template = settings.chat_template
    parameters.verbosity = 3 if os.environ.get("SWINK_LOCAL_VERBOSE") else -1
    # xllamacpp opens an HTTP port in any case; a random key keeps others out.
    parameters.api_keys = [secrets.token_urlsafe(32)]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_threads_http = 1 + settings.parallel
    parameters.ui = False
    parameters.cors_origins = ""
    return parameters


def _open(parameters: Any, path: Path) -> LlamaServer:
    runtime = require_runtime()
    parameters.endpoint_metrics = True
    try:
        server = runtime.Server(parameters)
        # An answer means that its loop runs; a server that is closed before that waits for ever.
        server.handle_metrics()
        return cast(LlamaServer, server)
    except RuntimeError as error:
        raise LoadFailed(
            f"llama.cpp could not load {path}: it may be damaged, too large for the memory, or of a kind "
            f"that xllamacpp {runtime.__version__} does not know; SWINK_LOCAL_VERBOSE=1 shows its log"
        ) from error
