"""The list of models, made of the data of genai-prices and of `overlay.toml`, which says what that lacks."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.resources import files

import msgspec
from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from swink.messages.modelspec import Capabilities, Price
from swink.models.data.genaiprices import (
    Amounts,
    Clause,
    Conditional,
    DataError,
    Hours,
    Model,
    Provider,
    Since,
    Tiered,
    Variant,
    last_checked,
    read_source,
)
from swink.models.data.listing import FORMAT, ModelEntry, Rate

_CATEGORIES = {"input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok"}
_MEDIA = [f"{way}_{medium}" for way in ("input", "output") for medium in ("audio", "image", "video")]
_DETAILS = {
    "cache_write_1h_mtok": "cache_write_1h",
    **{f"{name}_mtok": name for name in _MEDIA},
    "output_reasoning_mtok": "reasoning",
    "cache_audio_read_mtok": "cache_read_audio",
    "cache_image_read_mtok": "cache_read_image",
}
_USES = {"web_searches_kcount": "web_search", "storage_searches_kcount": "file_search"}
_SIGNS = {"ClauseEquals": "=", "ClauseStartsWith": "^", "ClauseEndsWith": "$", "ClauseContains": "*"}
_NO_SPEECH = r"^(?!.*-[tT][tT][sS](?:$|-))"
_DATES = (r"\d{8}$", r"\d{4}-\d{2}-\d{2}$")


class _Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """What the overlay says of some models of some tables; of two rules that disagree the later one holds."""

    tables: tuple[str, ...]
    models: tuple[str, ...]
    context_window: int | None = None
    max_output: int | None = None
    capabilities: dict[str, bool] = {}
    uses: dict[str, float] = {}
    hidden: bool = False


class _Part(Struct, frozen=True, forbid_unknown_fields=True):
    """Some models of a table."""

    table: str
    models: str


class Overlay(Struct, frozen=True, forbid_unknown_fields=True):
    """What `overlay.toml` adds to the data of genai-prices, kept by hand."""

    sources: dict[str, tuple[str, ...]]
    unlisted: dict[str, str]
    parts: dict[str, _Part]
    """Tables made of models of another one, which does not keep them."""
    rules: tuple[_Rule, ...]
    models: dict[str, tuple[ModelEntry, ...]]
    """Tables of our own."""


def read_overlay() -> Overlay:
    """The overlay that comes with swink."""
    text = files("swink.models.data").joinpath("overlay.toml").read_text("utf-8")
    return convert(tomllib.loads(text), Overlay)


def make_listing(text: str, version: str, *, today: str, overlay: Overlay | None = None) -> bytes:
    """The file, of the text of the price data; raises `DataError` for what cannot be right."""
    overlay = overlay or read_overlay()
    checked = min(last_checked(text) or today, today)
    providers = read_source(text)
    wanted = {name for names in overlay.sources.values() for name in names}
    wanted -= overlay.models.keys() | overlay.parts.keys()
    if missing := wanted - providers.keys():
        raise DataError(f"the price data has nothing about {', '.join(sorted(missing))}")
    tables = {name: _entries(providers[name], overlay, checked) for name in sorted(wanted)}
    for name, part in overlay.parts.items():
        whole = tables[part.table]
        tables[name] = [entry for entry in whole if fnmatchcase(entry.id, part.models)]
        tables[part.table] = [entry for entry in whole if not fnmatchcase(entry.id, part.models)]
    tables |= {name: list(entries) for name, entries in overlay.models.items()}
    _check(tables)
    head = {
        "format": FORMAT,
        "checked": checked,
        "source": f"genai-prices {version}",
        "sources": to_builtins(overlay.sources),
        "unlisted": overlay.unlisted,
    }
    lines = ",\n".join(
        f"{json.dumps(name)}:[\n" + b",\n".join(map(msgspec.json.encode, entries)).decode() + "\n]"
        for name, entries in tables.items()
    )
    return f'{json.dumps(head)[:-1]},\n"tables":{{\n{lines}\n}}}}\n'.encode()


def _entries(provider: Provider, overlay: Overlay, checked: str) -> list[ModelEntry]:
    rules = [rule for rule in overlay.rules if provider.id in rule.tables]
    return [_entry(model, rules, checked) for model in provider.models]


def _entry(model: Model, rules: Sequence[_Rule], checked: str) -> ModelEntry:
    name = model.id.lower()
    rules = [rule for rule in rules if any(fnmatchcase(name, wanted) for wanted in rule.models)]
    uses: dict[str, float] = {}
    capabilities: dict[str, bool] = {}
    window, output = model.context_window, None
    for rule in rules:
        uses |= rule.uses
        capabilities |= rule.capabilities
        window = rule.context_window or window
        output = rule.max_output or output
    patterns = tuple(_patterns(model.match))
    is_free = not model.prices and model.id.endswith(":free")
    rates = _current({"input_mtok": 0.0, "output_mtok": 0.0} if is_free else model.prices, checked)
    return ModelEntry(
        model.id,
        () if patterns == (f"={name}",) else patterns,
        window,
        output,
        Capabilities(**capabilities) if capabilities else None,
        _rates(rates, uses),
        _service_tiers(model.price_variants or (), rates, uses, checked),
        _name(model.id, patterns),
        bool(model.deprecated) or any(rule.hidden for rule in rules),
    )


# Names


def _name(model_id: str, patterns: Sequence[str]) -> str | None:
    """A name that the provider takes, where the data has a word of its own for the model."""
    if (latest := f"{model_id}-latest") and f"={latest}" in patterns and not re.search(r"\d", model_id):
        return latest
    if model_id.startswith("regional."):
        return f"us.{model_id[9:]}"
    is_none = f"={model_id.lower()}" not in patterns and all(pattern[0] == "=" for pattern in patterns)
    return patterns[-1][1:] if is_none and patterns else None


def _patterns(clause: Clause) -> Iterator[str]:
    """The names that a clause means; one that cannot be said plainly means none."""
    match clause:
        case Clause(kind, str(text)) if kind in _SIGNS:
            yield f"{_SIGNS[kind]}{text.lower()}"
        case Clause("ClauseRegex", str(text)):
            yield from _of_regex(text)
        case Clause("ClauseOr", list(clauses)):
            for each in clauses:
                yield from _patterns(each)
        case Clause("ClauseAnd", [Clause("ClauseStartsWith", str(text)), Clause("ClauseRegex", regex)]):
            if regex == _NO_SPEECH:
                yield f"^{text.lower()}!-tts"
        case Clause("ClauseAnd", list()):
            pass
        case _:
            raise DataError(f"the price data cannot be read: {clause!r:.200} is no condition")


def _of_regex(regex: str) -> Iterator[str]:
    """The expressions that are a plain text, alone or followed by a date or a digit."""
    for tail, kind in (*((date, "#") for date in _DATES), (r"\d", "^"), ("$", "=")):
        if regex.startswith("^") and regex.endswith(tail):
            for text in _alternatives(regex[1 : -len(tail)]):
                endings = "0123456789" if kind == "^" else [""]
                yield from (f"{kind}{text.lower()}{ending}" for ending in endings)
            return


def _alternatives(regex: str) -> Iterator[str]:
    """The texts that an expression without repetition fits: one, or one for each character of a class."""
    found = re.fullmatch(r"((?:[\w@/:=-]|\\[^\w])*)(?:\[([\w@-]+)\])?((?:[\w@/:=-]|\\[^\w])*)", regex)
    if found is None:
        return
    before, among, after = found[1], found[2] or "", found[3]
    for character in among or [""]:
        yield re.sub(r"\\(.)", r"\1", f"{before}{character}{after}")


# Prices


_Rates = Sequence[tuple[Since | Hours | None, Amounts]]


def _current(prices: Amounts | list[Conditional], checked: str) -> _Rates:
    """Conditions and prices, without those that are history: whatever stands before one that always holds."""
    if isinstance(prices, dict):
        return [(None, prices)]
    rates = [(item.constraint, item.prices) for item in prices]
    for number in range(len(rates) - 1, -1, -1):
        condition, amounts = rates[number]
        if condition is None or (isinstance(condition, Since) and condition.start_date <= checked):
            return [(None, amounts), *rates[number + 1 :]]
    return rates


def _rates(rates: _Rates, uses: Mapping[str, float]) -> tuple[Rate, ...]:
    """The rates as they are listed; none at all if one of them is unknown."""
    priced: list[Rate] = []
    for condition, amounts in rates:
        price = _price(amounts, uses)
        if price is None:
            return ()
        since = condition.start_date if isinstance(condition, Since) else None
        hours = (condition.start_time, condition.end_time) if isinstance(condition, Hours) else ()
        priced.append(Rate(price, since, *hours))
    return tuple(priced)


def _service_tiers(
    variants: Sequence[Variant], rates: _Rates, uses: Mapping[str, float], checked: str
) -> dict[str, tuple[Rate, ...]]:
    """The rates of each service tier that has some now, and of batches."""
    named: dict[str, list[Variant]] = {}
    for variant in variants:
        name = "batch" if variant.when == {"processing": "batch"} else variant.when.get("service_tier")
        if name is not None and len(variant.when) == 1:
            named.setdefault(name, []).append(variant)
    found = {name: _tier_rates(each, rates, uses, checked) for name, each in named.items()}
    return {name: tier for name, tier in found.items() if tier}


def _tier_rates(
    variants: Sequence[Variant], rates: _Rates, uses: Mapping[str, float], checked: str
) -> tuple[Rate, ...]:
    """What the variants make of the rates, now and from each day on that changes one of them."""
    conditions = [*(condition for condition, _ in rates), *(variant.constraint for variant in variants)]
    if any(isinstance(condition, Hours) for condition in conditions):
        return ()
    later = {condition.start_date for condition in conditions if isinstance(condition, Since)}
    tier: list[Rate] = []
    for day in sorted({checked, *(each for each in later if each > checked)}):
        other: Amounts = {}
        for variant in variants:
            if _holds(variant.constraint, day):
                other = {**variant.prices, **other}
        standard = [amounts for condition, amounts in rates if _holds(condition, day)]
        price = _price({**standard[-1], **other}, uses) if standard and other else None
        if price is None:
            return ()
        tier.append(Rate(price, since=None if day == checked else day))
    return tuple(tier)


def _holds(condition: Since | Hours | None, day: str) -> bool:
    return condition is None or (isinstance(condition, Since) and condition.start_date <= day)


def _price(amounts: Amounts, uses: Mapping[str, float]) -> Price | None:
    """The price, with a tier for each size of input at which one of its parts changes; None if unknown."""
    known = {key: value for key, value in amounts.items() if value is not None}
    unknown = known.keys() - _CATEGORIES - _DETAILS.keys() - _USES.keys()
    if unknown or not {"input_mtok", "output_mtok"} <= known.keys():
        return None
    starts = {tier.start for value in known.values() if isinstance(value, Tiered) for tier in value.tiers}
    tiers = tuple((start, _flat(known, start, uses)) for start in sorted(starts))
    return replace(_flat(known, -1, uses), tiers=tiers)


def _flat(amounts: Mapping[str, float | Tiered], above: int, uses: Mapping[str, float]) -> Price:
    """The price of a request with more tokens of input than `above`."""
    flat: dict[str, float] = {}
    for key, value in amounts.items():
        if isinstance(value, Tiered):
            reached = [tier for tier in value.tiers if tier.start <= above]
            value = max(reached, key=lambda tier: tier.start).price if reached else value.base
        flat[key] = value
    return Price(
        flat["input_mtok"],
        flat["output_mtok"],
        flat.get("cache_read_mtok"),
        flat.get("cache_write_mtok"),
        {name: flat[key] for key, name in _DETAILS.items() if key in flat},
        {**uses, **{name: flat[key] / 1000 for key, name in _USES.items() if key in flat}},
    )


# What cannot be right


def _check(tables: Mapping[str, Sequence[ModelEntry]]) -> None:
    for name, entries in tables.items():
        if not entries:
            raise DataError(f"the price data has no models of {name}")
        for entry in entries:
            for rate in [*entry.prices, *(rate for rates in entry.service_tiers.values() for rate in rates)]:
                for price in (rate.price, *(price for _, price in rate.price.tiers)):
                    amounts = [price.input, price.output, price.cache_read or 0.0, price.cache_write or 0.0]
                    amounts += [*price.details.values(), *price.uses.values()]
                    if not all(0 <= amount <= 10_000 for amount in amounts):
                        raise DataError(f"the price of {name} {entry.id} cannot be right: {price}")
            for limit in (entry.context_window, entry.max_output):
                if limit is not None and not 0 < limit <= 100_000_000:
                    raise DataError(f"the limits of {name} {entry.id} cannot be right: {limit}")
