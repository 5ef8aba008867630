"""Fallbacks: the models that are asked in turn when the first fails for good.

fallbacks = ["…"] in config.toml    for every conversation
/model fallback NAME…               for this one; without a name it shows them, `none` takes them away

A conversation stays with the fallback that answered: to try the first again at every turn takes minutes.
"""

from contextlib import suppress

from msgspec.structs import replace

from swink.agent import Agent
from swink.app.assistant.modelchoice import parse_model
from swink.app.assistant.settings import UserSettings, line_of
from swink.errors import UnknownModel
from swink.events import AgentEvent, MessageEnd, ModelFallback
from swink.messages import AssistantMessage, ModelSpec, ThinkingLevel

_WORD = "fallback"


def read_fallbacks(settings: UserSettings, thinking: ThinkingLevel) -> tuple[list[ModelSpec], list[str]]:
    """The models that the settings name, and a line for each that there is not."""
    found: list[ModelSpec] = []
    problems: list[str] = []
    for name in settings.fallbacks:
        try:
            found.append(replace(parse_model(name), thinking_level=thinking))
        except UnknownModel as error:
            problems.append(f"{settings.path}, line {_line_of(settings, name)}: fallbacks: {error}")
    return found, problems


class FallbackFollower:
    """Takes the events of an agent, and lets it go on with a fallback that has answered."""

    def __init__(self) -> None:
        self._failed: str | None = None
        """The model that was chosen and failed in this turn."""

    def take_event(self, agent: Agent, event: AgentEvent) -> None:
        """Change the model, unless a person has meanwhile; the one before is the last resort from then on."""
        match event:
            case ModelFallback(failed):
                self._failed = self._failed or failed
            case MessageEnd(AssistantMessage() as reply):
                if self._failed == str(agent.model) and not reply.failed:
                    _go_on_with(agent, f"{reply.provider}:{reply.model}")
                self._failed = None
            case _:
                pass


def obey_fallback(agent: Agent, rest: str) -> str | None:
    """What `/model fallback …` did, to be told; None if that is not what was typed."""
    words = rest.replace(",", " ").split()
    if words[:1] != [_WORD]:
        return None
    if names := words[1:]:
        models = [] if names == ["none"] else [parse_model(name) for name in names]
        agent.fallback_models = [replace(spec, thinking_level=agent.thinking_level) for spec in models]
    told = ", then ".join(map(str, _specs(agent)))
    if not told:
        return "no model is asked if this one fails; /model fallback NAME sets one"
    return f"if {agent.model} fails for good: {told}"


def _go_on_with(agent: Agent, name: str) -> None:
    before, others = agent.model, _specs(agent)
    for spec in others:
        if str(spec) == name:
            agent.model = replace(spec, thinking_level=before.thinking_level)
            if str(before) not in map(str, others):
                agent.fallback_models = [*agent.fallback_models, before]
            return


def _specs(agent: Agent) -> list[ModelSpec]:
    return [spec for spec in agent.fallback_models if isinstance(spec, ModelSpec)]


def _line_of(settings: UserSettings, name: str) -> int:
    """The line of config.toml that names a fallback."""
    lines: list[str] = []
    with suppress(OSError, UnicodeDecodeError):
        lines = settings.path.read_text("utf-8").split("\n")
    first = line_of("\n".join(lines), "fallbacks")
    for number, line in enumerate(lines[first - 1 :], first):
        if f'"{name}"' in line or f"'{name}'" in line:
            return number
    return first
