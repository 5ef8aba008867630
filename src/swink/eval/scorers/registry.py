"""The registry: scorers by name, our own, users', and those that installed packages bring.

response                         built in, or registered with @scorer("response")
politeness                       an entry point of the group "swink.scorers"
package.module:function          a function, from a module of the current directory too
"""

import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from swink.errors import InvalidInput, MisuseError
from swink.eval.case import Case
from swink.eval.result import Score
from swink.eval.trajectory import Trajectory
from swink.messages.redact import describe_error
from swink.system.loading import load_object

ON_DEMAND: Mapping[str, str] = {
    "code": "swink.eval.scorers.coderun:code",
    "embedding_similarity": "swink.eval.scorers.embeddings:embedding_similarity",
    "bfcl": "swink.eval.importers.bfcl:bfcl",
    "gsm8k": "swink.eval.importers.gsm8k:gsm8k",
    "humaneval": "swink.eval.importers.codetasks:humaneval",
    "mbpp": "swink.eval.importers.codetasks:mbpp",
    "ifeval": "swink.eval.importers.ifeval:ifeval",
    "tau": "swink.eval.importers.tau:tau",
}
"""Scorers whose modules need much, or are used by few: imported when they are named."""
GROUP = "swink.scorers"
"""The entry points under which installed packages offer scorers."""

Scored = Score | float | bool
ScoreFunction = Callable[..., Scored | Awaitable[Scored]]
"""`(case, trajectory) -> Score | float | bool`, sync or async.

More keywords are options that a case file may give; one named `judge` gets the attempt's `Panel`.
"""


class Scorer(Struct, frozen=True):
    """A way to score attempts; it can be called like the function it was made of.

    Args:
        name: what it is called in case files and results
    """

    name: str
    function: ScoreFunction
    threshold: float = 1.0
    """The least value that passes, unless the score or the case says otherwise."""
    applies: Callable[[Case], bool] = lambda case: False
    """Whether it is used for a case that names no evaluators."""
    keywords: dict[str, bool] = {}
    """The options it takes, and whether it needs them; as its function has them."""

    def __post_init__(self) -> None:
        force_setattr(self, "keywords", _keywords_of(self.function))

    def __call__(self, case: Case, trajectory: Trajectory, **options: Any) -> Scored | Awaitable[Scored]:
        return self.function(case, trajectory, **options)


def scorer(
    name: str, *, threshold: float = 1.0, applies: Callable[[Case], bool] = lambda case: False
) -> Callable[[ScoreFunction], Scorer]:
    """Register a function `(case, trajectory) -> Score | float | bool` under a name, for case files.

    `applies(case)` says whether it is used for cases that name no evaluators.

    >>> @scorer("short", threshold=0.5)
    ... def short(case, trajectory):
    ...     return len(trajectory.response) < 200
    """
    if not isinstance(name, str) or not name or ":" in name:  # the decorator was used without its brackets
        raise InvalidInput(f'@scorer needs a name without a colon, such as @scorer("short"), not {name!r}')
    check_threshold(threshold)

    def register(function: ScoreFunction) -> Scorer:
        made = Scorer(name, function, threshold, applies)
        if problem := _signature_problem(function):
            raise InvalidInput(f"@scorer({name!r}): {problem}")
        known = _registered.get(name)
        where = ON_DEMAND.get(name, "").replace(":", ".") if known is None else _origin(known.function)
        if where and where != _origin(function):
            raise InvalidInput(f"there is a scorer {name!r} already ({where}); choose another name")
        _registered[name] = made
        return made

    return register


def find_scorer(name: str, directory: str | Path | None = None) -> Scorer:
    """The scorer with that name, or at that path; raises `MisuseError` with what to write instead.

    Modules of `directory`, such as that of the case file, and of the current one are found.
    """
    if ":" in name:
        return as_scorer(load_object(name, "the scorer", directory), name)
    if (path := ON_DEMAND.get(name)) is not None:
        return as_scorer(load_object(path, "the scorer"), name)
    if (found := _registered.get(name)) is not None:
        return found
    if (offered := _offered().get(name)) is not None:
        try:
            value = offered.load()
        except (Exception, SystemExit) as error:
            # Loading imports a foreign package, which may fail in any way.
            text = f"the scorer {name!r} of {offered.value} cannot be loaded: {describe_error(error)}"
            raise MisuseError(text) from error
        return as_scorer(value, name)
    near = get_close_matches(name, scorer_names(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(scorer_names())}"
    raise MisuseError(f"no scorer {name!r}; {hint} (or write package.module:function)")


def problem_of(name: str, options: Mapping[str, Any] | None = None) -> str | None:
    """What is wrong with a scorer's name, and with its options if they are given; None if it can be used."""
    try:
        found = find_scorer(name)
    except MisuseError as error:
        return str(error)
    if options is None:
        return None
    keywords = found.keywords
    takes = [keyword for keyword in keywords if keyword not in ("judge", "**")]
    for option in options:
        if option not in takes and "**" not in keywords:
            near = get_close_matches(option, takes, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(takes) or 'none'}"
            return f"the scorer {name!r} has no option {option!r}; {hint}"
    for option in takes:
        if keywords[option] and option not in options:
            return f"the scorer {name!r} needs the option {option!r}"
    return None


def scorer_names() -> list[str]:
    """The names of all scorers there are, those of installed packages included."""
    return sorted({*_registered, *ON_DEMAND, *_offered()})


def registered() -> list[Scorer]:
    """The scorers that may apply to a case which names none."""
    return list(_registered.values())


def as_scorer(value: Any, name: str = "") -> Scorer:
    """A scorer as it is, or made of a function."""
    if isinstance(value, Scorer):
        return value
    if not callable(value) or inspect.isclass(value):
        raise MisuseError(f"{name or repr(value)} is no scorer: it must be a function of (case, trajectory)")
    if problem := _signature_problem(value):
        raise MisuseError(f"{name or repr(value)}: {problem}")
    return Scorer(name or getattr(value, "__name__", type(value).__name__), cast("ScoreFunction", value))


def check_threshold(threshold: Any) -> None:
    """Refuse a threshold that is no number in [0, 1]."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise InvalidInput(f"the threshold is {threshold!r}; pass a number from 0 to 1")


@contextmanager
def scorers_kept() -> Generator[None]:
    """For tests: what is registered inside this block is forgotten at its end."""
    before = dict(_registered)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


def _keywords_of(function: Any) -> dict[str, bool]:
    """The keywords that a scorer takes besides case and trajectory, and whether it needs them; "**": any."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function of a C module, without a signature
        return {"**": False}
    given = [item for item in parameters if item.kind <= item.POSITIONAL_OR_KEYWORD][:2]
    named = [item for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
    keywords = {item.name: item.default is item.empty for item in named if item not in given}
    takes_any = any(item.kind is item.VAR_KEYWORD for item in parameters)
    return {**keywords, "**": False} if takes_any else keywords


def _signature_problem(function: Any) -> str | None:
    """Why a function cannot be called with a case and a trajectory."""
    try:
        inspect.signature(function).bind_partial(None, None)
    except TypeError:
        return "a scorer takes two arguments, the case and the trajectory"
    except ValueError:
        pass  # a function of a C module, without a signature; calling it will tell
    return None


def _origin(function: Any) -> str:
    """Where a function comes from: that of a module which is imported again is the same one."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"


@lru_cache(1)
def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


_registered: dict[str, Scorer] = {}
