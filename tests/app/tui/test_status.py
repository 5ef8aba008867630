"""The status bar: which words it shows, and which it drops first where there is little room."""

import pytest
from apps import app_of, screen_text

from swink.app.tui.activity import Activity
from swink.app.tui.status import Status, fit, items_of
from swink.events.transcript import Totals
from swink.messages import AssistantMessage, Cost, Usage, UserMessage

TOTALS = Totals(
    prompts=2,
    replies=2,
    usage=Usage(input=12_000, output=340),
    cost=Cost(input=0.01, output=0.002),
    context=5_000,
)


def line(status: Status, width: int = 200) -> str:
    return " · ".join(item.text for item in fit(items_of(status), width))


def test_it_tells_state_mode_approvals_model_tokens_cost_and_context():
    status = Status(
        Activity("idle", turn=3), 0.0, "anthropic:claude", totals=TOTALS, window=10_000, rate=42.4
    )
    assert line(status) == (
        "idle · 42 tok/s · Execute · smart · anthropic:claude · turn 3 · ↑12.0k ↓340 · $0.0120 · ████░░░░ 50 %"
    )


def test_while_it_runs_it_tells_how_long_and_what_it_waits_for():
    activity = Activity("running", 1, since=1.0, retry_at=9.0)
    shown = line(Status(activity, 66.0, "m", queued=2))
    assert "running" in shown
    assert "1:05" in shown
    assert "trying again" in shown
    assert "2 queued" in shown
    assert "retry in 4 s, Esc stops" in line(Status(activity, 5.0, "m"))


def test_commands_in_the_background_are_counted_while_there_are_any():
    assert "background" not in line(Status(Activity(), 0.0, "m"))
    assert "idle · 2 in background · Execute" in line(Status(Activity(), 0.0, "m", background=2))


def test_a_prompt_being_read_shows_how_far():
    assert "reading 25 %" in line(Status(Activity("running", reading=(30, 120)), 1.0, "m"))


def test_an_unknown_price_is_never_shown_as_nothing():
    status = Status(Activity(), 0.0, "m", totals=Totals(usage=Usage(input=5), is_priced=False))
    assert "cost unknown" in line(status)
    assert "$" not in line(status)


@pytest.mark.parametrize(
    ("tokens", "style"), [(5_999, "ok"), (6_000, "warning"), (8_500, "warning"), (8_501, "failed")]
)
def test_the_gauge_is_green_below_60_percent_yellow_up_to_85_and_red_above(tokens: int, style: str):
    items = items_of(Status(Activity(), 0.0, "m", totals=Totals(context=tokens), window=10_000))
    assert items[-1].style == style


def test_the_gauge_says_that_it_is_estimated_and_is_never_more_than_full():
    told = [
        items_of(Status(Activity(), 0.0, "m", totals=Totals(context=9), window=1_000, estimated=tokens))[-1]
        for tokens in (0, 500, 5_000)
    ]
    assert [item.text[-5:].strip() for item in told] == ["~0 %", "~50 %", "100 %"]


@pytest.mark.parametrize("usage", [Usage(), Usage(input=900, output=100)])
async def test_the_gauge_estimates_where_the_provider_reports_no_usage(usage: Usage):
    app = app_of(["unused"], model="local:smollm2-135m")
    app.driver.agent.system_prompt = "word " * 1_000
    async with app.run_test(size=(120, 24)) as pilot:
        app.driver.agent.messages = [
            UserMessage("word " * 1_000),
            AssistantMessage("Yes.", "local", "smollm2-135m", usage=usage),
        ]
        app.updater.show_status()
        await pilot.pause()
        estimated = app.driver.estimated_context
        if usage.total:
            assert estimated is None
        else:
            assert estimated is not None
            assert 1_800 < estimated < 3_000
            assert " ~" in screen_text(app)


def test_a_narrow_terminal_keeps_the_words_that_matter_most():
    status = Status(
        Activity("idle", turn=3), 0.0, "anthropic:claude-opus", totals=TOTALS, window=10_000, rate=42.0
    )
    assert line(status, 60).startswith("idle · Execute · smart · anthropic:claude-opus")
    assert line(status, 24) == "idle · Execute · smart"
    for width in range(80):
        assert len(line(status, width)) <= max(0, width)


def test_plan_mode_and_approvals_switched_off_stand_out():
    styles = {
        item.text: item.style for item in items_of(Status(Activity(), 0.0, "m", mode="Plan", approval="off"))
    }
    assert (styles["Plan"], styles["off"]) == ("plan", "failed")
