"""The programs of docs/library/stores.md do what the page says."""

from pathlib import Path

import pytest
from tests.pages import blocks_of

TITLE = "What is the capital of France?"


@pytest.mark.parametrize(
    ("place", "output"),
    [(0, f"{TITLE} | What is the «capital» of France?\n"), (1, f"{TITLE}\n"), (2, "Madrid.\n")],
)
def test_a_program_of_the_page(
    place: int,
    output: str,
    postgres: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    blocks = blocks_of("docs/library/stores.md")
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    code = blocks[place].replace("postgresql://user:password@host:5432/database", postgres)
    exec(compile(code, "docs/library/stores.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == output
