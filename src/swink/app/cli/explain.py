"""What went wrong, for people: the error, and the command or variable that fixes it."""

from swink.agent.agentresult import AgentResult
from swink.app.assistant.modelchoice import nearest_models
from swink.app.assistant.ownproviders import own_server
from swink.errors import (
    AuthError,
    ContextWindowOverflow,
    ModelRetired,
    ModelThrottled,
    NetworkError,
    StructuredOutputFailed,
)
from swink.messages import ModelSpec
from swink.models.keys.accounts import ACCOUNTS
from swink.models.keys.store import key_places

_FOR_PROGRAMS = (
    ContextWindowOverflow,
    ModelThrottled,
    NetworkError,
    AuthError,
    ModelRetired,
    StructuredOutputFailed,
)


def explain(result: AgentResult, model: ModelSpec) -> str:
    """Why a run did not end well, and what to do about it."""
    error = strip_advice(result.error or result.reason or "the run ended without a reply")
    match result.error_kind:
        case "auth":
            return _about_the_key(error, model)
        case "model_retired":
            near = [name for name in nearest_models(str(model)) if name != str(model)]
            hint = f"near it are {', '.join(near)}" if near else "swink models list shows what is known"
            return f"{error}; {hint}"
        case "network" if model.provider != "local":
            return f"{error}; {_about_the_server(model.provider)}"
        case "throttled":
            return f"{error}; wait a while, or take another model with --model"
        case "context_window_exceeded":
            return f"{error}; shorten the prompt, or take a model with a larger window (swink models list)"
        case "structured_output_failed":
            return f"{error}; ask for a simpler schema, or take another model with --model"
        case _:
            return error


def strip_advice(error: str) -> str:
    """An error's text without its advice to programmers."""
    for kind in _FOR_PROGRAMS:
        error = error.removesuffix(f" ({kind.advice})")
    return error


def _about_the_server(provider: str) -> str:
    account = ACCOUNTS.get(provider)
    if account is not None and account.is_configured(key_places()):
        return f"swink doctor tells whether {provider} can be reached"
    named = f", or set {account.url_variable} to its address" if account and account.url_variable else ""
    return f"check the connection and whether the server runs{named}"


def _about_the_key(error: str, model: ModelSpec) -> str:
    account, server = ACCOUNTS.get(model.provider), own_server(model.provider)
    if server is not None and server.key:
        return f"{error}; the key is that of {server.provider.key_env}"
    if account is None:
        return error
    if account.variable is not None:
        return f"{error}; the key is that of {account.variable}"
    keep = f"swink keys set {account.key_name}"
    stored = key_places().get(account.key_name)
    if stored is not None:
        return f"{error}; the key is the one stored in the {stored}: {keep} replaces it"
    if "no API key for" in error:
        variables = " or ".join(account.variables)
        return f"no API key for {model.provider}: set {variables}, or store one with: {keep}"
    return error
