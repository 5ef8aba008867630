"""Which model, how hard it should think, what it used and what that costs."""

from functools import lru_cache
from math import floor, isfinite, log10
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from swink.errors import InvalidInput
from swink.messages.jsondata import clean

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "extra_high"]
THINKING_LEVELS = get_args(ThinkingLevel)


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens. The four categories are disjoint; `total` is their sum unless the provider reports another.

    `unknown`: a provider never said how many there were in all, so the figures are the least it can be.

    Args:
        input: sent, and not kept by the provider
        output: written, thinking included
        cache_read: sent, and kept by the provider from before
        cache_write: sent, and kept from now on
        extra: other counts that the provider reports
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0
    extra: dict[str, int] = {}
    unknown: bool = False

    def __post_init__(self) -> None:
        if not self.total:
            force_setattr(self, "total", self.input + self.output + self.cache_read + self.cache_write)

    def __add__(self, other: "Usage") -> "Usage":
        extra = self.extra
        if other.extra:
            extra = {key: extra.get(key, 0) + other.extra.get(key, 0) for key in {**extra, **other.extra}}
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.total + other.total,
            extra,
            self.unknown or other.unknown,
        )


class Cost(Struct, frozen=True, gc=False, omit_defaults=True):
    """Money, in the categories of `Usage`; `total` is their sum unless the provider reports another.

    `tools` is what uses of the provider's own tools cost, such as web searches.

    Args:
        input: of what was sent
        output: of what was written
        cache_read: of what the provider had kept
        cache_write: of what it keeps from now on
    """

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0
    tools: float = 0.0

    def __post_init__(self) -> None:
        if not self.total:
            total = self.input + self.output + self.cache_read + self.cache_write + self.tools
            force_setattr(self, "total", total)

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.total + other.total,
            self.tools + other.tools,
        )


def format_dollars(amount: float, places: int | None = None, *, exact: bool = False) -> str:
    """An amount for people, with as many digits as it takes to see it, or with at least so many places.

    Below a cent there are at least two digits that count. What is too small for a narrow column is
    `<$0.0001`, unless it is wanted exactly.
    """
    if places is not None:
        return f"${amount:.{_places(amount, places)}f}"
    if amount == 0:
        return "$0"
    if amount >= 0.995:
        return f"${amount:,.0f}" if amount >= 100 else f"${amount:.2f}"
    if exact or amount >= 0.0001:
        return f"${amount:.{_places(amount, 4)}f}"
    return "<$0.0001"


def _places(amount: float, least: int) -> int:
    """Places after the point, so that an amount below a cent has two digits that count."""
    if not 0 < abs(amount) < 0.01 or not isfinite(amount):
        return least
    return max(least, 1 - floor(log10(abs(amount))))


_CATEGORIES = ("input", "output", "cache_read", "cache_write")

DETAILS = {
    "input_audio": "input",
    "input_image": "input",
    "input_video": "input",
    "output_audio": "output",
    "output_image": "output",
    "output_video": "output",
    "reasoning": "output",
    "cache_read_audio": "cache_read",
    "cache_read_image": "cache_read",
    "cache_write_1h": "cache_write",
}
"""Keys of `Usage.extra` that count tokens of a category once more, which may have a price of their own."""

HOSTED_USES = frozenset(
    {
        "web_search",
        "web_fetch",
        "code_execution",
        "file_search",
        "image_generation",
        "x_search",
        "google_maps",
    }
)
"""Keys of `Usage.extra` that count uses of a provider's own tools."""

_UNIT = 10**30
"""Amounts are added up as integers, without rounding: tokens times a price per million, times 10²⁴."""


