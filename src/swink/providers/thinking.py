"""How hard a model thinks, in the words of each provider: a level becomes the nearest effort that it takes.

`off` asks for the least that can be asked for. What cannot be said is reported: a level or a budget as any
option, `off` only as information, because it is the default.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any, Literal

from swink.messages import ModelSpec, ThinkingLevel
from swink.providers.notices import Notices

Style = Literal[
    "plain", "template", "openai", "azure", "xai", "groq", "together", "openrouter", "deepseek", "mistral",
    "moonshot", "zai", "perplexity", "gpt-oss",
]  # fmt: skip

_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_WORDS: Mapping[str, str] = {"off": "none", "extra_high": "xhigh"}
_LOW_TO_HIGH = ("low", "medium", "high")
_HIGH_OR_MORE = ("low", "high", "max")

_OPENAI = re.compile(r"(?:^|[/:._-])(?:gpt-\d|o\d(?:-|$)|codex|chatgpt)")
_REASONING = re.compile(r"(?:^|/)(?:o\d|gpt-(?:[5-9]|\d\d)|codex|computer-use)(?!.*-chat)")
_GPT_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_FIXED_GROK = re.compile(r"grok-(?:2|3(?!-mini)|4(?:-\d|-fast|-latest|\.[0-2]|$)|code)")
_TOGGLED_GROK = re.compile(r"grok-(?:4\.(?:[3-9]|1\d)|[5-9])")
_MISTRAL_EFFORT = re.compile(r"mistral-(?:small-(?:latest|4|2[6-9]\d\d)|medium-(?:latest|3[.-]5|2[6-9]\d\d))")
_ALWAYS = re.compile(
    r"magistral|grok-(?:4|code)(?!.*non-reasoning)|deepseek[.-]r|minimax-m|-thinking|o1-(?:mini|preview)"
    r"|kimi-k2\.7|sonar-reasoning"
    r"|fable|mythos"
)
_TOGGLED = {
    "moonshot": re.compile(r"kimi-k2\.[56]|kimi-latest"),
    "zai": re.compile(r"glm-(?:4\.[5-9]|[5-9])"),
}
_HYBRID = re.compile(r"deepseek-v(?:3\.[1-9]|[4-9])|qwen3\.[5-9]|kimi-k2\.[5-9]|glm-[5-9]|cogito")


def asked_level(model: ModelSpec, notices: Notices) -> ThinkingLevel | None:
    """The level to ask for; None for a model that is known not to think, which is reported if it should."""
    if model.capabilities is None or model.capabilities.thinking:
        return model.thinking_level
    if model.thinking_level != "off":
        refuse(model, notices, f"{model.model_id} does not think")
    return None


def refuse(model: ModelSpec, notices: Notices, why: str) -> dict[str, Any]:
    """Report that the level, or its budget, cannot be said; `off` is said of a model that thinks alone."""
    if model.thinking_level != "off":
        notices.report("thinking_level", why)
    elif _ALWAYS.search(model.model_id.lower()):
        notices.report("thinking_level", f"{model.model_id} always thinks", logging.INFO)
    refuse_budget(model, notices)
    return {}


def refuse_budget(model: ModelSpec, notices: Notices) -> None:
    """Report a budget for the level that is asked for, where only efforts are taken."""
    if model.thinking_level in model.thinking_budgets:
        notices.report("thinking_budgets", f"{model.model_id} takes no number of tokens")


def nearest(level: ThinkingLevel, efforts: tuple[str, ...]) -> str:
    """The effort nearest to a level, the higher of two; for `off` the least, otherwise one that thinks."""
    if level == "off":
        return efforts[0]
    wanted = _ORDER.index(_WORDS.get(level, level))
    ranked = [_ORDER.index(effort) for effort in efforts if effort != "none"]
    return _ORDER[min(ranked, key=lambda rank: (abs(rank - wanted), -rank))]


def is_reasoning_model(model_id: str) -> bool:
    """Whether an OpenAI model reasons, and so takes an effort and no temperature."""
    return _REASONING.search(model_id) is not None


def is_openai_name(model_id: str) -> bool:
    """Whether a name is of one of OpenAI's models; a deployment may have any name."""
    return _OPENAI.search(model_id.lower()) is not None


