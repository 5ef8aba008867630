"""The files that git tracks: whether a search through them stays inside."""

import os
import struct

from swink.tools.coding.credentials import suspect
from swink.tools.coding.gitindex import read_index
from swink.tools.coding.place import Place


def all_may_be_read(place: Place) -> bool:
    """Whether `git grep` may read every tracked file; always so in a sandbox, which hides the others."""
    if not place.is_open:
        return True
    root = str(place.workspace.root)
    try:
        paths = [path for path, _ in read_index(os.path.join(root, ".git")).entries]
    except (OSError, ValueError, IndexError, struct.error):
        return False
    # A directory that has become a link would be followed.
    directories = {os.path.dirname(path) for path in paths}
    if not all(
        os.path.realpath(full) == full
        for full in (os.path.join(root, directory).rstrip("/") for directory in directories)
    ):
        return False
    return all(
        place.inside(os.path.join(root, path))
        for path in paths
        if suspect(path) is not None or place.workspace.is_hidden(path)
    )
