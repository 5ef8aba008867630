"""Modules that take seconds to import, imported by the first test that needs them and not by every process that runs others."""

import importlib
from typing import Any


class Later:
    """A module by its name, imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)  # pytest asks everything in a module whether it is a fixture
        return getattr(importlib.import_module(self._name), attribute)
