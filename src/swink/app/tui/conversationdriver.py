"""ConversationDriver: the only part of the interface that touches the agent. It knows nothing of screens.

send      idle: a run begins          running: it is steered
queue     idle: a run begins          running: it is said when the agent would stop
abort     ends the run, keeping what arrived
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from swink.agent import Agent
from swink.agent.config import PromptContext, SystemPrompt
from swink.agent.eventstream import Subscription
from swink.app.assistant.codereview import ReviewFinding
from swink.app.assistant.fallbacks import FallbackFollower
from swink.app.assistant.ownproviders import own_server
from swink.app.assistant.planning import PlanMode, has_plan, plan_tools
from swink.app.tui.activity import Activity, Clock, Pace, State
from swink.app.tui.owncommands import OwnCommands
from swink.errors import AgentError, MissingKey, MisuseError
from swink.events import AgentEvent, AgentStart, CompactionReport, MessageEnd, MessageUpdate
from swink.events.transcript import Transcript
from swink.events.transcript.blockkinds import Custom, ToolBlock
from swink.messages import AssistantMessage, Input, ModelSpec, ThinkingLevel, UserMessage
from swink.messages.tokens import overhead_tokens
from swink.system.aio import resolve
from swink.system.threads import in_thread
from swink.tools import Tool, ToolSource, as_tools


class ConversationDriver:
    """One conversation: sends what the user says, and tells `changed` that there is something to show."""

    def __init__(self, agent: Agent, *, clock: Clock = time.monotonic) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.clock = clock
        self.activity = Activity()
        self._plan = PlanMode(agent)
        self.has_plan = False  # whether the last run made a plan
        self.findings: tuple[ReviewFinding, ...] = ()
        """What the last review found."""
        self.commands = OwnCommands(self.show_block, self._tell_model, clock)
        self._pace = Pace(clock)
        self._follower = FallbackFollower()
        self._task: asyncio.Task[Any] | None = None
        self._aborting = False  # whether the run is to end: it may not have begun yet
        self._untold: list[UserMessage] = []
        """What commands of the user's wrote while a run went on."""
        self.ended: Callable[[Activity], None] = lambda activity: None
        """Called when a run has ended."""
        self.refused: Callable[[Input], None] = lambda input: None
        """Called with what no run took up, such as a prompt without a key to send."""
        self._subscription: Subscription | None = None
        self.adopt(agent)

    def adopt(self, agent: Agent, transcript: Transcript | None = None) -> None:
        """Go on with another agent, whose transcript is given or made of its messages."""
        planned, subscription = has_plan(agent.messages), agent.subscribe(self._take_event)
        if self._subscription is not None:
            self._subscription()  # the agent may be the same one
        self._subscription = subscription
        planning = self.is_planning
        self.set_planning(False)
        self.agent, self._plan = agent, PlanMode(agent)
        self.set_planning(planning)
        self.has_plan = planning and planned
        self.transcript = transcript or Transcript(clock=self.clock)
        self.activity = Activity()
        self.changed()

    @property
    def is_running(self) -> bool:
        return self._task is not None

    @property
    def queued(self) -> tuple[UserMessage, ...]:
        """What waits to be said: steering first, then follow-ups."""
        waiting = (*self.agent.steering, *self.agent.follow_ups)
        return tuple([message for message in waiting if isinstance(message, UserMessage)])

    def send(self, input: Input) -> None:
        """Say it now: begin a run, or steer the one that goes on."""
        self._say_to(self.agent.steer, input)

    def queue(self, input: Input) -> None:
        """Say it when the agent would stop."""
        self._say_to(self.agent.follow_up, input)

    def _say_to(self, running: Callable[[Input], object], input: Input) -> None:
        if self.is_running:
            running(input)
            self.changed()
        else:
            self._begin_run(input)

    def go_on(self) -> None:
        """Finish what an interruption left, or say what is queued."""
        if not self.is_running:
            self._begin_run(None)

    async def run_with(self, input: Input, tools: Sequence[Tool | ToolSource]) -> None:
        """A run that has these tools alone, to its end; then all are back."""
        agent, before = self.agent, self.agent.tools

        def give_back(task: object) -> None:
            if self.agent is agent:  # plan mode may have come meanwhile
                self._plan.give(before)
            else:
                agent.tools = before

        agent.tools = tools
        task = self._begin_run(input)
        task.add_done_callback(give_back)
        await asyncio.wait({task})

    def take_back(self) -> tuple[UserMessage, ...]:
        """Empty the queues; what was in them."""
        queued = self.queued
        self.agent.clear_queues()
        self.changed()
        return queued

    def take_back_last(self) -> UserMessage | None:
        if not (queued := self.queued):
            return None
        self.agent.unqueue(queued[-1])
        self.changed()
        return queued[-1]

    def abort(self) -> bool:
        """End the run and the user's own commands, keeping what arrived; whether there was any."""
        self._aborting = self.is_running
        self.agent.abort()
        return self.commands.cancel() or self.is_running

    async def wait(self) -> None:
        """Return once no run goes on, and no command."""
        while tasks := {*self.commands.tasks, *([] if self._task is None else [self._task])}:
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
        return self._pace.now if self.is_running else self._pace.last

    @property
    def estimated_context(self) -> int | None:
        """About the tokens of the context, if the provider of the last reply did not count them."""
        messages, prompt = self.agent.messages, self.agent.system_prompt
        last = next((each for each in reversed(messages) if isinstance(each, AssistantMessage)), None)
        if last is None or last.failed or last.usage.total:
            return None
        tools = [offer for offer in self.agent.tools if isinstance(offer, Tool)]
        beside = overhead_tokens(prompt if isinstance(prompt, str) else "", tools)
        return messages.history.most_tokens() + beside

    def switch(self, model: ModelSpec) -> None:
        self.agent.model = model
        self.changed()

    def think(self, level: ThinkingLevel) -> None:
        """Think more, or less, from the next request on."""
        self.agent.thinking_level = level
        self.changed()

    @property
    def is_planning(self) -> bool:
        """Whether the agent only looks."""
        return self._plan.is_on

    def set_planning(self, planning: bool) -> None:
        """Let the agent only look, or give it all its tools back."""
        if planning != self.is_planning:
            self._plan.switch(planning)
            self.changed()

    @property
    def instructed(self) -> SystemPrompt:
        """The system prompt, without what plan mode adds."""
        return self._plan.instructed

    def instruct(self, prompt: SystemPrompt) -> None:
        """Take another system prompt from the next request on, in plan mode with its instruction."""
        self._plan.instruct(prompt)

    async def ask_aside(self, question: str) -> str:
        """Answer a question with all that was said, and leave the conversation as it is."""
        agent = self.agent.copy(messages=self.agent.messages, tools=plan_tools(self.agent.tools))
        agent.clear_queues()
        result = await agent.run(question)
        self.transcript.pay(result.usage, result.cost)
        if result.stop_reason in ("error", "aborted"):
            raise AgentError(result.error or "there was no answer")
        return result.text

    async def system_prompt(self) -> str:
        """The system prompt as the model would get it now."""
        prompt = self.agent.system_prompt
        if isinstance(prompt, str):
            return prompt
        return await resolve(prompt(PromptContext(None, self.agent.state, self.agent.messages)))

    async def tools(self) -> list[Tool]:
        """The tools that the model would get now, those of servers and other sources among them."""
        tools: list[Tool] = []
        for offer in self.agent.tools:
            tools += [offer] if isinstance(offer, Tool) else as_tools(await in_thread(offer.tools))
        return tools

    async def compact(self) -> CompactionReport:
        """Make room in the context now; what is said meanwhile is said afterwards."""
        if self.is_running:
            raise MisuseError("the agent is at work; Esc stops it, then /compact")
        self.activity = Activity("running", since=self.clock())
        task = self._task = asyncio.create_task(self.agent.compact(), name="swink-compact")
        self.changed()
        try:
            return await task
        finally:
            self._task = None
            self.activity = self.activity.ended("idle")
            self._tell_untold()
            if self.queued:
                self.go_on()
            self.changed()

    def _begin_run(self, input: Input | None) -> asyncio.Task[bool]:
        self._aborting = False
        self.activity = Activity("running", since=self.clock())
        task = self._task = asyncio.create_task(self._run(input), name="swink-run")
        task.add_done_callback(self._say_what_came_late)
        self.changed()
        return task

    def _say_what_came_late(self, ended: asyncio.Task[bool]) -> None:
        """What was said while a run was saved, which it did not hear any more, begins the next one."""
        if ended.cancelled() or ended.exception() is not None or self._aborting:
            return
        if ended.result() and self.queued:
            self.go_on()

    async def _run(self, input: Input | None) -> bool:
        """A run to its end; whether the agent had nothing more to do."""
        state: State = "aborted"
        is_finished = False
        before = len(self.agent.messages)
        try:
            result = await self.agent.run(input)
            reason = result.stop_reason
            state = reason if reason in ("aborted", "error") else "idle"
            is_finished = state == "idle" and not (result.stopped or result.pending)
        except AgentError as error:  # raised before the run began, or the session could not be written
            provider = self.agent.model.provider
            can_store = isinstance(error, MissingKey) and own_server(provider) is None
            self.say(f"{error}; #key {provider} stores one" if can_store else str(error), "error")
            state = "error"
            if input is not None and len(self.agent.messages) == before:
                self.refused(input)
        except Exception as error:  # whatever it is: the user is told, and the conversation goes on
            self.say(f"this should not happen: {type(error).__name__}: {error}", "error")
            state = "error"
        finally:
            self._task = None
            self.has_plan = self.is_planning and state == "idle"
            self.activity = self.activity.ended(state)
            self._tell_untold()
            self.ended(self.activity)
            self.changed()
        return is_finished

    def show_block(self, block: ToolBlock) -> None:
        """Show a call that is not the agent's, as it is now."""
        self.transcript.show(block)
        self.changed()

    def _tell_model(self, message: UserMessage) -> None:
        """Add what a command of the user's wrote; it asks for no answer."""
        self._untold.append(message)
        if not self.is_running:  # in the midst of a turn there is no place for it
            self._tell_untold()

    def _tell_untold(self) -> None:
        while self._untold:
            message = self._untold.pop(0)
            self.agent.append_messages(message)
            self.transcript.take(MessageEnd(message))
        self.changed()

    def _take_event(self, event: AgentEvent) -> None:
        self.transcript.take(event)
        self._pace.take_event(event)
        self._follower.take_event(self.agent, event)
        if type(event) is not MessageUpdate or self.activity.retry_at or self.activity.reading:
            self.activity = self.activity.after(event, self.clock())
        if self._aborting and isinstance(event, AgentStart):
            self.agent.abort()
        self.changed()
