"""PromptHistory: what was said before, in all directories and sessions, in one file; recalled or searched."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from swink.app.tui.editor.fuzzy import all_words
from swink.app.tui.editor.offers import Completion, Offer, Uses
from swink.app.tui.editor.submitted import is_command
from swink.app.tui.editor.typed import Typed, more_lines
from swink.messages.redact import redact_text
from swink.system.filelock import is_at, locked
from swink.system.files import open_private, write_whole
from swink.system.threads import Serial, in_thread

MOST = 2_000
"""Prompts that are kept."""
LONGEST = 32_000
"""Characters of a prompt with its pastes; longer ones are remembered while the program runs, not written."""
LARGEST = 4_000_000
"""Bytes of the file; then the older half is dropped."""
_SECRET_COMMANDS = ("#key", "/key", "/login")


class Said(Struct, frozen=True, omit_defaults=True):
    """A prompt, with when and where it was said."""

    typed: Typed
    at: float = 0.0
    directory: str = ""


class PromptHistory:
    """The prompts of a user, oldest first; `add` writes to the file off the event loop."""

    def __init__(self, path: Path | None, directory: str = "") -> None:
        self._path = path
        self._directory = directory
        self._writer = Serial()
        self.all: list[Said] = []

    async def load(self) -> None:
        """Read what was said before; what is said meanwhile stays the newest."""
        if self._path is not None:
            self.all[:0] = await in_thread(read_history, self._path)

    def add(self, typed: Typed) -> None:
        """Remember a prompt, without secrets; a command that is about keys is not remembered at all."""
        kept = without_secrets(typed) if (is_short := typed.size <= LONGEST) else typed
        if not kept or (self.all and self.all[-1].typed == kept):
            return
        said = Said(kept, round(time.time(), 3), self._directory)
        self.all.append(said)
        del self.all[:-MOST]
        if self._path is not None and is_short:
            self._writer.start(partial(_append_quietly, self._path, said))

    def command_uses(self) -> dict[str, Uses]:
        """The commands that were given anywhere, without what followed them."""
        found: dict[str, Uses] = {}
        for place, said in enumerate(self.all):
            if is_command(text := said.typed.text):
                name = text.split(maxsplit=1)[0]
                found[name] = Uses(found.get(name, Uses()).times + 1, place)
        return found

    def here(self) -> list[Typed]:
        """What was said in this directory, each prompt once, oldest first."""
        here = [said.typed for said in reversed(self.all) if said.directory == self._directory]
        return list({typed.text: typed for typed in here}.values())[::-1]

    def describe(self, said: Said) -> str:
        """What a list says about a prompt: lines that are not shown, when it was, and where, if elsewhere."""
        lines = said.typed.text.strip().count("\n")
        place = os.path.basename(said.directory) if said.directory != self._directory else ""
        parts = (more_lines(lines) if lines else "", _ago(time.time() - said.at) if said.at else "", place)
        return " · ".join(part for part in parts if part)

    def suggest(self, text: str) -> str:
        """The rest of the newest prompt of one line that begins like a text."""
        for said in reversed(self.all[-500:]):
            known = said.typed.text
            if known.startswith(text) and len(known) < 200 and "\n" not in known:
                return known[len(text) :]
        return ""

    def search(self, query: str, limit: int = 50) -> list[Said]:
        """What was said anywhere and matches, newest first."""
        newest: dict[str, Said] = {}
        for said in reversed(self.all):
            newest.setdefault(said.typed.text, said)
        texts = list(newest)
        return [newest[texts[number]] for number in all_words(query, texts)[:limit]]


class Walk:
    """A walk through history by ↑ and ↓; what was changed on the way is kept until it ends."""

    def __init__(self, past: Sequence[Typed], now: Typed) -> None:
        self._stops = [*past, now]
        self._at = len(past)

    def older(self, now: Typed) -> Typed | None:
        """The prompt before this one, None at the oldest."""
        return self._go(-1, now)

    def newer(self, now: Typed) -> Typed | None:
        """The prompt after this one, None at the newest, which is what was being written."""
        return self._go(1, now)

    @property
    def is_home(self) -> bool:
        """Whether what stands there is what was being written."""
        return self._at == len(self._stops) - 1

    def _go(self, step: int, now: Typed) -> Typed | None:
        if not 0 <= self._at + step < len(self._stops):
            return None
        self._stops[self._at] = now
        self._at += step
        return self._stops[self._at]


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


def without_secrets(typed: Typed) -> Typed:
    """What may be written down; nothing of a command that is about keys."""
    if typed.text.lstrip().startswith(_SECRET_COMMANDS):
        return Typed("")
    trimmed = typed.trimmed()
    pastes = {name: redact_text(text) for name, text in trimmed.pastes.items()}
    return Typed(redact_text(trimmed.text), pastes, trimmed.images)


def read_history(path: Path) -> list[Said]:
    """What the file holds, oldest first; damaged lines are skipped."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2 * LARGEST))
            lines = file.read().split(b"\n")
    except OSError:
        return []
    found: list[Said] = []
    decoder = msgspec.json.Decoder(Said)
    for line in filter(bytes.strip, lines):
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            found.append(decoder.decode(line))
    return [said for said in found if said.typed][-MOST:]


def append(path: Path, said: Said) -> None:
    """Add a line at the end; other processes may do the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        with open(path, "a+b", opener=open_private) as file, locked(file, within=5):
            if not is_at(file, path):
                continue  # another process has just replaced it by a shorter one
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    file.write(b"\n")  # a line that was cut off stays a damaged line of its own
            file.write(msgspec.json.encode(said) + b"\n")
            file.flush()
            if size > LARGEST:
                _shorten(path)
            return


def _append_quietly(path: Path, said: Said) -> None:
    """Add a line; a history that cannot be written is no reason to stop anybody."""
    with suppress(OSError):
        append(path, said)


def _ago(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "now"


def _shorten(path: Path) -> None:
    kept: list[bytes] = []
    size = 0
    for said in reversed(read_history(path)):
        line = msgspec.json.encode(said) + b"\n"
        size += len(line)
        if size > LARGEST // 2:
            break
        kept.append(line)
    write_whole(path, b"".join(reversed(kept)))
