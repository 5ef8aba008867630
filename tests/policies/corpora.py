"""Samples for the guards, by family: one a line in `corpus/`, with escapes, and keys made from a template.

`NAME.txt` is what the guards were tuned on; `NAME_aside.txt` was written before and only ever counted.
"""

import random
import re
import string
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")
_ALPHABETS = {
    "w": string.ascii_letters + string.digits,
    "U": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "h": "0123456789abcdef",
    "d": string.digits,
    "l": string.ascii_lowercase + string.digits,
}
_HOLE = re.compile(r"\{([wUhdl])(\d+)\}")
_ESCAPE = re.compile(r"\\(n|t|\\|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")


def samples(name: str) -> list[tuple[str, str]]:
    """Family and text of every sample of one file."""
    family, found = "", []
    for line in (CORPUS / f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("@word ") or (line.startswith("@") and " " not in line):
            family = line[1:]
        elif line:
            found.append((family, _unescaped(line)))
    return found


def keys(name: str) -> list[tuple[str, str, list[str]]]:
    """Family and text of every key sample, and the random parts that must not stay."""
    generator = random.Random(name)
    made: list[tuple[str, str, list[str]]] = []
    for family, template in samples(name):
        parts: list[str] = []

        def fill(hole: re.Match[str], parts: list[str] = parts) -> str:
            text = "".join(generator.choices(_ALPHABETS[hole[1]], k=int(hole[2])))
            parts.append(text)
            return text

        made.append(
            (
                family,
                _HOLE.sub(fill, template),
                [part for part in parts if len(part) >= 20] or sorted(parts, key=len)[-1:],
            )
        )
    return made


def _unescaped(line: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return {"n": "\n", "t": "\t", "\\": "\\"}.get(code) or chr(int(code[1:], 16))

    return _ESCAPE.sub(character, line)
