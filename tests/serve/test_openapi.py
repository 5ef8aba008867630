"""The description of a served agent at /openapi.json: it is there, whole, and what the server really does."""

from tests.serve.served import served

from swink.serve.hosting import Host
from swink.serve.native import NativeDoor


async def test_the_description_names_every_route_of_the_native_door():
    async with served([]) as client:
        answer = await client.get("/openapi.json")
        host: Host = client.app.host
    assert answer.status_code == 200
    paths = answer.json()["paths"]
    routes = [(route.path, route.method.lower(), route.status) for route in NativeDoor(host).routes()]
    assert len(routes) > 10
    for path, method, status in routes:
        assert str(status) in paths[path][method]["responses"]
        assert {"400", "404", "503"} < paths[path][method]["responses"].keys()


async def test_a_path_with_a_line_break_is_answered_like_any_other():
    async with served([]) as client:
        answer = await client.get("/conversations/a%0Ab/messages")
    assert answer.status_code == 404
    assert answer.json() == {"error": {"message": "there is no such conversation"}}
