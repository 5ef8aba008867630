"""A list of blocks that can tell what changed in it since a given version."""

from collections.abc import Mapping

from msgspec import Struct

from swink.events.transcript.blockkinds import Block


class Changes(Struct, frozen=True):
    """What became of a list of blocks: cut it to `length`, then put these at their places.

    A place past the end is appended; they come in order.
    """

    version: int
    length: int
    blocks: Mapping[int, Block]


class BlockList:
    """Blocks in order; every change makes a new version."""

    def __init__(self) -> None:
        self.items: list[Block] = []
        self.version = 0
        self._touched: dict[int, int] = {}
        """The version in which each place changed last, the oldest first."""

    def __len__(self) -> int:
        return len(self.items)

    def append(self, block: Block) -> None:
        self.items.append(block)
        self._touch(len(self.items) - 1)

    def put(self, place: int, block: Block) -> None:
        self.items[place] = block
        self._touch(place)

    def cut(self, place: int) -> None:
        """Drop the blocks from a place on."""
        for gone in range(place, len(self.items)):
            self._touched.pop(gone, None)
        del self.items[place:]
        self.version += 1

    def since(self, version: int) -> Changes:
        """What changed after a version."""
        places: list[int] = []
        for place, changed in reversed(self._touched.items()):
            if changed <= version:
                break
            places.append(place)
        return Changes(self.version, len(self.items), {place: self.items[place] for place in sorted(places)})

    def _touch(self, place: int) -> None:
        self.version += 1
        self._touched.pop(place, None)
        self._touched[place] = self.version
