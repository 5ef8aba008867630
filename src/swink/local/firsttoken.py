"""The first token of a reply, looked at before it is chosen: how likely is a tool call?"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from swink.stream import AssistantMessageEvent, PromptProgress

FIRST_TOKEN: Mapping[str, Any] = {"max_tokens": 1, "logprobs": True, "top_logprobs": 3000}
"""What turns a request into a look at its first token."""


class FirstToken:
    """The chunks of such a request."""

    stuck = None

    def __init__(self) -> None:
        self.call_likelihood = -math.inf
        """The logarithm of the probability that the reply begins with a brace."""
        self.fresh = 0
        """How many tokens of the prompt were read, and will not be read again."""

    def take(self, chunk: Mapping[str, Any]) -> list[AssistantMessageEvent]:
        """The progress of reading."""
        match chunk:
            case {"prompt_progress": {"processed": int() as done, "total": int() as total, **rest}}:
                self.fresh = total - int(rest.get("cache", 0))
                return [PromptProgress(min(done, total), total)]
            case {"choices": [{"logprobs": {"content": [{"top_logprobs": tokens}, *_]}}, *_]}:
                likely = [math.exp(logprob) for token, logprob in _pairs(tokens) if token.startswith("{")]
                self.call_likelihood = math.log(sum(likely)) if likely else -math.inf
            case _:
                pass
        return []


def _pairs(tokens: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    return ((token["token"], token["logprob"]) for token in tokens)
