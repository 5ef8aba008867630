"""Permissions: the approval callback of an agent that a person works with.

deny rules → what the person trusts for this session → saved rules → the mode → a question

The first that speaks of a call decides it, and `why` keeps the reason. Where it is not certain that a command
does not run what a rule denies, only trust and rules that name the whole command come before the question, in
every mode; where a call has a caution (`cautions.py`), in every mode but off. A question may be answered by
hooks, or by what the person allowed a skill, before it reaches them. With `approval_mode="on"` every call is
put to it.
"""

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from swink.agent.policy import Answer, ApprovalRequest, Approved, Rejected
from swink.app.assistant import person
from swink.app.assistant.approvalmodes import MEANINGS, ApprovalWord
from swink.app.assistant.commandlines import is_destructive, suggest_patterns
from swink.app.assistant.forms import ASK_USER
from swink.app.assistant.person import (
    Always,
    AlwaysIndex,
    ByRule,
    DomainQuestion,
    Once,
    Question,
    Reconsider,
    Refuse,
    Reply,
)
from swink.app.assistant.previews import DELETE, FILE_TOOLS, file_state, leads_to, preview
from swink.app.assistant.rulebook import SCOPES, RuleBook, RulesNotSaved, SavedRule
from swink.app.assistant.rules import BASH, NET, CallRule, JudgedCall, is_exact, is_writable
from swink.app.assistant.shellsettings import ShellSettings
from swink.app.assistant.toolcalls import SessionTrust, format_request, is_invalid, tool_of, trust_of
from swink.system.places import NoHome
from swink.system.shorten import clip
from swink.system.targets import Target
from swink.system.threads import in_thread
from swink.tools.coding.obeyed import is_obeyed
from swink.tools.coding.workspace import Workspace

if TYPE_CHECKING:
    from swink.app.assistant.skillpermissions import SkillPermissions

log = logging.getLogger("swink.approval")

MOST_DECISIONS = 1_000


class Decision(Struct, frozen=True):
    """What was decided about a call, and why."""

    call_id: str
    name: str
    call: str
    """The call in one line, for people."""
    allowed: bool
    why: str
    at: float
    """Seconds since 1970."""
    rules: tuple[SavedRule, ...] = ()


