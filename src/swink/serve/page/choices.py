"""What may be chosen on the page: the model and the mode, where the application offers it."""

from typing import Protocol

from msgspec import Struct

from swink.serve.hosting import Caller


class ModelOffer(Struct, frozen=True):
    """A model that may be chosen, and how many tokens it takes, if that is known."""

    name: str
    window: int | None = None


class ModeOffer(Struct, frozen=True):
    """A mode that may be chosen, and what it means."""

    name: str
    meaning: str = ""


class PageChoices(Struct, frozen=True):
    """What holds for a conversation, and what else could; an empty list offers no choice."""

    model: str = ""
    mode: str = ""
    models: tuple[ModelOffer, ...] = ()
    modes: tuple[ModeOffer, ...] = ()


class PageChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person has chosen; what is not given stays as it is."""

    model: str | None = None
    mode: str | None = None


class Choosing(Protocol):
    """Where an application lets people choose."""

    async def choices(self, caller: Caller, conversation: str | None) -> PageChoices:
        """What holds for a `conversation` of the `caller`; for None, what one would begin with."""
        ...

    async def choose(self, caller: Caller, conversation: str, chosen: PageChoice) -> PageChoices:
        """Take what the `caller` has `chosen` for a `conversation`, from its next run on; else `Refused`."""
        ...
