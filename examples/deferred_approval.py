"""Approval by somebody who is not there yet: one request of a web service asks, another one answers."""

import asyncio

from swink import Agent, ToolCall, defer, tool
from swink.memory import JsonlStore, Session
from swink.testing import ScriptedModel

store = JsonlStore("conversations")


@tool(requires_approval=True)
async def refund(order: int, amount: float) -> str:
    """Pay money back.

    Args:
        order: The number of the order.
        amount: How much, in dollars.
    """
    return f"paid back ${amount:.2f} for order {order}"


def agent_of(session: Session, model: ScriptedModel) -> Agent:
    return Agent("test:scripted", stream_fn=model, tools=[refund], approve=defer, session=session)


async def ask() -> str:
    """The customer writes; the run ends where it needs somebody's word, and everything is in the session."""
    session = await store.create()
    model = ScriptedModel([ToolCall("call_1", "refund", {"order": 7, "amount": 19.5})])
    result = await agent_of(session, model).run("Order 7 arrived broken, I want my money back.")
    print(f"the run ended: {result.reason}")
    return session.id


async def answer(id: str) -> None:
    """Days later, in another process: somebody looks at what is pending, and says yes."""
    session = await store.open(id)
    for pending in session.pending:
        print(f"{pending.name} {pending.shown}: approved")
    agent = agent_of(session, ScriptedModel(["Your money is on its way."]))
    result = await agent.run(approvals={pending.call_id: True for pending in session.pending})
    print(f"{result.messages[-2].text}\n{result.text}")


async def main() -> None:
    await answer(await ask())


asyncio.run(main())
