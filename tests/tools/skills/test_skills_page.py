"""docs/coding-agent/skills.md: its skill is one, and its cases can be loaded."""

import re
from pathlib import Path

from tests.pages import ROOT

from swink.eval.casefile import load_cases
from swink.tools import check_skill

PAGE = (ROOT / "docs" / "coding-agent" / "skills.md").read_text("utf-8")


def test_the_skill_is_one(tmp_path: Path):
    (text,) = re.findall(r"```markdown\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "release-notes").mkdir()
    (tmp_path / "release-notes" / "SKILL.md").write_text(text)
    assert check_skill(tmp_path / "release-notes") == []


def test_the_cases_can_be_loaded(tmp_path: Path):
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "cases.yaml").write_text(text)
    assert len(load_cases(tmp_path / "cases.yaml")) == 2
