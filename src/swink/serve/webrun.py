"""A run as a web protocol asks for it: begun from a history that the client sent, and streamed as events.

    told history → what is new of it → Conversation.start → numbered events → the protocol's own

Nobody answers an approval over a stream that flows one way: the run ends there, and the client's next
request brings the answer.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from msgspec import UNSET, Struct

from swink.agent.policy import Answer, Deferred
from swink.events import AgentEnd, AgentEvent, ApprovalRequested
from swink.messages import Message, StopReason, ToolCall, ToolResultMessage, UserMessage, as_messages
from swink.messages.jsondata import encode
from swink.messages.records import PendingApproval
from swink.messages.redact import redact_text
from swink.serve.hosting import Caller, ClientTool, Conversation, Host, HostedRun
from swink.serve.toldhistory import Contradiction, News, Told, UnknownFields, read_news
from swink.serve.web import Exchange
from swink.serve.web.eventsource import SILENT
from swink.serve.web.exchange import AT_ONCE
from swink.serve.wire import Refused, fields, sse
from swink.system.shorten import clip
from swink.system.threads import in_thread

Asked = TypeVar("Asked")

FORK = "on_conflict"
LEAVE = "abort_on_disconnect"


class AskedRun(Struct, frozen=True, kw_only=True):
    """What a request of a web protocol asks for."""

    conversation: str
    told: Sequence[Told] = ()
    answers: Mapping[str, Answer] = {}
    client_tools: Sequence[ClientTool] = ()
    key: str | None = None
    """What tells a request that is sent again from a new one."""
    again: bool = False
    """Whether the last reply is to be made again, in a conversation of its own."""


class Before(Struct, frozen=True):
    """What was there when a run began: the stored messages, and what the client brought."""

    stored: Sequence[Message] = ()
    news: News = News()
    waiting: frozenset[str] = frozenset()
    """The calls that waited: the run says their reply again, which it does not ask the model for."""


class BegunRun(Struct, frozen=True, eq=False):
    """A run under way, and where it is."""

    conversation: Conversation
    run: HostedRun
    before: Before
    silence: float
    """Seconds after which a stream without events says that it is still there."""


class RunEnd(Struct, frozen=True, kw_only=True):
    """How a run ended, as far as a client is told."""

    stop_reason: StopReason = "stop"
    error: str | None = None
    code: str = "error"
    reason: str | None = None
    pending: Sequence[PendingApproval] = ()
    client_calls: Sequence[ToolCall] = ()
    output: Any = None

    @property
    def is_aborted(self) -> bool:
        return self.stop_reason == "aborted"


class WebReply(Protocol):
    """Writes the events of a protocol for one run."""

    def begin(self, state: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events before the agent's first."""
        ...

    def add(self, event: AgentEvent) -> list[dict[str, Any]]:
        """The events for one of the agent's, its end aside."""
        ...

    def end(self, end: RunEnd) -> list[dict[str, Any]]:
        """The last events, which say how the run ended."""
        ...


