"""The beginning that the prompts of an agent share: read once, kept on disk, taken up by later starts.

    request ─▶ its fixed beginning ─┬─▶ in memory already ─────────────────────▶ the request itself
                                    ├─▶ on disk: put into an unused slot ──────▶
                                    ├─▶ being read for another: waited for ────▶
                                    ╰─▶ nowhere: read by itself, saved ────────▶

The fixed beginning is the system prompt with the tools and their examples; what a user says comes after it
and is never written. Whatever goes wrong here costs time only: llama.cpp compares the tokens of a request
with those that it has, and reads what differs.
"""

import hashlib
import http.client
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from swink.local.lifetime import start_thread
from swink.local.llamacpp import LlamaServer, Settings, require_runtime
from swink.local.statefiles import StateFiles
from swink.local.states import LocalModelError
from swink.system.places import cache_dir

logger = logging.getLogger("swink.local")

FIXED = "swink_fixed"
"""The field of a request that says how many of its messages are fixed; llama.cpp does not see it."""

_FEWEST = 64
"""Tokens: a shorter beginning is read about as fast as it is loaded."""
_SECONDS = 10.0
_MOMENT = 0.05
"""Seconds after which one who waits looks whether it was stopped."""
_RENDERED = ("messages", "tools", "tool_choice", "chat_template_kwargs")
_FAILURES = (OSError, http.client.HTTPException, LocalModelError, ValueError, KeyError, TypeError)
"""Of the disk, of the connection, of llama.cpp, and answers of another shape than expected."""

Chunk = dict[str, Any]
TakeChunk = Callable[[Chunk], bool]


class LlamaHttp:
    """The address that llama.cpp serves in this process: what its server object has no method for."""

    def __init__(self, address: str, key: str) -> None:
        self._place = address.removeprefix("http://")
        self._key = key

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer to a request; raises `LocalModelError` if it is a refusal."""
        connection = http.client.HTTPConnection(self._place, timeout=_SECONDS)
        try:
            sent = None if body is None else json.dumps(body)
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request("GET" if body is None else "POST", path, sent, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise LocalModelError(f"llama.cpp answers {answer.status} to {path}: {text[:200]!r}")
        return json.loads(text)


class _Preparation:
    """A beginning that is made ready by one request; others wait for it."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.told: Chunk | None = None
        """The progress that was told last."""

    def wait(self, take_chunk: TakeChunk, stop: threading.Event) -> None:
        """Return once it has ended, or at a stop; meanwhile its progress is told."""
        shown: Chunk | None = None
        while not self.ended.wait(_MOMENT):
            told = self.told
            if stop.is_set() or (told is not shown and told is not None and take_chunk(told)):
                return
            shown = told


