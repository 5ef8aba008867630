"""Through: a block of code in which every model is asked through a wrapper, by sub-agents too."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from swink.stream.protocol import StreamFn

Wrap = Callable[[StreamFn], StreamFn]
_KEPT = 256
"""How many wrapped stream functions a block keeps: thousands of agents may come and go in it."""


class Wrapping:
    """The wrappers of the enclosing blocks, the outermost last; a stream function in use is wrapped once."""

    def __init__(self, wrap: Wrap, outer: "Wrapping | None") -> None:
        self._wrap = wrap
        self._outer = outer
        self._wrapped: dict[int, tuple[StreamFn, StreamFn]] = {}

    def __call__(self, stream_fn: StreamFn) -> StreamFn:
        known = self._wrapped.get(id(stream_fn))
        if known is None:
            wrapped = self._wrap(stream_fn)
            wrapped = wrapped if self._outer is None else self._outer(wrapped)
            if len(self._wrapped) >= _KEPT:
                del self._wrapped[next(iter(self._wrapped))]
            known = self._wrapped[id(stream_fn)] = stream_fn, wrapped
        return known[1]


_current: ContextVar[Wrapping | None] = ContextVar("swink.asked_through", default=None)


@contextmanager
def through(wrap: Wrap) -> Generator[None]:
    """Ask every model through `wrap(stream_fn)` in runs that begin inside this block, sub-agents' too.

    >>> with through(lambda stream_fn: recorded(stream_fn, "cassette.jsonl")):
    ...     await agent.run("What should I wear in Oslo?")
    """
    token = _current.set(Wrapping(wrap, _current.get()))
    try:
        yield
    finally:
        _current.reset(token)


def asked_through(stream_fn: StreamFn) -> StreamFn:
    """The `stream_fn`, as the enclosing blocks have it asked."""
    wrapping = _current.get()
    return stream_fn if wrapping is None else wrapping(stream_fn)
