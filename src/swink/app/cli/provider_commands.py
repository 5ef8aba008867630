"""`swink providers`: servers of one's own, in config.toml; the key itself stays in the environment."""

import argparse

from swink.app.assistant.ownproviders import (
    OwnServer,
    add_provider,
    ask_models,
    check_provider,
    register_providers,
    remove_provider,
)
from swink.app.assistant.settings import load_settings
from swink.app.cli.terminal import say, table, with_bold_head
from swink.errors import AgentError
from swink.models import catalog
from swink.system.threads import run_to_end


def list_command(arguments: argparse.Namespace) -> int:
    """The servers of the settings, with what is wrong with them."""
    settings = load_settings()
    for problem in (*settings.problems, *register_providers(settings)):
        say(problem, "warning")
    if not settings.providers:
        print("No servers of your own yet: swink providers add NAME --kind openai --base-url URL")
        return 0
    rows: list[tuple[str, ...]] = [("NAME", "KIND", "ADDRESS", "KEY", "MODELS")]
    for name, provider in settings.providers.items():
        missing = "" if not OwnServer(name, provider).lacks_key else " (not set)"
        key = "none" if provider.key_env is None else f"{provider.key_env}{missing}"
        models = ", ".join(provider.models) or "those that it lists"
        rows.append((name, provider.kind, provider.base_url, key, models))
    print(with_bold_head(table(rows)))
    return 0


def add_command(arguments: argparse.Namespace) -> int:
    """`swink providers add`: check, ask for the models if none is named, and write."""
    name, models = arguments.name, tuple(arguments.models)
    provider = check_provider(name, arguments.kind, arguments.base_url, arguments.key_env, models)
    server = OwnServer(name, provider)
    if not models:
        try:
            models = run_to_end(ask_models(server))
        except AgentError as error:
            why = getattr(error, "message", "") or str(error)
            say(f"its models are not known: {why}; --model names one, and {name}:MODEL works too", "warning")
    path = add_provider(name, provider.kind, provider.base_url, provider.key_env, models)
    say(f"{name} is in {path}")
    if server.lacks_key:
        say(f"{provider.key_env} is not set; {name} gets its key from there", "warning")
    for spec in catalog.models(name):
        print(spec)
    return 0


def remove_command(arguments: argparse.Namespace) -> int:
    """`swink providers remove`: take the table out of the file."""
    path = remove_provider(arguments.name)
    say(f"{arguments.name} is no longer in {path}")
    settings = load_settings()
    named = [settings.default_model or "", *settings.fallbacks]
    if left := [model for model in named if model.startswith(f"{arguments.name}:")]:
        say(f"{path} still names {', '.join(left)}: change default_model or fallbacks there", "warning")
    return 0
