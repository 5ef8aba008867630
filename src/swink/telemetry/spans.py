"""Runs, turns, requests and tool calls as spans: what the engine tells, in the conventions' words.

invoke_agent → turn → chat MODEL
                    → execute_tool NAME → invoke_agent …
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from swink.errors import AgentError, message_of
from swink.messages.blocks import ToolCall
from swink.messages.message import AssistantMessage, Message, StopReason, ToolResult, TurnEndReason
from swink.messages.modelspec import Cost, ModelSpec, Usage
from swink.messages.redact import redact_text, sent_keys
from swink.stream import Assembly, BlockWriter, Done, LlmContext, StreamOptions, observer
from swink.telemetry import conventions, messagejson, recorder
from swink.telemetry.conventions import Attributes
from swink.telemetry.recorder import Exporter, Measurement, Span, Unseen


class SpanRecorder:
    """The observer that makes spans of what it is told."""

    def run(
        self, model: ModelSpec, session_id: str | None, prompts: Sequence[Message]
    ) -> "RunSpan | UnseenRun":
        return UnseenRun() if recorder.is_idle() else RunSpan(model, session_id)

    def turn(self, number: int) -> "TurnSpan | UnseenPart":
        return _UNSEEN if recorder.is_unseen() else TurnSpan(number)

    def request(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> "RequestSpan | UnseenRequest":
        return UnseenRequest(options) if recorder.is_unseen() else RequestSpan(model, context, options)

    def call(self, call: ToolCall, arguments: Mapping[str, Any], description: str) -> "CallSpan | UnseenPart":
        return _UNSEEN if recorder.is_unseen() else CallSpan(call, arguments, description)

    def remote(self, server: str, tool: str, url: str | None) -> None:
        """The call under way is one of an MCP server's tool."""
        call = recorder.current.get()
        if isinstance(call, CallSpan):
            call.is_of(server, conventions.remote_attributes(tool, url))

    def exchange(self, url: str, reply: BlockWriter) -> None:
        """The request under way is sent to this address."""
        request = recorder.current.get()
        if isinstance(request, RequestSpan):
            request.is_sent(conventions.server_attributes(url), reply)


class RunSpan(Span):
    """A run of an agent: `invoke_agent`."""

    __slots__ = ("_labels", "context")

    def __init__(self, model: ModelSpec, session_id: str | None) -> None:
        name = observer.agent_name.get()
        attributes = conventions.model_attributes("invoke_agent", model)
        self._labels: Attributes = {} if name is None else {conventions.AGENT: name}
        if session_id is not None:
            attributes[conventions.CONVERSATION] = session_id
        title = "invoke_agent" if name is None else f"invoke_agent {name}"
        Span.__init__(self, title, "internal", attributes | self._labels)
        self.agent, self.session_id = name, session_id
        self.context = self.inside()

    def end(
        self,
        stop_reason: StopReason,
        error: AgentError | None,
        usage: Usage,
        cost: Cost | None,
        messages: Sequence[Message],
    ) -> None:
        failed = _error_type(error) if stop_reason == "error" else {}
        if self.wants_more:
            replies = [message for message in messages if isinstance(message, AssistantMessage)]
            known = {conventions.STOP_REASON: stop_reason, "swink.turns": len(replies), **failed}
            self.note(known | conventions.usage_attributes(usage, cost))
            if self.wants_content:
                asked = messages[: messages.index(replies[0])] if replies else messages
                said = {"gen_ai.input.messages": messagejson.messages_text(asked)}
                said["gen_ai.output.messages"] = messagejson.messages_text(replies[-1:])
                self.note_content(said)
        failure = _description(error) if failed else None
        self.finish(failure, [(conventions.RUN_DURATION, self.seconds, self._labels | failed)])


class TurnSpan(Span):
    """A turn of a run: a request and the calls that follow it."""

    __slots__ = ()

    def __init__(self, number: int) -> None:
        Span.__init__(self, "turn", "internal", {"swink.turn": number})
        self.enter()

    def end(self, reason: TurnEndReason) -> None:
        if self.wants_more:
            self.note({"swink.turn.end_reason": reason})
        self.finish()


