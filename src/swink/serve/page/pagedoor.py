"""The door of the page: its files, what may be chosen on it, and a conversation as a document to keep.

GET  /                               the page, with strict headers
GET  /page/{file}                    its style and its scripts
GET  /page/settings                  the model and the mode that a conversation begins with
GET  /conversations/{id}/settings    those of a conversation; POST takes others
GET  /conversations/{id}/export      a document: ?format=html, md or json

Everything else that the page does goes through the native door.
"""

from swink.errors import SessionError
from swink.memory.exports import EXPORT_FORMATS, ExportFormat, export
from swink.serve.hosting import Host
from swink.serve.page.choices import Choosing, PageChoice, PageChoices
from swink.serve.page.entry import Entry
from swink.serve.page.pagefiles import PAGE_HEADERS, page_file
from swink.serve.web import Exchange, Route
from swink.serve.wire import Refused
from swink.system.threads import in_thread

_SETTINGS = "/conversations/{id}/settings"
_DOCUMENTS = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
}


class PageDoor:
    """The routes of the page; `entry` lets a browser in, `choosing` offers models and modes."""

    def __init__(self, host: Host, choosing: Choosing | None = None, entry: Entry | None = None) -> None:
        self._host = host
        self._choosing = choosing
        self._entry = entry

    def failure(self, status: int, message: str) -> object:
        """What is wrong, as the native door says it."""
        return {"error": {"message": message}}

    def routes(self) -> list[Route]:
        """The page and what it needs beside the native door."""
        return [
            Route("GET", "/", self._page, "The page", kind="text/html"),
            Route("GET", "/page/{file}", self._file, "A file of the page", kind="text/plain"),
            Route("GET", "/page/settings", self._defaults, "What one begins with", None, PageChoices),
            Route("GET", _SETTINGS, self._settings, "The model and the mode", None, PageChoices),
            Route("POST", _SETTINGS, self._choose, "Take another model or mode", PageChoice, PageChoices),
            Route("GET", "/conversations/{id}/export", self._export, "A document to keep",
                  query={"format": str}, kind="text/html"),
        ]  # fmt: skip

    async def _page(self, exchange: Exchange) -> None:
        headers = {**PAGE_HEADERS}
        if self._entry is not None and (cookie := self._entry.exchange(exchange.request)) is not None:
            headers["set-cookie"] = cookie
        page = await in_thread(page_file, "index.html")
        await exchange.send(200, page.body, page.kind, headers)

    async def _file(self, exchange: Exchange) -> None:
        found = await in_thread(page_file, exchange.path["file"])
        await exchange.send(200, found.body, found.kind, {**PAGE_HEADERS, "cache-control": "no-cache"})

    async def _defaults(self, exchange: Exchange) -> None:
        found = PageChoices()
        if self._choosing is not None:
            found = await self._choosing.choices(exchange.caller, None)
        await exchange.send_json(200, found)

    async def _settings(self, exchange: Exchange) -> None:
        conversation = await self._host.open(exchange.caller, exchange.path["id"])
        if self._choosing is None:
            found = PageChoices(conversation.meta.model or "")
        else:
            found = await self._choosing.choices(exchange.caller, conversation.id)
        await exchange.send_json(200, found)

    async def _choose(self, exchange: Exchange) -> None:
        chosen: PageChoice = await exchange.json(PageChoice)
        conversation = await self._host.open(exchange.caller, exchange.path["id"])
        if self._choosing is None:
            raise Refused(409, "this application offers no choice of a model or a mode")
        found = await self._choosing.choose(exchange.caller, conversation.id, chosen)
        await exchange.send_json(200, found)

    async def _export(self, exchange: Exchange) -> None:
        format = exchange.query.get("format", "html")
        if format not in EXPORT_FORMATS:
            raise Refused(400, f"format is one of {', '.join(EXPORT_FORMATS)}")
        conversation = await self._host.open(exchange.caller, exchange.path["id"])
        text = await in_thread(self._document, conversation.id, format)
        disposition = f'attachment; filename="conversation.{format}"'
        headers = {**PAGE_HEADERS, "content-disposition": disposition}
        await exchange.send(200, text.encode(), _DOCUMENTS[format], headers)

    def _document(self, id: str, format: ExportFormat) -> str:
        try:
            return export(self._host.store.sync.read(id), format)
        except SessionError as error:
            raise Refused(503, "the conversation cannot be read now; try again") from error
