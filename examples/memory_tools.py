"""Memory across conversations: what the model remembers in one, it recalls in the next, as data."""

from swink import Agent, ToolCall
from swink.memory import Notes, memory_tools
from swink.testing import ScriptedModel

notes = Notes("notes.db")
# Of this project alone; with an embedder, a function from texts to vectors, recall also finds by meaning.
tools = memory_tools(notes, scope="project")


def talk(prompt: str, call: ToolCall, reply: str) -> None:
    """A conversation of its own, in which the model calls one tool."""
    agent = Agent("test:scripted", stream_fn=ScriptedModel([call, reply]), tools=tools)
    result = agent.run_sync(prompt).raise_for_error()
    print(f"> {prompt}\n{result.messages[2].text}\n{result.text}\n")


talk(
    "We deploy with make ship, but not on Fridays.",
    ToolCall("1", "remember", {"text": "Deploy with `make ship`, never on Fridays.", "tags": ["release"]}),
    "I will remember it.",
)
talk(
    "Deploy this, it is Friday.",
    ToolCall("1", "recall", {"query": "how to deploy"}),
    "Not on a Friday. On Monday I run `make ship`.",
)
talk(
    "Remember the password of the database, tiger2.",
    ToolCall("1", "remember", {"text": "The database password is tiger2."}),
    "Secrets are not remembered.",
)
