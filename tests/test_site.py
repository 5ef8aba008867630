"""The site of the documentation: built without a warning, it fetches nothing from elsewhere and can be read by everybody."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urljoin

import pytest

from swink.system.filelock import alone
from tests.counts import MORE
from tests.export_pages import CHROMIUM, open_browser
from tests.pages import PICTURES_INTO, ROOT

pytestmark = [pytest.mark.more, pytest.mark.skipif(not MORE, reason="make test-more runs it")]
SITE = ROOT / "build" / "site"
ZENSICAL = ROOT / ".venv" / "docs" / "bin" / "zensical"
AXE = ROOT / ".venv" / "node" / "node_modules" / "axe-core" / "axe.min.js"
SHOWN = [
    "index.html", "library/tools.html", "coding-agent/tui.html", "reference/python/swink.teams.html",
    "guarantees/promises.html", "coding-agent/keys.html", "reference/errors.html", "project/changelog.html",
]  # fmt: skip
"""Pages that have what pages have: tables (short, long, of keys), code, pictures, lists, signatures, many links."""
PARTS = ["", *sorted(path.name for path in (ROOT / "docs").iterdir() if any(path.glob("*.md")))]
"""The folders of the site; its first page and the one for what is not there are in none."""


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, built as `make docs` builds it, by the first of the processes that share the tests."""
    if not ZENSICAL.exists():
        pytest.skip("zensical is not here; make docs installs it")
    built, this = (
        ROOT / "build" / "site-of-tests",
        os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid())),
    )
    built.parent.mkdir(exist_ok=True)
    with alone(built.with_suffix(".lock"), 300.0):
        if not built.exists() or built.read_text() != this:
            done = subprocess.run([sys.executable, "tools/site.py"], cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            built.write_text(this)
    return SITE


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium here to look at the site with")
    with open_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


def test_every_link_of_the_site_leads_to_a_file_and_a_place_in_it(site: Path):
    texts = {page.relative_to(site).as_posix(): page.read_text("utf-8") for page in site.rglob("*.html")}
    places = {page: set(re.findall(r"""\bid="?([^"\s>]+)""", text)) for page, text in texts.items()}
    broken: list[str] = []
    for page, text in texts.items():
        if page == "404.html":
            continue
        for target in re.findall(r"""<(?:a|img|link|script)\b[^>]*?\b(?:href|src)=["']?([^"'\s>]+)""", text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, fragment = unquote(urljoin(page, target)).partition("#")
            known = not fragment or path not in places or fragment in places[path] or "__" in fragment
            if not (path in ("", ".") or (site / path).exists()) or not known:
                broken.append(f"{page}: {target}")
    assert not broken


def test_the_lists_for_models_name_every_page(site: Path):
    listed = re.findall(r"\]\(([^)]+\.md)\)", (site / "llms.txt").read_text("utf-8"))
    assert [page for page in listed if not (site / page).exists()] == []
    pages = {page.relative_to(site).with_suffix(".md").as_posix() for page in site.rglob("*.html")}
    assert pages - {"404.md"} == set(listed)
    whole = (site / "llms-full.txt").read_text("utf-8")
    assert all(
        f"\n{page.read_text('utf-8').splitlines()[0]}\n" in f"\n{whole}" for page in ROOT.glob("docs/**/*.md")
    )


def part_of(page: Path, site: Path) -> str:
    return page.relative_to(site).as_posix().rpartition("/")[0].partition("/")[0]


def test_every_page_is_in_a_part_of_the_site(site: Path):
    assert {part_of(page, site) for page in site.rglob("*.html")} == {*PARTS}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("part", PARTS)
def test_the_pages_ask_nobody_else_say_nothing_and_fit_a_phone(
    browser: Any, site: Path, address: str, part: str, theme: str
):
    tab = browser.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda asked: None if asked.url.startswith(address) else said.append(asked.url))
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.emulate_media(color_scheme=theme)
    for page in sorted(page for page in site.rglob("*.html") if part_of(page, site) == part):
        tab.goto(address + page.relative_to(site).as_posix())
        wide = tab.evaluate("document.documentElement.scrollWidth")
        said += [f"{page.name}: {wide} wide"] if wide > 390 else []
    tab.close()
    assert not said


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not here; .ci/run installs it")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", SHOWN)
def test_the_page_has_contrast_enough(browser: Any, address: str, page: str, width: int, theme: str):
    tab = browser.new_page()
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=theme)
    tab.goto(address + page)
    if PICTURES_INTO:
        tab.screenshot(path=str(PICTURES_INTO / f"{page.replace('/', '-')}-{width}-{theme}.png"))
    tab.evaluate(AXE.read_text("utf-8"))
    found = tab.evaluate("axe.run(document, { runOnly: ['color-contrast', 'image-alt', 'link-name'] })")
    tab.close()
    assert [
        (each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found["violations"]
    ] == []
    assert found["passes"]


def test_the_search_finds_a_page(browser: Any, address: str):
    tab = browser.new_page()
    tab.goto(address + "index.html")
    tab.locator(".md-search__button").first.click()
    box = tab.get_by_role("textbox").or_(tab.get_by_role("combobox")).or_(tab.get_by_role("searchbox")).first
    box.wait_for(timeout=20_000)
    box.fill("compaction")
    tab.get_by_text(re.compile(r"\d+ results")).first.wait_for(timeout=20_000)
    tab.close()
