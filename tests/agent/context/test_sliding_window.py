"""The context window (T8, T12): what is dropped, what never is, and what measuring it costs."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies
from tests.counts import tried
from tests.strategies import paired_histories

from swink import Agent
from swink.agent.context import windows as context
from swink.agent.context.windows import SlidingWindow, room_in
from swink.messages import (
    AssistantMessage,
    Base64Source,
    CustomMessage,
    Extension,
    Image,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.history import History, violations
from swink.messages.tokens import estimate_tokens
from swink.testing import ScriptedModel


def weigh(messages):
    return sum(map(estimate_tokens, messages))


def turn_in_progress(messages):
    """From the newest user message or reply on."""
    index = max(
        (index for index, message in enumerate(messages) if message.role in ("user", "assistant")), default=0
    )
    return list(messages[index:])


def newest_user(messages):
    return [message for message in messages if message.role == "user"][-1:]


def has(messages, wanted):
    kept = {id(message) for message in messages}
    return all(id(message) in kept for message in wanted)


def check(messages, kept, anchor):
    """What holds of any window over any sound history."""
    assert violations(kept) == [], "no call without its result, no result without its call"
    places = {id(message): index for index, message in enumerate(messages)}
    order = [places[id(message)] for message in kept]
    assert order == sorted(set(order)), "the messages themselves, in order, once each"
    assert has(kept, messages[:anchor])
    assert has(kept, newest_user(messages))
    assert has(kept, turn_in_progress(messages))
    assert weigh(kept) <= weigh(messages)


def least(messages, anchor):
    """The smallest window there can be."""
    start = anchor
    while start < len(messages) and messages[start].role not in ("user", "assistant"):
        start += 1
    must = [*messages[:start], *newest_user(messages), *turn_in_progress(messages)]
    return weigh({id(message): message for message in must}.values())


budgets = st.integers(0, 800)
anchors = st.integers(0, 4)


@given(paired_histories(), budgets, anchors, st.booleans(), st.booleans())
@tried(150, 1_000)
def test_whatever_is_dropped_the_rest_is_sound(messages, budget, anchor, overflow, as_snapshot):
    given_messages = History(messages).snapshot() if as_snapshot else messages
    check(messages, SlidingWindow(budget, anchor=anchor)(given_messages, overflow), anchor)


@given(paired_histories(), budgets, anchors)
@tried(100, 1_000)
def test_what_is_kept_fits_unless_nothing_more_may_be_dropped(messages, budget, anchor):
    kept = SlidingWindow(budget, anchor=anchor)(messages, False)
    if weigh(messages) <= budget:
        assert kept is messages
    else:
        assert weigh(kept) <= max(budget * 3 // 4, least(messages, anchor))


@given(paired_histories(), budgets, anchors)
@tried(100, 1_000)
def test_a_window_of_a_window_is_the_same_window(messages, budget, anchor):
    window = SlidingWindow(budget, anchor=anchor)
    once = window(messages, False)
    assert window(once, False) == once


@given(paired_histories(), st.integers(50, 800), anchors)
@tried(60, 1_000)
def test_between_two_cuts_the_window_only_grows_at_its_end(messages, budget, anchor):
    window = SlidingWindow(budget, anchor=anchor)
    history = History()
    before = []
    for group in groups_of(messages):
        for message in group:
            history.append(message)
        snapshot = history.snapshot()
        kept = list(window(snapshot, False))
        check(list(snapshot), kept, anchor)
        grown = [*before, *group]
        if weigh(grown) <= budget:
            assert [id(message) for message in kept] == [id(message) for message in grown], (
                "it still fits: the prefix stays"
            )
        before = kept


def groups_of(messages):
    """A history cut where turns may be taken: calls with their results."""
    groups = []
    for message in messages:
        if message.role in ("user", "assistant") or not groups:
            groups.append([message])
        else:
            groups[-1].append(message)
    return groups


class Reference:
    """The window told from the whole history every time: where it is cut, and the prompt that stays before."""

    def __init__(self, budget, anchor):
        self.budget, self.anchor, self.cut = budget, anchor, 0
        self.pinned = None

    def window(self, messages, overflow):
        start = self.boundary(messages, self.anchor)
        kept = weigh(self.kept(messages, start, max(self.cut, start), self.pinned))
        if overflow:
            self.move(messages, start, min(self.budget // 2, kept) * 3 // 4)
        elif kept > self.budget:
            self.move(messages, start, self.budget * 3 // 4)
        return self.kept(messages, start, max(self.cut, start), self.pinned)

    def move(self, messages, start, target):
        places = [index for index, message in enumerate(messages) if message.role in ("user", "assistant")]
        last = max(places, default=0)
        asked = max((index for index in places if messages[index].role == "user"), default=-1)
        cut = max(self.cut, start)
        pinned = asked if start <= asked < cut else None
        while cut < last and weigh(self.kept(messages, start, cut, pinned)) > target:
            cut = min(self.boundary(messages, cut + 1), last)
            pinned = asked if start <= asked < cut else None
        self.cut, self.pinned = cut, pinned

    def kept(self, messages, start, cut, pinned):
        return [*messages[:start], *([] if pinned is None else [messages[pinned]]), *messages[cut:]]

    def boundary(self, messages, index):
        while index < len(messages) and messages[index].role not in ("user", "assistant"):
            index += 1
        return min(index, len(messages))


@given(paired_histories(), budgets, anchors, st.data())
@tried(150, 1_000)
def test_a_window_that_grows_along_equals_one_told_from_the_whole_history(messages, budget, anchor, data):
    window, reference = SlidingWindow(budget, anchor=anchor), Reference(budget, anchor)
    history, snapshots = History(), []
    for group in groups_of(messages):
        for message in group:
            history.append(message)
        overflow = data.draw(st.integers(0, 7)) == 0
        kept = window(history.snapshot(), overflow)
        expected = reference.window(list(history.items), overflow)
        assert [id(message) for message in kept] == [id(message) for message in expected]
        check(list(history.items), kept, anchor)
        snapshots.append((kept, list(kept)))
    for kept, before in snapshots:
        assert list(kept) == before, "a window that was sent never changes (D8)"


def test_a_turn_costs_what_it_adds_once_the_window_is_cut(monkeypatch):
    measured = []

    def counting(message):
        measured.append(message)
        return estimate_tokens(message)

    monkeypatch.setattr(context, "estimate_tokens", counting)
    window, history = SlidingWindow(10_000), History(talk(400))
    window(history.snapshot(), False)
    measured.clear()
    for message in talk(5):
        history.append(message)
        window(history.snapshot(), False)
    assert len(measured) == 10


def test_the_window_without_custom_messages_grows_along():
    history = History([*talk(2), CustomMessage("x")])
    first = history.snapshot().plain
    history.append(UserMessage("more"))
    second = history.snapshot().plain
    assert [message.role for message in second] == ["user", "assistant", "user", "assistant", "user"]
    assert len(first) == 4
    assert first.history is second.history


async def test_what_one_agent_loses_by_the_window_of_all_agents_no_other_loses():
    model = ModelSpec("a", "small", context_window=2_000)
    models = [ScriptedModel(["one", "two"]), ScriptedModel(["one", "two"])]
    long, short = [
        Agent(model, stream_fn=stream_fn, messages=[UserMessage(text) for text in texts])
        for stream_fn, texts in zip(models, (["word " * 100] * 40, ["hello"] * 40), strict=True)
    ]
    for _ in range(2):
        await long.run("go")
        await short.run("go")
    assert [len(context.messages) < 40 for context in models[0].calls] == [True, True]
    assert [len(context.messages) for context in models[1].calls] == [41, 43]


def test_a_window_without_a_budget_is_sized_for_the_model():
    window = SlidingWindow()
    small = window.sized_for(ModelSpec("a", "small", context_window=1_000))
    assert small.budget == room_in(ModelSpec("a", "small", context_window=1_000)) == 825
    assert window.sized_for(ModelSpec("b", "small", context_window=1_000)) is small
    assert (
        window.sized_for(ModelSpec("a", "big", context_window=1_000_000, max_output=50_000)).budget == 900_000
    )
    assert SlidingWindow(500).sized_for(ModelSpec("a", "small", context_window=1_000)).budget == 500


@given(paired_histories(), budgets, st.data())
@tried(60, 1_000)
def test_an_older_snapshot_is_windowed_like_any_other(messages, budget, data):
    history = History()
    snapshots = []
    for group in groups_of(messages):
        for message in group:
            history.append(message)
        snapshots.append(history.snapshot())
    window = SlidingWindow(budget)
    for snapshot in snapshots:
        window(snapshot, False)
    if snapshots:
        older = data.draw(st.sampled_from(snapshots))
        check(list(older), window(older, data.draw(st.booleans())), 1)


def talk(turns, words=50):
    return [
        kind(f"{number} " + "word " * words)
        for number in range(turns)
        for kind in (UserMessage, AssistantMessage)
    ]


def test_the_first_message_and_the_newest_ones_are_kept():
    messages = talk(20)
    kept = SlidingWindow(1_000)(messages, False)
    assert kept[0] is messages[0]
    assert kept[1:] == messages[len(messages) - len(kept) + 1 :]
    assert weigh(kept) <= 750


def test_the_question_stays_while_its_tools_run():
    question = UserMessage("the question")
    messages = [*talk(2), question]
    for number in range(30):
        messages += [
            AssistantMessage((ToolCall(str(number), "look"),)),
            ToolResultMessage(str(number), "look", "word " * 50),
        ]
    kept = SlidingWindow(600)(messages, False)
    assert kept[1] is question
    assert violations(kept) == []
    assert weigh(kept) <= 450


def test_a_heavy_question_counts_against_the_budget_too():
    messages = [*talk(2), UserMessage("word " * 400)]
    for number in range(30):
        messages += [
            AssistantMessage((ToolCall(str(number), "look"),)),
            ToolResultMessage(str(number), "look", "word " * 30),
        ]
    kept = SlidingWindow(1_000)(messages, False)
    assert messages[4] in kept
    assert weigh(kept) <= 750


def test_overflow_always_drops_something_that_may_be_dropped():
    messages = talk(10)
    history = History(messages)
    window = SlidingWindow(128_000)
    before = weigh(messages)
    for _ in range(5):
        kept = window(history.snapshot(), True)
        assert weigh(kept) < before, (
            "the provider says that what was sent does not fit, whatever the estimate says"
        )
        before = weigh(kept)
    assert weigh(window(history.snapshot(), False)) == before, "what was dropped stays dropped"


def test_overflow_cuts_to_its_own_budget():
    messages = talk(100)
    assert weigh(SlidingWindow(4_000)(messages, True)) <= 1_500
    assert weigh(SlidingWindow(4_000, overflow_budget=1_000)(messages, True)) <= 750


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [UserMessage("only " * 500)],
        [UserMessage("q"), AssistantMessage("a " * 900)],
        [CustomMessage("x")],
    ],
)
@pytest.mark.parametrize("overflow", [False, True])
def test_what_cannot_be_cut_is_left_alone(messages, overflow):
    assert SlidingWindow(10)(messages, overflow) is messages


def test_windows_of_different_histories_do_not_disturb_each_other():
    window = SlidingWindow(500)
    long, short = History(talk(20)), History(talk(1))
    window(long.snapshot(), False)
    snapshot = short.snapshot()
    assert window(snapshot, False) is snapshot


def test_a_finished_history_is_forgotten():
    window = SlidingWindow(500)
    assert len(window.kept) == 0
    kept = window(History(talk(20)).snapshot(), False)
    assert len(kept) < 40
    assert len(window.kept) == 0


# The estimate


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (UserMessage(""), 0),
        (UserMessage("The quick brown fox jumps over the lazy dog. " * 20), 201),
        (AssistantMessage((Thinking("Let me think about this for a moment. " * 10),)), 91),
        (
            AssistantMessage(
                (
                    ToolCall(
                        "call_1",
                        "read_file",
                        {"path": "src/swink/agent/context/windows.py", "lines": [1, 80]},
                    ),
                )
            ),
            24,
        ),
        (UserMessage((Image(Base64Source("A" * 100_000)),)), 1_200),
    ],
)
def test_the_estimate_is_within_reason(message, tokens):
    assert tokens * 0.7 <= estimate_tokens(message) <= tokens * 1.3 + 8


def test_the_estimate_of_code_and_prose_is_within_a_fifth_of_a_tokenizers():
    bpe_openai = pytest.importorskip("bpe_openai")
    source = inspect.getsource(context)
    assert estimate_tokens(UserMessage(source)) == pytest.approx(
        len(bpe_openai.get_encoding("o200k_base").encode(source)), rel=0.2
    )


@given(strategies.messages)
@tried(15, 1_000)
def test_any_message_has_an_estimate_that_grows_with_it(message):
    size = estimate_tokens(message)
    assert size >= 0
    if isinstance(message, UserMessage):
        assert estimate_tokens(UserMessage((*message.content, Text("word " * 80)))) == size + 80


def test_what_models_never_see_weighs_next_to_nothing():
    assert estimate_tokens(CustomMessage("x", "y" * 10_000)) < 10
    assert estimate_tokens(ToolResultMessage("1", "t", "x", details="y" * 10_000)) < 10
    assert estimate_tokens(UserMessage((Extension("x", {"a": 1}),))) < 10
