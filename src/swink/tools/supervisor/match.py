"""A regular expression at work in a process of its own, where a pattern that takes forever can be killed.

Python's `re` holds the interpreter while it matches, so a bad pattern would freeze the whole program around it.

    stdin   the pattern and its flags; then blocks of text: (encoding, errors, bytes)
    stdout  per block the indices of the lines that match

Every item is marshalled, its length before it. Run by path, like `start.py`: it imports nothing it does not need.
"""

import marshal
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Answer until there are no more blocks."""
    pattern, flags = _read()
    search = re.compile(pattern, flags).search
    while (block := _read()) is not None:
        encoding, errors, data = block
        lines = data.decode(encoding, errors).removesuffix("\n").split("\n")
        _write([index for index, line in enumerate(lines) if search(line.removesuffix("\r"))])


def _read() -> "Any":
    size = sys.stdin.buffer.read(8)
    return marshal.loads(sys.stdin.buffer.read(int.from_bytes(size, "big"))) if len(size) == 8 else None


def _write(found: list[int]) -> None:
    data = marshal.dumps(found)
    sys.stdout.buffer.write(len(data).to_bytes(8, "big") + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
