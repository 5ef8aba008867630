"""Conductor: the only part of the interface that touches the agent. It knows nothing of screens.

send      idle: a run begins          running: it is steered
queue     idle: a run begins          running: it is said when the agent would stop
abort     ends the run, keeping what arrived
"""

import asyncio
import os
import time
from collections.abc import Callable
from itertools import count
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swink.agent import Agent
from swink.assistant.planning import has_plan, plan_prompt, plan_tools
from swink.assistant.shell import run_shell
from swink.config import AgentResult, PromptContext, SystemPrompt
from swink.engine.eventstream import Subscription
from swink.engine.waiting import resolve
from swink.errors import AgentError, MissingKey, MisuseError
from swink.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    CompactionReport,
    CustomEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    RetryScheduled,
    TurnStart,
)
from swink.messages import AssistantMessage, Input, ModelSpec, Text, ThinkingLevel, UserMessage
from swink.stream import Delta, ToolCallDelta, ToolCallStart
from swink.tools.sandbox import Sandbox
from swink.transcript import Transcript
from swink.transcript.blocks import Custom, ToolBlock, ToolState

_CHARACTERS = 4.0
"""Of a token, about."""
_OUTPUT = 20_000
"""Characters that are shown of a command while it runs, the last ones."""
_SOON = 0.5
"""Seconds before a rate says something."""
State = Literal["idle", "running", "error", "aborted"]


class Activity(Struct, frozen=True):
    """What the agent is doing; times are on the conductor's clock."""

    state: State = "idle"
    turn: int = 0
    since: float | None = None
    """When the run began."""
    retry_at: float | None = None
    """When the next attempt is made."""
    reading: tuple[int, int] | None = None
    """Tokens of the prompt that the model has read, and all of them."""
    loading: str = ""
    """What has to be there before the model can answer."""


