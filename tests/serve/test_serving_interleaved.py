"""Clients that come, leave, steer and abort in any order: the conversation stays sound, and no event is lost."""

import asyncio
from contextlib import aclosing

from hypothesis import given, settings
from hypothesis import strategies as st

from swink import Agent
from swink.memory import MemoryStore
from swink.serve.hosting import Caller, Host, ServeLimits
from swink.serve.web import Refused
from swink.testing import ScriptedModel, history_problems

ANNA = Caller("anna")
STEPS = st.lists(st.sampled_from(["read", "leave", "steer", "follow", "abort", "wait"]), max_size=14)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_any_order_of_reading_leaving_steering_and_aborting_gives_one_sound_conversation(steps: list[str]):
    asyncio.run(play(steps))


async def play(steps: list[str]) -> None:
    model = ScriptedModel([["a", "b", "c"]] * 40)
    host = Host(lambda request: Agent("test:m", stream_fn=model), MemoryStore(), ServeLimits())
    conversation = await host.create(ANNA)
    run = await conversation.start("Hello")
    seen: list[tuple[int, object]] = []
    for number, step in enumerate(steps):
        try:
            match step:
                case "read" | "leave":
                    most = len(seen) + (3 if step == "read" else 1)
                    async with aclosing(run.events(seen[-1][0] if seen else 0)) as events:
                        async for event in events:
                            seen.append((event.id, event.event))
                            if len(seen) >= most:
                                break
                case "steer":
                    run.steer(f"steer {number}")
                case "follow":
                    run.follow_up(f"follow {number}")
                case "abort":
                    run.abort()
                case _:
                    await asyncio.sleep(0)
        except Refused as refused:
            assert refused.status == 409  # noqa: PT017 - it has ended
    async with aclosing(run.events(seen[-1][0] if seen else 0)) as events:
        seen += [(event.id, event.event) async for event in events]
    assert [number for number, _ in seen] == list(range(1, len(seen) + 1))
    assert seen == [(event.id, event.event) async for event in run.events()]
    assert history_problems((await host.open(ANNA, conversation.id)).messages) == []
    await host.aclose()
