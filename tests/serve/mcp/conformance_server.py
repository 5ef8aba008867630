"""The server that the published suite calls, on swink's: its tools and prompts, over HTTP on a port that it prints.

Tools, their questions, progress and refusals are swink's layer. Prompts, resources, completion and logging,
which swink does not offer to clients, are the SDK's own, on the same server and behind the same checks.
"""

import asyncio
import base64
import functools
import inspect
import warnings
from typing import Any

from swink.serve.mcp import ElicitQuestion, McpTool, ServerCall, ToolServer, serve_http

warnings.simplefilter(
    "ignore"
)  # logging and its level are deprecated in the newer edition, and tested in the older
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221"
        "bc330000000049454e44ae426082"
    )
).decode()
SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS: list[McpTool] = []


def form(message: str, required: list[str] | None = None, /, **fields: Any) -> ElicitQuestion:
    names = list(fields) if required is None else required
    return ElicitQuestion(message, {"type": "object", "properties": fields, "required": names})


def served(schema: dict[str, Any] = NOTHING, name: str | None = None) -> Any:
    def take(function: Any) -> Any:
        about = inspect.getdoc(function) or function.__name__
        TOOLS.append(McpTool(name or function.__name__, about, schema, function))
        return function

    return take


def text_field(*names: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": [*names],
    }


def content(call: ServerCall, *blocks: Any) -> Any:
    return call.sdk.types.CallToolResult(content=list(blocks))


def resource_of(sdk: Any, uri: str, kind: str, text: str) -> Any:
    types = sdk.types
    inner = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.EmbeddedResource(type="resource", resource=inner)


def image_of(sdk: Any) -> Any:
    return sdk.types.ImageContent(type="image", data=PIXEL, mime_type="image/png")


@served()
async def test_simple_text(call: ServerCall) -> Any:
    return call.sdk.text_result("This is a simple text response for testing.")


@served()
async def test_image_content(call: ServerCall) -> Any:
    return content(call, image_of(call.sdk))


