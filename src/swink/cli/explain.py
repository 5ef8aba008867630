"""What went wrong, as people need it: the error, and the command or variable that mends it."""

from swink.cli.accounts import ACCOUNTS
from swink.cli.choice import nearest_models
from swink.cli.keystore import key_places
from swink.config import AgentResult
from swink.messages import ModelSpec


def explain(result: AgentResult, model: ModelSpec) -> str:
    """Why a run did not end well, and what to do about it."""
    error = result.error or result.reason or "the run ended without a reply"
    match result.error_kind:
        case "auth":
            return _about_the_key(error, model)
        case "model_retired":
            near = [name for name in nearest_models(str(model)) if name != str(model)]
            return f"{error}; {'near it are ' + ', '.join(near) if near else 'swink models list shows what is known'}"
        case _:
            return error


def _about_the_key(error: str, model: ModelSpec) -> str:
    account = ACCOUNTS.get(model.provider)
    if account is None:
        return error
    if account.variable is not None:
        return f"{error}; the key is that of {account.variable}"
    stored = key_places().get(account.key_name)
    if stored is not None:
        return f"{error}; the key is the one stored in the {stored}: swink keys set {account.key_name} replaces it"
    if "no API key for" in error:
        variables = " or ".join(account.variables)
        return f"no API key for {model.provider}: set {variables}, or store one with: swink keys set {account.key_name}"
    return error
