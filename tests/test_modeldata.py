"""The list of models: made of the data of genai-prices, which is also the oracle for names and amounts."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import genai_prices
import pytest
from genai_prices.data import providers as their_providers
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from swink import catalog
from swink.modeldata.convert import make_listing, read_overlay
from swink.modeldata.copies import BUILT_IN, Models, read
from swink.modeldata.listing import Entry
from swink.modelspec import DETAILS, Usage
from tests.counts import MORE, tried

THEIRS = {provider.id: provider for provider in their_providers}
MODELS = Models(read(BUILT_IN), BUILT_IN)
CHECKED = date.fromisoformat(MODELS.listing.checked)
TABLES = [name for name in MODELS.listing.tables if name in THEIRS]
SOURCE = Path(str(genai_prices.__file__)).with_name("data.py")
NOON = datetime(CHECKED.year, CHECKED.month, CHECKED.day, 12, tzinfo=UTC)


# Made by the script


def test_the_list_is_what_the_script_makes_of_the_data_and_the_overlay():
    version = MODELS.listing.source.removeprefix("genai-prices ")
    made = make_listing(SOURCE.read_text("utf-8"), version, today="9999-12-31")
    assert made == BUILT_IN.read_bytes(), "run: python tools/catalog.py"


def test_every_provider_is_covered_or_named_as_not_covered():
    listing = MODELS.listing
    assert {*listing.sources, *listing.unlisted} >= {*catalog.PROVIDERS}
    assert not listing.sources.keys() & listing.unlisted.keys()
    assert all(name in listing.tables for names in listing.sources.values() for name in names)


def test_every_rule_of_the_overlay_is_about_a_model():
    from fnmatch import fnmatchcase

    for rule in read_overlay().rules:
        ids = [model.id.lower() for table in rule.tables for model in THEIRS[table].models]
        for wanted in rule.models:
            assert any(fnmatchcase(name, wanted) for name in ids), f"{rule.tables} {wanted}: no such model"


# Names, compared with theirs


def entries_of(table: str) -> dict[str, Entry]:
    parts = [table, *(part for part in MODELS.listing.tables if part.startswith(f"{table}-"))]
    return {entry.id: entry for part in parts for entry in MODELS.table(part).entries}


def texts(clause: Any) -> Iterator[str]:
    """Names that a clause speaks of, and some beside them."""
    for value in vars(clause).values():
        if isinstance(value, list):
            for each in value:
                yield from texts(each)
        elif "\\" not in value and "(" not in value:
            yield from (value, f"x{value}", f"{value}-mini-tts")


@pytest.mark.parametrize("table", TABLES)
def test_a_name_means_the_model_that_it_means_there(table: str):
    assert entries_of(table).keys() == {model.id for model in THEIRS[table].models}, (
        "one left out is mistaken"
    )
    parts = [part for part in MODELS.listing.tables if part == table or part.startswith(f"{table}-")]
    for model in THEIRS[table].models[:: 1 if MORE else 3]:
        for name in (model.id.lower(), *(text.lower() for text in texts(model.match))):
            theirs = THEIRS[table]._match_model(name)
            ours = [entry.id for part in parts if (entry := MODELS.table(part).find(name)) is not None]
            assert ours == ([] if theirs is None else [theirs.id]), name


@pytest.mark.parametrize(
    ("regex", "fits", "other"),
    [
        (
            r"^claude-opus-5[-@]\d{8}$",
            ["claude-opus-5-20260101", "claude-opus-5@20260101"],
            "claude-opus-5-5",
        ),
        (r"^gpt-6\.1-sol-\d{4}-\d{2}-\d{2}$", ["gpt-6.1-sol-2026-01-01"], "gpt-6x1-sol-2026-01-01"),
        (r"^gemini-3\.5-flash-\d", ["gemini-3.5-flash-001"], "gemini-3.5-flash-lite"),
        (r"^composer-2\.5\[fast=true\]$", ["composer-2.5[fast=true]"], "composer-2.5"),
        (r"^(a|b)+$", [], "a"),
        (r"(a+)+$", [], "aaa"),
    ],
)
def test_an_expression_is_plain_text_or_means_nothing(regex: str, fits: list[str], other: str):
    table = made_of(f"ModelInfo(id='m', match=ClauseRegex(regex={regex!r}), prices=ModelPrice())")
    assert [table.find(name) is not None for name in fits] == [True] * len(fits)
    assert table.find(other) is None


@pytest.mark.parametrize(
    ("model", "like"),
    [
        (
            "bedrock:ca.anthropic.claude-3-haiku-20240307-v1:0",
            "bedrock:anthropic.claude-3-haiku-20240307-v1:0",
        ),
        (
            "bedrock:arn:aws:bedrock:us-east-1:1:inference-profile/us.amazon.nova-pro-v1:0",
            "bedrock:amazon.nova-pro-v1:0",
        ),
        ("azure:gpt-5-mini", "openai:gpt-5-mini"),
        ("azure-responses:gpt-5-mini", "openai:gpt-5-mini"),
        ("azure:claude-opus-4-5", "anthropic:claude-opus-4-5"),
        ("openai-responses:gpt-5", "openai:gpt-5"),
        ("xai-responses:grok-4", "xai:grok-4-0709"),
        ("vertex:gemini-2.5-pro", "gemini:gemini-2.5-pro"),
        ("vertex:claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("openrouter:anthropic/claude-sonnet-4.5", "anthropic:claude-sonnet-4-5"),
        ("OPENAI:gpt-5", "acme:gpt-5"),
        ("openai:GPT-5-Mini-20250807", "openai:gpt-5-mini"),
    ],
)
def test_another_name_of_a_model_has_its_price(model: str, like: str):
    price, other = (catalog.price_of(catalog.parse_model(name), NOON) for name in (model, like))
    assert (price and (price.input, price.output)) == (other and (other.input, other.output))


# Amounts, compared with theirs


def their_cost(table: str, model: Any, usage: Usage, at: datetime, tier: str | None = None) -> Decimal:
    extra = usage.extra
    read_audio, read_image = extra.get("cache_read_audio", 0), extra.get("cache_read_image", 0)
    counts = {
        "input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "cache_write_1h_tokens": extra.get("cache_write_1h", 0),
        "output_tokens": usage.output,
        "input_audio_tokens": extra.get("input_audio", 0) + read_audio,
        "cache_audio_read_tokens": read_audio,
        "input_image_tokens": extra.get("input_image", 0) + read_image,
        "cache_image_read_tokens": read_image,
        "input_video_tokens": extra.get("input_video", 0),
        "output_audio_tokens": extra.get("output_audio", 0),
        "output_image_tokens": extra.get("output_image", 0),
        "output_video_tokens": extra.get("output_video", 0),
        "output_reasoning_tokens": extra.get("reasoning", 0),
        "web_searches": extra.get("web_search", 0),
        "storage_searches": extra.get("file_search", 0),
    }
    context = {} if tier is None else {"processing": tier} if tier == "batch" else {"service_tier": tier}
    found = model.calc_price(
        genai_prices.Usage(**counts), THEIRS[table], genai_request_timestamp=at, price_context=context
    )
    return found.total_price


PRICED = [
    (table, model, entry)
    for table in TABLES
    for model in THEIRS[table].models
    if (entry := entries_of(table)[model.id]).prices and model.prices
]
USAGES = (
    Usage(1_000, 500, 4_000, 2_000),
    Usage(0, 1, 300_001, 0),
    Usage(99_999, 7, 1, 0, extra={"web_search": 3, "file_search": 2}),
    Usage(150_000, 12_345, 51_234, 60_000, extra={"cache_write_1h": 17, "web_search": 1}),
)
DAYS = (0, 1, 60, 400)


@pytest.mark.parametrize("table", TABLES)
def test_every_model_costs_what_it_costs_there(table: str):
    for number, (_, model, entry) in enumerate([item for item in PRICED if item[0] == table]):
        usage, days = USAGES[number % 4], DAYS[number // 4 % 4]
        if table == "x-ai":  # what its tools cost is in our overlay only
            usage = replace(usage, extra={})
        at = NOON + timedelta(days=days, hours=number)
        price = entry.price(at)
        assert price is not None
        assert price.cost(usage).total == float(their_cost(table, model, usage, at)), (model.id, usage, at)
        for tier in entry.service_tiers:
            price = entry.price(at, tier)
            assert price is not None
            assert price.cost(usage).total == float(their_cost(table, model, usage, at, tier)), (
                model.id,
                tier,
            )


counts = st.integers(0, 3_000_000)


@given(st.sampled_from(PRICED), counts, counts, counts, counts, st.data())
@tried(40, 4_000)
def test_any_request_costs_what_it_costs_there(
    item: tuple[str, Any, Entry], read: int, written: int, cached: int, kept: int, data: st.DataObject
):
    table, model, entry = item
    at = NOON + timedelta(minutes=data.draw(st.integers(0, 60 * 24 * 600)))
    price = entry.price(at)
    assert price is not None
    left = {"input": read, "output": written, "cache_read": cached, "cache_write": kept}
    extra: dict[str, int] = {}
    for key in price.details:
        extra[key] = data.draw(st.integers(0, left[DETAILS[key]]))
        left[DETAILS[key]] -= extra[key]
    theirs = {"web_search", "file_search"} & price.uses.keys() if table != "x-ai" else set()
    extra |= {key: data.draw(st.integers(0, 1000)) for key in sorted(theirs)}
    usage = Usage(read, written, cached, kept, extra=extra)
    cost = price.cost(usage)
    assert cost.total == float(their_cost(table, model, usage, at)), model.id
    parts = cost.input + cost.output + cost.cache_read + cost.cache_write + cost.tools
    assert parts == pytest.approx(cost.total, rel=1e-12)


# Read as text, and refused if it cannot be right


def source(*models: str, provider: str = "anthropic") -> str:
    return (
        f"import os\nproviders: list[Provider] = [Provider(id={provider!r}, models=[{', '.join(models)}])]\n"
    )


def made_of(*models: str) -> Any:
    from swink.modeldata.convert import Overlay
    from swink.modeldata.listing import Listing, Table, msgspec

    overlay = Overlay({"anthropic": ("anthropic",)}, {}, {}, (), {})
    made = make_listing(source(*models), "1", today="2026-11-16", overlay=overlay)
    return Table(msgspec.json.decode(made, type=Listing).tables["anthropic"])
