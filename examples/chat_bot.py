"""A chat bot: each chat is a session; chats are answered side by side, the messages of one in their order."""

import asyncio
from collections import defaultdict

from swink import Agent, AssistantMessage
from swink.errors import SessionNotFound
from swink.memory import JsonlStore, Session
from swink.stream import LlmContext
from swink.testing import ScriptedModel

UPDATES = [("ada", "I am Ada."), ("bob", "I am Bob."), ("ada", "Who am I?"), ("bob", "Who am I?")]
"""What the service of a messenger would deliver."""


def reply(context: LlmContext) -> str:
    """The model of this example: it knows what was said first."""
    return f"Hello, {context.messages[0].text.split()[-1]}"


class Bot:
    """Answers messages; what was said is in the store, and a bot that starts again goes on with it."""

    def __init__(self, store: JsonlStore) -> None:
        self._store = store
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def answer(self, chat: str, text: str) -> str:
        async with self._turns[chat]:
            agent = Agent(
                "test:scripted", stream_fn=ScriptedModel([reply]), session=await self._session(chat)
            )
            result = await agent.run(text)
        if result.error:
            return "Something went wrong, please try again."
        return result.text

    async def _session(self, chat: str) -> Session:
        try:
            return await self._store.open(chat)
        except SessionNotFound:
            return await self._store.create(id=chat)


async def main() -> None:
    for part in (UPDATES[:2], UPDATES[2:]):  # the program is started twice
        bot = Bot(JsonlStore("chats"))
        answers = await asyncio.gather(*(bot.answer(chat, text) for chat, text in part))
        for (chat, text), said in zip(part, answers, strict=True):
            print(f"{chat}: {text} -> {said}")
    messages = (await JsonlStore("chats").open("ada")).messages
    print(f"{sum(isinstance(message, AssistantMessage) for message in messages)} answers in the chat of ada")


asyncio.run(main())
