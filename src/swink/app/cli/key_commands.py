"""`swink keys`: API keys kept for later runs; a key is never an argument, never echoed, never shown."""

import argparse
import getpass
import sys

from swink.app.cli.terminal import say, table
from swink.errors import MisuseError
from swink.models.keys.accounts import ACCOUNTS, account_for
from swink.models.keys.store import key_places, keys_file, open_to_others, remove_key, store_key
from swink.system.interrupts import raise_interrupts


def set_command(arguments: argparse.Namespace) -> int:
    """`swink keys set`: store a key that is typed or piped in."""
    account = account_for(arguments.provider)
    if arguments.key:
        raise MisuseError(
            "a key is no argument: others see it, and your shell remembers it. "
            f"Change that key, then: swink keys set {account.provider}"
        )
    raise_interrupts()
    key = _read_key(account.provider)
    place = store_key(account.provider, key)
    where = "your keychain" if place == "keychain" else keys_file()
    say(f"the key of {account.provider} is stored in {where}")
    if account.variable is not None:
        say(f"{account.variable} is set too, and wins while it is", "warning")
    return 0


def list_command(arguments: argparse.Namespace) -> int:
    """Which keys there are, and where."""
    stored = key_places()
    rows: list[tuple[str, ...]] = [("PROVIDER", "KEY", "VARIABLE")]
    for account in ACCOUNTS.values():
        if account.shares:
            continue
        place = stored.get(account.provider)
        kept = {None: "none", "keychain": "in the keychain", "file": "in the file"}[place]
        source = f"from {account.variable}" if account.variable is not None else kept
        rows.append((account.provider, source, " or ".join(account.variables)))
    print(table(rows))
    if "file" in stored.values():
        say(f"the file is {keys_file()}")
        if open_to_others(keys_file()):
            say(f"others on this machine may read it; close it with: chmod 600 '{keys_file()}'", "warning")
    return 0


def remove_command(arguments: argparse.Namespace) -> int:
    """`swink keys rm`: delete the stored key of a provider."""
    account = account_for(arguments.provider)
    if not remove_key(account.provider):
        raise MisuseError(f"no key of {account.provider} is stored{_but_set(account.variable)}")
    say(f"the key of {account.provider} is deleted{_but_set(account.variable)}")
    return 0


def _read_key(provider: str) -> str:
    question = f"API key of {provider} (not shown): "
    try:
        key = (getpass.getpass(question) if sys.stdin.isatty() else sys.stdin.readline()).strip()
    except EOFError:
        key = ""
    if not key:
        raise MisuseError("no key was given; nothing was changed")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise MisuseError("that is no key: it has spaces or characters that no key has; nothing was changed")
    return key


def _but_set(variable: str | None) -> str:
    return f"; {variable} is still set" if variable is not None else ""
