"""The list of models: limits, capabilities and prices, found by the names that providers know models by.

The file is JSON with one table per provider; a table is decoded when its provider is first asked about.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import Raw, Struct

from swink.messages.modelspec import Capabilities, Price

FORMAT = 1
"""Raised when older versions could misread the file."""

# Compiled when a name needs them, since most do not.
_DATE = r"([-@])(20\d\d)-?(\d\d)-?(\d\d)\b"
_REGION = r"(?:us|us-gov|eu|ap|apac|au|ca|jp|sa|global)\."
_DATED = r"\d{8}|\d{4}-\d\d-\d\d"


class Rate(Struct, frozen=True, omit_defaults=True):
    """A price, from a day on or at some hours of the day (UTC); without either it always holds."""

    price: Price
    since: str | None = None
    start: str | None = None
    end: str | None = None

    def holds(self, moment: datetime) -> bool:
        """Whether this is the price at that moment."""
        if self.since is not None:
            return moment.date().isoformat() >= self.since
        if self.start is None or self.end is None:
            return True
        now = moment.strftime("%H:%M:%S")
        if self.end < self.start:  # past midnight
            return now >= self.start or now < self.end
        return self.start <= now < self.end


class ModelEntry(Struct, frozen=True, omit_defaults=True):
    """One model.

    `match` are the names it goes by: `=` is followed by a whole name, `^` by its beginning, `$` by its end,
    `*` by any part, `#` by what a date follows, `!` by what is no part of it. Without any it is `id` alone.
    `hidden` is what is no longer offered, or no model to talk to.

    Args:
        context_window: tokens that fit
        max_output: tokens of a reply
        capabilities: what it can take
        service_tiers: prices of each tier other than the usual one
    """

    id: str
    match: tuple[str, ...] = ()
    context_window: int | None = None
    max_output: int | None = None
    capabilities: Capabilities | None = None
    prices: tuple[Rate, ...] = ()
    """The last one that holds is the price."""
    service_tiers: dict[str, tuple[Rate, ...]] = {}
    name: str | None = None
    """What the provider calls it, if that is not `id`."""
    hidden: bool = False

    def price(self, at: datetime | None = None, service_tier: str | None = None) -> Price | None:
        """The price now or `at` another time, at a `service_tier`; None if it is unknown."""
        rates = self.prices if service_tier is None else self.service_tiers.get(service_tier, ())
        if len(rates) < 2:
            return rates[0].price if rates else None
        moment = datetime.now(UTC) if at is None else at.astimezone(UTC)
        return next((rate.price for rate in reversed(rates) if rate.holds(moment)), rates[0].price)


class Listing(Struct, frozen=True):
    """The file: its tables are decoded one by one, when they are needed."""

    format: int
    checked: str
    source: str
    sources: dict[str, tuple[str, ...]]
    """For each provider the tables that name its models, its own first."""
    unlisted: dict[str, str]
    """Providers whose models nobody can list, and why."""
    tables: dict[str, Raw]


class Table:
    """The models of one provider; of several that a name fits, the first one is meant."""

    def __init__(self, data: Raw) -> None:
        self.entries = msgspec.json.decode(data, type=list[ModelEntry])
        self._exact: dict[str, int] = {}
        self._patterns: list[tuple[int, str, str, str]] = []
        for number, entry in enumerate(self.entries):
            for pattern in entry.match or (f"={entry.id.lower()}",):
                text, _, without = pattern[1:].partition("!")
                if pattern[0] == "=":
                    self._exact.setdefault(text, number)
                else:
                    self._patterns.append((number, pattern[0], text, without))

    def find(self, name: str) -> ModelEntry | None:
        """The model that a name in lower case means."""
        found = self._exact.get(name, len(self.entries))
        for number, kind, text, without in self._patterns:
            if number >= found:
                break
            if _fits(name, kind, text) and not (without and without in name):
                found = number
        return self.entries[found] if found < len(self.entries) else None


def _fits(name: str, kind: str, text: str) -> bool:
    match kind:
        case "^":
            return name.startswith(text)
        case "$":
            return name.endswith(text)
        case "*":
            return text in name
        case "#":
            return name.startswith(text) and re.fullmatch(_DATED, name[len(text) :]) is not None
        case _:
            return False


def spellings(model_id: str) -> Iterator[str]:
    """The names that `model_id` may be listed under: itself, with its date written another way, then without
    it.

    The region that a name of Bedrock begins with is left out last.
    """
    name = model_id.lower()
    yield name
    if (dashed := re.sub(_DATE, r"\1\2-\3-\4", name)) != name:
        yield dashed
    if (undated := re.sub(_DATE, "", name)) != name:
        yield undated
    if region := re.match(_REGION, name):
        yield from spellings(name[region.end() :])
