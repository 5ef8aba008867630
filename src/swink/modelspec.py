"""Which model, how hard it should think, what it used and what that costs."""

from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from swink.errors import InvalidInput
from swink.jsondata import clean

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "extra_high"]
THINKING_LEVELS = get_args(ThinkingLevel)


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens. The four categories are disjoint; `total` is their sum unless the provider reports another.

    `unknown`: a provider never said how many there were in all, so the figures are the least it can be.
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
    """Money, in the categories of `Usage`; `total` is their sum unless the provider reports another."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0

    def __post_init__(self) -> None:
        if not self.total:
            force_setattr(self, "total", self.input + self.output + self.cache_read + self.cache_write)

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.total + other.total,
        )


class Price(Struct, frozen=True, gc=False):
    """Currency per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float | None = None
    cache_write: float | None = None

    def cost(self, usage: Usage) -> Cost:
        """What `usage` costs; a cache without a price of its own is charged as input."""
        million = 1_000_000
        return Cost(
            usage.input * self.input / million,
            usage.output * self.output / million,
            usage.cache_read * (self.input if self.cache_read is None else self.cache_read) / million,
            usage.cache_write * (self.input if self.cache_write is None else self.cache_write) / million,
        )


class Capabilities(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a model can take; None on a `ModelSpec` means: do not gate."""

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
    """Which model, and how hard it should think."""

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
