"""The report in a real browser: it asks for nothing, runs nothing of what was said, fits a phone, and filters."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counts import MORE
from tests.eval.report_runs import attempt, manifest_of, run, summary_of
from tests.export_pages import CHROMIUM, INJECTIONS, TOO_WIDE, open_browser

from swink.eval import CaseResult, Metric
from swink.eval.case import SourceLine
from swink.eval.reports import write_reports
from swink.messages import AssistantMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(CHROMIUM is None or not MORE, reason="make test-more looks at the report in Chromium"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


class Report:
    """A report that is open, and everything that it did besides."""

    def __init__(
        self,
        browser: Any,
        folder: Path,
        results: list[CaseResult],
        baseline: list[CaseResult] | None = None,
        name: str = "",
    ) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        write_reports(folder, summary_of(results), results, manifest_of(results), baseline, name)
        self.page = browser.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self.url = (folder / "report.html").as_uri()
        self.page.goto(self.url)

    def ask(self, script: str) -> Any:
        return self.page.evaluate(script)

    def go(self, fragment: str) -> None:
        self.page.goto(f"{self.url}#{fragment}")

    def until(self, script: str) -> None:
        """Wait until the script gives true; the page's policy refuses what Playwright has for that."""
        for _ in range(3_000):
            if self.ask(script):
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"never: {script}")

    @property
    def ids(self) -> list[str]:
        return self.page.locator("tr.case .open b").all_inner_texts()

    @property
    def count(self) -> str:
        return self.page.inner_text("#count")

    def open(self, id: str) -> None:
        self.page.locator("tr.case .open", has=self.page.get_by_text(id, exact=True)).first.click()
        self.page.wait_for_selector("tr.details .inside")


