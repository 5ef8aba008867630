"""A conversation that survives the program: it is saved turn by turn, opened again, forked and searched."""

import asyncio

from swink import Agent
from swink.memory import JsonlStore
from swink.testing import ScriptedModel

store = JsonlStore("conversations")  # SqliteStore and PostgresStore work alike


async def begin() -> str:
    session = await store.create()
    agent = Agent("test:scripted", stream_fn=ScriptedModel(["Hello Ada."]), session=session)
    await agent.run("My name is Ada, and I like tea.")
    return session.id


async def go_on(id: str) -> None:
    """Another program, another day: the model is asked with the whole conversation."""
    model = ScriptedModel(["Ada."])
    agent = Agent("test:scripted", stream_fn=model, session=await store.open(id))
    result = await agent.run("What is my name?")
    print(f"{len(model.calls[0].messages)} messages sent: {result.text}")


async def main() -> None:
    id = await begin()
    await go_on(id)
    fork = await store.fork(id, at=2)  # the same beginning, and from there another way
    await Agent("test:scripted", stream_fn=ScriptedModel(["Green tea."]), session=fork).run("Which one?")
    for meta in await store.list():
        print(f"{meta.title}: {meta.turns} turns")
    for hit in await store.search("green"):
        print(f"{hit.role}: {hit.snippet}")


asyncio.run(main())