class Price(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a model costs, in currency per million tokens of each category.

    Args:
        input: of what is sent
        output: of what is written
        cache_read: of what the provider had kept; None as `input`
        cache_write: of what it keeps from now on; None as `input`
    """

    input: float = 0.0
    output: float = 0.0
    cache_read: float | None = None
    cache_write: float | None = None
    details: dict[str, float] = {}
    """Of tokens that `Usage.extra` counts once more: "cache_write_1h", "input_audio", "output_image" …"""
    uses: dict[str, float] = {}
    """Currency per use of a tool of the provider's, by its key in `Usage.extra`, such as "web_search"."""
    tiers: tuple[tuple[int, "Price"], ...] = ()
    """A request with more tokens of input than this costs that instead, all of it; ascending."""

    def __post_init__(self) -> None:
        if self.details and (unknown := self.details.keys() - DETAILS):
            raise InvalidInput(f"Price(details=…): no {min(unknown)!r}; there are {', '.join(DETAILS)}")

    def cost(self, usage: Usage) -> Cost:
        """What one request of this `usage` costs; what has no price of its own is charged as its category.

        A cache belongs to the input. Uses of tools without a price cost nothing.
        """
        price, size = self, usage.input + usage.cache_read + usage.cache_write
        for above, higher in self.tiers:
            if size > above:
                price = higher
        base = _scaled(price.input)
        rates = (
            base,
            _scaled(price.output),
            base if price.cache_read is None else _scaled(price.cache_read),
            base if price.cache_write is None else _scaled(price.cache_write),
        )
        amounts = [
            usage.input * rates[0],
            usage.output * rates[1],
            usage.cache_read * rates[2],
            usage.cache_write * rates[3],
        ]
        tools: float = 0
        if usage.extra:
            for index, category in enumerate(_CATEGORIES) if price.details else ():
                left: int = getattr(usage, category)
                for key, rate in price.details.items():
                    if DETAILS[key] == category and (count := min(left, usage.extra.get(key, 0))):
                        left -= count
                        amounts[index] += count * (_scaled(rate) - rates[index])
            tools = sum(
                [usage.extra.get(key, 0) * _scaled(rate) * 1_000_000 for key, rate in price.uses.items()]
            )
        read, written, cached, kept = [amount / _UNIT for amount in amounts]
        return Cost(read, written, cached, kept, (sum(amounts) + tools) / _UNIT, tools / _UNIT)


@lru_cache(4096)
def _scaled(price: float) -> float:
    """The price times 10²⁴, as an integer: as exact as it is written; infinity and the like stay floats."""
    number, _, exponent = repr(price).partition("e")
    whole, _, rest = number.partition(".")
    power = 24 - len(rest) + int(exponent or 0)
    if not isfinite(price) or power < 0:
        return price * 1e24
    return int(whole + rest) * 10**power


class Capabilities(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a model can take; None on a `ModelSpec` means: do not gate.

    Args:
        tools: whether it calls tools
        images: whether it sees
        thinking: whether it thinks before it answers
        documents: whether it reads PDF
        audio: whether it hears
        image_output: whether it draws
    """

    tools: bool = True
    images: bool = True
    thinking: bool = True
    structured_output: bool | None = None
    """Whether it gives the output of a type that is asked for; None: unknown."""
    json_schema: bool | None = None
    """Whether the provider itself holds replies to a JSON schema; None, here and below: unknown."""
    documents: bool | None = None
    audio: bool | None = None
    image_output: bool | None = None


class ModelSpec(Struct, frozen=True, gc=False, omit_defaults=True):
    """Which model, and how hard it should think.

    Args:
        provider: who is asked
        model_id: the provider's name of the model
        thinking_level: how hard it thinks
        thinking_budgets: tokens for each level, where a provider counts them
        capabilities: what it can take; None does not gate
        context_window: tokens that fit; None takes the catalog's
        max_output: tokens of a reply; None takes the catalog's
        price: what it costs; None takes the catalog's
    """

    provider: str
    model_id: str
    thinking_level: ThinkingLevel = "off"
    thinking_budgets: dict[str, int] = {}
    capabilities: Capabilities | None = None
    context_window: int | None = None
    max_output: int | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.thinking_level not in THINKING_LEVELS:
            levels = ", ".join(map(repr, THINKING_LEVELS))
            raise InvalidInput(f"thinking_level is {levels}, not {self.thinking_level!r}")
        if not (self.provider.isascii() and self.model_id.isascii()):
            force_setattr(self, "provider", clean(self.provider))
            force_setattr(self, "model_id", clean(self.model_id))

    def __str__(self) -> str:
        return f"{self.provider}:{self.model_id}"
