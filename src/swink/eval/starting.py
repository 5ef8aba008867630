"""Starting: the small suite that `swink eval init` writes."""

from pathlib import Path


def write_suite(directory: str | Path) -> list[Path]:
    """Write a suite that passes without a key; returns the files, in the order to read them.

    A file that exists already is left alone and raises `MisuseError` before anything is written.
    """
    raise NotImplementedError(directory)
