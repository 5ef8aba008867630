"""OpenAPI: the description of an application, made of its routes and of the types that they name."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from swink.serve.web.route import Route

_NAMED = re.compile(r"\{(\w+)\}")
_ALWAYS = {
    400: "the request cannot be understood",
    401: "nobody let this caller in",
    403: "the request comes from a place that is not let in",
    404: "there is nothing at this path, or it belongs to another caller",
    429: "too many runs are under way",
    503: "the server is shutting down, or cannot store",
}
_OF_BODIES = {
    408: "the body did not arrive in time",
    413: "the body is too large",
    415: "the body is not said to be JSON",
    422: "the body has another form",
}
_MEANINGS = {
    **_ALWAYS,
    **_OF_BODIES,
    409: "the conversation cannot do that now",
    410: "the events asked for are gone",
    500: "the application's own code failed; the server's log says why",
}
_FAILURE = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}}
    },
}


def describe(routes: Iterable[Route], title: str, version: str) -> dict[str, Any]:
    """The OpenAPI document of these routes."""
    listed = list(routes)
    types = [kind for route in listed for kind in (route.request, route.response) if kind is not None]
    schemas, parts = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    found = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        request = None if route.request is None else next(found)
        response = None if route.response is None else next(found)
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, request, response)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": {"Failure": _FAILURE, **parts}},
    }


def _operation(
    route: Route, request: Mapping[str, Any] | None, response: Mapping[str, Any] | None
) -> dict[str, Any]:
    names = _NAMED.findall(route.path)
    words = [word for word in re.split(r"\W+", route.path) if word and word not in names]
    operation: dict[str, Any] = {
        "operationId": "_".join([route.method.lower(), *words, *(["of", *names] if names else [])]),
        "summary": route.summary,
        "parameters": [
            *[_parameter(name, "path", str) for name in names],
            *[_parameter(name, "query", kind) for name, kind in route.query.items()],
            *[_parameter(name, "header", kind) for name, kind in route.headers.items()],
        ],
        "responses": _responses(route, response),
    }
    if request is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": request}}}
    return operation


def _parameter(name: str, place: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": msgspec.json.schema(kind)}


def _responses(route: Route, response: Mapping[str, Any] | None) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "done"}
    if response is not None:
        done["content"] = {route.kind: {"schema": response}}
    elif route.status != 204:
        done["content"] = {route.kind: {"schema": {}}}
    statuses = {*_ALWAYS, *route.statuses, *(_OF_BODIES if route.method == "POST" else ())}
    failure = {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
    return {
        str(route.status): done,
        **{
            str(status): {"description": _MEANINGS[status], "content": failure} for status in sorted(statuses)
        },
    }