@pytest.fixture(scope="module")
def many(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    """300 cases, three attempts at each, and a baseline."""
    now, before = run(300, repeat=3, seed=2, better=0.1), run(296, repeat=3)
    report = Report(browser, tmp_path_factory.mktemp("many"), now, before)
    yield report
    report.page.close()


@pytest.fixture(autouse=True)
def _as_it_was(request: pytest.FixtureRequest) -> None:
    if "many" in request.fixturenames:
        report = request.getfixturevalue("many")
        report.page.set_viewport_size({"width": 1280, "height": 900})
        report.go("")
        report.page.reload()


def test_the_report_asks_for_nothing_and_complains_of_nothing(many: Report):
    many.open("oslo-0000")
    assert {url.split("#")[0] for url in many.requests} == {many.url}
    assert many.complaints == []


@pytest.mark.parametrize("width", [360, 390, 800, 1280])
def test_the_report_never_scrolls_sideways(browser: Any, tmp_path: Path, width: int):
    said = (
        UserMessage(TOO_WIDE),
        AssistantMessage((Thinking(TOO_WIDE), Text(f"```\n{TOO_WIDE}\n```\n{TOO_WIDE}"), ToolCall("1", TOO_WIDE, {TOO_WIDE: TOO_WIDE}))),
        ToolResultMessage("1", TOO_WIDE, TOO_WIDE),
    )  # fmt: skip
    wide = Metric(TOO_WIDE, 0.5, 0.9, False, TOO_WIDE)
    results = [
        attempt(TOO_WIDE, passed=False, repeat=repeat, name=TOO_WIDE, tags=(TOO_WIDE, "b"), transcript=said)
        for repeat in range(3)
    ]
    results += [attempt("x", passed=False, metrics=(wide,), error=TOO_WIDE, place=SourceLine(TOO_WIDE, 3))]
    report = Report(browser, tmp_path, results, results)
    report.page.set_viewport_size({"width": width, "height": 800})
    for number in range(2):
        report.page.locator("tr.case .open").nth(number).click()
    report.until("document.querySelectorAll('.inside').length === 2")
    report.ask("document.querySelectorAll('details').forEach(item => { item.open = true })")
    assert report.ask("document.documentElement.scrollWidth") <= width
    report.page.close()


def test_only_the_rows_in_sight_are_made_and_more_come_when_one_scrolls(many: Report):
    assert 0 < len(many.ids) < 300
    for _ in range(20):
        many.page.mouse.wheel(0, 20_000)
        many.page.wait_for_timeout(30)
    many.until("document.querySelectorAll('tr.case').length === 300")


def test_the_buttons_show_cases_of_one_state(many: Report):
    many.page.locator("#filters button[value=failed]").click()
    failed = many.page.locator("tr.case.failed").count()
    assert failed == len(many.ids) > 0
    assert many.count.startswith(f"{failed} of 300 cases")
    assert "status=failed" in many.page.url, "the address can be handed on"
    many.page.get_by_text("clear filters").click()
    assert many.count == "300 cases"


def test_search_finds_words_of_ids_and_of_transcripts(many: Report):
    many.page.fill("#filters input", "lisbon-0002")
    many.until("document.querySelectorAll('tr.case').length === 1")
    assert many.ids == ["lisbon-0002"]
    many.page.fill("#filters input", "walk nairobi")
    many.until("document.getElementById('count').textContent.startsWith('37 of')")
    assert all(id.startswith("nairobi") for id in many.ids)
    many.page.fill("#filters input", "no such words")
    many.until("document.getElementById('count').textContent.startsWith('0 of')")


def test_what_is_typed_while_the_transcripts_are_read_stays_and_is_looked_for(many: Report):
    many.ask(
        "(() => { const text = Response.prototype.text, held = new Promise(go => window.letGo = go);"
        " Response.prototype.text = async function () { await held; return text.call(this); }; })()"
    )
    many.page.fill("#filters input", "walk")
    many.until("location.hash === '#q=walk'")
    many.page.fill("#filters input", "walk nairobi")
    many.ask("new Promise(read => { window.letGo(); setTimeout(read, 60); })")
    many.until("document.getElementById('count').textContent.startsWith('37 of')")
    assert many.page.input_value("#filters input") == "walk nairobi"


def test_a_tag_in_a_plot_leads_to_its_cases(many: Report):
    many.page.locator(".plot a", has=many.page.locator("text", has_text="weather")).click()
    assert many.count.startswith("100 of 300 cases")
    assert many.page.locator("#filters select").first.input_value() == "weather"


def test_a_failed_metric_and_a_change_can_be_chosen(many: Report):
    many.page.get_by_label("All metrics").select_option("response")
    assert all(
        "failed" in name or "error" in name
        for name in many.ask("[...document.querySelectorAll('tr.case')].map(row => row.className)")
    )
    many.go("change=new")
    assert len(many.ids) == 4
    many.go("change=broke")
    assert all("passed" in text for text in many.page.locator("td.change").all_inner_texts())


def test_columns_sort_up_and_down_and_say_so(many: Report):
    for direction, sign in (("descending", -1), ("ascending", 1)):
        many.page.locator("thead th.cost button").click()
        assert many.page.locator("thead th.cost").get_attribute("aria-sort") == direction
        costs = [float(text[1:]) for text in many.page.locator("td.cost").all_inner_texts()]
        assert costs == sorted(costs, key=lambda cost: sign * cost)


def test_a_row_opens_to_its_attempts_metrics_and_folded_transcript(many: Report):
    many.go("status=failed")
    many.page.locator("tr.case .open").first.click()
    many.page.wait_for_selector(".inside")
    assert many.page.locator(".attempts button").count() == 3
    assert many.page.locator(".attempts [aria-pressed=true]").get_attribute("class") == "failed", (
        "the first that failed"
    )
    assert many.page.locator(".metric").count() == 3
    assert many.page.locator(".talk details[open]").count() == 0
    tool = many.page.locator(".talk details", has_text="weather").last
    tool.locator("summary").click()
    assert "The forecast says rain" in tool.inner_text()
    many.page.locator("tr.case .open").first.click()
    assert many.page.locator(".inside").count() == 0


def test_a_link_to_a_case_opens_it_wherever_it_is(many: Report):
    many.go("case=perth-0295")
    many.page.wait_for_selector(".inside")
    assert many.page.locator("tr.opened b").inner_text() == "perth-0295"
    assert many.ask("document.querySelector('tr.opened').getBoundingClientRect().top") < 900


def test_the_keyboard_alone_finds_and_opens_a_case(many: Report):
    many.page.keyboard.press("/")
    many.page.keyboard.type("tokyo-0003")
    many.until("document.querySelectorAll('tr.case').length === 1")
    many.page.keyboard.press("ArrowDown")
    many.page.keyboard.press("Enter")
    many.page.wait_for_selector(".inside")
    assert many.page.locator("tr.opened .open").get_attribute("aria-expanded") == "true"
    many.page.keyboard.press("/")
    many.page.keyboard.press("Escape")
    assert many.count == "300 cases"


def test_everything_that_can_be_pressed_or_filled_in_has_a_name(many: Report):
    many.open("oslo-0000")
    nameless = "[...document.querySelectorAll('button, input, select, a[href], svg[role=img]')].filter(item => !(item.innerText || item.textContent || '').trim() && !item.getAttribute('aria-label')).length"
    assert many.ask(nameless) == 0


def test_it_is_dark_or_light_as_the_system_is_and_the_switch_overrules_it(many: Report):
    paper = "getComputedStyle(document.body).backgroundColor"
    colours = dict[str, str]()
    for scheme in ("dark", "light"):
        many.page.emulate_media(color_scheme=scheme)
        colours[scheme] = many.ask(paper)
    assert colours["dark"] != colours["light"]
    for word, colour in (("light", "light"), ("dark", "dark"), ("auto", "light")):
        many.page.click("#theme")
        assert (many.page.inner_text("#theme"), many.ask(paper)) == (f"Theme: {word}", colours[colour])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(many: Report, scheme: str):
    many.page.emulate_media(color_scheme=scheme)
    names = ("--ink", "--soft", "--accent", "--bad", "--warn")
    paper, *inks = [
        many.ask(f"getComputedStyle(document.documentElement).getPropertyValue('{name}')")
        for name in ("--card", *names)
    ]
    assert min(contrast(paper, ink) for ink in inks) >= 4.5


def contrast(one: str, other: str) -> float:
    """As WCAG counts it."""
    bright, dark = sorted(map(_luminance, (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_on_paper_there_are_all_cases_and_no_controls(many: Report):
    many.page.emulate_media(media="print", color_scheme="dark")
    assert many.ask("getComputedStyle(document.body).color") == "rgb(28, 33, 39)", "dark ink on paper"
    many.ask("dispatchEvent(new Event('beforeprint'))")
    assert len(many.ids) == 300
    assert many.page.locator("#filters").is_hidden()
    many.page.emulate_media(media="screen", color_scheme="light")


def test_nothing_that_was_said_runs_or_becomes_a_tag(browser: Any, tmp_path: Path):
    results = [hostile(f"{text} {number}", text) for number, text in enumerate(INJECTIONS)]
    report = Report(browser, tmp_path, results, results)
    report.page.wait_for_selector("tr.case")
    for number in range(len(INJECTIONS)):
        report.page.locator("tr.case .open").nth(number).click()
    report.until(f"document.querySelectorAll('.inside').length === {len(INJECTIONS)}")
    report.ask("document.querySelectorAll('details').forEach(item => { item.open = true })")
    assert report.ask("typeof ran") == "undefined"
    assert report.complaints == []
    assert {url.split("#")[0] for url in report.requests} == {report.url}
    assert (
        report.ask(
            "document.querySelectorAll('#cases :is(script, style, iframe, svg, form, object, img)').length"
        )
        == 0
    )
    assert report.ask("document.querySelectorAll('[onerror], [onload], [onclick], [onfocus]').length") == 0
    assert report.ask("[...document.links].every(link => link.href.startsWith('file:'))")
    assert report.ask("document.body.innerText").count("ran=1") > 5 * len(INJECTIONS)
    report.page.close()


def hostile(id: str, text: str) -> CaseResult:
    """The text in every place of a result."""
    said = (
        UserMessage(text),
        AssistantMessage((Thinking(text), Text(f"{text}\n\n```{text}\n{text}\n```\n- {text}"), ToolCall(text, text, {text: text})), text, text),
        ToolResultMessage(text, text, text),
        AssistantMessage(text, stop_reason="error", error_message=text),
    )  # fmt: skip
    return attempt(id, passed=False, name=text, tags=(text,), error=text, reason=text, stop_reason=text, model=text, system_prompt=text,
        transcript=said, metrics=(Metric(text, 0.5, 0.9, False, text, text),), place=SourceLine(text, 1))  # fmt: skip


def test_a_damaged_chunk_is_told_and_the_rest_of_the_page_works(browser: Any, tmp_path: Path):
    report = Report(browser, tmp_path, [attempt("oslo"), attempt("lima")])
    report.ask("document.querySelector('.chunk').textContent = 'AAAA'")
    report.page.locator("tr.case .open").first.click()
    report.page.wait_for_selector("tr.details .note")
    assert "results.jsonl" in report.page.inner_text("tr.details")
    assert report.ids == ["oslo", "lima"]
    report.page.close()


def test_a_run_without_cases_opens(browser: Any, tmp_path: Path):
    report = Report(browser, tmp_path, [])
    assert "There are no results" in report.page.inner_text("body")
    assert report.complaints == []
    report.page.close()


def walk(reply: str, city: str = "Lima", **changes: Any) -> CaseResult:
    """A conversation of three steps, the second of which asks for the weather in a city."""
    said = (
        UserMessage("What should I wear in Lima?"),
        AssistantMessage((ToolCall("1", "weather", {"city": city}),), "test", "m", "tool_use"),
        ToolResultMessage("1", "weather", "18 degrees"),
        AssistantMessage(reply, "test", "m"),
    )
    return attempt("walk", transcript=said, system_prompt="", **changes)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_earlier_transcript_is_beside_the_new_one_with_the_first_difference_marked(
    browser: Any, tmp_path: Path, width: int
):
    now, before = (
        walk("A T-shirt: 18 degrees, no rain.", passed=False),
        walk("A jacket: 18 degrees, no rain."),
    )
    report = Report(browser, tmp_path, [now], [before], "Tuesday's run")
    report.page.set_viewport_size({"width": width, "height": 800})
    assert "Compared with Tuesday's run" in report.page.inner_text(".compared h2")
    report.open("walk")
    page = report.page
    assert page.inner_text(".first .was .label") == "Tuesday's run · the agent"
    assert (page.inner_text(".first del"), page.inner_text(".first ins")) == ("jacket", "T-shirt")
    assert page.locator(".side h4").all_inner_texts() == ["Tuesday's run", "This run"]
    assert "A jacket: 18 degrees" in page.inner_text(".side.was")
    assert "A T-shirt: 18 degrees" in page.inner_text(".side.is")
    assert page.inner_text(".inside summary b") == "The first 2 steps are the same"
    assert "was 1.00" in page.inner_text(".metric")
    boxes = [page.locator(f".side.{kind}").bounding_box() for kind in ("was", "is")]
    assert (boxes[0]["y"] == boxes[1]["y"]) is (width == 1280)
    assert report.ask("document.documentElement.scrollWidth") == width
    assert report.complaints == []
    page.close()


def test_a_tool_that_was_called_otherwise_is_the_first_difference(browser: Any, tmp_path: Path):
    now, before = walk("A jacket."), walk("A jacket.", city="Lisbon")
    report = Report(browser, tmp_path, [now, attempt("same")], [before, attempt("same")], "before")
    report.open("walk")
    assert report.page.inner_text(".first .is .label") == "This run · tool weather"
    assert report.page.inner_text(".first ins") == "Lima"
    report.open("same")
    assert "Word for word as in before." in report.page.inner_text("tr.details:last-child")
    report.page.close()


def test_a_conversation_that_ended_earlier_differs_where_it_ends(browser: Any, tmp_path: Path):
    short = attempt(
        "walk", passed=False, transcript=(UserMessage("What should I wear in Lima?"),), system_prompt=""
    )
    report = Report(browser, tmp_path, [short], [walk("A jacket.")])
    report.open("walk")
    assert report.page.inner_text(".first .is") == "This run\n\nNothing more was said."
    assert report.page.inner_text(".side.was h4") == "the baseline"
    report.page.close()


def test_the_names_of_marks_in_a_plot_never_lie_on_each_other_nor_on_what_is_drawn(
    browser: Any, tmp_path: Path
):
    alike = [attempt(f"c{number}", duration=1.5 + number / 1000) for number in range(30)]
    report = Report(browser, tmp_path, alike)
    for width in (390, 1280):
        report.page.set_viewport_size({"width": width, "height": 800})
        edges = "[...document.querySelectorAll('svg.plot .halo')].map(e => e.getBBox()).map(b => [b.y, b.y + b.height])"
        first, second = sorted(report.ask(edges))
        bars = "[...document.querySelectorAll('svg.plot[aria-label=Latency] .good')].map(e => e.getBBox().y)"
        assert first[1] <= second[0] + 1
        assert second[1] <= min(report.ask(bars)) + 1
    report.page.close()


def test_a_cost_below_a_cent_is_written_as_everywhere(browser: Any, tmp_path: Path):
    report = Report(browser, tmp_path, [attempt("cheap", cost=4.5e-06)])
    assert "$0.0000045" in report.page.inner_text("tr.case .cost, tr.case td:nth-child(4)")
    assert "$0.0000045" in report.page.inner_text(".figures")
    report.open("cheap")
    assert "$0.0000045" in report.page.inner_text(".facts")
    report.page.close()
