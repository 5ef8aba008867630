"""The catalog: "provider:model" → what is known of the model, and the stream function that reaches it."""

import importlib
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from swink.errors import InvalidInput, UnknownModel
from swink.messages import Cost, ModelSpec, Price, Usage
from swink.messages.modelspec import HOSTED_USES
from swink.models.data import copies
from swink.models.data.listing import ModelEntry, spellings
from swink.stream import StreamFn
from swink.stream.urls import origin_of

log = logging.getLogger("swink.catalog")

PROVIDERS: Mapping[str, str] = {
    "anthropic": "swink.providers.anthropic:AnthropicStreamFn",
    "openai": "swink.providers.openai:OpenAIStreamFn",
    "openai-responses": "swink.providers.responses:ResponsesStreamFn",
    "azure": "swink.providers.azure:AzureStreamFn",
    "azure-responses": "swink.providers.azure:AzureResponsesStreamFn",
    "xai": "swink.providers.xai:XAIStreamFn",
    "xai-responses": "swink.providers.responses:XAIResponsesStreamFn",
    "mistral": "swink.providers.mistral:MistralStreamFn",
    "ollama": "swink.providers.ollama:OllamaStreamFn",
    "gemini": "swink.providers.gemini:GeminiStreamFn",
    "vertex": "swink.providers.vertex:VertexStreamFn",
    "bedrock": "swink.providers.bedrock:BedrockStreamFn",
    "proxy": "swink.providers.proxy:ProxyStreamFn",
    "local": "swink.local:LocalStreamFn",
    **{
        preset: f"swink.providers.openai:OpenAIStreamFn#{preset}"
        for preset in (
            *("groq", "together", "openrouter", "deepseek", "moonshot", "zai", "perplexity", "fireworks"),
            *("cerebras", "deepinfra", "huggingface", "nvidia", "minimax", "qwen", "vercel"),
            *("vllm", "llamacpp", "lmstudio", "sglang"),
        )
    },
}
"""Where each provider's stream function is, with its preset after a `#`; imported on first use."""

ENTRY_POINTS = "swink.providers"
"""Third parties register a stream function, or a function that makes one, under this entry point group."""

SERVICE_TIER = "service_tier_"
"""What the key in `Usage.extra` begins with that names the service tier of a request."""

_registered: dict[str, Callable[[], StreamFn]] = {}
_models_of_others: dict[str, tuple[str, ...]] = {}
"""What the registered providers say that they have."""


def parse_model(model: str | ModelSpec) -> ModelSpec:
    """A `ModelSpec` from "provider:model", with the limits the catalog knows."""
    if isinstance(model, ModelSpec):
        return model
    return _named(model) if type(model) is str else _read(model)


def _read(model: Any) -> ModelSpec:
    provider, separator, model_id = model.partition(":") if isinstance(model, str) else ("", "", "")
    if not separator or not provider or not model_id:
        example = _meant(model) if isinstance(model, str) else None
        hint = f"did you mean {example!r}?" if example else 'e.g. "anthropic:claude-sonnet-4-6"'
        raise UnknownModel(f'{model!r} is not a model; write "provider:model", {hint}')
    return with_limits(ModelSpec(provider, model_id))


def with_limits(spec: ModelSpec) -> ModelSpec:
    """The spec with the limits and capabilities of the catalog, where it has none of its own."""
    entry = _entry(spec.provider, spec.model_id)
    if entry is None:
        return spec
    return replace(
        spec,
        context_window=spec.context_window or entry.context_window,
        max_output=spec.max_output or entry.max_output,
        capabilities=spec.capabilities or entry.capabilities,
    )


def check_name(spec: ModelSpec, stream_fn: StreamFn) -> None:
    """Warn, once, of a `spec` that is not listed while one of nearly the same name is; `stream_fn` asks it.

    Not if it is asked at an address other than the provider's own, which may have any models.
    """
    if _entry(spec.provider, spec.model_id) is None and spec.provider not in _registered:
        _warn_unlisted(spec.provider, spec.model_id, origin_of(getattr(stream_fn, "base_url", None)))


def price_of(spec: ModelSpec, at: datetime | None = None, *, service_tier: str | None = None) -> Price | None:
    """The listed price of `spec`, now or `at` another time, at a `service_tier`; None if it is unknown."""
    entry = _entry(spec.provider, spec.model_id)
    return None if entry is None else entry.price(at, service_tier)


def listed(spec: ModelSpec) -> ModelEntry | None:
    """What the catalog knows of the model `spec`; without an entry it has no price at any time."""
    return _entry(spec.provider, spec.model_id)


def cost_of(spec: ModelSpec, usage: Usage, at: datetime | float | None = None) -> Cost | None:
    """What a request of `spec` cost by the listed price, now or `at` another time; None if anything is
    unknown.

    A service tier other than the usual one is named in `usage.extra`, as "service_tier_flex" and the like.
    """
    entry = _entry(spec.provider, spec.model_id)
    if entry is None:
        return None
    tiers = [key.removeprefix(SERVICE_TIER) for key in usage.extra if key.startswith(SERVICE_TIER)]
    tier = tiers[-1] if tiers else None
    price = entry.price(datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else at, tier)
    if price is None or any(usage.extra.keys() & HOSTED_USES - price.uses.keys()):
        return None
    return price.cost(usage)


