"""What a person may choose on the page of a served assistant: models that have a key, and the modes."""

from collections.abc import Sequence

from swink.app.assistant.approvalmodes import MEANINGS, parse_approval
from swink.app.assistant.modelchoice import parse_model
from swink.app.assistant.modellist import FAVOURITES, RECENT, has_key, model_rows, recall
from swink.errors import MisuseError
from swink.messages import ModelSpec
from swink.models.keys.store import KeyStoreError, key_places
from swink.serve.page import ModelOffer, ModeOffer, PageChoice, PageChoices
from swink.serve.wire import Refused

PLAN = "plan"
_MODES = (
    ModeOffer(PLAN, "only tools that change nothing"),
    *(ModeOffer(word, meaning) for word, meaning in MEANINGS.items()),
)


def offered_choices(model: ModelSpec, mode: str) -> PageChoices:
    """The choices beside a model and a mode; it reads the catalog and the keys."""
    return PageChoices(str(model), mode, tuple(_models(str(model))), _MODES)


def check_choice(chosen: PageChoice) -> None:
    """Raise `Refused` for a model or a mode that there is not."""
    try:
        if chosen.model is not None:
            parse_model(chosen.model)
        if chosen.mode is not None and chosen.mode != PLAN:
            parse_approval(chosen.mode)
    except MisuseError as error:
        raise Refused(400, str(error)) from None


def _models(current: str) -> Sequence[ModelOffer]:
    try:
        stored = key_places()
    except KeyStoreError:
        stored = {}
    return [
        ModelOffer(row.name, row.window)
        for row in model_rows(current, recall())
        if row.group in (RECENT, FAVOURITES) or has_key(row.name.partition(":")[0], stored)
    ]
