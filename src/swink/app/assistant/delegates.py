"""Delegates: who a task is given to, and what it has of the assistant: never more than its caller."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from swink.agent.policy import Policy
from swink.messages import ModelSpec
from swink.models import catalog
from swink.system.threads import in_thread
from swink.tools import Tool, narrowed

if TYPE_CHECKING:
    from swink.app.assistant.agentfiles import AgentFile

Kind = Literal["explore", "task"]
MOST_DEEP = 3
"""Agents that may be inside one another; only those whose file names `task` start others at all."""

PROMPTS: dict[Kind, str] = {
    "explore": "You answer one question about the files of a directory for another agent. Search and read; "
    "you cannot change anything. Report what you found, with places as path:line, and what you "
    "did not find. Be brief: your report is all that the other agent sees.",
    "task": "You do one piece of work in a directory for another agent. Do all of it and nothing else, check "
    "it, and report what you did, what you found and what is left. Be brief: your report is all "
    "that the other agent sees.",
}
_REPORT = "You work for another agent, which sees nothing but your last reply: put your report there."


class Delegate(Struct, frozen=True):
    """Who works on a task: a kind, the file that describes it, and those of the agents around it."""

    kind: Kind
    file: "AgentFile | None" = None
    around: "tuple[AgentFile, ...]" = ()

    @property
    def files(self) -> "tuple[AgentFile, ...]":
        """All that narrow it, the outermost first."""
        return self.around if self.file is None else (*self.around, self.file)

    @property
    def name(self) -> str:
        """What people, the audit log and the caller's model know it by."""
        return self.kind if self.file is None else self.file.name

    @property
    def prompt(self) -> str:
        return PROMPTS[self.kind] if self.file is None else f"{self.file.prompt}\n\n{_REPORT}"

    @property
    def may_delegate(self) -> bool:
        """Whether it starts agents of its own: only if its file says so by name, and not in any depth."""
        named = [file.tools is not None and file.allows("task") for file in self.files]
        return self.file is not None and all(named) and len(named) < MOST_DEEP

    def allowed(self, tools: Sequence[Tool], owners: Mapping[str, str]) -> list[Tool]:
        """Those of some tools that it may use; `owners` are the MCP servers of tools by their names."""
        return narrowed(tools, lambda tool: self._allows(tool, owners.get(tool.name)))

    def _allows(self, tool: Tool, server: str | None) -> bool:
        if not tool.read_only and (self.kind == "explore" or any(file.reads_only for file in self.files)):
            return False
        return all(file.allows(tool.name, server) for file in self.files)

    def narrow(self, terms: Mapping[str, Any]) -> dict[str, Any]:
        """What an agent is made with, without the provider's own tools if it may not use them."""
        if all(file.allows("web_search") for file in self.files):
            return dict(terms)
        return {**terms, "hosted": ()}

    def policies(self) -> tuple[Policy, ...]:
        """Its own limit, beside those of its caller."""
        limit = None if self.file is None else self.file.max_turns
        if limit is None:
            return ()
        from swink.policies import MaxTurns  # most people have no agents of their own

        return (MaxTurns(limit),)

    async def model(self, callers: ModelSpec, tell: Callable[[str], None]) -> ModelSpec:
        """The model that the files ask for, else the caller's; `tell` is told of one that cannot be had."""
        model = callers
        for file in self.files:
            if file.model is None:
                continue
            found = await in_thread(find_model, file.model, model)
            if found is None:
                tell(
                    f"{file.path}: the model {file.model!r} cannot be had here; {file.name} has its caller's"
                )
            model = found or model
        return model


class SubAgent(Struct, frozen=True):
    """A sub-agent as people see it: its task, its state and its cost."""

    call_id: str
    kind: Kind
    task: str
    started: float
    ended: float | None = None
    outcome: str = "running"
    cost: float | None = None
    name: str = ""
    """Of the agent, which is its kind unless a file describes it."""
    is_background: bool = False


def find_model(text: str, callers: ModelSpec) -> ModelSpec | None:
    """A model by "provider:model" with a key, or one of the caller's provider by its id or family.

    None if there is none such. Blocking: the key store is asked.
    """
    from swink.app.assistant.modelchoice import parse_model
    from swink.errors import AgentError

    if text == str(callers):
        return callers
    provider, colon, _ = text.partition(":")
    try:
        if colon and catalog.has_provider(provider):
            return _like(parse_model(text), callers) if _has_key(provider, callers) else None
        found = [spec for spec in catalog.models(callers.provider) if _is_meant(text.lower(), spec.model_id)]
    except (AgentError, OSError):
        return None
    best = max(found, key=lambda spec: _age(text.lower(), spec.model_id), default=None)
    return None if best is None else _like(best, callers)


def _like(model: ModelSpec, callers: ModelSpec) -> ModelSpec:
    return replace(model, thinking_level=callers.thinking_level)


def _has_key(provider: str, callers: ModelSpec) -> bool:
    from swink.models.keys.accounts import ACCOUNTS
    from swink.models.keys.store import key_places

    account = ACCOUNTS.get(provider)
    if provider == callers.provider or account is None or not account.variables:
        return True
    return account.variable is not None or account.key_name in key_places()


def _is_meant(text: str, model_id: str) -> bool:
    """Whether a model has this id, or is a Claude of this family."""
    words = re.split(r"[^a-z0-9]+", model_id.lower())
    return model_id.lower() == text or (text in words and "claude" in words and text != "claude")


def _age(text: str, model_id: str) -> tuple[bool, list[int]]:
    """What the newest model of a family has most of."""
    after = re.search(rf"{re.escape(text)}((?:[-.]\d{{1,2}}(?!\d))+)", model_id.lower())
    version = [int(number) for number in re.findall(r"\d+", after[1])] if after else []
    return model_id.lower() == text, version
