"""Embeddings: texts as vectors of length 1, so that their dot product is their similarity."""

import threading
from collections.abc import Sequence
from functools import partial
from math import sqrt
from typing import Any, Protocol

from swink.errors import ContextWindowOverflow, InvalidInput, StreamError
from swink.local.gguf import read_head
from swink.local.lifetime import call_in_thread, close_at_exit
from swink.local.llamacpp import LlamaServer, Settings, embeddings_of, open_embedder, require_runtime
from swink.local.model import LocalModel, local_model
from swink.local.progress import say_on_stderr
from swink.local.pull import pull
from swink.local.weights import DEFAULT_MODEL


class Embedder(Protocol):
    """Anything that turns texts into vectors of length 1, in the same order."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each of the `texts`."""
        ...


class LocalEmbedder:
    """Embeddings by a model in this process, loaded when it is first used.

    Any GGUF model works; one made for embeddings tells texts apart far better than a chat model does. A chat
    model is the one that agents use, in memory once; with a `context` it is one of its own.

    Args:
        model_id: the model, such as the name of a GGUF file or "hf/OWNER/REPO"
        context: tokens of a text, for a model of its own
        threads: how many compute
        batch: texts at a time
    """

    def __init__(
        self,
        model_id: str = DEFAULT_MODEL,
        *,
        context: int | None = None,
        threads: int | None = None,
        batch: int = 32,
    ) -> None:
        if batch < 1:
            raise InvalidInput(f"batch is {batch}; it has to be at least 1")
        self.model_id = model_id
        self._shares = context is None
        self._settings = Settings(context or 512, threads, parallel=1)
        self._batch = batch
        self._server: LlamaServer | None = None
        self._lock = threading.Lock()
        close_at_exit(self)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each of the `texts`. Cancelling stops it after the current batch."""
        if isinstance(texts, str):
            raise InvalidInput("embed() takes a list of texts; for a single one pass [text]")
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            # llama.cpp refuses an empty text; a blank takes its place
            request = {"input": [text or " " for text in texts[start : start + self._batch]]}
            if (shared := await call_in_thread("swink-local-embed", self._shared)) is not None:
                vectors += self._vectors(await shared.embed(request, id(self)))
            else:
                compute = partial(self._embed, request)
                vectors += self._vectors(await call_in_thread("swink-local-embed", compute))
        return vectors

    def close(self) -> None:
        """Free the memory of a model of its own; the next use loads again."""
        self._server = None

    def servers(self) -> list[LlamaServer]:
        """The servers of llama.cpp that it has loaded."""
        return [] if self._server is None else [self._server]

    def _shared(self) -> LocalModel | None:
        """The model of agents with the usual settings, unless this one is made for embeddings alone."""
        if not self._shares or self._server is not None:
            return None
        require_runtime()
        if read_head(pull(self.model_id, progress=say_on_stderr())).pooling:
            return None
        return local_model(self.model_id, Settings(threads=self._settings.threads))

    def _embed(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:  # one thread at a time loads, or computes
            if (server := self._server) is None:
                require_runtime()
                path = pull(self.model_id, progress=say_on_stderr())
                server = self._server = open_embedder(path, read_head(path), self._settings)
            return embeddings_of(server, request)

    def _vectors(self, answer: dict[str, Any]) -> list[list[float]]:
        if "error" in answer:
            message = str(answer["error"].get("message", "llama.cpp failed"))
            is_overflow = "too large" in message or "context size" in message
            kind = ContextWindowOverflow if is_overflow else StreamError
            raise kind(f"a text cannot be embedded: {message}", model=f"local:{self.model_id}")
        rows = sorted(answer["data"], key=lambda row: int(row["index"]))
        return [_normalised(row["embedding"]) for row in rows]


def similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors of length 1, `one` and the `other`."""
    if len(one) != len(other):
        raise InvalidInput(f"vectors of {len(one)} and {len(other)} numbers; compare those of one model")
    return sum(a * b for a, b in zip(one, other, strict=False))


def _normalised(vector: Sequence[float]) -> list[float]:
    length = sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]
