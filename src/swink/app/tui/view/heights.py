"""Heights of blocks as prefix sums (a Fenwick tree): which block is at a line, in logarithmic time."""


class Heights:
    """How many lines each block takes; a block of no lines is never at a line."""

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._sums: list[int] = [0]  # place n holds the sum of the `n & -n` heights before block n

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, place: int) -> int:
        return self._heights[place]

    def __setitem__(self, place: int, height: int) -> None:
        change = height - self._heights[place]
        if change:
            self._heights[place] = height
            node = place + 1
            while node < len(self._sums):
                self._sums[node] += change
                node += node & -node

    @property
    def total(self) -> int:
        return self.before(len(self._heights))

    def append(self, height: int) -> None:
        node = len(self._sums)
        start = node - (node & -node)
        total = height
        at = node - 1
        while at > start:
            total += self._sums[at]
            at -= at & -at
        self._heights.append(height)
        self._sums.append(total)

    def cut(self, length: int) -> None:
        """Drop the blocks from a place on: no sum looks further than itself."""
        del self._heights[length:]
        del self._sums[length + 1 :]

    def before(self, place: int) -> int:
        total = 0
        while place:
            total += self._sums[place]
            place -= place & -place
        return total

    def at(self, line: int) -> tuple[int, int]:
        """The block at a line and the line in it; past the end it is `(len, lines past it)`."""
        node, size = 0, len(self._heights)
        step = 1 << size.bit_length()
        while step:
            further = node + step
            if further <= size and self._sums[further] <= line:
                node = further
                line -= self._sums[further]
            step >>= 1
        return node, line
