"""A queue worker: jobs are done by agents, several at a time, and a job whose worker died is taken up again.

The session of a job has the job's id, so a job that is delivered twice goes on where it was, and a claim on
it keeps two workers from doing it at once.
"""

import asyncio
from contextlib import suppress

from swink import Agent, ToolCall, tool
from swink.errors import SessionBusy, SessionConflict
from swink.memory import Session, SqliteStore
from swink.testing import ScriptedModel

store = SqliteStore("jobs.db")


@tool
async def send(to: str) -> str:
    """Send the report."""
    print(f"sent to {to}", flush=True)
    return "sent"


def agent_of(session: Session, customer: str) -> Agent:
    """The agent of a job; its script goes on after the turns that the session has."""
    replies = [ToolCall("call_1", "send", {"to": customer}), f"The report of {customer} is on its way."]
    done = sum(message.role == "assistant" for message in session.messages)
    return Agent("test:scripted", stream_fn=ScriptedModel(replies[done:]), tools=[send], session=session)


async def do(job: str, customer: str) -> None:
    with suppress(SessionConflict):  # delivered before
        await store.create(id=job)
    try:
        async with store.claim(job) as session:
            agent = agent_of(session, customer)
            if not session.messages:
                await agent.run(f"Send {customer} the report.")
            elif agent.messages[-1].role != "assistant":
                await agent.run()  # go on where the worker before stopped
            print(f"{job}: {agent.messages[-1].text}", flush=True)
    except SessionBusy:
        print(f"{job}: another worker does it")


async def work(queue: asyncio.Queue[tuple[str, str]]) -> None:
    while True:
        job, customer = await queue.get()
        try:
            await do(job, customer)
        finally:
            queue.task_done()


async def main() -> None:
    queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    for number, customer in enumerate(["Ada", "Bob", "Cyd"]):
        queue.put_nowait((f"job-{number}", customer))
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(work(queue)) for _ in range(2)]
        await queue.join()
        queue.put_nowait(("job-0", "Ada"))  # delivered twice: nothing is sent again
        await queue.join()
        for worker in workers:
            worker.cancel()


asyncio.run(main())