def stream_fn_for(spec: ModelSpec) -> StreamFn:
    """The stream function of the spec's provider."""
    if spec.provider in _registered:
        return _made(spec.provider)
    target = PROVIDERS.get(spec.provider)
    if target is None:
        for point in _entry_points():
            if point.name == spec.provider:
                found = point.load()  # a stream function, or what makes one
                return found if _needs_arguments(found) else found()
        raise UnknownModel(_describe_unknown(spec.provider))
    path, _, preset = target.partition("#")
    module, _, name = path.partition(":")
    make = getattr(importlib.import_module(module), name)
    return make(preset=preset) if preset else make()


def has_provider(provider: str) -> bool:
    """Whether `stream_fn_for` can serve the provider."""
    is_known = provider in _registered or provider in PROVIDERS
    return is_known or any(point.name == provider for point in _entry_points())


def registered(provider: str) -> Callable[[], StreamFn] | None:
    """What `register_provider` was given for this provider, if anything."""
    return _registered.get(provider)


def registered_names() -> list[str]:
    """The providers that were registered."""
    return list(_registered)


def register_provider(provider: str, make: Callable[[], StreamFn], models: Sequence[str] = ()) -> None:
    """Serve "provider:…" with the stream function that `make()` returns; these of its models are listed."""
    if not isinstance(provider, str) or not provider or ":" in provider:
        raise InvalidInput(f'provider={provider!r}: give the word before the colon of "provider:model"')
    if not callable(make) or _needs_arguments(make):
        raise InvalidInput(
            f"make={make!r:.80}: give a function that returns a stream function "
            "and takes no arguments, such as lambda: stream_fn"
        )
    _registered[provider] = make
    _models_of_others[provider] = tuple(dict.fromkeys(models))


def unregister_provider(provider: str) -> None:
    """Serve "provider:…" no more, or as before it was registered."""
    _registered.pop(provider, None)
    _models_of_others.pop(provider, None)


def models(provider: str | None = None) -> list[ModelSpec]:
    """Every current model with a price that the catalog lists, of one provider or of all, each once.

    Those that a registered provider says it has come first; their limits and prices are not known.
    Deployments of Azure have names of their own, so none is listed there.
    """
    found = copies.current()
    others = [
        with_limits(ModelSpec(name, model_id))
        for name, ids in _models_of_others.items()
        if provider in (None, name)
        for model_id in ids
    ]
    names = {
        (name, entry.name or entry.id): None  # Claude on Vertex AI stands in two tables
        for name, tables in found.listing.sources.items()
        if provider in (None, name) and name in PROVIDERS and not name.startswith("azure")
        for table in tables
        for entry in found.table(table).entries
        if entry.prices and entry.context_window and not entry.hidden
    }
    return [*others, *(with_limits(ModelSpec(*name)) for name in names)]


def catalog_date() -> str:
    """The day prices and limits were last checked."""
    return copies.current().listing.checked


def catalog_source() -> str:
    """Where they come from: a package and its version, and the user's file if it is not ours."""
    found = copies.current()
    source = found.listing.source
    return source if found.path == copies.BUILT_IN else f"{source} in {found.path}"


def forget() -> None:
    """Read the list anew when it is next needed, as after an update."""
    copies.current.cache_clear()
    _entry.cache_clear()
    _named.cache_clear()
    _warn_unlisted.cache_clear()


def service_tiers(spec: ModelSpec) -> list[str]:
    """The service tiers of the model `spec` that have prices of their own, and "batch"."""
    entry = _entry(spec.provider, spec.model_id)
    return [] if entry is None else list(entry.service_tiers)


def _made(provider: str) -> StreamFn:
    """The stream function of a registered provider."""
    made = _registered[provider]()
    if not callable(made):
        raise InvalidInput(
            f"provider {provider!r} was registered with a function that returns {type(made).__name__}, "
            "not a stream function"
        )
    return made


def _needs_arguments(function: Callable[..., Any]) -> bool:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # written in C, and silent about its parameters
        return False
    return any(item.default is item.empty and item.kind not in variadic for item in parameters)


def _entry_points() -> Iterable[Any]:
    from importlib.metadata import entry_points  # takes 30 ms, and is needed only for providers of others

    return entry_points(group=ENTRY_POINTS)


@lru_cache(1024)
def _entry(provider: str, model_id: str) -> ModelEntry | None:
    return copies.current().find(provider, model_id)


_named = lru_cache(1024)(_read)
"""One spec for all agents of a model."""


@lru_cache(1024)
def _warn_unlisted(provider: str, model_id: str, origin: str | None) -> None:
    if origin is None:
        return
    from swink.models.keys.accounts import ACCOUNTS  # only this message needs them

    account = ACCOUNTS.get(provider)
    if account is None or origin != origin_of(account.base_url):
        return
    from swink.models.nearnames import nearest_model

    name = [*spellings(model_id)][-1]
    if near := nearest_model(name, [spec.model_id for spec in models(provider)]):
        said, meant = f"{provider}:{model_id}", f"{provider}:{near}"
        log.warning("%r is not in the list of models; did you mean %r?", said, meant)


def _meant(text: str) -> str | None:
    """The model that was named without its provider, or with another sign than the colon."""
    provider, _, model_id = text.partition("/")
    if model_id and has_provider(provider):
        return f"{provider}:{model_id}"
    return next((str(spec) for spec in models() if spec.model_id == text), None)


def _describe_unknown(provider: str) -> str:
    from swink.models.nearnames import nearest_provider  # only messages need it

    names = sorted({*PROVIDERS, *_registered, *(point.name for point in _entry_points())})
    near = nearest_provider(provider, names)
    hint = f"did you mean {near!r}? " if near else ""
    return f"unknown provider {provider!r}; {hint}known: {', '.join(names)}; or pass stream_fn="
