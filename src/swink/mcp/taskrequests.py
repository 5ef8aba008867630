"""Requests about tasks, which the SDK has types for at most: how they and their answers look on the wire."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Literal, cast

EXTENSION = "io.modelcontextprotocol/tasks"

Resolve = Callable[[dict[str, Any], Any], Awaitable[Any]]
"""Given what a server said of a task that it began, and the session: the result of the call."""


class TaskRequests:
    """The protocol of tasks, older and newer, on sessions of the SDK."""

    def __init__(self) -> None:
        pydantic: Any = import_module("pydantic")
        self._types: Any = import_module("mcp_types")
        self._extensions: Any = import_module("mcp.client.extension")
        self._reply: Any = pydantic.TypeAdapter(dict[str, Any])
        self._request: Any = pydantic.create_model(
            "TaskRequest", __base__=self._types.Request[dict[str, Any], str]
        )
        self._request.name_param = "taskId"
        self._plain_request: Any = self._types.Request[dict[str, Any], str]
        self._started: Any = pydantic.create_model(
            "StartedTask",
            __base__=self._types.Result,
            result_type=(Literal["task"], "task"),
            task_id=(str, ...),
            status=(str, ...),
            status_message=(str | None, None),
            poll_interval_ms=(float | None, None),
        )

    def extension(self, resolve: Resolve) -> Any:
        """What tells newer servers that they may answer with a task; `resolve` waits for it."""

        async def finish(started: Any, context: Any) -> Any:
            return await resolve(started.model_dump(by_alias=True), context.session)

        claim = self._extensions.ResultClaim(result_type="task", model=self._started, resolve=finish)
        made = self._extensions.ClientExtension()
        made.identifier, made.claims = EXTENSION, lambda: (claim,)
        return made

    async def start(
        self, session: Any, tool: str, arguments: dict[str, Any], progress: Any
    ) -> dict[str, Any]:
        """Call a tool of an older server as a task; what it answers."""
        params = {"name": tool, "arguments": arguments, "task": {}}
        request = self._plain_request(method="tools/call", params=params)
        return await session.send_request(request, self._reply, progress_callback=progress)

    async def ask(self, session: Any, method: str, id: str, **more: Any) -> dict[str, Any]:
        """Ask something of a task: `tasks/get`, `tasks/result`, `tasks/cancel`, `tasks/update`."""
        request = self._request(method=method, params={"taskId": id, **more})
        return await session.send_request(request, self._reply)

    async def answer(self, session: Any, id: str, given: dict[str, Any]) -> None:
        """Answer what a task of a newer server asks the person, as far as it can be answered."""
        asked = self._types.InputRequiredResult.model_validate({"inputRequests": given}).input_requests
        context = import_module("mcp.client.session").ClientRequestContext
        responses: dict[str, Any] = {}
        for key, request in cast("dict[str, Any]", asked).items():
            made = context(session=session, request_id=key)
            response = await session.dispatch_input_request(made, request)
            if isinstance(response, self._types.ErrorData):
                raise ValueError(f"its task asks for something that cannot be given: {response.message}")
            responses[key] = response.model_dump(by_alias=True, mode="json", exclude_none=True)
        await self.ask(session, "tasks/update", id, inputResponses=responses)

    def result(self, raw: dict[str, Any]) -> Any:
        """The result of a call as the SDK gives it; raises `ValueError` if it is none."""
        return self._types.CallToolResult.model_validate(raw)


def make_room(item: Any) -> None:
    """Give the answer that a task has begun the content that the SDK wants of every result of a tool."""
    match getattr(getattr(item, "message", None), "result", None):
        case {"task": {"taskId": str()}} as result if "content" not in result:
            result["content"] = []
        case _:
            pass
