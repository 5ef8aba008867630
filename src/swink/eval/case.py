"""Cases: what an agent is asked, and what is expected of it."""

from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

Mode = Literal["exact", "in_order", "any_order"]


class ExpectedCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call that is expected; without `arguments` any will do.

    Args:
        tool_name: the tool
    """

    tool_name: str
    arguments: dict[str, Any] | None = None


class ExpectedResponse(Struct, frozen=True, forbid_unknown_fields=True):
    """What the last text must be; everything that is given must hold.

    Args:
        exact: the whole text
        contains: words that must be in it
        regex: an expression that must match somewhere
        json: the data that it must be
        schema: the JSON Schema that it must keep
    """

    exact: str | None = None
    contains: str | tuple[str, ...] | None = None
    regex: str | None = None
    json: Any | UnsetType = UNSET
    schema: dict[str, Any] | None = None


class CaseBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """At what the agent is stopped: dollars, tokens, replies of the model.

    Args:
        max_cost: dollars
        max_input: tokens sent
        max_output: tokens written
        max_turns: replies of the model
    """

    max_cost: float | None = None
    max_input: int | None = None
    max_output: int | None = None
    max_turns: int | None = None


class Evaluator(Struct, frozen=True):
    """A scorer by its name or as `package.module:function`, with its threshold and its options."""

    name: str
    threshold: float | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


class Environment(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run should leave behind.

    `files`: what each file holds, by its path in the workspace: a text, an object such as an expected
    response, or nothing if it must not be there. `state`: keys of the session state and their values.
    """

    files: dict[str, str | ExpectedResponse | None] = field(default_factory=dict[str, Any])
    state: dict[str, Any] = field(default_factory=dict[str, Any])


class SimulatedUser(Struct, frozen=True, forbid_unknown_fields=True):
    """A model that plays the user, until the goal is met or its turns run out.

    Args:
        persona: who the user is
        max_turns: after how many messages it leaves
    """

    goal: str
    persona: str = ""
    max_turns: int = 10
    model: str | None = None
    """None: the agent's own."""


class SimulatedTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool whose results are written down, or made up by a model from its instructions.

    Args:
        name: what the model calls
        description: what the model is told
        parameters: the JSON Schema of its arguments
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    replies: tuple[Any, ...] = ()
    """One after the other; the last one again and again."""
    instructions: str = ""
    model: str | None = None


class PriorMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """What was said in a conversation before the case begins.

    Args:
        role: who said it
        content: the text
    """

    role: Literal["user", "assistant"]
    content: str


class SourceLine(Struct, frozen=True):
    """Where a case stands: a file and a line of it."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Case(Struct, frozen=True, kw_only=True):
    """One thing to try with an agent. A Python program may make them; `load_cases` reads them from a file.

    Args:
        id: its name in results; unique in its suite
        name: a title for people
        expected_trajectory: the calls that are expected
        mode: how the calls are compared with those: "exact", "in_order" or "any_order"
        expected_response: what the last text must be
        budget: at what the agent is stopped
        session_state: the state to begin with
        expected_environment_state: files and state as they must be at the end
        simulated_user: a model that answers the agent
        simulated_tools: tools that do nothing but answer
        metadata: data of your own, which is in the results
        tags: words to choose cases by
        place: file and line that it was read from
    """

    id: str
    name: str = ""
    system_prompt: str | None = None
    """In place of the agent's own."""
    history: tuple[PriorMessage, ...] = ()
    """What user and agent have said before; the agent begins with it."""
    user_messages: tuple[str, ...] = ()
    """Sent one after the other, each when the agent has answered the one before."""
    expected_trajectory: tuple[ExpectedCall, ...] | None = None
    mode: Mode = "in_order"
    expected_response: ExpectedResponse | None = None
    expected_assertion: str | None = None
    """A sentence about the run that a judge decides on."""
    budget: CaseBudget = CaseBudget()
    evaluators: tuple[Evaluator, ...] = ()
    """None: all that apply."""
    initial_files: dict[str, str] = field(default_factory=dict[str, str])
    """Written to the workspace before the run: contents by path."""
    session_state: dict[str, Any] = field(default_factory=dict[str, Any])
    expected_environment_state: Environment | None = None
    simulated_user: SimulatedUser | None = None
    simulated_tools: tuple[SimulatedTool, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    tags: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()
    """Files sent with the first message; paths are taken from the directory of the case file."""
    timeout: float | None = None
    """Seconds."""
    reference: str | None = None
    """The answer that people agreed on, for scorers that compare with it."""
    workspace: Path | None = None
    """The directory of this attempt, which a factory may give its tools; the runner sets it."""
    place: SourceLine | None = None


class Suite(Struct, frozen=True, kw_only=True):
    """The cases of a file, and what makes an agent for them where no factory is given.

    Args:
        name: what it is called in results
        model: the model of its agents
        system_prompt: their prompt
        path: the file that it was read from
    """

    name: str
    cases: tuple[Case, ...]
    model: str | None = None
    system_prompt: str = ""
    tools: tuple[str, ...] = ()
    """As `package.module:function`."""
    agent: str | None = None
    """A factory, as `package.module:function`."""
    judges: tuple[str, ...] = ()
    """Models that judge, where a case does not say; None: the agent's own."""
    cassette: str | None = None
    """Replayed unless a model is named on the command line."""
    path: Path | None = None
    skipped: tuple[str, ...] = ()
    """Rows of a benchmark that are not among the cases: where each stands, and why."""