class Permissions:
    """Decides about every call, and asks a person where nothing else decides.

    `servers` says which MCP server a tool belongs to; `ask` asks the person, `tell` says what went wrong.
    """

    def __init__(
        self,
        word: ApprovalWord = "smart",
        *,
        workspace: Workspace | None = None,
        rules: RuleBook | None = None,
        servers: Mapping[str, str] | None = None,
        ask: Callable[[Question], Awaitable[Reply]] | None = None,
        ask_domain: Callable[[DomainQuestion], Awaitable[Reply]] | None = None,
        tell: Callable[[str], None] = log.warning,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.workspace = workspace
        self.rules = rules or RuleBook(None if workspace is None else workspace.root)
        self.servers: Mapping[str, str] = {} if servers is None else servers  # it may fill later
        self.questions = person.Questions()
        self.forms = person.Forms()
        """What the agent itself asks the person, with the tool ask_user."""
        self.caution: Callable[[ApprovalRequest], str] = lambda request: ""
        """What a person has to know of a call, and why a wide rule or a mode does not decide it."""
        self.vouched: Callable[[ApprovalRequest], str] = lambda request: ""
        """Why a call is allowed like one that a rule allows; empty for most."""
        self.skills: SkillPermissions | None = None
        """What skills were allowed; it is told of each call that is allowed, before it runs."""
        self.asks_about: frozenset[str] = frozenset()
        """Files of the workspace whose change is put to the person in every mode but off."""
        self.domains = person.Domains()
        """Hosts that commands want to reach."""
        self.judges_domain: Callable[[DomainQuestion], bool] = lambda question: False
        """Whether a question about a host has been decided meanwhile."""
        self.shell: ShellSettings | None = None
        self.tell = tell
        self.trusted: dict[SessionTrust, None] = {}
        self.trusted_hosts: dict[SessionTrust, None] = {}
        """Hosts, apart from calls: a tool may be named as their rules are."""
        self._word: ApprovalWord = word
        self._ask = ask or self.questions.ask
        self._ask_domain = ask_domain or self.domains.ask
        self._clock = clock
        self._decisions: deque[Decision] = deque(maxlen=MOST_DECISIONS)
        self._told: set[str] = set()
        self._tell_problems()

    @property
    def word(self) -> ApprovalWord:
        """When to ask; a change holds for questions that wait, too."""
        return self._word

    @word.setter
    def word(self, word: ApprovalWord) -> None:
        self._word = word
        self.reconsider()

    @property
    def decisions(self) -> list[Decision]:
        """What was decided, the newest first."""
        return list(reversed(self._decisions))

    @property
    def waiting(self) -> tuple[Question, ...]:
        """The questions that wait for the person."""
        return self.questions.waiting

    def count_waiting(self) -> int:
        """How much waits for the person: calls, hosts and forms."""
        return sum(len(asked.waiting) for asked in (self.questions, self.domains, self.forms))

    @property
    def changed(self) -> Callable[[], None]:
        """Called when a question has come or gone."""
        return self.questions.changed

    @changed.setter
    def changed(self, changed: Callable[[], None]) -> None:
        self.questions.changed = self.forms.changed = self.domains.changed = changed

    def why(self, call_id: str) -> Decision | None:
        """What was decided about a call; the last one, where a provider gives an id twice."""
        return next((found for found in reversed(self._decisions) if found.call_id == call_id), None)

    def forget(self, trust: SessionTrust) -> None:
        """Ask again about what was always allowed in this session."""
        self.trusted.pop(trust, None)
        self.trusted_hosts.pop(trust, None)

    def reconsider(self) -> None:
        """Answer the waiting questions that rules, trust or the mode have decided meanwhile."""
        for question in self.questions.waiting:
            if question.is_once:
                if (why := self._forbids(question.request)) is not None:
                    self.questions.answer(question, Refuse(by=why))
            elif self._decide(question.request, self._call(question.request)) is not None:
                self.questions.answer(question, Reconsider())
        for asked in self.domains.waiting:
            if self.judges_domain(asked):
                self.domains.answer(asked, Reconsider())

    async def ask_domain(self, question: DomainQuestion) -> Reply:
        """The person's word on a host; the mode deny refuses for them."""
        if self.word == "deny":
            reply: Reply = Refuse(by="the user allows nothing that would have to be asked about")
        else:
            reply = await self._ask_domain(question)
        if not isinstance(reply, Reconsider):
            allowed = not isinstance(reply, Refuse)
            why = "you allowed it" if allowed else reply.by
            call = f"{NET}({question.wish.pattern}) for {question.commands[0] if question.commands else ''}"
            self._decisions.append(Decision("", NET, clip(call, 200), allowed, why, self._clock()))
        return reply

    async def __call__(self, request: ApprovalRequest) -> Answer:
        """The answer for one call."""
        answer = await self._answer(request)
        if self.skills is not None and not isinstance(answer, Rejected):
            changed = answer.arguments if isinstance(answer, Approved) else None
            await self.skills.before_run(request.name, request.arguments if changed is None else changed)
        return answer

    async def _answer(self, request: ApprovalRequest) -> Answer:
        self._tell_problems()
        notice = ""
        if self.word == "sandboxed" and request.name == BASH:
            await self._look_at_sandbox()
        while True:
            target = self._look(request.arguments)
            decision = self._decide(request, self._call(request, target))
            if decision is not None:
                self._keep(decision)
                if decision.allowed:
                    self._bind(request, target)
                return True if decision.allowed else Rejected(decision.why)
            if is_invalid(request):
                self._record(request, True, "not asked: the arguments are invalid, so it fails")
                return True
            question = await self._question(request, target, notice)
            if question.preview is not None and question.preview.fails:
                # It is not let run to fail: another call of the turn may make it succeed, unseen.
                self._record(request, False, f"not asked: it {question.preview.summary}")
                return Rejected(question.preview.summary)
            reply = await self._ask(question)
            if isinstance(reply, Reconsider) and reply.arguments is not None:
                return await person.judge_changed(self, request, reply.arguments)
            if isinstance(reply, Reconsider):
                continue
            now = self._look(request.arguments)
            if not isinstance(reply, Refuse) and await self._has_changed(question, target, now):
                notice = "The file has changed since you were asked. This is the change as it would be now."
                continue
            if not isinstance(reply, Refuse):
                self._bind(request, now, reply.arguments if isinstance(reply, Once) else None)
            return await self._apply(request, reply)

    async def ask_once(self, question: Question) -> str | None:
        """Ask what no mode, rule or trust allows: None for yes, else why not. Denials hold."""
        why = self._forbids(question.request)
        if why is None:
            match await self._ask(question):
                case Refuse(reason, by):
                    why = f"{by}: {reason}" if reason else by
                case Once(note=note):
                    how = f"you allowed it {question.offers or 'outside'}: {note}".removesuffix(": ")
                    self._record(question.request, True, how)
                    return self._forbids(question.request)
                case _:
                    why = person.NOT_UNDERSTOOD
        self._record(question.request, False, why)
        return why

    def ask_first(self, other: Callable[[Question], Awaitable[Reply | None]]) -> None:
        """Put questions about calls to something else before the person."""
        ask = self._ask

        async def ask_both(question: Question) -> Reply:
            return await other(question) or await ask(question)

        self._ask = ask_both

    def _forbids(self, request: ApprovalRequest) -> str | None:
        """Why nobody is asked about a call: a rule, or the mode."""
        if (denial := self.rules.denies(self._call(request))) is not None:
            return f"the user's rule: deny {denial.rule}"
        return "the user allows no call that needs approval" if self.word == "deny" else None

    def _tell_problems(self) -> None:
        """Report each problem of the rules once: a denial that cannot be read denies nothing."""
        for problem in self.rules.problems:
            if problem not in self._told:
                self._told.add(problem)
                self.tell(problem)

    async def _look_at_sandbox(self) -> None:
        """Know whether commands are confined now, and say once why they are not."""
        why = "there is no sandbox here" if self.shell is None else await self.shell.look()
        if why and why not in self._told:
            self._told.add(why)
            self.tell(f"mode sandboxed is like edits here, and commands are asked about: {why}")

    def _look(self, arguments: Mapping[str, Any]) -> Target | None:
        """What the path of a call leads to; everything that is decided about the call is decided of this."""
        path = arguments.get("path")
        return None if self.workspace is None or not isinstance(path, str) else self.workspace.look(path)

    def _bind(
        self, request: ApprovalRequest, target: Target | None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Let a call that is allowed touch what it was judged by, and nothing else."""
        arguments = request.arguments if arguments is None else arguments
        path = arguments.get("path")
        if path != request.arguments.get("path"):  # the person wrote another one
            target = self._look(arguments)
        if self.workspace is not None and target is not None:
            self.workspace.bind(request.context.run, request.call_id, str(path), target)

    def _call(self, request: ApprovalRequest, target: Target | None = None) -> JudgedCall:
        target = target or self._look(request.arguments)
        inside = None if self.workspace is None or target is None else self.workspace.inside(target)
        return JudgedCall(request.name, request.arguments, server=self.servers.get(request.name), path=inside)

    def is_ordinary(self, path: str | None) -> bool:
        """Whether a file is in the workspace and no other program obeys it."""
        if path is None or self.workspace is None:
            return False
        root = self.workspace.base_of(path)
        return not is_obeyed(os.path.relpath(os.path.join(root, path), root), root)

    def _decide(self, request: ApprovalRequest, call: JudgedCall) -> Decision | None:
        """What rules, trust and the mode say; None if they leave it to the person."""
        if (denial := self.rules.denies(call)) is not None:
            return self._decision(request, False, f"the user's rule: deny {denial.rule}", (denial,))
        if call.path in self.asks_about and request.name in FILE_TOOLS and self.word not in ("off", "deny"):
            return None
        if (trust := trust_of(request)) in self.trusted or SessionTrust(request.name) in self.trusted:
            what = request.name if trust.command is None else "this command"
            return self._decision(request, True, f"you always allow {what} in this session")
        saved, doubt = self.rules.allows(call), self._doubt(request, call)
        if doubt is not None and not (saved and all(is_exact(one.rule) for one in saved)):
            return self._decision(request, False, doubt) if self.word == "deny" else None
        if saved:
            names = ", ".join(str(one.rule) for one in saved)
            scopes = " and ".join(sorted({SCOPES[one.scope] for one in saved}))
            return self._decision(request, True, f"your rule {names} ({scopes})", saved)
        if why := self.vouched(request):
            return self._decision(request, True, why)
        return self._by_mode(request, call)

    def _doubt(self, request: ApprovalRequest, call: JudgedCall) -> str | None:
        """Why a call is put to the person all the same."""
        caution = "" if self.word == "off" else self.caution(request)
        return self.rules.doubt(call) or caution or None

    def _by_mode(self, request: ApprovalRequest, call: JudgedCall) -> Decision | None:
        word = self.word
        match word:
            case "off":
                return self._decision(request, True, f"mode off: {MEANINGS['off']}")
            case "on" if request.name == ASK_USER and not request.requires_approval:
                return self._decision(request, True, "it asks you itself")
            case "on":
                return None
            case _ if not request.requires_approval:
                return self._decision(request, True, f"mode {word}: this needs no approval")
            case "edits" | "sandboxed" if request.name in FILE_TOOLS and self.is_ordinary(call.path):
                return self._decision(request, True, f"mode {word}: the file is in the workspace")
            case "sandboxed" if request.name == BASH and self._is_confined(request):
                return self._decision(request, True, "mode sandboxed: the command stays in the sandbox")
            case "deny":
                return self._decision(request, False, "the user allows no call that needs approval")
            case _:
                return None

    def _is_confined(self, request: ApprovalRequest) -> bool:
        return self.shell is not None and self.shell.confines(tool_of(request))

    async def _question(self, request: ApprovalRequest, target: Target | None, notice: str) -> Question:
        workspace, found, link = self.workspace, None, ""
        if workspace is not None and request.name in FILE_TOOLS:
            found = await in_thread(preview, workspace, request.name, request.arguments, target)
        if workspace is not None and target is not None:
            link = leads_to(workspace, request.arguments["path"], target)
        call = self._call(request, target)
        doubt = self._doubt(request, call) or ""
        command = request.arguments.get("command")
        is_command = isinstance(command, str)
        of_tool, of_command = f"every call of {request.name}", "this command, with the very same arguments"
        return Question(
            request,
            preview=found,
            is_destructive=is_destructive(command) if is_command else request.name == DELETE,
            always=of_command if is_command else of_tool,
            suggested=self.suggest(request, target),
            notice=notice or (f"{doubt[0].upper()}{doubt[1:]}." if doubt else ""),
            leads_to=link,
            path=call.path,
        )

    def suggest(self, request: ApprovalRequest, target: Target | None = None) -> tuple[CallRule, ...]:
        """Rules that would allow this call and its like; none where that would open too much."""
        call = self._call(request, target)
        if request.name == BASH:
            return tuple(rule for rule in _suggest_for(request) if rule not in self.rules.rules)
        if request.name in FILE_TOOLS:
            if call.path is None or not self.is_ordinary(call.path) or request.name == DELETE:
                return ()
            if not call.path.isprintable() or set(call.path) & set("*?"):  # it would mean other files
                return ()
            above = os.path.dirname(call.path)
            return (CallRule(request.name, f"{above}/**" if above else call.path),)
        return (CallRule(request.name),)

    async def _has_changed(self, question: Question, then: Target | None, now: Target | None) -> bool:
        """Whether the file is another one than the person saw, or has another content."""
        if then is None or now is None or self.workspace is None:
            return then is not now
        if then.path != now.path:
            return True
        found, path = question.preview, question.request.arguments["path"]
        return found is not None and await in_thread(file_state, self.workspace, path, now) != found.state

    async def _apply(
        self, request: ApprovalRequest, reply: Once | Always | AlwaysIndex | ByRule | Refuse
    ) -> Answer:
        match reply:
            case Once(None, "", by):
                self._record(request, True, by)
                return True
            case Once(arguments, note, by):
                changed = f"{by} with other arguments" if arguments is not None else by
                self._record(request, True, f"{changed}: {note}" if note else changed)
                return Approved(arguments, note)
            case Always() | AlwaysIndex():
                self.trusted[trust_of(request)] = None
                self._record(request, True, "you allowed it, and always in this session")
            case ByRule(rules, scope):
                try:
                    await in_thread(self.rules.add, rules, scope)
                except (RulesNotSaved, NoHome) as error:
                    self.tell(f"{error}; the call is allowed this time")
                names = ", ".join(map(str, rules))
                self._record(request, True, f"you allowed it with the rule {names}")
            case Refuse(reason, by):
                why = f"{by}: {reason}" if reason else by
                self._record(request, False, why)
                return Rejected(why)
        self.reconsider()
        return True

    def _decision(
        self, request: ApprovalRequest, allowed: bool, why: str, rules: tuple[SavedRule, ...] = ()
    ) -> Decision:
        call = format_request(request)
        return Decision(request.call_id, request.name, call, allowed, why, self._clock(), rules)

    def _record(self, request: ApprovalRequest, allowed: bool, why: str) -> None:
        self._keep(self._decision(request, allowed, why))

    def _keep(self, decision: Decision) -> None:
        self._decisions.append(decision)
        if decision.rules:  # their uses are counted beside the event loop
            task = asyncio.ensure_future(in_thread(self.rules.use, decision.rules))
            _counting.add(task)
            task.add_done_callback(_counting.discard)


_counting: set[asyncio.Future[None]] = set()


def _suggest_for(request: ApprovalRequest) -> list[CallRule]:
    """Rules for a command; none if it holds a secret, or anything else that a file of rules cannot hold."""
    command = request.arguments.get("command")
    if not isinstance(command, str) or request.shown.get("command") != command:
        return []
    rules = [CallRule(BASH, pattern) for pattern in suggest_patterns(command) or []]
    return rules if all(map(is_writable, rules)) else []
