"""A model in this process: loaded once, shared by whoever asks for it, gone when it is unloaded or the process ends.

    Unloaded ─▶ Downloading ─▶ Loading ─▶ Ready
        ▲            │            │         │
        │            ╰─▶ Failed ◀─╯         │        the next caller tries again
        ╰──────────── unload() ◀────────────╯

Callers in any thread and event loop wait for the one load. Nothing runs between requests: each load and each generation has
a thread of its own that ends with it.
"""

import asyncio
import copy
import os
import threading
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.errors import AgentError, StreamError
from swink.local.fairqueue import FairQueue
from swink.local.generation import Generation
from swink.local.gguf import Head, read_head
from swink.local.lifetime import own, start_thread
from swink.local.modelerrors import LoadCancelled, LocalModelError
from swink.local.pull import pull
from swink.local.runtime import LlamaServer, Settings, open_model, require_runtime
from swink.local.states import Failed, Listener, Loading, Ready, State, Unloaded
from swink.local.weights import locate

_CHUNK = 4 << 20


class LoadedModel(Struct, frozen=True):
    """A model in memory."""

    server: LlamaServer
    head: Head
    path: Path


class _Waiter:
    """A caller waiting for the load; its listener hears of the progress in its own event loop."""

    def __init__(self, listener: Listener | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[LoadedModel] = self.loop.create_future()
        self.listener = listener

    def hear(self, state: State) -> None:
        if self.listener is not None:
            self._soon(self.listener, state)

    def settle(self, result: LoadedModel | AgentError) -> None:
        self._soon(_settle, self.future, result)

    def _soon(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # its event loop is closed, nobody waits there any more
            return


class _Load:
    """One attempt: who waits for it, and the event that tells it to give up."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.waiters: list[_Waiter] = []


class LocalModel:
    """One model with one set of settings. Get it from `local_model`, which gives everybody the same one."""

    def __init__(self, model_id: str, settings: Settings) -> None:
        self.model_id = model_id
        self.settings = settings
        self._lock = threading.Lock()
        self._state: State = Unloaded()
        self._opened: LoadedModel | None = None
        self._load: _Load | None = None
        self._turns = FairQueue(settings.parallel)
        self._working: set[Generation] = set()

    @property
    def state(self) -> State:
        """Where the model is on its way to `Ready`."""
        return self._state

    @property
    def generating(self) -> int:
        """How many generations are running."""
        return len(self._working)

    async def ready(self, listener: Listener | None = None) -> LoadedModel:
        """The model, loaded if need be; `listener` hears of the progress. When the last one who waits leaves, the load stops."""
        waiter = _Waiter(listener)
        with self._lock:
            if self._opened is not None:
                return self._opened
            load = self._load or self._begin()
            load.waiters.append(waiter)
        waiter.hear(self._state)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            with self._lock:
                if waiter in load.waiters:
                    load.waiters.remove(waiter)
                abandoned = not load.waiters
            if waiter.future.done() and not waiter.future.cancelled():
                waiter.future.exception()  # it came together with the cancellation: asyncio shall not call it unheard
            if abandoned:
                self._cancel(load)
            raise

    def cancel_load(self) -> None:
        """Give up the load under way, if any; whoever waits for it gets `LoadCancelled` at once."""
        if (load := self._load) is not None:
            self._cancel(load)

    def unload(self) -> None:
        """Free the memory. Generations under way are stopped and end with an error; the next request loads again."""
        self.cancel_load()
        with self._lock:
            opened, self._opened, self._state = self._opened, None, Unloaded()
            working = list(self._working)
        del opened  # closing takes a moment: not under the lock
        for work in working:
            work.unloaded = True
            work.stop.set()

    def close(self) -> None:
        """At exit: let go of everything, and tell nobody; whoever still waits ends with the process."""
        load, self._load = self._load, None
        if load is not None:
            load.stop.set()
        for work in list(self._working):
            work.silent = True
            work.stop.set()
        self._opened = None

    def servers(self) -> list[LlamaServer]:
        """What it holds of llama.cpp."""
        return [] if self._opened is None else [self._opened.server]

    async def generate(
        self, request: Mapping[str, Any], key: Hashable, listener: Listener | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of one reply; close the generator to stop it. Requests with different keys take turns."""
        work = await self._begin_work(request, key, listener)
        try:
            while (item := await work.chunks.get()) is not None:
                if isinstance(item, Exception):
                    raise StreamError(
                        f"llama.cpp refused the request: {item}", model=f"local:{self.model_id}"
                    ) from item
                yield item
            if work.unloaded:
                raise StreamError(
                    "the model was unloaded while it was answering", model=f"local:{self.model_id}"
                )
        finally:
            work.stop.set()

    async def _begin_work(
        self, request: Mapping[str, Any], key: Hashable, listener: Listener | None
    ) -> Generation:
        opened = await self.ready(listener)
        await self._turns.take(key)
        try:
            if self._opened is not opened:  # unloaded while this request was in line
                opened = await self.ready(listener)
        except BaseException:
            self._turns.give_back()
            raise
        work = Generation(opened.server, request, self._done)
        with self._lock:
            self._working.add(work)
        try:
            work.start()
        except RuntimeError as error:
            self._done(work)
            raise StreamError(
                f"no thread could be started: {error}", model=f"local:{self.model_id}"
            ) from error
        return work

    def _done(self, work: Generation) -> None:
        with self._lock:
            self._working.discard(work)
        self._turns.give_back()

    def _begin(self) -> _Load:
        """Start a load; the lock is held."""
        load = _Load()
        try:
            start_thread("swink-local-load", lambda: self._run(load))
        except RuntimeError as error:
            raise LocalModelError(
                f"no thread could be started: {error}", model=f"local:{self.model_id}"
            ) from error
        self._load, self._state = load, Loading(self.model_id)
        return load

    def _run(self, load: _Load) -> None:
        # Whoever waits is told in any case, even if this thread dies of something unforeseen.
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
            path = pull(self.model_id, progress=lambda state: self._tell(load, state), stop=load.stop)
        head = read_head(path)
        if self.settings.chat_template is not None:
            head = replace(head, chat_template=self.settings.chat_template)
        self._warm(load, path)
        server = open_model(path, head, self.settings)
        return LoadedModel(server, head, path)

    def _warm(self, load: _Load, path: Path) -> None:
        """Read the file once, into the system's cache: this part can be watched and stopped, llama.cpp's own loading cannot."""
        total = path.stat().st_size
        done = 0
        with path.open("rb", buffering=0) as file:
            buffer = bytearray(_CHUNK)
            while total < _memory() // 2 and (count := file.readinto(buffer)):
                done += count
                self._tell(load, Loading(self.model_id, done, total))
                if load.stop.is_set():
                    raise LoadCancelled(f"loading {self.model_id} was cancelled")

    def _tell(self, load: _Load, state: State) -> None:
        with self._lock:
            if self._load is not load:
                return
            self._state = state
            waiters = list(load.waiters)
        for waiter in waiters:
            waiter.hear(state)

    def _finish(self, load: _Load, result: LoadedModel | AgentError) -> None:
        with self._lock:
            if (
                self._load is not load
            ):  # cancelled meanwhile: whoever waited has been told, and the model is dropped
                return
            self._load = None
            if isinstance(result, LoadedModel):
                self._opened = result
                self._state = Ready(self.model_id, result.path)
            else:
                self._state = Failed(result, getattr(result, "again", False))
            state, waiters = self._state, load.waiters
        for waiter in waiters:
            waiter.hear(state)
            waiter.settle(result)

    def _cancel(self, load: _Load) -> None:
        load.stop.set()
        self._finish(
            load,
            LoadCancelled(
                f"loading {self.model_id} was cancelled; the next request starts it again",
                model=f"local:{self.model_id}",
            ),
        )


def local_model(model_id: str, settings: Settings | None = None) -> LocalModel:
    """The one model of this process for a name and its settings; it is loaded when it is first used."""
    key = (model_id, settings or Settings())
    with _registry_lock:
        if key not in _registry:
            _registry[key] = LocalModel(*key)
            own(_registry[key])
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
