"""Questions for a program's version, which change nothing."""

import os
from collections.abc import Sequence

from swink.tools.coding.place import Place

_TELL_VERSION = frozenset({"python", "python3", "node", "gcc", "g++", "clang", "cc", "make", "cmake", "bash"})
_FAMILY = {
    "cc": ("gcc", "cc", "clang", "x86_64", "aarch64"),
    "gcc": ("gcc", "x86_64", "aarch64"),
    "g++": ("g++", "x86_64", "aarch64"),
}
"""What the file that a program's name leads to may be called."""
_CHOOSE_VERSION = (
    ".python-version", ".node-version", ".nvmrc", ".tool-versions", "mise.toml", ".mise.toml", ".mise",
    ".config/mise",
)  # fmt: skip


def is_version_question(program: str, words: Sequence[str], place: Place) -> bool:
    """Whether a program is only asked for its version, and no file in the workspace selects the program."""
    questions = ("--version", "-V") if program.startswith("python") else ("--version",)
    if program not in _TELL_VERSION or len(words) != 1 or words[0] not in questions:
        return False
    found = place.find(program)
    if found is None:
        return True
    real = os.path.realpath(found)
    try:
        with open(real, "rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError:
        return False
    if is_script:
        # pyenv, asdf and the like: a file in or above the working directory selects the version.
        return os.path.basename(os.path.dirname(real)) == "shims" and not place.has_above(_CHOOSE_VERSION)
    return os.path.basename(real).startswith(_FAMILY.get(program, program))