class RequestSpan(Span):
    """A request to a model."""

    __slots__ = ("_asked", "_labels", "_reply", "options")

    def __init__(self, model: ModelSpec, context: LlmContext, options: StreamOptions) -> None:
        self._labels = conventions.model_attributes("chat", model)
        self._asked: tuple[ModelSpec, LlmContext] | None = model, context
        attributes = self._labels | conventions.request_attributes(context, options)
        Span.__init__(self, f"chat {model.model_id}", "client", attributes)
        self._reply: BlockWriter | None = None
        around = {conventions.CONVERSATION: self.session_id, conventions.AGENT: self.agent}
        self.note({name: value for name, value in around.items() if value is not None})
        self.enter()
        headers = self.headers()
        self.options = replace(options, headers={**headers, **options.headers}) if headers else options

    def is_sent(self, server: Attributes, reply: BlockWriter) -> None:
        """It is on its way; the writer will know what came back."""
        self.note(server)
        self._labels |= server
        self._reply = reply

    def end(self, assembly: Assembly, error: AgentError | None, usage: Usage, cost: Cost | None) -> None:
        """It has ended; with neither an error nor a terminal event it was cut off."""
        if self.ended or self._asked is None:
            return
        (model, context), self._asked = self._asked, None
        stop = assembly.terminal.stop_reason if isinstance(assembly.terminal, Done) else None
        ending: StopReason = stop or ("aborted" if error is None or error.kind == "aborted" else "error")
        failed = _error_type(error) if ending == "error" else {}
        answered = {} if self._reply is None else conventions.response_attributes(self._reply)
        first = None if assembly.first is None else max(assembly.first - assembly.began, 0.0)
        if self.wants_more:
            known: Attributes = {conventions.STOP_REASON: ending, **failed, **answered}
            if stop is not None:
                known["gen_ai.response.finish_reasons"] = (conventions.finish_reason(stop),)
            if first is not None:
                known["gen_ai.response.time_to_first_chunk"] = first
            self.note(known | conventions.usage_attributes(usage, cost))
            if self.wants_content:
                reply = assembly.message(model, ending, usage=usage)
                said = {"gen_ai.output.messages": messagejson.messages_text([reply])}
                self.note_content(messagejson.input_attributes(context) | said)
        labels = {name: answered[name] for name in (conventions.RESPONSE_MODEL,) if name in answered}
        labels |= self._labels
        measured: list[Measurement] = [(conventions.REQUEST_DURATION, self.seconds, labels | failed)]
        if first is not None:
            measured.append((conventions.FIRST_CHUNK_DURATION, first, labels))
        if not usage.unknown or usage.total:
            for kind, tokens in ("input", conventions.input_tokens(usage)), ("output", usage.output):
                measured.append((conventions.TOKENS, tokens, labels | {conventions.TOKEN_TYPE: kind}))
        self.finish(_description(error) if failed else None, measured)


class CallSpan(Span):
    """A tool call of a turn: `execute_tool`."""

    __slots__ = ("_arguments", "_labels", "_raised", "context", "remote")

    def __init__(self, call: ToolCall, arguments: Mapping[str, Any], description: str) -> None:
        self._arguments = arguments
        self._raised = "tool_error"
        self.remote: Attributes = {}
        """What is known of the MCP server that runs it."""
        self._labels: Attributes = {conventions.TOOL: call.name, "gen_ai.tool.type": "function"}
        attributes = {conventions.OPERATION: "execute_tool", **self._labels}
        attributes |= {"gen_ai.tool.call.id": call.id, "gen_ai.tool.description": description}
        Span.__init__(self, f"execute_tool {call.name}", "internal", attributes)
        if self.agent is not None:
            self._labels[conventions.AGENT] = self.agent
            self.note({conventions.AGENT: self.agent})
        self.context = self.inside()
        self.context.run(observer.agent_name.set, None)  # a run inside has a name of its own, or none

    def is_of(self, server: str, known: Attributes) -> None:
        """It is a call of an MCP server's tool, which has a name of its own there."""
        ours = {"swink.tool.name": self._labels[conventions.TOOL], "swink.mcp.server": server}
        self.remote = known
        self._labels[conventions.TOOL] = known[conventions.TOOL]
        self.note(known | ours)

    def failed(self, error: BaseException) -> None:
        """The tool raised this; its class is the type of the error."""
        self._raised = type(error).__name__

    def end(self, result: ToolResult, why: str) -> None:
        """It is settled; `why` says who ended it, if anybody did."""
        if self.ended:
            return
        failed: Attributes = {}
        if result.is_error:
            ended = _WHY.get(why.partition(":")[0], "timeout")
            failed = {conventions.ERROR: ended if why else self._raised}
        if self.wants_more:
            self.note(failed)
            if self.wants_content:
                said = {"gen_ai.tool.call.arguments": messagejson.arguments_text(self._arguments)}
                said["gen_ai.tool.call.result"] = messagejson.result_text(result)
                self.note_content(said)
        measured: list[Measurement] = [(conventions.CALL_DURATION, self.seconds, self._labels | failed)]
        if self.remote:
            measured.append((conventions.MCP_DURATION, self.seconds, self.remote | failed))
        self.finish(failed[conventions.ERROR] if failed else None, measured)


class UnseenRun(Unseen):
    """A run of which no exporter wants to know."""

    __slots__ = ("context",)

    def __init__(self) -> None:
        Unseen.__init__(self)
        self.context = self.inside()

    def end(self, *_: object, **__: object) -> None:
        """Nothing was begun, so nothing is ended."""


class UnseenPart:
    """A turn or a call of such a run."""

    context = None

    def failed(self, error: BaseException) -> None:
        """Nothing was begun that could have failed."""

    def end(self, *_: object, **__: object) -> None:
        """Nothing was begun, so nothing is ended."""


class UnseenRequest(UnseenPart):
    """A request of such a run."""

    __slots__ = ("options",)

    def __init__(self, options: StreamOptions) -> None:
        self.options = options


def add_exporter(exporter: Exporter) -> None:
    """Tell an exporter of all that begins from now on."""
    recorder.use_exporters((*recorder.exporters, exporter))
    observer.observe(_recorder)


def remove_exporter(exporter: Exporter) -> None:
    """Tell it no more of what begins."""
    recorder.use_exporters(tuple(other for other in recorder.exporters if other is not exporter))
    if not recorder.exporters:
        observer.observe(None)


def _error_type(error: AgentError | None) -> Attributes:
    return {conventions.ERROR: "_OTHER" if error is None else type(error).__name__}


def _description(error: AgentError | None) -> str | None:
    """What went wrong, without secrets."""
    return None if error is None else redact_text(message_of(error), *sent_keys())


_WHY = {"tool call cancelled": "cancelled", "tool call not run": "cancelled"}
"""The types of errors of calls that were ended, by how the reason begins; a time limit is the other."""
_UNSEEN = UnseenPart()
_recorder = SpanRecorder()
