"""Factories: a case in, an agent out."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from swink import Agent
from swink.errors import MisuseError
from swink.eval.attempt import Factory
from swink.eval.case import Case, Suite
from swink.system.loading import load_object
from swink.tools.named import load_tools


def load_factory(name: str, directory: str | Path | None = None, what: str = "--agent") -> Factory:
    """What the `name` "package.module:factory" means; modules of `directory` and of the current one are
    found.

    Args:
        what: the option that named it, for errors
    """
    value = load_object(name, what, directory)
    if isinstance(value, Agent):
        advice = "name a function that makes one for a case"
        raise MisuseError(f"{what} {name} is one agent for all cases; {advice}")
    if not callable(value):
        raise MisuseError(f"{what} {name} is {type(value).__name__}, not a function that takes a case")
    if not _takes_one(value):
        raise MisuseError(f"{what} {name} must take one argument, the case: def factory(case)")
    return cast(Factory, value)


def suite_factory(suite: Suite, model: str | None = None) -> Factory:
    """The factory that the suite names, or one that makes agents of its model, system prompt and tools."""
    directory = None
    if suite.path is not None:
        directory = suite.path if suite.path.is_dir() else suite.path.parent
    if suite.agent is not None:
        return load_factory(suite.agent, directory, "agent")
    chosen = model or suite.model
    if chosen is None:
        raise MisuseError(
            f"the suite {suite.name!r} names neither a model nor an agent; pass --model or --agent, or write "
            "model: or agent: in the case file"
        )
    tools = load_tools(suite.tools, "tools", directory)

    def make(case: Case) -> Agent:
        return Agent(chosen, system_prompt=suite.system_prompt, tools=tools)

    return make


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        pass  # it does not say
    return True
