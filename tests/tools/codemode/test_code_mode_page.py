"""docs/library/code-mode.md: its defaults are those of the code."""

from tests.pages import ROOT

from swink.tools import CodeLimits

PAGE = (ROOT / "docs" / "library" / "code-mode.md").read_text("utf-8")


def test_the_limits_are_those_of_the_code():
    limits = CodeLimits()
    shown = [f"{limits.seconds:g}", f"{limits.memory // 2**20} MiB", f"{limits.calls}", f"{limits.printed:,}"]
    for name, value in zip(CodeLimits.__struct_fields__, shown, strict=True):
        assert f"| `{name}` | {value} |" in PAGE
