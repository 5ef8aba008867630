"""Web search: which models have one that their provider runs, beside tools of ours, and when it is on.

anthropic, vertex:claude-…, gemini from 3 on, …-responses, openrouter, and some models of others
"""

import re
from collections.abc import Callable, Sequence

from swink.messages import ModelSpec
from swink.messages.providertools import HostedTool, WebSearch

_ANY = "."
_HAVE = {
    "anthropic": _ANY,
    "vertex": "^claude",
    "gemini": r"gemini-(?:[3-9]|\d\d)|latest",
    "openai": "search",
    "openai-responses": _ANY,
    "azure-responses": _ANY,
    "xai-responses": _ANY,
    "openrouter": _ANY,
    "perplexity": _ANY,
    "groq": "compound|gpt-oss",
    "bedrock": "nova-2|nova-premier",
}
"""What stands in the names of those models, by provider."""


def has_search(model: ModelSpec) -> bool:
    """Whether a model's provider searches the web for it, also where it has tools of ours."""
    pattern = _HAVE.get(model.provider)
    return pattern is not None and re.search(pattern, model.model_id.lower()) is not None


def search_for(
    is_wanted: Callable[[], bool], tell: Callable[[str], None]
) -> Callable[[ModelSpec], Sequence[HostedTool]]:
    """The hosted tools for whichever model is asked; of one that has no search, the person is told."""

    def hosted(model: ModelSpec) -> Sequence[HostedTool]:
        if not is_wanted():
            return ()
        if has_search(model):
            return (WebSearch(),)
        tell(f"web_search is set, but {model} has no search of its own; fetch_url reads pages by address")
        return ()

    return hosted
