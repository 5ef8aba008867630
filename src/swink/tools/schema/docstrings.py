"""Docstrings: the description of a function and of its parameters (Google, NumPy or Sphinx style)."""

import inspect
import re


def parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Description and parameter descriptions from a docstring (Google, NumPy or Sphinx style)."""
    if not text:
        return "", {}
    doc = inspect.cleandoc(text)
    sphinx = dict(re.findall(r"^:param (?:[\w.\[\], |]+ )?(\w+):\s*(.+(?:\n[ \t]+.+)*)", doc, re.M))
    heading = r"^(?:Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):?[ \t]*\n|^:\w+"
    head = re.split(heading, doc, maxsplit=1, flags=re.M)[0]
    section = re.search(r"^(?:Args|Arguments|Parameters):?[ \t]*\n(-+[ \t]*\n)?(?s:(.*))", doc, re.M)
    described = {name: " ".join(value.split()) for name, value in sphinx.items()}
    if section:
        described |= _numpy_items(section.group(2)) if section.group(1) else _google_items(section.group(2))
    return head.strip(), described


def _google_items(body: str) -> dict[str, str]:
    """`name (type): text`, the text going on in deeper lines."""
    lines = [line for line in body.splitlines() if line.strip()]
    indent = _depth(lines[0]) if lines else 0
    items: dict[str, str] = {}
    current = ""
    for line in lines:
        if _depth(line) < indent:
            break
        if _depth(line) > indent:
            items[current] = f"{items.get(current, '')} {line.strip()}".strip()
        elif item := re.match(r"\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)", line):
            current = item.group(1)
            items[current] = item.group(2).strip()
        else:
            current = ""
    return {name: text for name, text in items.items() if name and text}


def _numpy_items(body: str) -> dict[str, str]:
    """`name : type`, the text in the lines below; the next underlined heading ends the section."""
    items: dict[str, str] = {}
    names: list[str] = []
    for line in re.split(r"^.+\n-{3,}[ \t]*$", body, maxsplit=1, flags=re.M)[0].splitlines():
        if line.strip() and not _depth(line):
            names = re.findall(r"\w+", line.partition(":")[0])
        elif line.strip():
            items |= {name: f"{items.get(name, '')} {line.strip()}".strip() for name in names}
    return items


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