class PrefixStates:
    """The beginnings that one loaded model has in memory or on disk; `mark` names model and runtime."""

    def __init__(self, llama: LlamaHttp, files: StateFiles, mark: str) -> None:
        self._llama = llama
        self._files = files
        self._mark = mark
        self._lock = threading.Lock()
        self._known: dict[str, _Preparation] = {}
        self._filled: set[int] = set()
        self._told = False

    def prepare(
        self,
        server: LlamaServer,
        request: Mapping[str, Any],
        take_chunk: TakeChunk,
        stop: threading.Event | None = None,
    ) -> int:
        """Have the beginning of a request in memory; how many of its tokens were read for that.

        Blocking; `take_chunk` gets the progress. It ends when that returns True, or when it is stopped.
        """
        if not request.get(FIXED) or not request.get("cache_prompt"):
            return 0
        stop = stop or threading.Event()
        fixed = request["messages"][: request[FIXED]]
        known = _hash(fixed, *(request.get(name) for name in _RENDERED[1:]))
        while not stop.is_set():
            own = _Preparation()
            with self._lock:
                preparation = self._known.setdefault(known, own)
            if preparation is own:
                return self._prepare_known(known, own, server, request, fixed, take_chunk)
            preparation.wait(take_chunk, stop)
            with self._lock:
                if self._known.get(known) is preparation:
                    return 0
            # It was stopped halfway, so this request reads the beginning itself.
        return 0

    def _prepare_known(
        self,
        known: str,
        preparation: _Preparation,
        server: LlamaServer,
        request: Mapping[str, Any],
        fixed: list[Any],
        take_chunk: TakeChunk,
    ) -> int:
        def take(chunk: Chunk) -> bool:
            preparation.told = chunk
            return take_chunk(chunk)

        read, whole = 0, False
        try:
            read, whole = self._prepare(server, request, fixed, take)
        except _FAILURES as error:
            whole = True  # the next attempt would fail too
            self._tell(error)
        finally:
            if not whole:
                with self._lock:
                    del self._known[known]
            preparation.ended.set()
        return read

    def _prepare(
        self, server: LlamaServer, request: Mapping[str, Any], fixed: list[Any], take_chunk: TakeChunk
    ) -> tuple[int, bool]:
        """How many tokens were read, and whether nothing is left to do."""
        beginning = _common(*[self._text(request, [*fixed, _said(text)]) for text in "01"])
        whole = self._text(request, request["messages"])
        tokens = self._tokens(beginning)
        # A template may write the beginning differently later in a conversation.
        if not whole.startswith(beginning) or len(tokens) < _FEWEST:
            return 0, True
        key = self._mark[:20] + _hash(self._mark, beginning)[:20]
        if (path := self._files.find(key)) is not None and self._restore(path):
            return 0, True
        # On another day, or in another directory, the prompt of an agent differs near its end only.
        if path is None and (near := self._files.nearest(key[:20], tokens, _FEWEST)) is not None:
            self._restore(near)
        reading = _Reading(take_chunk, len(self._tokens(whole)))
        fields = {"n_predict": 0, "stream": True, "return_progress": True, "cache_prompt": True}
        server.handle_completions({"prompt": tokens, **fields}, reading.take_chunk)
        if reading.done < len(tokens):  # stopped, or refused: the request itself finds out
            return reading.fresh, False
        self._save(key, tokens)
        return reading.fresh, True

    def _restore(self, path: Path) -> bool:
        """Put a saved state into a slot that nobody has used; elsewhere it would drive out another's."""
        with self._lock:
            slot = next((slot for slot in self._unused() if slot not in self._filled), None)
            if slot is None:
                return False
            self._filled.add(slot)
        try:
            self._llama.ask(f"/slots/{slot}?action=restore", {"filename": path.name})
        except LocalModelError as error:
            logger.debug("%s cannot be used: %s", path, error)
            path.unlink(missing_ok=True)
            return False
        return True

    def _unused(self) -> list[int]:
        slots = cast("list[dict[str, Any]]", self._llama.ask("/slots"))
        return [slot["id"] for slot in slots if "id_task" not in slot and not slot["is_processing"]]

    def _save(self, key: str, tokens: list[int]) -> None:
        """Let llama.cpp write the slot that has just read these tokens; the rest is done in a thread."""
        slots = cast("list[dict[str, Any]]", self._llama.ask("/slots"))
        fitting = [slot for slot in slots if slot.get("n_prompt_tokens") == len(tokens)]
        if not fitting:  # another request has taken the slot already
            return
        slot = max(fitting, key=lambda slot: slot["id_task"])["id"]
        path = self._files.begin(key)
        try:
            saved = self._llama.ask(f"/slots/{slot}?action=save", {"filename": path.name})["n_saved"]
            if saved != len(tokens):
                raise LocalModelError(f"slot {slot} went on to {saved} tokens")
            start_thread("swink-local-state", lambda: self._keep(path, key, tokens))
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _keep(self, path: Path, key: str, tokens: list[int]) -> None:
        try:
            self._files.keep(path, key, tokens)
        except OSError as error:
            self._tell(error)

    def _text(self, request: Mapping[str, Any], messages: list[Any]) -> str:
        fields = {name: request[name] for name in _RENDERED if name in request}
        return self._llama.ask("/apply-template", {**fields, "messages": messages})["prompt"]

    def _tokens(self, text: str) -> list[int]:
        asked = {"content": text, "add_special": True, "parse_special": True}
        return self._llama.ask("/tokenize", asked)["tokens"]

    def _tell(self, error: Exception) -> None:
        with self._lock:
            told, self._told = self._told, True
        text = "the state of the prompt is not kept in %s, so each start reads it again: %s"
        logger.log(logging.DEBUG if told else logging.WARNING, text, self._files.directory, error)


class _Reading:
    """The chunks of reading the beginning, told as progress in the whole prompt."""

    def __init__(self, take_chunk: TakeChunk, total: int) -> None:
        self._take_chunk = take_chunk
        self._total = total
        self.done = self._cached = 0

    @property
    def fresh(self) -> int:
        """The tokens that were read, and not found in memory."""
        return max(0, self.done - self._cached)

    def take_chunk(self, chunk: Chunk) -> bool:
        progress = chunk.get("prompt_progress")
        if progress is None:
            return False
        self.done, self._cached = progress["processed"], progress["cache"]
        return self._take_chunk({"prompt_progress": {**progress, "total": max(self._total, self.done)}})


def as_read(chunk: Chunk, fresh: int) -> Chunk:
    """A chunk whose counts say that `fresh` tokens, which llama.cpp found in its memory, were read for it."""
    match chunk:
        case {"prompt_progress": {"cache": int() as cached} as progress}:
            return {**chunk, "prompt_progress": {**progress, "cache": max(0, cached - fresh)}}
        case {"usage": {"prompt_tokens_details": {"cached_tokens": int() as cached}} as usage}:
            details = {"cached_tokens": max(0, cached - fresh)}
            return {**chunk, "usage": {**usage, "prompt_tokens_details": details}}
        case _:
            return chunk


def states_dir() -> Path | None:
    """Where states are kept; None if SWINK_LOCAL_STATES is "off"."""
    return None if os.environ.get("SWINK_LOCAL_STATES") == "off" else cache_dir() / "states"


def state_mark(path: Path, template: str, settings: Settings) -> str:
    """All that a state depends on but the prompt: weights, runtime, chat template and settings."""
    return _hash(
        _weights_mark(path), require_runtime().__version__, template, replace(settings, threads=None)
    )


def _weights_mark(path: Path) -> str:
    """What tells weights apart: their size and samples over the whole file, which may be large."""
    size, samples = path.stat().st_size, 64
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for number in range(samples):
            file.seek(number * max(0, size - 65_536) // (samples - 1))
            digest.update(file.read(65_536))
    return digest.hexdigest()


def _common(one: str, other: str) -> str:
    pairs = enumerate(zip(one, other, strict=False))
    return one[: next((place for place, (a, b) in pairs if a != b), 0)]


def _said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
