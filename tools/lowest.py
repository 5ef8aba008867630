"""Lower bounds: the oldest versions that pyproject.toml allows, as constraints for pip.

python tools/lowest.py [EXTRA ...] > oldest.txt
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_BOUND = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?\s*(?:>=|==)\s*(?P<version>[\w.]+)")


def lower_bounds(project: dict[str, Any], extras: Sequence[str] = ()) -> Iterator[str]:
    """A line for each thing that the package, and these extras, require; ValueError if one has no bound."""
    optional: dict[str, list[str]] = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *(line for extra in extras for line in optional[extra])]:
        if requirement.startswith(f"{project['name']}["):
            continue  # an extra made of others
        match = _BOUND.match(requirement)
        if match is None:
            raise ValueError(f"{requirement} in pyproject.toml has no lower bound")
        yield f"{match['name']}=={match['version']}"


def main(extras: Sequence[str]) -> None:
    """Print the constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    print("\n".join(lower_bounds(project, extras)))


if __name__ == "__main__":
    main(sys.argv[1:])