class WebRuns:
    """Begins the runs of one door, and remembers what was there before them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._before: WeakKeyDictionary[HostedRun, Before] = WeakKeyDictionary()

    async def begin(self, caller: Caller, asked: AskedRun, *, may_fork: bool = False) -> BegunRun:
        """Start what is asked; `Refused` if the history contradicts the store and no fork is asked for."""
        conversation = await self._find(caller, asked.conversation)
        stored = () if conversation is None else conversation.messages
        waiting = _Waiting(conversation, asked.client_tools, stored)
        answers = waiting.answers(asked.answers)
        is_other = asked.again
        try:
            news = read_news(asked.told, stored, waiting.ids)
        except Contradiction as other:
            if not may_fork:
                raise Refused(409, str(other)) from None
            news, is_other = other.news, True
        if is_other:
            stored, answers = stored[: news.at], {}
            if conversation is not None:
                conversation = await self._host.fork(caller, conversation.id, news.at)
        if conversation is None:
            conversation = await self._host.create(caller, id=asked.conversation)
        run = await conversation.start(
            news.messages or None,
            approvals=answers,
            client_tools=asked.client_tools,
            tool_results=waiting.results(news.results),
            key=asked.key,
            when_busy="queue" if _is_ending(conversation) else "refuse",
        )
        await run.wait_begun()
        before = self._before.setdefault(run, Before(stored, news, frozenset(waiting.ids)))
        return self._begun(conversation, run, before)

    async def resume(self, caller: Caller, id: str) -> BegunRun | None:
        """The run that is under way in a conversation, if there is one."""
        conversation = await self._find(caller, id)
        run = None if conversation is None else conversation.running
        if conversation is None or run is None or run.is_over:
            return None
        return self._begun(conversation, run, self._before.get(run) or _before(run))

    async def _find(self, caller: Caller, id: str) -> Conversation | None:
        """The conversation, if it has begun."""
        try:
            return await self._host.open(caller, id)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def _begun(self, conversation: Conversation, run: HostedRun, before: Before) -> BegunRun:
        return BegunRun(conversation, run, before, self._host.limits.silence_seconds)


async def send_run(
    exchange: Exchange, begun: BegunRun, reply: WebReply, headers: Mapping[str, str] = {}, last: bytes = b""
) -> None:
    """Send a run, from its first event to its last. A client that leaves ends it only if it has said so."""
    run = begun.run
    writer = await exchange.stream(headers=headers)
    try:
        await writer.write(_frames(reply.begin(run.state)))
        async with aclosing(_written(begun, reply)) as written:
            async for data in written:
                await writer.write(data or SILENT)
        await writer.write(last)
    finally:
        if exchange.query.get(LEAVE) in ("1", "true"):
            begun.conversation.leave(run)


async def read_asked(
    exchange: Exchange, read: Callable[[Any, UnknownFields], Asked], unknown: UnknownFields
) -> Asked:
    """What a request asks for; a long history, with images in it, is read off the event loop."""
    length = exchange.headers.get("content-length", "")
    body = await exchange.json()
    if length.isdigit() and int(length) <= AT_ONCE:
        return read(body, unknown)
    return await in_thread(read, body, unknown)


def client_tool(described: Any) -> ClientTool:
    """A tool that the client runs, as it describes it; its schema is `parameters`, or `inputSchema`."""
    tool = fields(described)
    name, about = tool.get("name"), tool.get("description")
    if not isinstance(name, str) or not name:
        raise Refused(400, "a tool has a name, a description and parameters")
    text = about if isinstance(about, str) else ""
    schema = fields(tool.get("parameters") or tool.get("inputSchema"))
    return ClientTool(name, text, dict(schema)) if schema else ClientTool(name, text)


def may_fork(exchange: Exchange) -> bool:
    """Whether the client wants a conversation of its own where its history is another one."""
    return exchange.query.get(FORK) == "fork"


async def _written(begun: BegunRun, reply: WebReply) -> AsyncGenerator[bytes, None]:
    """What is sent, batch by batch; the end once the log is closed, when the client may ask again."""
    end: AgentEnd | None = None
    async with aclosing(begun.run.log.batches(0, begun.silence)) as batches:
        async for batch in batches:
            chunks: list[dict[str, Any]] = []
            for numbered in batch:
                event = numbered.event
                if isinstance(event, AgentEnd):
                    end = event
                    continue
                chunks += reply.add(event)
                if isinstance(event, ApprovalRequested):
                    _put_off(begun.run, event.call_id)
            yield _frames(chunks)
    if end is not None:
        yield _frames(reply.end(_end_of(begun, end)))
    else:
        text = "the server is shutting down; the run goes on when it is back"
        yield _frames(reply.end(RunEnd(stop_reason="error", error=text, code="interrupted")))


def _end_of(begun: BegunRun, event: AgentEnd) -> RunEnd:
    """How the run ended, with what waits for the client."""
    result, calls = begun.run.result, begun.run.client_calls
    ids = {call.id for call in calls}
    pending: Sequence[PendingApproval] = () if result is None else result.pending
    error = None
    if event.stop_reason == "error":
        said = (result and result.error) or event.reason or "the run failed; the server's log may say why"
        error = redact_text(said)
    return RunEnd(
        stop_reason=event.stop_reason,
        error=error,
        code=(result and result.error_kind) or "error",
        reason=event.reason,
        pending=[call for call in pending if call.call_id not in ids],
        client_calls=calls,
        output=None if result is None or result.value is UNSET else result.value,
    )


class _Waiting:
    """The calls of a conversation that wait: for an approval, or for the result of a client's tool."""

    def __init__(
        self,
        conversation: Conversation | None,
        client_tools: Sequence[ClientTool],
        stored: Sequence[Message],
    ) -> None:
        names = {tool.name for tool in client_tools}
        pending = () if conversation is None else conversation.pending
        runs = () if conversation is None else conversation.runs.values()
        known = {call.id for run in runs for call in run.client_calls if call.name in names}
        self._settled = {each.tool_call_id for each in stored if isinstance(each, ToolResultMessage)}
        self._approvals = {call.call_id for call in pending if call.name not in names}
        self._calls = ({call.call_id for call in pending if call.name in names} | known) - self._settled

    @property
    def ids(self) -> set[str]:
        return self._approvals | self._calls

    def answers(self, given: Mapping[str, Answer]) -> dict[str, Answer]:
        """The answers to calls that wait for one; those to settled calls are old, others are refused."""
        for id in given:
            if id not in self._approvals and id not in self._settled:
                raise Refused(409, f"no call {clip(id, 80)!r} of this conversation waits for an approval")
        return {id: answer for id, answer in given.items() if id in self._approvals}

    def results(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The results of the client's own tools; what it says of other calls is not taken."""
        return {id: result for id, result in given.items() if id in self._calls}


def _is_ending(conversation: Conversation) -> bool:
    """Whether the run under way has told its end, and only has to give the conversation free."""
    return conversation.running is not None and conversation.running.is_over


def _before(run: HostedRun) -> Before:
    """What is known of a run that another door, or another process, has begun: what it was told."""
    given = () if run.start.input is None else as_messages(run.start.input)
    return Before(news=News(tuple([message for message in given if isinstance(message, UserMessage)])))


def _put_off(run: HostedRun, call_id: str) -> None:
    with suppress(Refused):  # answered by another request, or by the application itself
        run.approve(call_id, Deferred())


def _frames(chunks: Sequence[dict[str, Any]]) -> bytes:
    return b"".join([sse(encode(chunk)) for chunk in chunks])
