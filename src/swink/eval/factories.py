"""Factories: a case in, an agent out."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from swink import Agent
from swink.eval.case import Case, Suite

Factory = Callable[[Case], Agent | Awaitable[Agent]]


def load_factory(name: str, directory: str | Path | None = None) -> Factory:
    """What `package.module:factory` names; modules of `directory` and of the current one are found."""
    raise NotImplementedError(name, directory)


def suite_factory(suite: Suite, model: str | None = None) -> Factory:
    """The factory that the suite names, or one that makes agents of its model, system prompt and tools."""
    raise NotImplementedError(suite, model)
