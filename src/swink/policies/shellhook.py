"""ShellHook: shell hooks of the form that Claude Code made common, as a policy for any agent.

    UserPromptSubmit   pre_turn       each message of the user: blocked, or context added
    PreToolUse         pre_dispatch   each call: denied, asked about, allowed, or with another input
    PostToolUse        post_turn      each call that went well: the model reads what the hook says
    Stop               post_loop      when the agent would stop: blocked, it goes on

A denial counts before a question, a question before a permission; a permission only means that the hook has
no objection, and approvals and other policies are asked all the same. A changed input is judged by the other
hooks and policies again, and is what an approval is asked about.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from swink.agent.policy import (
    ApprovalRequest,
    CallVerdict,
    Inject,
    Policy,
    PolicyContext,
    ReplyVerdict,
    Rewrite,
    RunKey,
    Skip,
    Stop,
    Turn,
    TurnVerdict,
)
from swink.errors import InvalidInput
from swink.messages import AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from swink.policies.hooks.hook import Event, Hook
from swink.policies.hooks.hookanswers import Decision, HookAnswer, join_answers
from swink.policies.hooks.hookgroup import HookedCall, HookGroup

NOBODY = "a hook wants a person to be asked about it, and nobody can be"
MOST_KEPT = 8
"""How often in a row hooks may keep an agent from stopping, as in the other program."""
AskPerson = Callable[[PolicyContext, ToolCall, str], Awaitable[str | None]]
"""Puts a call to a person, with the hook's reason: None for yes, else why not."""


class _RunNotes(Struct):
    """What is remembered of one run, by the ids of its calls."""

    arguments: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """As hooks have seen them last: what runs."""
    changes: dict[str, list[tuple[Hook, Mapping[str, Any]]]] = field(
        default_factory=dict[str, list[tuple[Hook, Mapping[str, Any]]]]
    )
    carried: dict[str, tuple[Decision | None, str]] = field(
        default_factory=dict[str, tuple[Decision | None, str]]
    )
    """What was decided of an input together with its change."""
    allowed: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    contexts: list[str] = field(default_factory=list[str])
    kept: int = 0
    """How often hooks have kept the agent from stopping since the last prompt."""


