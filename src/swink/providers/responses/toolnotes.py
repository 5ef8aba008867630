"""What the provider's own tools did, in a line for people."""

from collections.abc import Mapping
from typing import Any

from swink.messages.jsondata import list_of, object_of, texts_of

_LONGEST = 200


def shown(item: Mapping[str, Any]) -> str:
    """One line about an output item, whatever its shape."""
    return " ".join(_describe(item).split())[:_LONGEST]


def _describe(item: Mapping[str, Any]) -> str:
    match item:
        case {"type": "web_search_call", "action": {"type": "open_page", "url": str() as url}}:
            return f"opened {url}"
        case {"type": "web_search_call", "action": {"type": "find_in_page", "url": str() as url, **more}}:
            return f"looked for {more.get('pattern')} in {url}"
        case {"type": "web_search_call", "action": {**action}}:
            asked = ", ".join(texts_of(action.get("queries"))) or action.get("query") or ""
            return f"web search: {asked}{_number(action.get('sources'), 'source')}"
        case {"type": "file_search_call"}:
            asked = ", ".join(texts_of(item.get("queries")))
            return f"file search: {asked}{_number(item.get('results'), 'result')}"
        case {"type": "code_interpreter_call", "code": str() as code}:
            return f"ran code: {code}"
        case {"type": "image_generation_call"}:
            prompt = item.get("revised_prompt") or item.get("prompt") or ""
            return f"drew an image: {prompt}" if prompt else "drew an image"
        case {"type": "tool_search_call", "arguments": {**asked}}:
            return f"tool search: {', '.join(texts_of(asked.get('paths'))) or asked.get('query') or ''}"
        case {"type": "tool_search_output", "tools": [*found]}:
            names = texts_of([object_of(tool).get("name") for tool in found])
            return f"tools found: {', '.join(names) or 'none'}"
        case {"type": "mcp_list_tools", "server_label": label}:
            return f"{label}: {_number(item.get('tools'), 'tool').lstrip(', ') or 'no tools'}"
        case {"type": "mcp_call", "server_label": label, "name": name}:
            return f"{label}: {name}" + (" failed" if item.get("error") else "")
        case {"type": "mcp_approval_request", "server_label": label, "name": name}:
            return f"{label} asks for approval of {name}"
        case {"type": "custom_tool_call", "name": name}:
            return f"{name}: {item.get('input') or ''}"
        case {"type": "compaction"}:
            return "compacted the context"
        case {"type": str() as kind}:
            return kind.replace("_", " ")
        case _:
            return "an item without a type"


def _number(things: Any, name: str) -> str:
    many = len(list_of(things))
    return f", {many} {name}{'s' if many > 1 else ''}" if many else ""
