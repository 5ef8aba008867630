"""OpenRouter's reasoning details: kept per type and index, they go back exactly as they came.

Only the pieces of one detail are joined. A detail without an index follows the one before it of its type.
"""

from typing import Any

import msgspec

_JOINED = frozenset({"text", "summary", "data"})


class ReasoningDetails:
    """The details of one reply so far."""

    def __init__(self) -> None:
        self._details: list[dict[str, Any]] = []
        self._latest: dict[tuple[Any, Any], dict[str, Any]] = {}

    def add(self, pieces: list[dict[str, Any]]) -> str:
        """Keep some pieces; the text that they hold."""
        said: list[str] = []
        for piece in pieces:
            known = self._known(piece)
            for name, value in piece.items():
                before = known.get(name)
                if name in _JOINED and isinstance(value, str) and isinstance(before, str):
                    known[name] = before + value
                elif value is not None or name not in known:
                    known[name] = value
            said += [value for name in ("text", "summary") if isinstance(value := piece.get(name), str)]
        return "".join(said)

    def signature(self) -> str:
        """All of them, as they are kept in a block of thinking."""
        return msgspec.json.encode(self._details).decode()

    def _known(self, piece: dict[str, Any]) -> dict[str, Any]:
        kind, index, id = piece.get("type"), piece.get("index"), piece.get("id")
        known = self._latest.get((kind, index))
        another = known is not None and id and known.get("id") not in (None, id)
        whole = index is None and kind not in (None, "reasoning.text", "reasoning.summary")
        if known is None or another or whole:
            known = dict[str, Any]()
            self._details.append(known)
        self._latest[kind, index] = self._latest[None, index] = known
        return known
