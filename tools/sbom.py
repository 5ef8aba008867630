"""SBOM: what an installed swink consists of, as CycloneDX 1.6 in JSON.

VENV/bin/python tools/sbom.py [EXTRA ...] > swink.cdx.json

It lists swink and all that it requires, with what that requires in turn, in the versions installed beside it.
The same installation gives the same document, byte for byte.
"""

import json
import re
import sys
import uuid
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from swink import __version__

_REQUIREMENT = re.compile(
    r"^\s*(?P<name>[A-Za-z0-9._-]+)\s*(?:\[(?P<extras>[^\]]*)\])?[^;]*(?:;(?P<marker>.*))?$"
)
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def main(extras: Sequence[str]) -> None:
    """Print the document."""
    json.dump(document("swink", extras), sys.stdout, indent=2, sort_keys=True)
    print()


def document(name: str, extras: Sequence[str] = ()) -> dict[str, Any]:
    """The SBOM of an installed distribution."""
    found: dict[str, tuple[Distribution, list[str]]] = {}
    _collect(name, frozenset(extras), found)
    root, _ = found[_normal(name)]
    others = [_component(found[key][0]) for key in sorted(found) if key != _normal(name)]
    references = {key: _reference(item) for key, (item, _) in found.items()}
    listed = json.dumps([others, _component(root)], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, listed)}",
        "version": 1,
        "metadata": {"component": {**_component(root), "type": "application"}},
        "components": others,
        "dependencies": [
            {"ref": references[key], "dependsOn": sorted({references[one] for one in found[key][1]})}
            for key in sorted(found)
        ],
    }


def _collect(name: str, extras: frozenset[str], found: dict[str, tuple[Distribution, list[str]]]) -> None:
    """Put a distribution, and all that it requires here, into `found`; what is not installed is left out."""
    try:
        here = distribution(name)
    except PackageNotFoundError:
        return
    _, needs = found.setdefault(_normal(name), (here, []))
    for other, wanted in _requirements(here, extras):
        key = _normal(other)
        if key in needs:
            continue
        _collect(other, wanted, found)
        if key in found:
            needs.append(key)


def _requirements(here: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What a distribution requires; conditions on the system hold if the package is installed."""
    for line in here.requires or ():
        match = _REQUIREMENT.match(line)
        if match is None:
            continue
        asked = _EXTRA.search(match["marker"] or "")
        if asked is None or asked[1] in extras:
            yield match["name"], frozenset(re.split(r"\s*,\s*", match["extras"] or ""))


def _component(here: Distribution) -> dict[str, Any]:
    """One distribution: its name, version, package URL and licence."""
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _reference(here),
        "name": here.name,
        "version": _version(here),
        "purl": _reference(here),
    }
    metadata: Any = here.metadata
    expression, written = metadata.get("License-Expression"), metadata.get("License")
    if expression:
        component["licenses"] = [{"expression": expression}]
    elif written and "\n" not in written:
        component["licenses"] = [{"license": {"name": written}}]
    return component


def _reference(here: Distribution) -> str:
    return f"pkg:pypi/{_normal(here.name)}@{_version(here)}"


def _version(here: Distribution) -> str:
    """What is installed; of swink what the source says, which an editable install may be behind."""
    return __version__ if here.name == "swink" else here.version


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(sys.argv[1:])