def openai_efforts(model_id: str) -> tuple[str, ...]:
    """The efforts that an OpenAI model takes, the least first; empty for one that takes none."""
    if not is_reasoning_model(model_id) or model_id.startswith(("o1-mini", "o1-preview")):
        return ()
    version = gpt_version(model_id)
    if "deep-research" in model_id or "computer-use" in model_id:
        return ("medium",)
    if version >= (5, 0) and "-pro" in model_id:
        return ("high",) if version == (5, 0) else ("medium", "high", "xhigh")
    most = ("xhigh",) if version >= (5, 2) or "codex-max" in model_id else ()
    if version < (5, 0) or "codex" in model_id:
        return (*_LOW_TO_HIGH, *most)
    return ("minimal" if version == (5, 0) else "none", *_LOW_TO_HIGH, *most)


def gpt_version(model_id: str) -> tuple[int, int]:
    """The version in the name of a GPT; (0, 0) for any other."""
    found = _GPT_VERSION.search(model_id)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def chat_thinking(model: ModelSpec, style: Style, notices: Notices) -> dict[str, Any]:
    """The fields of a chat-completions body that say how hard to think."""
    level, name = asked_level(model, notices), model.model_id.lower()
    if level is None:
        return {}
    if style == "openrouter" and level != "off" and (budget := model.thinking_budgets.get(level)):
        return {"reasoning": {"max_tokens": budget}}
    refuse_budget(model, notices)
    match style:
        case "openai" | "azure" if style == "openai" or is_openai_name(name):
            return _effort(model, openai_efforts(name), notices)
        case "xai":
            return _effort(model, grok_efforts(name), notices)
        case "groq" if "qwen" in name:
            return {"reasoning_effort": "none" if level == "off" else "default"}
        case "together" if _HYBRID.search(name):
            return {"reasoning": {"enabled": level != "off"}}
        case "deepseek":
            if level == "off":
                always = "reasoner" in name
                return refuse(model, notices, "") if always else {"thinking": {"type": "disabled"}}
            return {"thinking": {"type": "enabled"}, "reasoning_effort": nearest(level, _HIGH_OR_MORE)}
        case "moonshot" | "zai" if _TOGGLED[style].search(name):
            return {"thinking": {"type": "disabled" if level == "off" else "enabled"}}
        case "moonshot":
            return _effort(model, _HIGH_OR_MORE if "kimi-k3" in name else (), notices)
        case "perplexity":
            return _effort(model, _LOW_TO_HIGH if "deep-research" in name else (), notices)
        case "gpt-oss" | "zai" | "groq" | "together":
            return _effort(model, _LOW_TO_HIGH if "gpt-oss" in name else (), notices)
        case "mistral":
            if "magistral" in name and level != "off":
                return {"prompt_mode": "reasoning"}
            return _effort(model, ("none", "high") if _MISTRAL_EFFORT.search(name) else (), notices)
        case "openrouter" if level != "off":
            return {"reasoning": {"effort": _WORDS.get(level, level)}}
        case "template":
            thinks = {"chat_template_kwargs": {"enable_thinking": level != "off"}}
            return thinks if level == "off" else {"reasoning_effort": nearest(level, _LOW_TO_HIGH), **thinks}
        case "plain" | "azure" if level != "off":
            return {"reasoning_effort": nearest(level, _LOW_TO_HIGH)}
        case _:
            # A model that cannot stop thinking refuses to be told so, and this one may be such a model.
            why = f"it is not known how {model.model_id} is told not to think; extra= can say it"
            notices.report("thinking_level", why, logging.INFO)
            return {}


def _effort(model: ModelSpec, efforts: tuple[str, ...], notices: Notices) -> dict[str, Any]:
    if efforts:
        return {"reasoning_effort": nearest(model.thinking_level, efforts)}
    return refuse(model, notices, f"{model.model_id} takes none")


def grok_efforts(name: str) -> tuple[str, ...]:
    """The efforts that a Grok takes, the least first; empty for one that takes none."""
    if "grok-3-mini" in name:
        return ("low", "high")
    if _FIXED_GROK.search(name) or "reasoning" in name:
        return ()
    return ("none", *_LOW_TO_HIGH) if _TOGGLED_GROK.search(name) else _LOW_TO_HIGH
