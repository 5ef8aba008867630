"""docs/library/code-mode.md: its program runs, and its defaults are those of the code."""

from pathlib import Path

from tests.pages import ROOT, blocks_of, run_program

from swink.tools import CodeLimits

PAGE = (ROOT / "docs" / "library" / "code-mode.md").read_text("utf-8")


def test_the_program_runs(tmp_path: Path):
    (program,) = blocks_of("docs/library/code-mode.md")
    assert run_program(program, tmp_path) == ("run_code\n", "")


def test_the_limits_are_those_of_the_code():
    limits = CodeLimits()
    shown = [f"{limits.seconds:g}", f"{limits.memory // 2**20} MiB", f"{limits.calls}", f"{limits.printed:,}"]
    for name, value in zip(CodeLimits.__struct_fields__, shown, strict=True):
        assert f"| `{name}` | {value} |" in PAGE
