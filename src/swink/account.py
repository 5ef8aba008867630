"""The account of a run: tokens used and what they cost, failed attempts and sub-agents included."""

from collections.abc import Callable

from swink.messages import Cost, ModelSpec, Price, Usage


class Account:
    """Running totals; one unknown cost makes the sum unknown."""

    __slots__ = ("_cost", "_new", "_price", "_price_of", "_priced", "_usage")

    def __init__(self, price_of: Callable[[ModelSpec], Price | None] | None) -> None:
        self._usage = Usage()
        self._cost: Cost | None = Cost()
        self._new: list[tuple[Usage, Cost | None]] | None = None
        self._price_of = price_of
        self._priced: ModelSpec | None = None
        self._price: Price | None = None

    def charge(self, usage: Usage, cost: Cost | None) -> None:
        """Add to the totals."""
        if self._new is None:
            self._new = []
        self._new.append((usage, cost))

    @property
    def usage(self) -> Usage:
        """All tokens so far."""
        self._add_up()
        return self._usage

    @property
    def cost(self) -> Cost | None:
        """What they cost; None if unknown."""
        self._add_up()
        return self._cost

    def price(self, model: ModelSpec, usage: Usage) -> Cost | None:
        """What the usage costs: by the spec's own price, else by the price table, else unknown."""
        if self._priced is not model:
            self._priced = model
            self._price = model.price or (self._price_of(model) if self._price_of is not None else None)
        return self._price.cost(usage) if self._price is not None else None

    def _add_up(self) -> None:
        for usage, cost in self._new or ():
            self._usage += usage
            self._cost = self._cost + cost if self._cost is not None and cost is not None else None
        self._new = None
