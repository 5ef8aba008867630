"""The account of a run: tokens and what they cost."""

from collections.abc import Callable

from swink.messages import Cost, ModelSpec, Price, Usage


class Account:
    """Tokens and cost, failed attempts and sub-agents included; one unknown cost makes the sum unknown."""

    __slots__ = ("_price", "_price_of", "_priced", "_sums", "_unadded")

    def __init__(self, price_of: Callable[[ModelSpec], Price | None] | None) -> None:
        self._sums: tuple[Usage, Cost | None] | None = None
        self._unadded: list[tuple[Usage, Cost | None]] | None = None
        self._price_of = price_of
        self._priced: ModelSpec | None = None
        self._price: Price | None = None

    def charge(self, usage: Usage, cost: Cost | None) -> None:
        """Add to the totals."""
        if self._unadded is None:
            self._unadded = []
        self._unadded.append((usage, cost))

    @property
    def totals(self) -> tuple[Usage, Cost | None]:
        """All tokens so far, and what they cost: None if unknown. Added up when somebody asks."""
        usage, cost = self._sums or (Usage(), Cost())
        for more, price in self._unadded or ():
            usage += more
            cost = cost + price if cost is not None and price is not None else None
        self._sums, self._unadded = (usage, cost), None
        return self._sums

    def price(self, model: ModelSpec, usage: Usage) -> Cost | None:
        """What the usage costs: by the spec's own price, else by the price table, else unknown."""
        if self._priced is not model:
            self._priced = model
            self._price = model.price or (self._price_of(model) if self._price_of is not None else None)
        return self._price.cost(usage) if self._price is not None else None
