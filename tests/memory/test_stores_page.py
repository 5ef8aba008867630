"""The programs of docs/stores.md do what the page says."""

from pathlib import Path

from tests.pages import blocks_of, run_program


def test_the_programs_of_the_page(postgres: str, tmp_path: Path):
    sqlite, claims, checkpoints = blocks_of("docs/stores.md")
    outputs = []
    for number, code in enumerate((sqlite, claims, checkpoints)):
        directory = tmp_path / str(number)
        directory.mkdir()
        code = code.replace("postgresql://user:password@host:5432/database", postgres)
        outputs.append(run_program(code, directory)[0])
    title = "What is the capital of France?"
    assert outputs == [f"{title} | What is the «capital» of France?\n", f"{title}\n", "Madrid.\n"]
