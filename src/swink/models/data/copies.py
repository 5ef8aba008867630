"""Which list of models is used: the one that came with swink, or a later one that the user has fetched."""

import logging
from functools import cache
from pathlib import Path

import msgspec
from msgspec import DecodeError

from swink.models.data.listing import FORMAT, Listing, ModelEntry, Table, spellings
from swink.system.places import NoHome, data_dir

log = logging.getLogger("swink.catalog")
BUILT_IN = Path(__file__).with_name("models.json")
BROKEN = (DecodeError, LookupError, ValueError)
"""What the parts of a broken list raise."""


class Models:
    """The models of a list, found by provider and name; `instead` has the tables that are broken in it."""

    def __init__(self, listing: Listing, path: Path, instead: "Models | None" = None) -> None:
        self.listing = listing
        self.path = path
        self._instead = instead
        self._tables: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        """One table, decoded now if it was not before."""
        if name not in self._tables:
            try:
                self._tables[name] = Table(self.listing.tables[name])
            except BROKEN as error:
                if self._instead is None:
                    raise
                _report(self.path, error)
                self._tables[name] = self._instead.table(name)
        return self._tables[name]

    def find(self, provider: str, model_id: str) -> ModelEntry | None:
        """The model; None if it is not listed."""
        tables = [self.table(name) for name in self.listing.sources.get(provider, ())]
        for name in spellings(model_id) if tables else ():
            for table in tables:
                if (entry := table.find(name)) is not None:
                    return entry
        return None


@cache
def current() -> Models:
    """The user's list if there is a sound one that is newer than ours and knows all providers."""
    built_in = Models(read(BUILT_IN), BUILT_IN)
    path = user_file()
    if path is None or not path.exists():
        return built_in
    try:
        listing = read(path)
    except (OSError, *BROKEN) as error:
        _report(path, error)
        return built_in
    knows_all = listing.sources.keys() >= built_in.listing.sources.keys()
    if not knows_all or not is_newer(listing, built_in.listing):
        return built_in
    return Models(listing, path, built_in)


def read(path: Path) -> Listing:
    """The list in a file, its tables not yet decoded; one of these errors if it is broken."""
    listing = msgspec.json.decode(path.read_bytes(), type=Listing)
    if listing.format != FORMAT:
        raise ValueError(f"its format is {listing.format}, this swink reads {FORMAT}")
    return listing


def check(listing: Listing) -> dict[str, int]:
    """How many models each table has; one of these errors for a broken one."""
    names = {name for names in listing.sources.values() for name in names}
    return {name: len(Table(listing.tables[name]).entries) for name in sorted(names)}


@cache
def _report(path: Path, error: Exception) -> None:
    """Say once that a list cannot be used."""
    log.warning(
        "the list of models in %s cannot be used (%s), so the one that came with swink is; "
        "fetch it again with: swink models update",
        path,
        describe(error),
    )


def describe(error: Exception) -> str:
    """Why a list cannot be used."""
    return f"it is damaged: {error}" if isinstance(error, DecodeError | LookupError) else str(error)


def is_newer(listing: Listing, other: Listing) -> bool:
    """Whether a list is made of a later version of the data."""
    mine, theirs = (
        [int(part) for part in each.source.split(" ")[-1].split(".") if part.isdecimal()]
        for each in (listing, other)
    )
    return mine > theirs


def user_file() -> Path | None:
    """Where the user's list is kept, whether or not there is one; None without a home."""
    try:
        return data_dir() / "models.json"
    except NoHome:
        return None
