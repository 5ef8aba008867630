"""What one server offers: its tools, resources, templates of resources and prompts, as it last listed them.

A server that says that a list has changed is asked for it again; one that says so without end is asked a few
times a second at most. Whoever begins a turn waits a moment for what is being asked (`settled`).
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from swink.mcp.sdk import Sdk, first_error
from swink.messages.redact import redact_text

log = logging.getLogger("swink.mcp")

KINDS = ("tools", "resources", "resource_templates", "prompts")
_MAX_PAGES = 100
MOST_ITEMS = 5_000
"""Of one list; what comes after them is left out."""
_MOMENT = 0.4
"""Seconds for a list that a server never said it has, and for those that are not needed to begin."""
_PAUSE = 0.2
"""Seconds between two questions for lists that have changed."""
_PATIENCE = 30.0
_CHANGES = {
    "notifications/tools/list_changed": ("tools",),
    "notifications/resources/list_changed": ("resources", "resource_templates"),
    "notifications/prompts/list_changed": ("prompts",),
}


class ServerLists:
    """The lists of one server on one connection; `on_change` is called when they are others than before."""

    def __init__(self, sdk: Sdk, secrets: tuple[str, ...], on_change: Callable[[], None]) -> None:
        self.tools: tuple[Any, ...] = ()
        self.resources: tuple[Any, ...] = ()
        self.resource_templates: tuple[Any, ...] = ()
        self.prompts: tuple[Any, ...] = ()
        self.instructions = ""
        self._client: Any = None
        self._sdk = sdk
        self._secrets = secrets
        self._on_change = on_change
        self._stale: set[str] = set()
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    async def open(self, client: Any) -> None:
        """Ask for the tools, and beside that for everything else; what is late comes later."""
        self._client = client
        self.instructions = client.instructions or ""
        others = [kind for kind in KINDS[1:] if self._has(kind)]
        beside = asyncio.gather(*[self._try_to_read(kind) for kind in others])
        try:
            await self.refresh()
            await asyncio.wait([asyncio.ensure_future(beside)], timeout=_MOMENT)
        finally:
            is_late = not beside.done()
            beside.cancel()
            with suppress(asyncio.CancelledError):
                await beside
        if is_late:
            self._want(*others)

    async def refresh(self) -> None:
        """Ask for the list of tools; a server that did not announce any need not know the question."""
        if self._client.server_capabilities.tools is not None:
            await self._read("tools")
            return
        try:
            async with asyncio.timeout(_MOMENT):
                await self._read("tools")
        except (TimeoutError, self._sdk.McpFailure) as error:
            if getattr(error, "code", None) == self._sdk.CLOSED:
                raise

    async def ask_something(self) -> None:
        """Ask for a page of a list that the server has, to see whether it is there."""
        kind = next((kind for kind in KINDS if self._has(kind)), None)
        if kind is not None:
            with self._sdk.without_baggage():
                await getattr(self._client, f"list_{kind}")()

    async def notice(self, message: Any) -> None:
        """Look at what a server says without being asked."""
        self._want(*_CHANGES.get(getattr(message, "method", ""), ()))

    async def follow(self) -> None:
        """Ask for lists that have changed, until it is cancelled."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                stale, self._stale = self._stale, set()
                for kind in sorted(stale):
                    await self._try_to_read(kind)
                self._on_change()
                if not self._stale:
                    self._settled.set()
                await asyncio.sleep(_PAUSE)
        finally:
            self._settled.set()

    async def listen(self) -> None:
        """Ask a newer server to say when its lists change, until it is cancelled."""
        if self._client.protocol_version not in self._sdk.modern_versions:
            return
        capabilities = self._client.server_capabilities
        wanted = {
            f"{kind}_list_changed": True
            for kind in ("tools", "resources", "prompts")
            if getattr(getattr(capabilities, kind), "list_changed", None)
        }
        if not wanted:
            return
        try:
            with self._sdk.without_baggage():
                async with self._client.listen(**wanted) as events:
                    async for _ in events:
                        pass  # the session tells `notice` too
        except self._sdk.failures as error:
            log.debug("a server no longer says what changes: %s", self._describe(error))

    @property
    def is_settled(self) -> bool:
        """Whether nothing is being asked for."""
        return self._settled.is_set()

    async def settled(self) -> None:
        """Return when nothing is being asked for."""
        await self._settled.wait()

    def _want(self, *kinds: str) -> None:
        if kinds:
            self._stale.update(kind for kind in kinds if kind == "tools" or self._has(kind))
            self._settled.clear()
            self._wanted.set()

    def _has(self, kind: str) -> bool:
        name = "resources" if kind == "resource_templates" else kind
        return self._client is not None and getattr(self._client.server_capabilities, name) is not None

    async def _try_to_read(self, kind: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._read(kind)
        except TimeoutError:
            log.info("a server did not list its %s within %g s", kind, _PATIENCE)
        except self._sdk.failures as error:
            log.info("a server did not list its %s: %s", kind, self._describe(error))

    async def _read(self, kind: str) -> None:
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            with self._sdk.without_baggage():
                page = await getattr(self._client, f"list_{kind}")(cursor=cursor)
            found.extend(getattr(page, kind))
            cursor = page.next_cursor
            if not cursor or len(found) >= MOST_ITEMS:
                break
        setattr(self, kind, tuple(found[:MOST_ITEMS]))

    def _describe(self, error: BaseException) -> str:
        found = first_error(error)
        return redact_text(str(found) or type(found).__name__, *self._secrets)[:500]
