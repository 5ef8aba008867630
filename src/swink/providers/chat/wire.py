"""Chat completions as a wire, in one of its dialects."""

from collections.abc import Mapping, Sequence
from typing import Any

from swink.messages import ModelSpec
from swink.providers.adapter import Ask, Wire
from swink.providers.chat.body import request_body
from swink.providers.chat.conversation import ChatConversation
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.fields import takes_schema
from swink.providers.chat.stream import ChatDecoder
from swink.stream import BlockWriter, LlmContext


class Chat(Wire):
    """What OpenAI's chat completions are to one server."""

    def __init__(self, dialect: ChatDialect) -> None:
        self.dialect = dialect
        self.honours = dialect.honours

    def conversation(self, model: ModelSpec) -> ChatConversation:
        """The messages of a conversation, without the system prompt."""
        return ChatConversation(model, self.dialect)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        return request_body(ask, messages, self.dialect)

    def headers(self, ask: Ask) -> Mapping[str, str]:
        """The id of the session, where that is a header: its requests meet the same cache."""
        name, session = self.dialect.session_header, ask.options.session_id
        return {name: session} if name and session else {}

    def decoder(self, reply: BlockWriter, ask: Ask) -> ChatDecoder:
        return ChatDecoder(reply, ask.options, self.dialect, [tool.name for tool in ask.context.tools])

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether the server sees to the schema of an answer."""
        return takes_schema(model, self.dialect, has_tools=bool(context.tools))