class Conductor:
    """One conversation: sends what the user says, and tells `changed` that there is something to show."""

    def __init__(
        self,
        agent: Agent,
        changed: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.changed = changed
        self.clock = clock
        self.activity = Activity()
        self.is_planning = False
        self.has_plan = False
        """Whether the last run made a plan."""
        self._streamed = _Streamed()
        self._task: asyncio.Task[None] | None = None
        self._aborting = False
        """Whether the run is to end: it may not have begun yet."""
        self._commands: set[asyncio.Task[None]] = set()
        self._untold: list[UserMessage] = []
        """What commands of the user's wrote while a run went on."""
        self._numbers = count(1)
        self.sandbox: Callable[[], Sandbox | None] = lambda: None
        """What the user's own commands run in, where the folder is not trusted."""
        self.ended: Callable[[Activity], None] = lambda activity: None
        """Called when a run has ended."""
        self.refused: Callable[[Input], None] = lambda input: None
        """Called with what no run took up, such as a prompt without a key to send."""
        self._subscription: Subscription | None = None
        self.adopt(agent)

    def adopt(self, agent: Agent, transcript: Transcript | None = None) -> None:
        """Go on with another agent, whose transcript is given or made of its messages."""
        planning = self.is_planning
        if planning:
            self.set_planning(False)
        self.agent = agent
        self.set_planning(planning)
        self.has_plan = planning and has_plan(agent.messages)
        self.transcript = transcript or Transcript(clock=self.clock)
        self.activity = Activity()
        if self._subscription is not None:
            self._subscription()  # the agent may be the same one
        self._subscription = agent.subscribe(self._take)
        self.changed()

    @property
    def is_running(self) -> bool:
        """Whether a run goes on."""
        return self._task is not None

    @property
    def queued(self) -> tuple[UserMessage, ...]:
        """What waits to be said: steering first, then follow-ups."""
        waiting = (*self.agent.steering, *self.agent.follow_ups)
        return tuple([message for message in waiting if isinstance(message, UserMessage)])

    def send(self, input: Input) -> None:
        """Say it now: begin a run, or steer the one that goes on."""
        if self.is_running:
            self.agent.steer(input)
            self.changed()
        else:
            self._begin(input)

    def queue(self, input: Input) -> None:
        """Say it when the agent would stop."""
        if self.is_running:
            self.agent.follow_up(input)
            self.changed()
        else:
            self._begin(input)

    def go_on(self) -> None:
        """Finish what an interruption left, or say what is queued."""
        if not self.is_running:
            self._begin(None)

    def take_back(self) -> tuple[UserMessage, ...]:
        """Empty the queues; what was in them."""
        queued = self.queued
        self.agent.clear_queues()
        self.changed()
        return queued

    def take_back_last(self) -> UserMessage | None:
        """Take what was queued last out of the queue."""
        if not (queued := self.queued):
            return None
        self.agent.unqueue(queued[-1])
        self.changed()
        return queued[-1]

    def abort(self) -> bool:
        """End the run and the user's own commands, keeping what arrived; whether there was any."""
        working = self.is_running or bool(self._commands)
        self._aborting = self.is_running
        self.agent.abort()
        for command in self._commands:
            command.cancel()
        return working

    def run_command(self, command: str, *, shown: bool) -> None:
        """Run a command of the user's own; if `shown`, the model learns what it wrote."""
        task = asyncio.create_task(self._command(command, shown), name="swink-command")
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)

    async def wait(self) -> None:
        """Return once no run goes on, and no command."""
        while tasks := {*self._commands, *([] if self._task is None else [self._task])}:
            await asyncio.wait(tasks)
            await asyncio.sleep(0)  # lets them be discarded

    async def close(self) -> None:
        """End the run and wait until all is saved."""
        self.abort()
        await self.wait()
        await self.agent.aclose()

    def show_loading(self, told: str) -> None:
        """Tell how far a local model is with being loaded."""
        self.activity = replace(self.activity, loading=told)
        self.changed()

    def say(self, text: str, kind: str = "notice") -> None:
        """Show something of the interface's own among the blocks; the model never sees it."""
        self.transcript.note(Custom(kind, text))
        self.changed()

    @property
    def rate(self) -> float | None:
        """Tokens a second of the reply that streams, as far as its length tells, or of the last one."""
        return self._streamed.rate(self.clock()) if self.is_running else self._streamed.last

    def switch(self, model: ModelSpec) -> None:
        """Take another model from the next request on."""
        self.agent.model = model
        self.changed()

    def think(self, level: ThinkingLevel) -> None:
        """Think more, or less, from the next request on."""
        self.agent.thinking_level = level
        self.changed()

    def set_planning(self, planning: bool) -> None:
        """Let the agent only look, or give it all its tools back."""
        if planning == self.is_planning:
            return
        agent = self.agent
        if planning:
            self._executing = agent.tools, agent.system_prompt
            agent.tools, agent.system_prompt = plan_tools(agent.tools), plan_prompt(agent.system_prompt)
        else:
            agent.tools, agent.system_prompt = self._executing
        self.is_planning = planning
        self.changed()

    @property
    def instructed(self) -> SystemPrompt:
        """The system prompt, without what plan mode adds."""
        return self._executing[1] if self.is_planning else self.agent.system_prompt

    def instruct(self, prompt: SystemPrompt) -> None:
        """Take another system prompt from the next request on, in plan mode with its instruction."""
        if self.is_planning:
            self._executing = self._executing[0], prompt
            prompt = plan_prompt(prompt)
        self.agent.system_prompt = prompt

    async def ask_aside(self, question: str) -> str:
        """Answer a question with all that was said, and leave the conversation as it is."""
        agent = self.agent.copy(messages=self.agent.messages, tools=plan_tools(self.agent.tools))
        agent.clear_queues()
        result = await agent.run(question)
        if result.stop_reason in ("error", "aborted"):
            raise AgentError(result.error or "there was no answer")
        return result.text

    async def system_prompt(self) -> str:
        """The system prompt as the model would get it now."""
        prompt = self.agent.system_prompt
        if isinstance(prompt, str):
            return prompt
        return await resolve(prompt(PromptContext(None, self.agent.state, self.agent.messages)))

    async def compact(self) -> CompactionReport:
        """Make room in the context now."""
        if self.is_running:
            raise MisuseError("the agent is at work; Esc stops it, then /compact")
        return await self.agent.compact()

    def _begin(self, input: Input | None) -> None:
        self._aborting = False
        self.activity = Activity("running", since=self.clock())
        self._task = asyncio.create_task(self._run(input), name="swink-run")
        self.changed()

    async def _run(self, input: Input | None) -> None:
        state: State = "aborted"
        before = len(self.agent.messages)
        try:
            state = _state_of(await self.agent.run(input))
        except AgentError as error:  # raised before the run began, or the session could not be written
            here = f"; #key {self.agent.model.provider} stores one" if isinstance(error, MissingKey) else ""
            self.say(f"{error}{here}", "error")
            state = "error"
            if input is not None and len(self.agent.messages) == before:
                self.refused(input)
        except Exception as error:  # whatever it is: the user is told, and the conversation goes on
            self.say(f"this should not happen: {type(error).__name__}: {error}", "error")
            state = "error"
        finally:
            self._task = None
            self.has_plan = self.is_planning and state == "idle"
            self.activity = replace(self.activity, state=state, retry_at=None, reading=None, loading="")
            self._tell_model()
            self.ended(self.activity)
            self.changed()

    async def _command(self, command: str, shown: bool) -> None:
        block = ToolBlock(
            f"!{next(self._numbers)}", "", "!", {"command": command}, state="running", started=self.clock()
        )

        def show(changed: ToolBlock) -> None:
            nonlocal block
            block = changed
            self.transcript.show(changed)
            self.changed()

        def take(text: str) -> None:
            show(replace(block, output=(block.output + text)[-_OUTPUT:]))

        show(block)
        try:
            outcome = await run_shell(command, os.getcwd(), take, sandbox=self.sandbox())
        except AgentError as error:
            show(replace(block, state="failed", content=(Text(str(error)),)))
            return
        except asyncio.CancelledError:
            show(replace(block, state="cancelled", content=(Text(block.output),)))
            return
        state: ToolState = "done" if outcome.is_ok else "failed"
        show(replace(block, state=state, content=(Text(outcome.output),), duration=outcome.seconds))
        if shown:
            self._untold.append(UserMessage(outcome.for_model()))
            self._tell_model()

    def _tell_model(self) -> None:
        """Add what the user's commands wrote; it asks for no answer."""
        if self.is_running:
            return  # when the run has ended: in the midst of a turn there is no place for it
        while self._untold:
            message = self._untold.pop(0)
            self.agent.append_messages(message)
            self.transcript.take(MessageEnd(message))
        self.changed()

    def _take(self, event: AgentEvent) -> None:
        self.transcript.take(event)
        if type(event) is MessageUpdate and not isinstance(event.delta, ToolCallStart):
            self._streamed.take(event.delta, self.clock)
        if type(event) is not MessageUpdate or self.activity.retry_at or self.activity.reading:
            self.activity = self._after(event)
        self.changed()

    def _after(self, event: AgentEvent) -> Activity:
        activity = self.activity
        match event:
            case TurnStart(turn):
                self._streamed.begin()
                return replace(activity, turn=turn)
            case MessageEnd(AssistantMessage(usage=usage)):
                self._streamed.end(usage.output, self.clock())
                return activity
            case RetryScheduled(delay=delay):
                return replace(activity, retry_at=self.clock() + delay)
            case AgentStart() if self._aborting:
                self.agent.abort()
                return activity
            case MessageUpdate() | MessageStart() | AgentStart() | AgentEnd():
                return replace(activity, retry_at=None, reading=None, loading="")
            case CustomEvent("prompt_progress", {"done": int(done), "total": int(total)}):
                return replace(activity, reading=(done, total), loading="")
            case _:
                return activity


class _Streamed:
    """How fast a reply comes."""

    def __init__(self) -> None:
        self.last: float | None = None
        self.begin()

    def begin(self) -> None:
        self._since: float | None = None
        self._characters = 0

    def take(self, delta: Delta, clock: Callable[[], float]) -> None:
        if self._since is None:
            self._since = clock()
        self._characters += len(delta.json if isinstance(delta, ToolCallDelta) else delta.text)

    def rate(self, now: float) -> float | None:
        seconds = 0.0 if self._since is None else now - self._since
        return self._characters / _CHARACTERS / seconds if seconds > _SOON else self.last

    def end(self, tokens: int, now: float) -> None:
        seconds = 0.0 if self._since is None else now - self._since
        self.last = tokens / seconds if seconds > _SOON and tokens else None
        self.begin()


def _state_of(result: AgentResult) -> State:
    match result.stop_reason:
        case "aborted":
            return "aborted"
        case "error":
            return "error"
        case _:
            return "idle"
