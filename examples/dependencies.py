"""Dependencies: each run gets its own objects, which tools and the system prompt use and no model sees."""

from dataclasses import dataclass

from swink import Agent, ToolCall, ToolContext, ToolError, tool
from swink.agent.config import PromptContext
from swink.testing import ScriptedModel


@dataclass
class Customer:
    name: str
    orders: dict[int, str]


@tool(read_only=True)
async def order_status(number: int, ctx: ToolContext[Customer]) -> str:
    """Status of an order.

    Args:
        number: The number of the order.
    """
    if number not in ctx.deps.orders:
        raise ToolError(f"there is no order {number}; the orders are {list(ctx.deps.orders)}")
    return ctx.deps.orders[number]


def instructions(ctx: PromptContext[Customer]) -> str:
    """The system prompt, written at the start of each run."""
    return f"You work in a shop and talk to {ctx.deps.name}."


script = [
    ToolCall("1", "order_status", {"number": 7}),
    "It was sent today.",
    ToolCall("2", "order_status", {"number": 7}),
    "You have no order 7.",
]
model = ScriptedModel(script)
shop = Agent(
    "test:scripted", stream_fn=model, system_prompt=instructions, tools=[order_status], deps_type=Customer
)

for customer in (Customer("Ada", {7: "sent today"}), Customer("Grace", {8: "packed"})):
    agent = shop.copy()  # a conversation of its own
    answer = agent.run_sync("Where is order 7?", deps=customer).raise_for_error()
    print(f"{customer.name}: {answer.text} ({answer.messages[2].text})")
print(model.calls[-1].system_prompt)
