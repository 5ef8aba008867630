"""A skill: a folder with a SKILL.md, as Agent Skills are published.

    pdf-forms/
        SKILL.md       front matter (name, description, …) and the instructions
        scripts/ references/ assets/ …     what the instructions name

`check_skill` says all that the published validator refuses, each with its line. Loading is as strict, except
that unknown fields, and values in brackets, are taken as they are.
"""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from swink.system.files import READ
from swink.system.frontmatter import BadFrontMatter, FrontMatter, Value, parse_fields, read_front_matter

FILE_NAMES = ("SKILL.md", "skill.md")
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LONGEST_COMPATIBILITY = 500
MOST_BYTES = 200_000
"""Bytes of a SKILL.md; a longer one is refused."""
_FIELDS = ("allowed-tools", "compatibility", "description", "license", "metadata", "name")


class SkillProblem(Struct, frozen=True):
    """Something that is wrong with a skill, and the line of SKILL.md that says it."""

    line: int
    text: str
    is_fatal: bool = True
    """Whether the skill cannot be used because of it."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


class BadSkill(Struct, frozen=True):
    """A skill that cannot be used, and why.

    Args:
        path: the folder
        problem: why
    """

    path: Path
    problem: SkillProblem

    def __str__(self) -> str:
        return f"{self.path}:{self.problem.line}: {self.problem.text}"


class Skill(Struct, frozen=True):
    """A skill that can be used: what a model is told of it, and the instructions that it may enter.

    Args:
        name: what people and models call it
        description: when to use it
        body: the instructions
        path: its folder
        fields: what else the head of its file says
    """

    name: str
    description: str
    body: str
    path: Path
    """Its SKILL.md."""
    fields: dict[str, Value] = {}
    """All of its front matter, unknown fields too."""

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.path.parent

    @property
    def is_there(self) -> bool:
        """Whether it has not been removed since it was read; blocking."""
        return os.path.isfile(self.path)

    @property
    def allowed_tools(self) -> str:
        """What it asks to be allowed, as it is written."""
        value = self.fields.get("allowed-tools", "")
        return " ".join(str(item) for item in value) if isinstance(value, list) else str(value)


class InvalidSkill(ValueError):
    """A SKILL.md that is none."""

    def __init__(self, problem: SkillProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def find_skill_file(folder: Path) -> Path | None:
    """The SKILL.md of a folder; blocking."""
    return next((folder / name for name in FILE_NAMES if os.path.isfile(folder / name)), None)


def read_skills(place: str | Path) -> tuple[list[Skill], list[BadSkill]]:
    """The skills of the folder `place`, or the one that it is, and those that are broken; blocking.

    What is no folder with a SKILL.md is passed over.
    """
    place = Path(place).expanduser().absolute()
    if find_skill_file(place) is not None:
        folders = [place]
    else:
        try:
            folders = sorted(entry for entry in place.iterdir() if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        except OSError as error:
            return [], [BadSkill(place, SkillProblem(1, error.strerror or str(error)))]
    skills: list[Skill] = []
    bad: list[BadSkill] = []
    for folder in folders:
        path = find_skill_file(folder)
        if path is None:
            continue
        try:
            skills.append(parse_skill(path, _read(path)))
        except InvalidSkill as error:
            bad.append(BadSkill(path, error.problem))
        except OSError as error:
            bad.append(BadSkill(path, SkillProblem(1, error.strerror or str(error))))
    return skills, bad


def parse_skill(path: Path, data: bytes) -> Skill:
    """The skill in a SKILL.md; raises `InvalidSkill`."""
    text = _decode(data)
    try:
        front = read_front_matter(text)
    except BadFrontMatter as error:
        raise InvalidSkill(SkillProblem(error.line, error.problem)) from None
    for problem in _problems(front, path.parent.name):
        if problem.is_fatal:
            raise InvalidSkill(problem)
    name, description = str(front.fields["name"]), str(front.fields["description"])
    name = unicodedata.normalize("NFKC", name.strip())
    return Skill(name, description.strip(), front.body, path, front.fields)


def check_skill(folder: str | Path) -> list[SkillProblem]:
    """All that is wrong with the skill in a folder, as the published validator judges; blocking."""
    folder = Path(folder).absolute()
    if not folder.is_dir():
        return [
            SkillProblem(1, f"Not a directory: {folder}" if folder.exists() else f"{folder} does not exist")
        ]
    path = find_skill_file(folder)
    if path is None:
        return [SkillProblem(1, "Missing required file: SKILL.md")]
    try:
        text = _decode(_read(path))
        front = _published_fields(text)
    except InvalidSkill as error:
        return [error.problem]
    except BadFrontMatter as error:
        return [SkillProblem(error.line, error.problem)]
    except OSError as error:
        return [SkillProblem(1, error.strerror or str(error))]
    return list(_problems(front, folder.name))


def _published_fields(text: str) -> FrontMatter:
    """The fields where the validator looks for them: between the first two `---`, wherever those are."""
    if not text.startswith("---"):
        raise BadFrontMatter(1, "SKILL.md must start with YAML frontmatter (---)")
    parts = text.split("---", 2)
    if len(parts) < 3:
        raise BadFrontMatter(text.count("\n") + 1, "SKILL.md frontmatter not properly closed with ---")
    return parse_fields(parts[1])


def _problems(front: FrontMatter, folder: str) -> Iterator[SkillProblem]:
    fields, lines = front.fields, front.lines
    if not fields:
        yield SkillProblem(1, "SKILL.md frontmatter must be a YAML mapping")
        return
    for line, text in front.oddities:
        yield SkillProblem(line, f"Invalid YAML in frontmatter: {text}", is_fatal=False)
    if unknown := sorted(set(fields) - set(_FIELDS)):
        line = min(lines[name] for name in unknown)
        text = f"Unexpected fields in frontmatter: {', '.join(unknown)}. Only {list(_FIELDS)} are allowed."
        yield SkillProblem(line, text, is_fatal=False)
    if "name" not in fields:
        yield SkillProblem(1, "Missing required field in frontmatter: name")
    else:
        yield from (SkillProblem(lines["name"], text) for text in _name_problems(fields["name"], folder))
    if "description" not in fields:
        yield SkillProblem(1, "Missing required field in frontmatter: description")
    else:
        yield from _length_problems(front, "description", LONGEST_DESCRIPTION)
    if "compatibility" in fields:
        yield from _length_problems(front, "compatibility", LONGEST_COMPATIBILITY)


def _name_problems(name: Value, folder: str) -> Iterator[str]:
    if not isinstance(name, str) or not name.strip():
        yield "Field 'name' must be a non-empty string"
        return
    name = unicodedata.normalize("NFKC", name.strip())
    if len(name) > LONGEST_NAME:
        yield f"Skill name '{name}' exceeds {LONGEST_NAME} character limit ({len(name)} chars)"
    if name != name.lower():
        yield f"Skill name '{name}' must be lowercase"
    if name.startswith("-") or name.endswith("-"):
        yield "Skill name cannot start or end with a hyphen"
    if "--" in name:
        yield "Skill name cannot contain consecutive hyphens"
    if not all(sign.isalnum() or sign == "-" for sign in name):
        allowed = "Only letters, digits, and hyphens are allowed."
        yield f"Skill name '{name}' contains invalid characters. {allowed}"
    if unicodedata.normalize("NFKC", folder) != name:
        yield f"Directory name '{folder}' must match skill name '{name}'"


def _length_problems(front: FrontMatter, field: str, longest: int) -> Iterator[SkillProblem]:
    value, line, is_needed = front.fields[field], front.lines[field], field == "description"
    if not isinstance(value, str) or (is_needed and not value.strip()):
        yield SkillProblem(line, f"Field '{field}' must be a {'non-empty ' if is_needed else ''}string")
    elif len(value) > longest:
        text = f"{field.capitalize()} exceeds {longest} character limit ({len(value)} chars)"
        yield SkillProblem(line, text)


def _read(path: Path) -> bytes:
    with open(path, "rb", opener=lambda name, _: os.open(os.path.realpath(name), READ)) as file:
        return file.read(MOST_BYTES + 1)


def _decode(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise InvalidSkill(SkillProblem(1, f"it is longer than {MOST_BYTES:,} bytes"))
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidSkill(SkillProblem(line, "it is not UTF-8 text")) from None
