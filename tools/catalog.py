"""Make the list of models, src/swink/models/data/models.json, of the genai-prices installed and overlay.toml.

python tools/catalog.py            write it
python tools/catalog.py --check    say whether it is up to date
"""

import sys
from importlib.metadata import distribution
from pathlib import Path

from swink.models.data.copies import BUILT_IN
from swink.models.data.genaiprices import MEMBER, PACKAGE
from swink.models.data.listmaker import make_listing


def made_listing() -> bytes:
    """The list of the installed package; the same package and overlay always make the same list."""
    package = distribution(PACKAGE)
    text = Path(str(package.locate_file(MEMBER))).read_text("utf-8")
    return make_listing(text, package.version, today="9999-12-31")


def main() -> int:
    made = made_listing()
    if "--check" in sys.argv[1:]:
        return 0 if made == BUILT_IN.read_bytes() else 1
    BUILT_IN.write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