class ShellHook(Policy):
    """Runs shell hooks for an agent: commands that judge, change or add to what it does.

    Args:
        stop_event: "Stop", or "SubagentStop" for a sub-agent

    >>> agent = Agent(model, policies=[ShellHook([Hook("PreToolUse", "./check.sh", "bash")])])

    `hooks` may be a `HookGroup` that says more of the session. `ask` puts a call to a person where a hook
    wants that; without it the call is refused. `servers` says which MCP server a tool belongs to.
    """

    fail_closed = True

    def __init__(
        self,
        hooks: Sequence[Hook] | HookGroup,
        *,
        ask: AskPerson | None = None,
        servers: Mapping[str, str] | None = None,
        stop_event: Event = "Stop",
    ) -> None:
        if not isinstance(hooks, HookGroup) and not all(isinstance(hook, Hook) for hook in hooks):
            raise InvalidInput("ShellHook(hooks) takes a list of Hook(event, command, matcher)")
        self.group = hooks if isinstance(hooks, HookGroup) else HookGroup(hooks)
        self._ask = ask
        self._servers: Mapping[str, str] = {} if servers is None else servers  # it may fill later
        self._stop_event: Event = stop_event
        self._notes: WeakKeyDictionary[RunKey, _RunNotes] = WeakKeyDictionary()
        self._loose = _RunNotes()  # where a context names no run

    async def pre_turn(self, ctx: PolicyContext) -> TurnVerdict:
        """UserPromptSubmit: tell the hooks what the user has sent since the last turn."""
        if self._stop_event != "Stop":
            return None
        contexts: list[str] = []
        for message in ctx.fresh:
            if not isinstance(message, UserMessage) or any(message is other for other in ctx.injected):
                continue
            self._notes_of(ctx.run).kept = 0
            if not self.group.has("UserPromptSubmit"):
                break
            answer = await self.group.run("UserPromptSubmit", {"prompt": message.text})
            if answer.stop is not None or answer.decision == "deny":
                self.take_back(ctx, message)
                return Stop(answer.stop or f"a hook blocked the prompt: {answer.reason}")
            contexts += filter(None, [answer.context])
        return _inject("UserPromptSubmit", contexts)

    def take_back(self, ctx: PolicyContext, message: UserMessage) -> None:
        """A prompt, `message`, was blocked; it stays in the history unless who owns the agent takes it out
        (`ctx`).
        """

    async def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
        """PreToolUse: put a call to the hooks."""
        notes = self._notes_of(ctx.run)
        if self.group.has("PostToolUse"):
            notes.arguments[call.id] = call.arguments
        if not self.group.has("PreToolUse"):
            return None
        own = [hook for hook, made in notes.changes.get(call.id, ()) if made == call.arguments]
        hooked = HookedCall(call.name, call.arguments, self._servers.get(call.name), own)
        answers = await self.group.ask("PreToolUse", hooked, {"tool_use_id": call.id})
        joined = join_answers(answer for _, answer in answers)
        if joined.context and joined.context not in notes.contexts:
            notes.contexts.append(joined.context)
        if joined.stop is not None:
            return Stop(joined.stop)
        if joined.decision == "deny":
            return Skip(f"tool call not run: a hook refused it: {joined.reason}".removesuffix(": "))
        decision, reason = _stronger(notes.carried.pop(call.id, (None, "")), joined)
        if joined.updated_input is not None and joined.updated_input != call.arguments:
            changing = next(hook for hook, answer in answers if answer.updated_input is joined.updated_input)
            changed = dict(joined.updated_input)
            notes.changes.setdefault(call.id, []).append((changing, changed))
            notes.carried[call.id] = decision, reason
            return Rewrite(changed)
        return await self._settle(ctx, call, decision, reason)

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> ReplyVerdict:
        """PostToolUse: tell the hooks of the calls that went well, and the model what hooks said."""
        notes = self._notes_of(ctx.run)
        contexts, notes.contexts = notes.contexts, []
        verdict = _inject("PreToolUse", contexts)
        results = [*(inner.result for inner in turn.inner_calls), *turn.tool_results]
        done = [result for result in results if not result.is_error]
        if done and self.group.has("PostToolUse"):
            async with asyncio.TaskGroup() as group:
                told = [group.create_task(self._tell_result(notes, result)) for result in done]
            joined = join_answers(task.result() for task in told)
            if joined.stop is not None:
                return Stop(joined.stop)
            said = [joined.reason if joined.decision == "deny" else "", joined.context]
            verdict = _inject("PostToolUse", [*contexts, *filter(None, said)]) or verdict
        for known in (notes.arguments, notes.changes, notes.carried, notes.allowed):
            known.clear()
        return verdict

    async def post_loop(self, ctx: PolicyContext) -> TurnVerdict:
        """Stop: ask the hooks whether the agent is done."""
        if not self.group.has(self._stop_event):
            return None
        notes = self._notes_of(ctx.run)
        replies = [message.text for message in ctx.messages if isinstance(message, AssistantMessage)]
        fields = {"stop_hook_active": notes.kept > 0, "last_assistant_message": "".join(replies[-1:])}
        answer = await self.group.run(self._stop_event, fields)
        if answer.stop is not None or answer.decision != "deny":
            return None
        if notes.kept >= MOST_KEPT:
            self.group.tell(
                f"hooks for {self._stop_event} kept the agent from stopping {MOST_KEPT} times; now it stops"
            )
            return None
        notes.kept += 1
        return _inject(self._stop_event, [answer.reason])

    def allows(self, request: ApprovalRequest) -> bool:
        """Whether a hook has allowed the call of this very `request`, for an approval that takes its word."""
        notes = self._notes_of(request.context.run)
        return request.call_id in notes.allowed and notes.allowed[request.call_id] == request.arguments

    async def _settle(
        self, ctx: PolicyContext, call: ToolCall, decision: Decision | None, reason: str
    ) -> CallVerdict:
        """Ask the person where a hook wants that, and remember what is allowed."""
        if decision == "ask":
            why_not = NOBODY if self._ask is None else await self._ask(ctx, call, reason)
            if why_not is not None:
                return Skip(f"tool call not run: {why_not}")
        if decision is not None:
            self._notes_of(ctx.run).allowed[call.id] = call.arguments
        return None

    async def _tell_result(self, notes: _RunNotes, result: ToolResultMessage) -> HookAnswer:
        arguments = notes.arguments.get(result.tool_call_id)
        if arguments is None:  # it was taken up in another process, where hooks saw it
            return HookAnswer()
        call = HookedCall(result.tool_name, arguments, self._servers.get(result.tool_name))
        fields = {"tool_use_id": result.tool_call_id, "tool_response": _response(result)}
        answers = await self.group.ask("PostToolUse", call, fields)
        return join_answers(answer for _, answer in answers)

    def _notes_of(self, run: RunKey | None) -> _RunNotes:
        return self._loose if run is None else self._notes.setdefault(run, _RunNotes())


def _stronger(carried: tuple[Decision | None, str], joined: HookAnswer) -> tuple[Decision | None, str]:
    """Of two decisions the one that counts."""
    answer = join_answers([HookAnswer(*carried), HookAnswer(joined.decision, joined.reason)])
    return answer.decision, answer.reason


def _response(result: ToolResultMessage) -> dict[str, Any]:
    """A result as hooks get it."""
    if result.tool_name == "bash":
        return {"stdout": result.text, "stderr": "", "interrupted": False, "isImage": False}
    return {"content": result.text, "success": True}


def _inject(event: Event, texts: Sequence[str]) -> Inject | None:
    """What hooks have to say to the model."""
    if not texts:
        return None
    said = "\n".join(texts).replace("</hook", "<\u200b/hook")
    return Inject(f'<hook event="{event}">\n{said}\n</hook>')
