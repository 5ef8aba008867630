"""A model in this process: loaded once, shared by all callers, until it is unloaded or the process ends.

    Unloaded ─▶ Downloading ─▶ Loading ─▶ Ready
        ▲            │            │         │
        │            ╰─▶ Failed ◀─╯         │        the next request tries again
        ╰──────────── unload() ◀────────────╯

Callers in any thread and event loop wait for the same load. Nothing runs between requests: each load and each
generation has a thread that ends with it.
"""

import asyncio
import copy
import os
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.errors import AgentError, StreamError
from swink.local.fairqueue import FairQueue
from swink.local.generation import Generation
from swink.local.gguf import GgufHead, read_head
from swink.local.lifetime import call_in_thread, close_at_exit, start_thread
from swink.local.llamacpp import (
    LlamaServer,
    Settings,
    embeddings_of,
    open_model,
    reads_on_cpu,
    require_runtime,
)
from swink.local.offload import with_working_gpu
from swink.local.prefix import LlamaHttp, PrefixStates, state_mark, states_dir
from swink.local.progress import say_on_stderr
from swink.local.pull import pull
from swink.local.readingpace import ReadingPace
from swink.local.statefiles import StateFiles
from swink.local.states import (
    Failed,
    Listener,
    LoadCancelled,
    Loading,
    LocalModelError,
    Ready,
    State,
    Unloaded,
)
from swink.local.weights import locate

_CHUNK = 4 << 20


class LoadedModel(Struct, frozen=True):
    """What loading gave: llama.cpp's server, and what the file says about its model."""

    server: LlamaServer
    head: GgufHead
    path: Path
    states: PrefixStates | None = None
    pace: ReadingPace | None = None


