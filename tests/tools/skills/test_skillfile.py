"""Reading and checking skills: agreement with the published validator, and broken ones with their line."""

from pathlib import Path

import pytest
from tests.tools.skills.families import FAMILIES, NAME, skill

from swink.tools import check_skill, read_skills


def written(place: Path, folder: str, text: str) -> Path:
    (place / folder).mkdir()
    (place / folder / "SKILL.md").write_bytes(text.encode())
    return place / folder


@pytest.mark.parametrize("family", FAMILIES)
def test_the_verdict_is_the_one_that_was_recorded(family: str, tmp_path: Path):
    folder, text, is_good = FAMILIES[family]
    problems = check_skill(written(tmp_path, folder, text))
    assert (not problems) == is_good, problems


@pytest.mark.parametrize("family", FAMILIES)
def test_the_published_validator_says_the_same(family: str, tmp_path: Path):
    published = pytest.importorskip("skills_ref")
    folder, text, is_good = FAMILIES[family]
    place = written(tmp_path, folder, text)
    said = published.validate(place)
    assert (not said) == is_good, said
    ours = [problem.text for problem in check_skill(place)]
    if not any("YAML" in text for text in said):
        assert ours == said


@pytest.mark.parametrize("family", [family for family, (_, _, is_good) in FAMILIES.items() if is_good])
def test_what_is_loaded_is_what_the_published_reader_reads(family: str, tmp_path: Path):
    published = pytest.importorskip("skills_ref")
    folder, text, _ = FAMILIES[family]
    (loaded,), bad = read_skills(written(tmp_path, folder, text))
    assert not bad
    theirs = published.read_properties(tmp_path / folder)
    if family != "dashes in a description":  # where that reader stops
        assert (loaded.name, loaded.description) == (theirs.name, theirs.description)


LINES = {
    "a second colon": 3,
    "a key twice": 3,
    "not closed": 4,
    "another folder": 2,
    "description too long": 3,
    "no name": 1,
}


@pytest.mark.parametrize("family", LINES)
def test_a_broken_skill_is_named_with_its_line_and_left_out(family: str, tmp_path: Path):
    written(tmp_path, "good", skill("name: good\ndescription: Good.\n"))
    folder, text, _ = FAMILIES[family]
    path = written(tmp_path, folder, text) / "SKILL.md"
    skills, (bad,) = read_skills(tmp_path)
    assert [skill.name for skill in skills] == ["good"]
    assert str(bad).startswith(f"{path}:{LINES[family]}: ")


def test_unknown_fields_and_brackets_are_kept_and_reported_by_check(tmp_path: Path):
    text = skill(f"{NAME}description: Fill.\nmodel: opus\nallowed-tools: [Read, Grep]\n")
    (loaded,), bad = read_skills(written(tmp_path, "forms", text))
    assert not bad
    assert loaded.fields["model"] == "opus"
    assert loaded.allowed_tools == "Read Grep"
    assert [problem.line for problem in check_skill(tmp_path / "forms")] == [5, 4]


def test_what_is_no_text_is_broken(tmp_path: Path):
    (written(tmp_path, "forms", "") / "SKILL.md").write_bytes(b"---\nname: forms\ndescription: \xff\n---\n")
    assert [problem.line for problem in check_skill(tmp_path / "forms")] == [3]
    assert [bad.problem.text for bad in read_skills(tmp_path)[1]] == ["it is not UTF-8 text"]


def test_a_huge_file_is_broken(tmp_path: Path):
    written(tmp_path, "forms", skill(f"{NAME}description: Fill.\n", "x" * 300_000))
    assert "longer than" in str(read_skills(tmp_path)[1][0])


def test_a_place_that_is_not_there_has_no_skills(tmp_path: Path):
    assert read_skills(tmp_path / "none") == ([], [])
    assert check_skill(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "SKILL.md" in check_skill(tmp_path / "empty")[0].text
