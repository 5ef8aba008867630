"""The shell hooks of a conversation: those of the user and of a trusted project, and who they speak to.

    UserPromptSubmit, PreToolUse, PostToolUse, Stop                  a policy of the agent
    PreToolUse, PostToolUse, SubagentStop                            a policy of its sub-agents
    PermissionRequest, Notification                                  before a person is asked about a call
    SessionStart, PreCompact, SessionEnd                             see `sessionevents`

A hook of a project whose command, or a file that it names, is not as it was when the project was trusted is
not run; where it would judge a call, the call is refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from swink.agent import Agent
from swink.agent.policy import ApprovalRequest, Policy, PolicyContext
from swink.app.assistant.brought import hook_digests
from swink.app.assistant.hookfiles import HOOK_FILES, make_hooks, read_own_hooks
from swink.app.assistant.hookwatch import HookFileWatch, LateHooks
from swink.app.assistant.person import Once, Question, Reconsider, Refuse, Reply
from swink.app.assistant.sessionevents import SessionEvents
from swink.app.assistant.settings import UserSettings, load_settings
from swink.app.assistant.trust import Trust
from swink.errors import MisuseError, SessionError
from swink.memory.session import Session
from swink.messages import Message, ToolCall, UserMessage
from swink.messages.redact.shown import show_arguments
from swink.system.shorten import clip_list
from swink.system.threads import in_thread

if TYPE_CHECKING:
    from swink.app.assistant.hookpolicies import TrustedHooks
    from swink.app.assistant.hooktranscript import HookTranscript
    from swink.app.assistant.permissions import Permissions
    from swink.policies.hooks import Hook
    from swink.policies.shellhook import ShellHook

TITLE = "A hook wants you to decide about this call"
_AS_BEFORE = "those that you trusted go on as they were; swink trust shows and allows the others"
_MODES = {"off": "bypassPermissions", "edits": "acceptEdits", "sandboxed": "acceptEdits", "deny": "dontAsk"}


class SessionHooks:
    """The hooks of one environment; without any it loads nothing."""

    def __init__(self, directory: Path, tell: Callable[[str], None]) -> None:
        self.directory = directory
        self.group: TrustedHooks | None = None
        self.agent: Callable[[], Agent | None] = lambda: None
        self.servers: Mapping[str, str] = {}
        self.blocked: Callable[[UserMessage], None] = lambda message: None
        """Called with a prompt that a hook blocked; the conversation does not have it any more."""
        self._tell = tell
        self._permissions: Permissions | None = None
        self.ask_trust: Callable[[Trust], Awaitable[Trust]] | None = None
        """Asks the person about a project that has changed; None: nobody can be asked."""
        self.retrust: Callable[[Trust], Awaitable[None]] = _ignore
        """Called with what the person has answered."""
        self._policies: tuple[ShellHook | None, ShellHook | None] = (None, None)
        self._trust, self._settings = Trust(directory, "unasked"), UserSettings(directory)
        self._watch: HookFileWatch | None = None
        self._watched: tuple[Path, Path] | None = None
        self._looking = asyncio.Lock()
        self.session: Session | None = None
        """What keeps the conversation."""
        self._transcript: HookTranscript | None = None
        self.events = SessionEvents(lambda: self.group, lambda: self.agent(), self.look)
        """The life of the session, as hooks hear of it."""
        self._telling: set[asyncio.Task[Any]] = set()

    def make_policies(
        self, trust: Trust, settings: UserSettings, session: Session | None = None
    ) -> tuple[Sequence[Policy], Sequence[Policy]]:
        """The policies of the agent and of its sub-agents."""
        self.session = session
        self.events.source = "resume" if session is not None and session.messages else "startup"
        self.follow(settings, trust)  # a prompt may be sent before the environment is open
        own = LateHooks(self.look, lambda: self._policies[0], for_sub_agents=False)
        below = LateHooks(self.look, lambda: self._policies[1], for_sub_agents=True)
        return (own,), (below,)

    def follow(self, settings: UserSettings, trust: Trust) -> None:
        """Take the hooks of the settings and of what a trusted project brings along."""
        self._trust, self._settings = trust, settings
        if self._watch is None or self._watched != (trust.project, settings.path):
            self._watched = trust.project, settings.path
            self._watch = HookFileWatch([settings.path, *(trust.project / name for name in HOOK_FILES)])
        entries, problems = read_own_hooks(settings.hooks)
        entries += trust.brought.hooks if trust.is_trusted else ()
        if self.group is None and not entries and not problems:
            return
        hooks, wrong = make_hooks(entries)
        for problem in (*problems, *wrong):
            self._tell(problem)
        group = self._make_group(trust.project)
        group.hooks, group.programs = tuple(hooks), dict(trust.brought.hook_programs)

    async def look(self) -> None:
        """Take up what has changed in the files of hooks since they were read.

        Those of a project that were trusted hold until others are.
        """
        if self._watch is None or not self._watch.has_changed:
            return
        async with self._looking:
            state = self._watch.state()
            if self._watch.has_changed:
                await self._take_changes()
                self._watch.accept(state)

    async def _take_changes(self) -> None:
        from swink.app.assistant.trust import TrustError, look_up

        before, settings = self._trust, self._settings
        try:
            found = await in_thread(load_settings)
            trust = await in_thread(look_up, self.directory)
        except (MisuseError, TrustError) as error:
            self._tell(f"{error}; hooks stay as they are")
            return
        if found.path == settings.path:
            settings = replace(settings, hooks=found.hooks)
        if not before.is_trusted or hook_digests(trust.brought) == hook_digests(before.brought):
            self.follow(settings, before)
        elif trust.is_trusted:
            self.follow(settings, trust)
        elif trust.standing == "changed" and self.ask_trust is not None:
            self.follow(settings, before)
            if (answer := await self.ask_trust(trust)) is not before:
                await self.retrust(answer)
        else:
            self.follow(settings, before)
            told = "; ".join(clip_list(trust.changes, 3)) or f"{trust.project} is not trusted any more"
            self._tell(f"hooks of {trust.project} have changed and are not used so ({told}): {_AS_BEFORE}")

    def _make_group(self, project: Path) -> "TrustedHooks":
        from swink.app.assistant.hookpolicies import TrustedHooks

        if self.group is None:
            from swink.app.assistant.hookpolicies import MainHooks, SubAgentHooks

            group = self.group = TrustedHooks(self.directory, project, self._facts, self._tell)
            terms: Any = {"ask": self._ask_person, "servers": self.servers}
            own, below = MainHooks(group, **terms), SubAgentHooks(group, **terms)
            own.events, own.erase, self._policies = self.events, self._erase, (own, below)
        return self.group

    def attend(self, permissions: "Permissions") -> None:
        """Speak to the person, and for them, through these permissions."""
        self._permissions = permissions
        permissions.vouched = self._vouches
        permissions.ask_first(self._before_question)

    def go_on_with(
        self, session: Session | None, how: Literal["clear", "resume"], said: Sequence[Message]
    ) -> None:
        """Another conversation has taken the place of this one, in which this was said."""
        before, transcript, self._transcript = self.session, self._transcript, None
        self.session = session
        self.events.change(lambda: self._facts_of(before, transcript, said), how, how)

    async def aclose(self) -> None:
        """Tell the hooks that the session ends."""
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)
        await self.events.aclose()

    async def _facts(self) -> dict[str, Any]:
        """What hooks are told of the session."""
        agent = self.agent()
        if self.session is not None and self._transcript is None and agent is not None:
            self._transcript = self._open_transcript(self.session)
        word = "smart" if self._permissions is None else self._permissions.word
        said = () if agent is None else agent.messages
        told = await self._facts_of(self.session, self._transcript, said)
        return {**told, "permission_mode": _MODES.get(word, "default")}

    async def _facts_of(
        self, session: Session | None, transcript: "HookTranscript | None", messages: Sequence[Message]
    ) -> dict[str, Any]:
        """The name of a session, and where it can be read, written up to now; empty if it is not kept."""
        path = ""
        if transcript is not None:
            try:
                path = await transcript.follow(_answered(messages))
            except (OSError, SessionError) as error:
                self._tell(f"hooks have no transcript to read: {error}")
        return {"session_id": "" if session is None else session.id, "transcript_path": path}

    def _open_transcript(self, session: Session) -> "HookTranscript":
        from swink.app.assistant.hooktranscript import HookTranscript

        return HookTranscript(session, self.directory, self.servers)

    def _erase(self, ctx: PolicyContext, message: UserMessage) -> None:
        """Take a prompt out of the history, from the end of this run on; the session keeps what was typed."""
        agent = self.agent()
        if agent is not None and any(each is message for each in reversed(agent.messages)):
            agent.messages = [each for each in ctx.messages if each is not message]
            self.blocked(message)

    def _vouches(self, request: ApprovalRequest) -> str:
        """Why a call needs no question; empty if no hook has allowed it."""
        return (
            "a hook allowed it"
            if any(policy is not None and policy.allows(request) for policy in self._policies)
            else ""
        )

    async def _ask_person(self, ctx: PolicyContext, call: ToolCall, reason: str) -> str | None:
        """None if the person allows a call that a hook asks about, else why not."""
        from swink.policies.shellhook import NOBODY

        if self._permissions is None:
            return NOBODY
        arguments = dict(call.arguments)
        shown = show_arguments(arguments)
        request = ApprovalRequest(call.id, call.name, arguments, shown, True, ctx)
        notice = f"The hook says: {reason}" if reason else ""
        return await self._permissions.ask_once(Question(request, title=TITLE, notice=notice, is_once=True))

    async def _before_question(self, question: Question) -> Reply | None:
        """What hooks answer for the person; None if the person has to be asked."""
        await self.look()
        group, request = self.group, question.request
        if group is None:
            return None
        if not question.is_once and group.has("PermissionRequest"):
            reply = await self._answer_for_person(group, request)
            if reply is not None:
                return reply
        if group.has("Notification"):
            told = {"message": f"swink needs your permission to use {request.name}"}
            told |= {"title": "swink", "notification_type": "permission_prompt"}
            task = asyncio.create_task(group.run("Notification", told, "permission_prompt"))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
        return None

    async def _answer_for_person(self, group: "TrustedHooks", request: ApprovalRequest) -> Reply | None:
        """What the hooks for PermissionRequest decide; rules and PreToolUse hooks judge what one changes."""
        from swink.policies.hooks.hookanswers import HookAnswer, join_answers
        from swink.policies.hooks.hookgroup import HookedCall

        given = request.arguments
        without = [given.by] if isinstance(given, _ChangedInput) else []
        call = HookedCall(request.name, given, self.servers.get(request.name), without)
        fields: dict[str, Any] = {"tool_use_id": request.call_id, "permission_suggestions": []}
        answers = await group.ask("PermissionRequest", call, fields)
        own = [HookAnswer("allow") for _ in without]
        joined = join_answers([*own, *(answer for _, answer in answers)])
        if joined.stop is not None or joined.decision == "deny":
            return Refuse(joined.stop or joined.reason, "a hook refused it")
        changes = [(hook, answer) for hook, answer in answers if answer.updated_input not in (None, given)]
        if changes and without:
            return Refuse("", "one hook changes the input that another one has changed")
        if joined.decision != "allow":
            return None
        if not changes:
            return Once(by="a hook allowed it")
        by, first = changes[0]
        # Another hook's permission is one for the input that it was told of, not for this change.
        return Reconsider(_ChangedInput(first.updated_input or {}, by)) if first.decision == "allow" else None


class _ChangedInput(dict[str, Any]):
    """Arguments that a hook for PermissionRequest wants to run, and allows."""

    def __init__(self, arguments: Mapping[str, Any], by: "Hook") -> None:
        super().__init__(arguments)
        self.by = by


def _answered(messages: Sequence[Message]) -> Sequence[Message]:
    """Without the prompts at the end: a hook may still block them."""
    end = len(messages)
    while end and isinstance(messages[end - 1], UserMessage):
        end -= 1
    return messages[:end]


async def _ignore(trust: Trust) -> None:
    pass
