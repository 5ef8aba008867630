"""What an agent consists of: its settings, its conversation, its queues, and how it all began."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from swink.agent.checkpoint import SavedAgent
from swink.agent.config import AgentContext, AgentLoopConfig, Model, PlainSession, SystemPrompt, check_session
from swink.agent.policy import vet_all
from swink.agent.queues import Queues
from swink.agent.session.sessiondiff import conversation_of
from swink.agent.session.sessionrecorder import AgentSession
from swink.errors import InvalidInput
from swink.messages import Message, ModelSpec, ThinkingLevel
from swink.messages.checks import check_list
from swink.messages.codec import copy_state
from swink.messages.history import History, Snapshot
from swink.messages.records import Conversation, OpenTurn
from swink.models import catalog
from swink.tools import Tool, ToolSource, as_offers


class StartingPoint(Struct, frozen=True):
    """What `reset` goes back to."""

    model: ModelSpec
    system_prompt: SystemPrompt
    tools: Sequence[Tool | ToolSource]
    messages: Sequence[Message]
    state: dict[str, Any]


class AgentState:
    """What an agent has while no run is active; a run works on a ledger of its own, and leaves it here."""

    __slots__ = ("config", "context", "error", "history", "open", "overflow", "queues", "session", "start")

    def __init__(
        self,
        config: AgentLoopConfig,
        context: AgentContext,
        queues: Queues,
        messages: Sequence[Message],
        session: PlainSession | None = None,
    ) -> None:
        self.config, self.context, self.queues = config, context, queues
        given = check_list("messages", messages, "messages")
        given = given if session is None else (*session.messages, *given)
        self.history = History(vet_all(config.policies, given) if given else ())
        self.open: OpenTurn | None = None
        """A turn that was left open."""
        self.session: AgentSession | None = None
        if session is not None:
            self.session = AgentSession(session, self.history, config, context, queues)
            if (saved := conversation_of(session)) is not None:
                self.open = saved.open
                queues.extend(saved.steering, saved.follow_up)
        self.error: str | None = None
        """What went wrong in the last run."""
        self.overflow = False
        """Whether the context did not fit when the last run ended."""
        made_with = self.history.snapshot() if self.history.items else ()
        state = copy_state(config.state) if config.state else {}
        self.start = StartingPoint(config.spec, context.system_prompt, context.tools, made_with, state)

    def vetted(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages as the pre-commit policies want them kept, whichever way they enter a history."""
        return vet_all(self.config.policies, check_list("messages", messages, "messages"))

    def replace_history(self, history: History) -> None:
        """Have another history, and no open turn."""
        self.history, self.open = history, None

    def reset(self) -> None:
        """Go back to the beginning; what is queued stays."""
        begun, config = self.start, self.config
        config.model, _ = config.route_to(begun.model)
        self.context.system_prompt, self.context.tools = begun.system_prompt, begun.tools
        self.replace_history(History(begun.messages))
        config.state.clear()
        config.state.update(copy_state(begun.state))
        self.error = None
        self.overflow = False

    def options(self, keywords: Iterable[str], messages: Snapshot) -> dict[str, Any]:
        """The keywords with which another agent is made like this one; most are fields of the settings."""
        config = self.config
        return {name: getattr(config, name) for name in keywords if hasattr(config, name)} | {
            "system_prompt": self.context.system_prompt,
            "tools": tuple(self.context.tools),
            "messages": messages,
            "fallback_models": config.fallbacks,
            "steering_mode": self.queues.steering.mode,
            "follow_up_mode": self.queues.follow_up.mode,
            "state": copy_state(config.state),
        }

    def take_after(self, other: "AgentState", pending: Sequence[Message], changed: set[str]) -> None:
        """Take over what no keyword says: queues, an open turn, whom key and stream function are for."""
        if "stream_fn" not in changed:
            self.config.own_provider = other.config.own_provider
        if "options" not in changed:
            self.config.key_owner = other.config.key_owner
        self.queues.extend([*pending, *other.queues.steering], other.queues.follow_up)
        if "messages" not in changed:
            self.open = self.open or other.open
        kept = {
            name: getattr(other.start, name)
            for name in StartingPoint.__struct_fields__
            if name not in changed
        }
        self.start = replace(self.start, **kept)

    def checkpoint(
        self, messages: Sequence[Message], pending: Sequence[Message], open: OpenTurn | None
    ) -> dict[str, Any]:
        """Everything but code, as plain JSON data."""
        prompt = self.context.system_prompt
        return SavedAgent(
            model=self.config.spec,
            system_prompt=prompt if isinstance(prompt, str) else "",
            messages=list(messages),
            steering=list(self.vetted([*pending, *self.queues.steering])),
            follow_up=list(self.vetted(self.queues.follow_up)),
            state=copy_state(self.config.state),
            open=open,
        ).to_data()


def model_and_context(
    model: Model | None,
    prompt: SystemPrompt | UnsetType,
    tools: Any,
    thinking_level: ThinkingLevel | None,
    session: PlainSession | None,
) -> tuple[ModelSpec, AgentContext]:
    """What an agent begins with: its tools, model and system prompt, the session's where none is given.

    How hard a model thinks is kept too: its name alone does not say.
    """
    saved: Conversation | None = None
    if session is not None:
        check_session(session)
        saved = conversation_of(session)
    kept = None if saved is None else saved.model
    if model is not None:
        spec = catalog.parse_model(model)
        if kept is not None and isinstance(model, str):
            spec = replace(spec, thinking_level=kept.thinking_level)
    elif kept is not None:
        spec = kept
    else:
        hint = "the session has none yet" if saved is not None else 'such as Agent("openai:gpt-5")'
        raise InvalidInput(f"an agent needs a model; {hint}")
    if thinking_level is not None:
        spec = replace(spec, thinking_level=thinking_level)
    if prompt is UNSET:
        prompt = "" if saved is None else saved.system_prompt or ""
    return spec, AgentContext(prompt, (), as_offers(tools))
