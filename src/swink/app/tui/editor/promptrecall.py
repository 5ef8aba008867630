"""PromptRecall: earlier prompts in an editor, walked through by arrows or searched."""

from swink.app.tui.editor.offers import Completion, Offer
from swink.app.tui.editor.prompthistory import PromptHistory, Said, Walk
from swink.app.tui.editor.typed import Typed


class PromptRecall:
    """Where the user is among earlier prompts."""

    def __init__(self, history: PromptHistory) -> None:
        self.history = history
        self.before_search: Typed | None = None
        """What was being written when the search began; None if nobody searches."""
        self._walk: Walk | None = None
        self._found: list[Said] = []
        self._text: str | None = None

    @property
    def is_searching(self) -> bool:
        """Whether what is typed is what to look for."""
        return self.before_search is not None

    @property
    def is_untouched(self) -> bool:
        """Whether what stands there was recalled and not changed: nothing is to be completed."""
        return self._text is not None

    def note(self, text: str) -> None:
        """Something else stands there now."""
        if text != self._text:
            self._text = None

    def start_over(self) -> None:
        """Nothing is recalled, and nothing searched."""
        self._walk = self._text = self.before_search = None

    def step(self, now: Typed, *, older: bool) -> Typed | None:
        """The prompt before or after what stands there; None if there is none."""
        if self._walk is None or (self._walk.is_home and older):
            self._walk = Walk(self.history.here(), now)
        found = self._walk.older(now) if older else self._walk.newer(now)
        if found is not None:
            self._text = found.text
        return found

    def search(self, query: str) -> Offer:
        self._found = self.history.search(query)
        return Offer(0, query, tuple(self._completion(*item) for item in enumerate(self._found)))

    def end_search(self, chosen: Completion | None) -> Typed:
        """What was chosen, or what was being written before."""
        before, self.before_search = self.before_search or Typed(""), None
        typed = before if chosen is None else self._found[int(chosen.text)].typed
        self._text = typed.text
        return typed

    def _completion(self, number: int, said: Said) -> Completion:
        first_line = said.typed.text.strip().partition("\n")[0]
        return Completion(str(number), first_line, self.history.describe(said))
