"""The choice of a model: named, else configured, else of the first provider with a key, else local."""

import os
from difflib import get_close_matches
from importlib.util import find_spec

from msgspec import Struct

from swink.app.assistant.settings import load_settings
from swink.errors import MisuseError, UnknownModel
from swink.messages import ModelSpec
from swink.models import catalog
from swink.models.keys.accounts import ACCOUNTS
from swink.models.keys.store import key_places
from swink.models.nearnames import nearest_provider
from swink.system.extras import install_command

LOCAL = "local:smollm2-135m"


class ModelChoice(Struct, frozen=True):
    """A model, and why it is this one; no reason is given for a model that the command line names."""

    model: ModelSpec
    why: str | None = None


def choose_model(named: str | None) -> ModelChoice:
    """The model of a command; raises `UnknownModel` with the nearest names."""
    if named:
        return ModelChoice(parse_model(named))
    if variable := os.environ.get("SWINK_MODEL", "").strip():
        return ModelChoice(_from("SWINK_MODEL", variable), "SWINK_MODEL is set")
    settings = load_settings()
    if settings.default_model:
        model = _from(str(settings.path), settings.default_model)
        return ModelChoice(model, f"default_model in {settings.path}")
    stored = key_places()
    keyed = [account for account in ACCOUNTS.values() if account.variable or account.key_name in stored]
    for account in keyed:
        if account.default_model is not None:
            in_store = f"the key of {account.key_name} is stored"
            because = f"{account.variable} is set" if account.variable else in_store
            model = parse_model(f"{account.provider}:{account.default_model}")
            return ModelChoice(model, f"{because}; another with --model")
    for name, server in settings.providers.items():
        if server.models and catalog.has_provider(name):
            why = f"[providers.{name}] in {settings.path}; another with --model"
            return ModelChoice(parse_model(f"{name}:{server.models[0]}"), why)
    why = "no model is configured and no API key found; see swink keys set, or --model"
    if names := [account.provider for account in keyed]:
        why = f"there is a key for {_list(names)}, but which model? --model {names[0]}:MODEL"
    if find_spec("xllamacpp") is None:
        why = f"{why}. It lacks the extra local; install it with: {install_command('local')}"
    return ModelChoice(parse_model(LOCAL), why)


def parse_model(text: str) -> ModelSpec:
    """A model from "provider:model"; raises `UnknownModel` with the nearest names."""
    provider, colon, model_id = text.partition(":")
    if colon and provider and model_id and catalog.has_provider(provider):
        return catalog.parse_model(text)
    if colon and provider and not model_id and catalog.has_provider(provider):
        names = [str(spec) for spec in catalog.models(provider)]
        raise UnknownModel(f"which model of {provider}? {_list(names) or f'write {provider}:MODEL'}")
    if colon and provider and model_id:
        raise unknown_provider(text)
    near = nearest_models(text)
    hint = f"did you mean {_list(near)}?" if near else "swink models list shows what there is"
    raise UnknownModel(f"{text!r} is not a model; write provider:model; {hint}")


def unknown_provider(text: str) -> UnknownModel:
    """The error for "provider:model", or a provider alone, of an unknown provider, with the nearest name."""
    provider, colon, model_id = text.partition(":")
    like = nearest_provider(provider, [*catalog.PROVIDERS, *catalog.registered_names()])
    near = [f"{like}{colon}{model_id}"] if like else []
    if colon and not near:
        near = nearest_models(text, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    where = f" in {text!r}" if colon else ""
    return UnknownModel(f"unknown provider {provider!r}{where}; {hint}swink models list shows what there is")


def nearest_models(text: str, count: int = 3) -> list[str]:
    """Names of the catalog that a mistyped one may mean, best first."""
    names = [str(spec) for spec in catalog.models()]
    provider, colon, model_id = text.lower().partition(":")
    exact = [name for name in names if name.partition(":")[2] == (model_id if colon else provider)]
    if colon and not catalog.has_provider(provider):
        provider = nearest_provider(provider, catalog.PROVIDERS) or provider
        text = f"{provider}:{model_id}"
        if catalog.has_provider(provider) and text not in names and not catalog.models(provider):
            return [text]
    by_id = {name.partition(":")[2]: name for name in reversed(names)}
    # Of a known provider the models alone are compared: its name would make all of them look near.
    if colon and not catalog.has_provider(provider):
        close = get_close_matches(text.lower(), names, n=count, cutoff=0.7)
    else:
        there = [spec.model_id for spec in catalog.models(provider)] if colon else []
        close = [f"{provider}:{found}" for found in get_close_matches(model_id, there, n=count)]
    like = [by_id[found] for found in get_close_matches(model_id or provider, by_id, n=count, cutoff=0.7)]
    near = list(dict.fromkeys([*exact, *close, *like]))
    if text in near:
        near.sort(key=lambda name: name != text)
    return near[:count]


def _from(source: str, text: str) -> ModelSpec:
    try:
        return parse_model(text)
    except UnknownModel as error:
        raise MisuseError(f"{source}: {error}") from error


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}" if names else ""
