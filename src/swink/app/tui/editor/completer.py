"""The completer: offers what may be meant by what stands before the cursor of an editor."""

from collections.abc import Callable, Iterable

from swink.app.tui.editor.choices import Choices
from swink.app.tui.editor.mentions import PathIndex, being_typed
from swink.app.tui.editor.offers import CommandWord, Offer, complete_command, complete_mention, is_complete

Commands = Callable[[], Iterable[CommandWord]]
"""Where an editor gets its commands from; asked whenever a command is typed."""
LineToCursor = Callable[[], tuple[int, str]]
"""The row of the cursor, and what stands before it in its line."""


class Completer:
    """Fills a list of choices with what may be meant."""

    def __init__(self, choices: Choices, commands: Commands, index: PathIndex, line: LineToCursor) -> None:
        self.choices = choices
        self.commands = commands
        self._index = index
        self._line = line
        self.offer: Offer | None = None
        self._dismissed: tuple[int, int] | None = None

    @property
    def is_open(self) -> bool:
        return self.choices.is_open

    @property
    def is_done(self) -> bool:
        """Whether what stands there is one of the choices already."""
        _, line = self._line()
        return self.offer is None or is_complete(self.offer, line[self.offer.start :])

    def look(self, *, is_first_line: bool) -> tuple[int, str] | None:
        """Offer commands; a mention, which takes a while to look up, is returned for `find`."""
        _, line = self._line()
        offer = complete_command(line, self.commands()) if is_first_line else None
        mention = being_typed(line) if offer is None else None
        if mention is None:
            self.show_offer(offer)
        return mention

    async def find(self, start: int, query: str) -> None:
        """Offer agents and files for a mention: those known first, then those that are there now."""
        fresh = not self._index.is_stale
        if not fresh and len(self._index) == 0:
            await self._index.refresh()
            fresh = True
        while True:
            paths = await self._index.find(query)
            if being_typed(self._line()[1]) != (start, query):
                return
            self.show_offer(complete_mention(start, query, paths, self.commands()))
            if fresh:
                return
            fresh = True
            await self._index.refresh()

    def show_offer(self, offer: Offer | None) -> None:
        """Offer something else; what was dismissed stays closed while it is typed on."""
        place = None if offer is None else (self._line()[0], offer.start)
        if offer is None or not offer.items or place == self._dismissed:
            self.close()
            self._dismissed = self._dismissed if place == self._dismissed else None
            return
        self.offer = offer
        self.choices.offer(offer.items, offer.query)

    def close(self) -> None:
        self.offer = None
        self.choices.close()

    def dismiss(self) -> bool:
        """Close the list until something else is typed; whether it was open."""
        if not self.is_open or self.offer is None:
            return False
        self._dismissed = (self._line()[0], self.offer.start)
        self.close()
        return True

    def mark(self, step: int) -> bool:
        """Mark another choice; whether there is a list."""
        self.choices.mark(step)
        return self.is_open

    def rest_of_marked(self) -> str:
        """What is missing to the marked choice, if what stands there is its beginning."""
        if self.offer is None or (marked := self.choices.marked) is None:
            return ""
        so_far = self._line()[1][self.offer.start :]
        text = marked.text.rstrip()
        return text[len(so_far) :] if so_far and text.startswith(so_far) else ""
