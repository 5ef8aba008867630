"""What stands in the editor: text, with short placeholders for long pastes and for images."""

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from swink.system.shorten import clip_middle

MOST_LINES = 10
"""Lines of a paste that are shown; longer ones fold."""
MOST_CHARACTERS = 5_000
"""Characters of a paste that are shown: a single line may be long too."""
LONGEST_OPEN = 200_000
"""Characters of a paste that can be opened where it stands."""
PLACEHOLDER = re.compile(r"\[(?:pasted|image) #\d{1,6}[^\[\]\n]*\]")

_NUMBERED = re.compile(r"\[\w+ #(\d+)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SEQUENCES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_ODD_IN_NAMES = re.compile(r"[\[\]\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


class Typed(Struct, frozen=True, omit_defaults=True):
    """A text with what its placeholders stand for: pastes, and paths of images."""

    text: str
    pastes: dict[str, str] = {}
    images: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.text.strip())

    @property
    def size(self) -> int:
        """Characters of the text and its pastes."""
        return len(self.text) + sum(map(len, self.pastes.values()))

    def whole(self) -> str:
        """The text with every paste in its place."""
        if not self.pastes:
            return self.text
        return PLACEHOLDER.sub(lambda found: self.pastes.get(found[0], found[0]), self.text)

    def trimmed(self) -> "Typed":
        """Without space around it, and without what no placeholder names any more."""
        named = {found[0] for found in PLACEHOLDER.finditer(self.text)}
        pastes = {name: text for name, text in self.pastes.items() if name in named}
        images = {name: path for name, path in self.images.items() if name in named}
        return Typed(self.text.strip(), pastes, images)

    def cut_to(self, most: int) -> "Typed":
        """Without the pastes that make it longer than that; the text says so where they stood."""
        kept, lost, left = dict[str, str](), dict[str, str](), most - len(self.text)
        for name, paste in self.pastes.items():
            left -= len(paste)
            if left >= 0:
                kept[name] = paste
            else:
                lost[name] = name.replace("[pasted", "[lost paste")
        text = PLACEHOLDER.sub(lambda found: lost.get(found[0], found[0]), self.text)
        return Typed(text, kept, self.images)

    def shown_images(self) -> list[str]:
        """The paths of the images, in the order in which the text names them."""
        found = (self.images.get(found[0]) for found in PLACEHOLDER.finditer(self.text))
        return [path for path in dict.fromkeys(found) if path is not None]


def fold(text: str) -> Typed:
    """A text to be edited; one that is too long for that is a paste."""
    if len(text) <= LONGEST_OPEN:
        return Typed(text)
    name = paste_name(text, "", ())
    return Typed(name, {name: text})


def join(parts: list[Typed]) -> Typed:
    """Several prompts in one, a blank line between them; their placeholders are numbered anew."""
    text, pastes, images = "", dict[str, str](), dict[str, str]()
    for part in parts:
        body = part.text.strip()
        renamed: dict[str, str] = {}
        for theirs, ours, name_of in ((part.pastes, pastes, paste_name), (part.images, images, image_name)):
            for name, content in theirs.items():
                renamed[name] = name_of(content, text, ours)
                ours[renamed[name]] = content
        body = PLACEHOLDER.sub(lambda found, renamed=renamed: renamed.get(found[0], found[0]), body)
        text = f"{text}\n\n{body}" if text and body else text or body
    return Typed(text, pastes, images)


def more_lines(count: int) -> str:
    """What is said instead of lines that are not shown."""
    return f"+{count} line{'s' if count > 1 else ''}"


def make_harmless(text: str) -> str:
    """A paste without escape sequences and control characters; every kind of line end is one."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = _SEQUENCES.sub("", text)
    return _CONTROLS.sub("", text)


def folds(text: str, names: Mapping[str, object]) -> bool:
    """Whether a paste is shown as a placeholder; also one that would be mistaken for a placeholder."""
    if len(text) > MOST_CHARACTERS or text.rstrip("\n").count("\n") >= MOST_LINES:
        return True
    return bool(names) and any(found[0] in names for found in PLACEHOLDER.finditer(text))


def paste_name(content: str, text: str, names: Iterable[str]) -> str:
    """A placeholder for a paste, with a number that neither the text nor another placeholder has."""
    lines = content.rstrip("\n").count("\n") + 1
    size = f"{lines:,} lines" if lines > MOST_LINES else f"{len(content):,} characters"
    return f"[pasted #{_next_number('pasted', text, names)}, {size}]"


def image_name(path: str, text: str, names: Iterable[str]) -> str:
    """A placeholder for an image, with a number that neither the text nor another placeholder has."""
    name = _ODD_IN_NAMES.sub("_", re.split(r"[/\\]", path)[-1])
    return f"[image #{_next_number('image', text, names)} {clip_middle(name, 24, 15, '…', most=40)}]"


def placeholders(line: str, names: Mapping[str, object]) -> Iterator[tuple[int, int]]:
    """The two ends of every placeholder in a line."""
    if names and "[" in line:
        for found in PLACEHOLDER.finditer(line):
            if found[0] in names:
                yield found.span()


def _next_number(kind: str, text: str, names: Iterable[str]) -> int:
    known = [*names, *(found[0] for found in PLACEHOLDER.finditer(text))]
    found = [_NUMBERED.match(name) for name in known if name.startswith(f"[{kind} #")]
    return 1 + max((int(each[1]) for each in found if each), default=0)
