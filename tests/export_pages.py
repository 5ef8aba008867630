"""A browser to look at exported pages with, and texts that try to be more than text."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060"
    "000000050001a5f645400000000049454e44ae426082"
)
TOO_WIDE = "wide" * 100

INJECTIONS = (
    "<script>ran=1</script>",
    "<img src=x onerror=ran=1>",
    '"><script>ran=1</script>',
    "'><img src=x onerror='ran=1'>",
    "</pre></code></details></title></style><script>ran=1</script>",
    "<svg onload=ran=1>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "[click](javascript:ran=1)",
    "[click](JAVASCRIPT&colon;ran=1)",
    "[click](\tjava\nscript:ran=1)",
    '![x](x"onerror="ran=1)',
    "<javascript:ran=1>",
    "[x](data:text/html;base64,PHNjcmlwdD5yYW49MTwvc2NyaXB0Pg==ran=1)",
    "`<script>ran=1</script>`",
    "<!--><script>ran=1</script>-->",
    "<style>@import'https://example.org/ran=1'</style>",
    "<meta http-equiv=refresh content='0;url=https://example.org/ran=1'>",
    "<form action=https://example.org><input autofocus onfocus=ran=1>",
    "<a href=https://example.org/ran=1 ping=https://example.org>",
    "&lt;script&gt;ran=1&lt;/script&gt;",
    "{{constructor.constructor('ran=1')()}}",
    "<details open ontoggle=ran=1>",
    "\u202e<script>ran=1</script>",
    'https://example.org/"onmouseover="ran=1',
)


@contextmanager
def open_browser(profile: Path) -> Iterator[Any]:
    """Chromium with an empty profile; one start serves many pages."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=list(FLAGS), headless=True
        )
        try:
            yield browser
        finally:
            browser.close()
