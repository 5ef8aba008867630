"""What a list of sessions shows: titles, ids and costs."""

from typing import Any

import pytest

from swink.errors import InvalidInput
from swink.memory.meta import SUMMARY, SessionMeta, check_id, grown, new_meta, title_of
from swink.messages import Cost, CustomMessage, Message, UserMessage
from swink.messages.records import Compaction, saved


def after(*messages: Message) -> SessionMeta:
    return grown(new_meta(now=0.0), [saved(message, number) for number, message in enumerate(messages)])


@pytest.mark.parametrize(
    ("data", "cost", "unpriced"),
    [
        ({"cost": 0.25}, 0.25, False),
        ({"cost": 0}, 0.0, False),
        ({"cost": None}, 0.0, True),
        ({"cost": -0.1}, 0.0, True),
        ({"cost": 1e12}, 0.0, True),
        ({"cost": 1e12 - 1}, 1e12 - 1, False),
        ({"cost": "much"}, 0.0, False),
        ({}, 0.0, False),
    ],
)
def test_a_summary_costs_what_it_says_unless_that_can_be_no_cost(data: Any, cost: float, unpriced: bool):
    meta = after(CustomMessage(SUMMARY, data))
    assert (meta.cost, meta.unpriced) == (cost, unpriced)


def test_a_message_of_an_application_costs_nothing():
    meta = after(CustomMessage("note", {"cost": 5.0}))
    assert (meta.cost, meta.unpriced, meta.messages) == (0.0, False, 1)


@pytest.mark.parametrize(("spent", "cost", "unpriced"), [(Cost(1.0), 1.0, False), (None, 0.0, True)])
def test_a_compaction_costs_what_its_summary_did(spent: Cost | None, cost: float, unpriced: bool):
    meta = grown(new_meta(now=0.0), [saved(UserMessage("x"), 0), Compaction([0], cost=spent)])
    assert (meta.cost, meta.unpriced) == (cost, unpriced)


def test_a_title_is_the_words_of_the_first_prompt_that_fit_into_60_characters():
    assert title_of(f"{'a' * 29} {'b' * 30} c") == f"{'a' * 29} {'b' * 30} …"
    assert title_of(f"{'a' * 30} {'b' * 30}") == f"{'a' * 30} …"
    assert title_of("a" * 60) == "a" * 60
    assert title_of("a" * 61) == "a" * 60 + " …"
    assert title_of("two\nlines\x07 ") == "two lines"


def test_an_id_has_128_bytes_at_most():
    assert check_id("é" * 64) == "é" * 64
    with pytest.raises(InvalidInput, match="1 to 128 bytes"):
        check_id("é" * 64 + "e")
