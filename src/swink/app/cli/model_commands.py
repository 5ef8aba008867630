"""`swink models`: what there is, with limits and prices, and the local ones fetched and deleted."""

import argparse
from pathlib import Path

from swink.app.assistant.modelchoice import nearest_models, parse_model, unknown_provider
from swink.app.assistant.ownproviders import learn_models, own_server
from swink.app.cli.terminal import say, table, with_bold_head
from swink.errors import UnknownModel
from swink.messages import Capabilities, ModelSpec, Price
from swink.models import catalog
from swink.models.keys.accounts import ACCOUNTS
from swink.models.keys.store import key_places
from swink.system.interrupts import raise_interrupts
from swink.system.threads import run_to_end


def list_command(arguments: argparse.Namespace) -> int:
    """The models of the catalog, and those on this machine."""
    if arguments.provider is not None and not catalog.has_provider(arguments.provider):
        raise unknown_provider(arguments.provider)
    for problem in run_to_end(learn_models()):
        say(problem, "warning")
    specs = [spec for spec in catalog.models(arguments.provider) if spec.provider != "local"]
    if specs:
        rows = [("MODEL", "CONTEXT", "OUTPUT", "$ IN", "$ OUT", "$ CACHED", "KEY"), *map(_row, specs)]
        print(with_bold_head(table(rows, numbers=(1, 2, 3, 4, 5))))
        units = f"US dollars per million tokens and limits in tokens as of {catalog.catalog_date()}"
        print(f"\n{units}, by {catalog.catalog_source()}; other models work too.", end=" ")
        print("More of one: swink models show")
        if arguments.provider is None:
            others = sorted({*catalog.PROVIDERS} - {"local", *(spec.provider for spec in specs)})
            print(f"These take the models that you name, as PROVIDER:MODEL: {', '.join(others)}.")
    elif arguments.provider != "local":
        print(f"The catalog has no models of {arguments.provider}; name yours as {arguments.provider}:MODEL.")
    if arguments.provider in (None, "local"):
        _list_local(after_others=bool(specs))
    return 0


def show_command(arguments: argparse.Namespace) -> int:
    """Everything that the catalog says of one model."""
    spec, said = parse_model(arguments.model), {True: "yes", False: "no", None: "?"}
    can = {name: getattr(spec.capabilities, name, None) for name in Capabilities.__struct_fields__}
    abilities = [(name.replace("_", " "), said[value]) for name, value in can.items()]
    rows = [
        ("model", str(spec)),
        ("context", _number(spec.context_window)),
        ("output", _number(spec.max_output)),
        *abilities,
        *_price_rows(spec),
        ("as of", f"{catalog.catalog_date()}, {catalog.catalog_source()}"),
    ]
    print(table([*rows]))
    if spec.capabilities is None:
        near = [name for name in nearest_models(str(spec)) if name.startswith(f"{spec.provider}:")]
        hint = f"; near it are {', '.join(near)}" if near else ""
        say(f"{spec} is not in the catalog, and may work all the same{hint}")
    return 0


def pull_command(arguments: argparse.Namespace) -> int:
    """`swink models pull`: fetch a local model, with a progress bar."""
    from swink.local import Unloaded, locate, megabytes, pull, say_on_stderr

    name = parse_local_name(arguments.name)
    if (found := locate(name)) is not None:
        say(f"local:{name} is already here" if found.exists() else f"{found} is no file that could be pulled")
        print(found)
        return 0 if found.exists() else 1
    raise_interrupts()
    hear = say_on_stderr()
    try:
        path = pull(name, progress=hear)
    except KeyboardInterrupt:
        hear(Unloaded())
        again = f"the next swink models pull {name}"
        say(f"interrupted; {again} starts over, or goes on where the source allows it")
        raise
    hear(Unloaded())
    say(f"local:{name} is ready, {megabytes(path.stat().st_size)}")
    print(path)
    return 0


def remove_command(arguments: argparse.Namespace) -> int:
    """`swink models rm`: delete a local model and say what that freed."""
    from swink.local import megabytes, remove

    name = parse_local_name(arguments.name)
    freed = remove(name)
    say(f"local:{name} deleted, {megabytes(freed)} freed")
    return 0


def parse_local_name(text: str) -> str:
    """The name of a local model without its provider; raises `UnknownModel` for another provider's."""
    provider, colon, name = text.partition(":")
    if not colon or provider == "local":
        return name if colon else text
    if catalog.has_provider(provider):
        raise UnknownModel(f"{text} is a model of {provider}: there is nothing to keep on this machine")
    if len(provider) > 1 and "/" not in provider and not Path(text).exists():  # neither a drive nor a path
        raise unknown_provider(text)
    return text


def _list_local(*, after_others: bool) -> None:
    from swink.local import megabytes, models

    where = {"package": "installed", "cache": "here", "hub": "here", "absent": "fetched when first used"}
    rows: list[tuple[str, ...]] = [("LOCAL MODEL", "CONTEXT", "SIZE", "WHERE")]
    for model in models():
        context, size = _number(model.context_window or None), megabytes(model.size)
        rows.append((f"local:{model.name}", context, size, str(model.path or where[model.source])))
    print(*([""] if after_others else []), with_bold_head(table(rows, numbers=(1, 2))), sep="\n")
    print(
        "\nLocal models cost nothing. Any GGUF file works as local:/path/model.gguf, "
        "any Hugging Face repository as local:hf/OWNER/REPO."
    )


def _row(spec: ModelSpec) -> tuple[str, ...]:
    """A model in a table; a price that is not known is a question mark, never 0."""
    price, account = catalog.price_of(spec), ACCOUNTS.get(spec.provider)
    prices = "?", "?", "?"
    if price is not None:
        cached = "-" if price.cache_read is None else f"{price.cache_read:g}"
        prices = f"{price.input:g}", f"{price.output:g}", cached
    has_key = account is not None and (account.variable or account.key_name in key_places())
    if (server := own_server(spec.provider)) is not None:
        has_key = not server.lacks_key
    limits = _number(spec.context_window), _number(spec.max_output)
    return (str(spec), *limits, *prices, "yes" if has_key else "no")


def _price_rows(spec: ModelSpec) -> list[tuple[str, str]]:
    """The price now, with its tiers, and those of other service tiers."""
    price = catalog.price_of(spec)
    if price is None:
        return [("price", "?")]
    rows = [("$ per million", _amounts(price))]
    rows += [(f"over {above:,}", _amounts(higher)) for above, higher in price.tiers]
    rows += [(f"$ per {use.replace('_', ' ')}", f"{amount:g}") for use, amount in price.uses.items()]
    for tier in catalog.service_tiers(spec):
        if (other := catalog.price_of(spec, service_tier=tier)) is not None:
            rows.append((tier, _amounts(other)))
    return rows


def _amounts(price: Price) -> str:
    cache = {"cache read": price.cache_read, "cache write": price.cache_write}
    amounts = {"in": price.input, "out": price.output, **cache, **price.details}
    shown = [f"{name.replace('_', ' ')} {amount:g}" for name, amount in amounts.items() if amount is not None]
    return ", ".join(shown)


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