@served()
async def test_audio_content(call: ServerCall) -> Any:
    return content(call, call.sdk.types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav"))


@served()
async def test_embedded_resource(call: ServerCall) -> Any:
    said = "This is an embedded resource content."
    return content(call, resource_of(call.sdk, "test://embedded-resource", "text/plain", said))


@served()
async def test_multiple_content_types(call: ServerCall) -> Any:
    text = call.sdk.types.TextContent(type="text", text="Multiple content types test:")
    data = '{"test":"data","value":123}'
    resource = resource_of(call.sdk, "test://mixed-content-resource", "application/json", data)
    return content(call, text, image_of(call.sdk), resource)


@served()
async def test_error_handling(call: ServerCall) -> Any:
    return call.sdk.text_result("This tool intentionally returns an error for testing", is_error=True)


@served()
async def test_tool_with_progress(call: ServerCall) -> Any:
    for done in (0, 50, 100):
        await call.report(done, 100)
        await asyncio.sleep(0.05)
    return call.sdk.text_result("done")


@served()
async def test_tool_with_logging(call: ServerCall) -> Any:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await call.context.session.send_log_message("info", said, related_request_id=call.context.request_id)
        await asyncio.sleep(0.05)
    return call.sdk.text_result("done")


served(name="test_logging_tool")(test_tool_with_logging)


@served()
async def test_missing_capability(call: ServerCall) -> Any:
    """Refuses a client that did not declare sampling."""
    raise call.sdk.failure(-32021, "sampling is needed", {"requiredCapabilities": {"sampling": {}}})


async def tell(call: ServerCall, answers: Any) -> Any:
    said = "; ".join(f"action={one.action}, content={dict(one.values)}" for one in answers.values())
    return call.sdk.text_result(f"Elicitation completed: {said}")


@served(text_field("message"))
async def test_elicitation(call: ServerCall) -> Any:
    fields = {name: {"type": "string", "description": name} for name in ("username", "email")}
    return await call.ask({"user": form(call.arguments["message"], **fields)}, tell)


@served()
async def test_streaming_elicitation(call: ServerCall) -> Any:
    return await call.ask({"user": form("Please confirm", ok={"type": "boolean"})}, tell)


@served()
async def test_elicitation_sep1034_defaults(call: ServerCall) -> Any:
    question = form(
        "Please review",
        [],
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await call.ask({"user": question}, tell)


@served()
async def test_elicitation_sep1330_enums(call: ServerCall) -> Any:
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": t} for n, t in enumerate(("First", "Second", "Third"), 1)]
    legacy = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    question = form(
        "Please choose",
        [],
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", **legacy},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return await call.ask({"user": question}, tell)


ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}


@served(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": ADDRESS},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
)
async def json_schema_2020_12_tool(call: ServerCall) -> Any:
    return call.sdk.text_result("fine")


@served(
    {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
        "required": ["region"],
    }
)
async def test_custom_headers(call: ServerCall) -> Any:
    return call.sdk.text_result(f"region {call.arguments['region']}")


@served()
async def test_input_required_result_elicitation(call: ServerCall) -> Any:
    async def greet(call: ServerCall, answers: Any) -> Any:
        return call.sdk.text_result(f"Hello, {answers['user_name'].values.get('name')}!")

    early = (call.params.input_responses or {}).get("user_name")  # an answer that came with the call
    if call.params.request_state is None and getattr(early, "action", None) == "accept":
        return call.sdk.text_result(f"Hello, {(early.content or {}).get('name')}!")
    return await call.ask({"user_name": form("What is your name?", name={"type": "string"})}, greet)


@served()
async def test_input_required_result_request_state(call: ServerCall) -> Any:
    async def confirm(call: ServerCall, answers: Any) -> Any:
        return call.sdk.text_result("state-ok")

    return await call.ask({"confirm": form("Please confirm", ok={"type": "boolean"})}, confirm)


served(name="test_input_required_result_tampered_state")(test_input_required_result_request_state)


@served()
async def test_input_required_result_multi_round(call: ServerCall) -> Any:
    async def second(call: ServerCall, answers: Any) -> Any:
        color = form("Step 2: What is your favorite color?", color={"type": "string"})
        return await call.ask({"step2": color}, tell)

    return await call.ask({"step1": form("Step 1: What is your name?", name={"type": "string"})}, second)


@served()
async def test_input_required_result_capabilities(call: ServerCall) -> Any:
    """Asks only a client that says that it can."""
    if not call.can_ask:
        return call.sdk.text_result("nobody can be asked")
    return await call.ask({"user": form("Please confirm", ok={"type": "boolean"})}, tell)


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_prompts(server: ToolServer, context: Any, params: Any) -> Any:
    types = server.sdk.types
    found = [
        types.Prompt(
            name=name,
            description=name,
            arguments=[types.PromptArgument(name=one, description=one, required=True) for one in arguments],
        )
        for name, arguments in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=found)


async def get_prompt(server: ToolServer, context: Any, params: Any) -> Any:
    types, given = server.sdk.types, params.arguments or {}

    def says(*blocks: Any) -> Any:
        messages = [types.PromptMessage(role="user", content=block) for block in blocks]
        return types.GetPromptResult(messages=messages)

    def text(said: str) -> Any:
        return types.TextContent(type="text", text=said)

    async def ask(call: ServerCall) -> Any:
        async def use(call: ServerCall, answers: Any) -> Any:
            return says(text(f"The context is {answers['user_context'].values.get('context')}"))

        context_field = form("What context should the prompt use?", context={"type": "string"})
        return await call.ask({"user_context": context_field}, use)

    match params.name:
        case "test_simple_prompt":
            return says(text("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            said = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
            return says(text(said))
        case "test_prompt_with_embedded_resource":
            inner = resource_of(server.sdk, given["resourceUri"], "text/plain", "Embedded resource content.")
            return says(inner, text("Please process the embedded resource above."))
        case "test_prompt_with_image":
            return says(image_of(server.sdk), text("Please analyze the image above."))
        case "test_input_required_result_prompt":
            return await server.answer(context, params, ask)
        case name:
            raise server.sdk.invalid(f"there is no prompt {name}")


async def list_resources(server: ToolServer, context: Any, params: Any) -> Any:
    types = server.sdk.types
    kinds = {"test://static-text": "text/plain", "test://static-binary": "image/png"}
    found = [types.Resource(uri=uri, name=uri, mime_type=kind) for uri, kind in kinds.items()]
    watched = types.Resource(uri="test://watched-resource", name="watched", mime_type="text/plain")
    return types.ListResourcesResult(resources=[*found, watched])


async def list_templates(server: ToolServer, context: Any, params: Any) -> Any:
    types = server.sdk.types
    one = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[one])


async def read_resource(server: ToolServer, context: Any, params: Any) -> Any:
    types, uri = server.sdk.types, str(params.uri)
    match uri.removeprefix("test://").split("/"):
        case ["static-text"] | ["watched-resource"]:
            said = "This is the content of the static text resource."
            found = types.TextResourceContents(uri=uri, mime_type="text/plain", text=said)
        case ["static-binary"]:
            found = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
        case ["template", id, "data"]:
            said = f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'
            found = types.TextResourceContents(uri=uri, mime_type="application/json", text=said)
        case _:
            raise server.sdk.failure(types.INVALID_PARAMS, f"there is no resource {uri}", {"uri": uri})
    return types.ReadResourceResult(contents=[found])


async def complete(server: ToolServer, context: Any, params: Any) -> Any:
    types = server.sdk.types
    return types.CompleteResult(
        completion=types.Completion(values=["paris", "park"], total=2, has_more=False)
    )


async def accept(server: ToolServer, context: Any, params: Any) -> Any:
    return server.sdk.types.EmptyResult()


async def main() -> None:
    server = await ToolServer.open("conformance", TOOLS)
    types = server.sdk.types
    for method, kind, function in (
        ("prompts/list", types.PaginatedRequestParams, list_prompts),
        ("prompts/get", types.GetPromptRequestParams, get_prompt),
        ("resources/list", types.PaginatedRequestParams, list_resources),
        ("resources/templates/list", types.PaginatedRequestParams, list_templates),
        ("resources/read", types.ReadResourceRequestParams, read_resource),
        ("resources/subscribe", types.SubscribeRequestParams, accept),
        ("resources/unsubscribe", types.UnsubscribeRequestParams, accept),
        ("completion/complete", types.CompleteRequestParams, complete),
        ("logging/setLevel", types.SetLevelRequestParams, accept),
    ):
        server.server.add_request_handler(method, kind, functools.partial(function, server))
    async with serve_http(server) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
