"""The account of a run: tokens and what they cost.

What an attempt has used is known if it came to its end and its provider said so, or if it was refused, since
then nothing was generated. Of an attempt that was cut off (by an abort, a time limit, a lost connection) what
was reported until then is counted and priced, and its usage is marked as unknown beyond that.
"""

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from math import fsum, isfinite

from msgspec import Struct, field

from swink.errors import AgentError
from swink.messages import Cost, ModelSpec, Price, Usage
from swink.messages.modelspec import HOSTED_USES
from swink.models import catalog
from swink.stream import Assembly
from swink.tools import ToolContext

Spent = tuple[Usage, Cost | None]
"""Tokens and what they cost; None: unknown."""

payer: ContextVar[ToolContext | None] = ContextVar("swink.payer", default=None)
"""The call that pays for the runs that are started in this context."""

_NOTHING: Spent = (Usage(), Cost())
_CATEGORIES = Cost.__struct_fields__
_NO_PARTS: Sequence[Sequence[float]] = ((),) * len(_CATEGORIES)


class Account(Struct, eq=False):
    """Tokens and cost, failed attempts and sub-agents included; one unknown cost makes the sum unknown.

    A run that was started by a tool call charges the call too, at once.
    """

    _price_of: Callable[[ModelSpec], Price | None] | None
    payer: ToolContext | None = field(default_factory=payer.get)
    _usage: Usage = _NOTHING[0]
    _parts: Sequence[Sequence[float]] = _NO_PARTS
    _lost: bool = False
    _unpriced: bool = False
    _unadded: list[Spent] | None = None
    _priced: ModelSpec | None = None
    _price: Price | None = None
    _is_unlisted: bool = False

    def charge(self, usage: Usage, cost: Cost | None) -> None:
        """Add to the totals, and to those of the call that pays for this run."""
        if self._unadded is None:
            self._unadded = []
        self._unadded.append((usage, cost))
        if self.payer is not None:
            self.payer.charge(usage, cost)

    @property
    def totals(self) -> Spent:
        """All tokens so far, and what they cost: None if unknown. Added up when asked for."""
        cost = self.reported_cost
        return self._usage, None if self._lost else cost

    @property
    def reported_cost(self) -> Cost | None:
        """What it costs without the attempts of which no provider said anything."""
        if self._unadded:
            costs: list[Cost] = []
            for usage, cost in self._unadded:
                self._usage += usage
                if cost is not None:
                    costs.append(cost)
                elif usage.unknown and not usage.total:
                    self._lost = True
                else:
                    self._unpriced = True
            if costs:
                pairs = zip(self._parts, _amounts(costs), strict=True)
                self._parts = [_exact([*parts, *amounts]) for parts, amounts in pairs]
            self._unadded = None
        return None if self._unpriced else Cost(*map(fsum, self._parts))

    def price(self, model: ModelSpec, usage: Usage, began: float | None = None) -> Cost | None:
        """What one request costs: by the spec's own price, else the caller's table, else the catalog.

        `began` is when it was sent, as some prices change with the time; None: now.
        """
        if not usage.total and usage.extra.keys().isdisjoint(HOSTED_USES):
            return None if usage.unknown else Cost()
        if self._priced is not model:
            self._priced = model
            price_of = None if self._price_of is catalog.price_of else self._price_of
            self._price = model.price or (price_of(model) if price_of is not None else None)
            self._is_unlisted = self._price is None and catalog.listed(model) is None
        if self._price is not None:
            return self._price.cost(usage)
        if self._is_unlisted:
            return None
        return catalog.cost_of(model, usage, None if began is None else datetime.fromtimestamp(began, UTC))

    def attempt(self, model: ModelSpec, assembly: Assembly | None, error: AgentError | None = None) -> Spent:
        """What an attempt has used so far and cost, also if it ends here; nothing if nobody was asked."""
        if assembly is None:
            return _NOTHING
        usage, cost = assembly.spent(error)
        return usage, self.price(model, usage, assembly.began) if cost is None else cost


def total_cost(costs: Iterable[Cost | None]) -> Cost | None:
    """The sum, in whatever order; None if one of them is unknown."""
    every = list(costs)
    known = [cost for cost in every if cost is not None]
    return Cost(*map(fsum, _amounts(known))) if len(known) == len(every) else None


def _amounts(costs: Sequence[Cost]) -> list[list[float]]:
    """The amounts of each category."""
    return [[getattr(cost, name) for cost in costs] for name in _CATEGORIES]


def _exact(amounts: list[float]) -> list[float]:
    """The sum of some amounts as a few that are exactly as much, so that no order of adding matters."""
    parts: list[float] = []
    while rest := fsum([*amounts, *[-part for part in parts]]):
        parts.append(rest)
        if not isfinite(rest):
            break
    return parts