class _Waiter:
    """A caller that waits for the load; its listener is called in its own event loop."""

    def __init__(self, listener: Listener | None) -> None:
        self.future: asyncio.Future[LoadedModel] = asyncio.get_running_loop().create_future()
        self.listener = listener

    def notify(self, state: State) -> None:
        if self.listener is not None:
            self._soon(self.listener, state)

    def settle(self, result: LoadedModel | AgentError) -> None:
        self._soon(_settle, self.future, result)

    def _soon(self, function: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # its event loop is closed: nobody waits there any more
            self.future.get_loop().call_soon_threadsafe(function, *arguments)


class _Load:
    """One attempt to load: who waits for it, and the event that stops it."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.waiters: list[_Waiter] = []


class LocalModel:
    """One model with one set of settings. Get it from `local_model`, so that all callers share it.

    Args:
        model_id: the name of the model
        settings: how it is loaded
    """

    def __init__(self, model_id: str, settings: Settings) -> None:
        self.model_id = model_id
        self.settings = settings
        self._name = f"local:{model_id}"
        self._lock = threading.Lock()
        self._state: State = Unloaded()
        self._loaded: LoadedModel | None = None
        self._load: _Load | None = None
        self._queue = FairQueue(settings.parallel)
        self._generations: set[Generation] = set()

    @property
    def state(self) -> State:
        """Where it is on the way from a file to a model in memory."""
        return self._state

    @property
    def generating(self) -> int:
        """How many replies it writes at this moment."""
        return len(self._generations)

    async def ready(self, listener: Listener | None = None) -> LoadedModel:
        """The model, loaded first if necessary; `listener` gets each state.

        When every caller that waits for a load is cancelled, the load stops.
        """
        waiter = _Waiter(listener)
        with self._lock:
            if self._loaded is not None:
                return self._loaded
            load = self._load or self._start_load()
            load.waiters.append(waiter)
        waiter.notify(self._state)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            with self._lock:
                if waiter in load.waiters:
                    load.waiters.remove(waiter)
                abandoned = not load.waiters
            if waiter.future.done() and not waiter.future.cancelled():
                waiter.future.exception()  # retrieved, so that asyncio does not log it
            if abandoned:
                self._cancel(load)
            raise

    def cancel_load(self) -> None:
        """Stop the load under way, if any; callers that wait for it get `LoadCancelled` at once."""
        if (load := self._load) is not None:
            self._cancel(load)

    def unload(self) -> None:
        """Free the memory. Running generations end with an error; the next request loads the model again."""
        self.cancel_load()
        with self._lock:
            loaded, self._loaded, self._state = self._loaded, None, Unloaded()
            generations = list(self._generations)
        del loaded  # closing takes a moment, so not under the lock
        for generation in generations:
            generation.unloaded = True
            generation.stop.set()

    def close(self) -> None:
        """At exit: stop everything without telling the callers, which end with the process."""
        load, self._load = self._load, None
        if load is not None:
            load.stop.set()
        for generation in list(self._generations):
            generation.silent = True
            generation.stop.set()
        self._loaded = None

    def servers(self) -> list[LlamaServer]:
        """The servers of llama.cpp that it has loaded, to ask what they cost."""
        return [] if self._loaded is None else [self._loaded.server]

    async def generate(
        self, request: Mapping[str, Any], key: Hashable, *, only_beginning: bool = False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of one reply; close the generator to stop it. Requests of different keys take turns.

        If `only_beginning`, the fixed part of the prompt is read and kept, where states are, and no more.

        Args:
            request: the body of a chat completion, as OpenAI's protocol has it
            key: whose request it is
            only_beginning: read the fixed part of the prompt, where states are kept, and no more
        """
        generation = await self._start_generation(request, key, only_beginning)
        try:
            while (item := await generation.chunks.get()) is not None:
                if isinstance(item, Exception):
                    raise StreamError(f"llama.cpp refused the request: {item}", model=self._name) from item
                yield item
            if generation.unloaded:
                raise StreamError("the model was unloaded while it was answering", model=self._name)
        finally:
            generation.stop.set()

    async def embed(self, request: Mapping[str, Any], key: Hashable) -> dict[str, Any]:
        """llama.cpp's answer to a `request` for embeddings of `key`, which takes its turn like others."""
        await self.ready(say_on_stderr())
        await self._queue.take_place(key)
        try:
            server = (await self.ready()).server
        except BaseException:
            self._queue.give_back()
            raise
        began = threading.Event()

        def compute() -> dict[str, Any]:
            began.set()
            try:
                return embeddings_of(server, request)
            finally:
                self._queue.give_back()  # not when the caller leaves: llama.cpp goes on

        try:
            return await call_in_thread("swink-local-embed", compute)
        except LocalModelError:
            if not began.is_set():  # there is no thread
                self._queue.give_back()
            raise

    async def _start_generation(
        self, request: Mapping[str, Any], key: Hashable, only_beginning: bool
    ) -> Generation:
        loaded = await self.ready()
        await self._queue.take_place(key)
        try:
            if self._loaded is not loaded:  # unloaded while this request was waiting
                loaded = await self.ready()
        except BaseException:
            self._queue.give_back()
            raise
        generation = Generation(
            loaded.server,
            request,
            self._done,
            loaded.states,
            loaded.pace,
            only_beginning=only_beginning,
        )
        with self._lock:
            self._generations.add(generation)
        try:
            generation.start()
        except LocalModelError:
            self._done(generation)
            raise
        return generation

    def _done(self, generation: Generation) -> None:
        with self._lock:
            self._generations.discard(generation)
        self._queue.give_back()

    def _start_load(self) -> _Load:
        """Start a load; the lock is held."""
        load = _Load()
        start_thread("swink-local-load", lambda: self._run(load))
        self._load, self._state = load, Loading(self.model_id)
        return load

    def _run(self, load: _Load) -> None:
        # The callers get a result even if this thread dies of an unexpected error.
        result: LoadedModel | AgentError = LocalModelError(
            f"loading {self.model_id} broke off; the traceback is on stderr"
        )
        try:
            result = self._open(load)
        except AgentError as error:
            result = error
        except OSError as error:
            result = LocalModelError(f"{self.model_id} cannot be loaded: {error}")
        finally:
            self._finish(load, result)

    def _open(self, load: _Load) -> LoadedModel:
        require_runtime()  # before anything is downloaded for it
        path = locate(self.model_id)
        if path is None:
            path = pull(self.model_id, progress=lambda state: self._notify(load, state), stop=load.stop)
        head = read_head(path)
        if self.settings.chat_template is not None:
            head = replace(head, chat_template=self.settings.chat_template)
        self._read_once(load, path)
        settings = with_working_gpu(path, self.settings, load.stop)
        mark, pace = state_mark(path, head.chat_template, settings), None
        if settings.batch is None and reads_on_cpu(settings):
            pace = ReadingPace(path, settings.threads)
            settings = replace(settings, batch=pace.batch(settings.parallel))
        directory = states_dir()
        if directory is None:
            return LoadedModel(open_model(path, head, settings), head, path, pace=pace)
        key = secrets.token_urlsafe(32)
        server = open_model(path, head, settings, key=key, states=directory)
        states = PrefixStates(LlamaHttp(server.listening_address, key), StateFiles(directory), mark)
        return LoadedModel(server, head, path, states, pace)

    def _read_once(self, load: _Load, path: Path) -> None:
        """Read the file into the system's cache: llama.cpp's own loading cannot be watched or stopped."""
        total = path.stat().st_size
        done = 0
        with path.open("rb", buffering=0) as file:
            buffer = bytearray(_CHUNK)
            while total < _memory() // 2 and (count := file.readinto(buffer)):
                done += count
                self._notify(load, Loading(self.model_id, done, total))
                if load.stop.is_set():
                    raise LoadCancelled(f"loading {self.model_id} was cancelled")

    def _notify(self, load: _Load, state: State) -> None:
        with self._lock:
            if self._load is not load:
                return
            self._state = state
            waiters = list(load.waiters)
        for waiter in waiters:
            waiter.notify(state)

    def _finish(self, load: _Load, result: LoadedModel | AgentError) -> None:
        with self._lock:
            if self._load is not load:  # it was cancelled: the callers know, and the model is dropped
                return
            self._load = None
            if isinstance(result, LoadedModel):
                self._loaded = result
                self._state = Ready(self.model_id, result.path)
            else:
                self._state = Failed(result, getattr(result, "again", False))
            state, waiters = self._state, load.waiters
        for waiter in waiters:
            waiter.notify(state)
            waiter.settle(result)

    def _cancel(self, load: _Load) -> None:
        load.stop.set()
        text = f"loading {self.model_id} was cancelled; the next request starts it again"
        self._finish(load, LoadCancelled(text, model=self._name))


def local_model(model_id: str, settings: Settings | None = None) -> LocalModel:
    """The model of this process for `model_id` and its `settings`; it is loaded when it is first used."""
    key = (model_id, settings or Settings())
    with _registry_lock:
        if key not in _registry:
            _registry[key] = LocalModel(*key)
            close_at_exit(_registry[key])
        return _registry[key]


def unload_all() -> None:
    """Free the memory of every model of this process."""
    for model in list(_registry.values()):
        model.unload()


def _settle(future: asyncio.Future[LoadedModel], result: LoadedModel | AgentError) -> None:
    if future.done():
        return
    if isinstance(result, LoadedModel):
        future.set_result(result)
    else:
        future.set_exception(copy.copy(result))  # each waiter raises its own, with its own traceback


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 4 << 30


_registry: dict[tuple[str, Settings], LocalModel] = {}
_registry_lock = threading.Lock()


def _after_fork() -> None:
    global _registry_lock
    _registry.clear()
    _registry_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
