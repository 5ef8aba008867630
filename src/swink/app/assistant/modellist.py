"""The models to choose from, in the order in which a person looks for them, and what is remembered of that.

current and recent    the model in use, then those that were taken last
favourites            those that were marked
a provider            all others, by provider: those with a key first
"""

from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.ownproviders import own_server
from swink.messages import ModelSpec
from swink.messages.modelspec import Price
from swink.models import catalog
from swink.models.keys.accounts import ACCOUNTS
from swink.models.keys.store import KeyStoreError, key_places
from swink.system.files import write_whole
from swink.system.places import NoHome, state_dir

RECENT, FAVOURITES = "current and recent", "favourites"
_MOST_RECENT = 5


class ModelMemory(Struct, frozen=True):
    """The models that were taken last, the last one first, and those that were marked."""

    recent: tuple[str, ...] = ()
    favourites: tuple[str, ...] = ()

    def taken(self, model: str) -> "ModelMemory":
        """The memory after a model was taken."""
        others = [name for name in self.recent if name != model]
        return replace(self, recent=(model, *others)[:_MOST_RECENT])

    def toggled(self, model: str) -> "ModelMemory":
        """The memory after a model was marked as a favourite, or is none any more."""
        others = tuple(name for name in self.favourites if name != model)
        return replace(self, favourites=others if model in self.favourites else (*others, model))


class ModelRow(Struct, frozen=True):
    """A model as it is offered; what is not known of it is None."""

    name: str
    group: str
    window: int | None = None
    price: Price | None = None
    is_favourite: bool = False


def model_rows(current: str, memory: ModelMemory, provider: str | None = None) -> list[ModelRow]:
    """Every model that can be chosen, each once; of one provider if it is named."""
    specs = catalog.models(provider)
    if current and (provider is None or current.startswith(f"{provider}:")):
        specs = [_spec(current), *specs]
    known = {str(spec): spec for spec in specs}
    if provider is None:
        known |= {name: _spec(name) for name in memory.recent + memory.favourites if name not in known}
    first = [name for name in (current, *memory.recent) if name in known]
    groups = dict.fromkeys(first, RECENT)
    groups |= {name: FAVOURITES for name in memory.favourites if name in known and name not in groups}
    stored = _stored()
    others = [spec for name, spec in known.items() if name not in groups]
    others.sort(key=lambda spec: (not has_key(spec.provider, stored), spec.provider))
    groups |= {str(spec): _group(spec.provider, stored) for spec in others}
    return [_row(known[name], group, memory) for name, group in groups.items()]


def narrowed(rows: Sequence[ModelRow], typed: str) -> list[ModelRow]:
    """The rows that have all the words that were typed."""
    words = typed.lower().split()
    return [row for row in rows if all(word in f"{row.name} {row.group}".lower() for word in words)]


def has_key(provider: str, stored: Container[str]) -> bool:
    """Whether there is a key of the provider, or it needs none."""
    if (server := own_server(provider)) is not None:
        return not server.lacks_key
    account = ACCOUNTS.get(provider)
    return account is None or account.variable is not None or account.key_name in stored


def shown_price(price: Price | None) -> tuple[str, str]:
    """What a million tokens cost, in and out, in words: an unknown price is no price of nothing."""
    return ("?", "?") if price is None else (f"${price.input:g}", f"${price.output:g}")


def shown_window(window: int | None) -> str:
    """The size of a context window in a few characters."""
    if not window:
        return "?"
    return f"{window / 1_000_000:.2g}M" if window >= 1_000_000 else f"{window // 1000}k"


def recall() -> ModelMemory:
    """What is remembered; a file that is missing or broken remembers nothing."""
    with suppress(NoHome, OSError, msgspec.DecodeError):
        return msgspec.json.decode(_path().read_bytes(), type=ModelMemory)
    return ModelMemory()


def remember(memory: ModelMemory) -> None:
    """Keep it for the next time; without a place to keep it, it holds for now."""
    with suppress(NoHome, OSError):
        write_whole(_path(), msgspec.json.encode(memory), durable=False, make_parents=True)


def note_taken(model: str) -> None:
    """Remember that a model was taken."""
    remember(recall().taken(model))


def _path() -> Path:
    return state_dir() / "models.json"


def _spec(name: str) -> ModelSpec:
    provider, _, model_id = name.partition(":")
    return catalog.with_limits(ModelSpec(provider, model_id))


def _stored() -> Container[str]:
    try:
        return key_places()
    except KeyStoreError:
        return ()  # reported where a key is needed


def _group(provider: str, stored: Container[str]) -> str:
    return provider if has_key(provider, stored) else f"{provider}: no key"


def _row(spec: ModelSpec, group: str, memory: ModelMemory) -> ModelRow:
    name = str(spec)
    return ModelRow(name, group, spec.context_window, catalog.price_of(spec), name in memory.favourites)
