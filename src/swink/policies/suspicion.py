"""Whether a text is a known kind of injection, by all its readings, its hidden parts and its delimiters."""

import re

from swink.policies.disguises import read_as, turn, undisguise
from swink.policies.hidden import find_hidden, has_invisible_words
from swink.policies.intents import ALARM, SHORT, weigh
from swink.policies.vocabulary import STEMS

_TOKENS = re.compile(
    r"<\|\s?(?:im_start|im_end|system|assistant|user|endoftext|eot_id"
    r"|start_header_id)\s?\|>|<(?:start|end)_of_turn>|<</?SYS>>|\[/?(?:INST|SYS)\]",
    re.I,
)
_FORGED = re.compile(
    r"<\|\s?(?:im_start|start_header_id)\s?\|>\s?system|<start_of_turn>\s?system"
    r"|</?(?:system|system_prompt|developer_message|admin)>\s{0,9}\S"
    r"|</(?:tool_result|document|user|context)>\s{0,9}(?:<system|Human:|System:)"
    r"|^[\[#*> ]{0,3}(?-i:SYSTEM|System|ADMIN|DEVELOPER|URGENT SYSTEM)(?i: (?:note"
    r"|message|override|update|alert|notice|command|prompt))?\s?\]?\s?:\s"
    r"|\[(?-i:SYSTEM|ADMIN|System|Admin)(?: \w{1,12})?\](?!\()|^\[system\](?:\s?:|\s)"
    r"|^#{1,4}\s?(?:instructions|notes?|message) (?:for|to) (?:the |any )?(?:ai|assistant|llm|agent)s?\b"
    r"|\b(?-i:SYSTEM OVERRIDE|System Override|BEGIN ADMIN)\b|#{2,}\s?(?:system|assistant"
    r"|instruction)s?\s?:|^```system\b|\[system\]\("
    r"|^[-=*# ]{2,}\s?end of (?:the )?(?:user |system )?(?:prompt|input|message|instructions"
    r"|context)|\n\n?Assistant: (?:sure|i )|^(?:human|user): .{0,40}\n\n?assistant:"
    r"|</?(?:information|important)>",
    re.I | re.M,
)
_ROLE = re.compile(r"\}\s?,?\s?\{\s?\"role\"\s?:\s?\"system\"", re.I)
_ELEMENT = re.compile(r"<(system|admin)>[^<>\s]{0,40}</\1>", re.I)
_DELIMITERS = ("<|", "inst]", "sys]", "sys>", "_of_turn>", "</system", "</developer")
_CLOSED = re.compile(r"</system(?:_prompt)?>|</developer_message>", re.I)
_EASTERN = re.compile(
    r"(?:忽略|无视|無視|忘记|忘記|忽視|不要理会|不要遵守|绕过)[^\n。]{0,12}(?:之前|以上|先前|上面|前面|所有|上述|你的|原来)[^\n。]{0,10}(?:指令|指示|说明|說明"
    r"|提示|命令|规则|規則|要求|内容|限制)"
    r"|(?:以前|これまで|上記|前|先|すべて|今まで|元)の?[^\n。]{0,8}(?:指示|命令|指令|プロンプト|ルール|規則|制約)[^\n。]{0,12}(?:無視|忘れ|破棄|従わな)"
    r"|(?:이전|위의|지금까지|앞의|기존)[^\n.]{0,12}(?:지시|명령|프롬프트|규칙|지침)[^\n.]{0,12}(?:무시|잊|따르지)"
    r"|(?:تجاهل|انس)[^\n.]{0,30}(?:التعليمات|الأوامر|القواعد)"
    r"|(?:你的|显示|告诉我|システム|あなたの)[^\n。]{0,6}(?:系统提示|システムプロンプト)"
)
_SQUASHED = re.compile(
    r"(ignore|disregard|forget|bypass|override)(?:all|any|every|the|your|my|of|these|those"
    r"|and){0,5}(previous|prior|above|earlier|preceding|system|your)"
    r"(instruction|prompt|rule|directive|guideline|command|order|message)"
    r"|(reveal|print|show|repeat|output)(?:me|your|the){0,2}(system)(prompt)"
)
_SINGLE_LETTERS = re.compile(r"(?<![^\W_])(?:[^\W_][\W_]{1,3}){15,}[^\W_](?![^\W_])")
_WORD = re.compile(r"[^\W_]+")
_NOT_LETTERS = re.compile(r"[\W\d_]+")
_TURNED = "vtaber qvfertneq sbetrg olcnff flfgrz erongi dragersid tegrof metsys vafgehpgvba noitcurtsni"
_TURNED_HINTS = tuple(_TURNED.split())
_ADDRESSED = re.compile(
    r"\b(?:ais?|a\.i\.|assistants?|llms?|language models?|chatbots?|agents?|gpt(?:-\d)?"
    r"|chatgpt|claude|gemini|copilot|ai models?|system|prompt|instructions?)\b",
    re.I,
)
_ORDERED = re.compile(
    r"\b(?:must|should|please|always|never|ignore|disregard|forget|include|say|tell|recommend"
    r"|respond|reply|answer|output|print|send|forward|visit|follow|run|execute|write|"
    r"add|append|mention|rate|rank|give|call|install|describe|convince|do not"
    r"|don't|instead|you are|new instructions|open|approve|submit|buy)\b",
    re.I,
)
_OPENING = re.compile(
    r"\A\W{0,8}(?:hidden |secret )?(?:note|message|instructions?|hint"
    r"|attention|hey|dear|hi|to|important)?(?: (?:to|for|any|all|the))*\W{0,3}"
    r"(?:coding )?(?:ai|llm|language model|assistant|chatbot|agent|gpt|chatgpt"
    r"|claude|gemini|copilot|system|prompt|hidden instruction|ki-assistent)s?\b"
    r"|if you are an? (?:ai|llm|large|language|assistant)|\b(?:ai|language model"
    r"|llm)s?\b[^.\n]{0,40}\b(?:must|should|please|reading)",
    re.I,
)
_MENTIONED = re.compile(
    r"(?:injections?|jailbreak(?:s|ing)?|attacks?|attackers?|malicious|adversarial|payloads?)\b", re.I
)
_QUOTED = re.compile(r"([\"“`'‘])([^\n\"“”`]{8,160})([\"”`'’])")


def is_suspicious(text: str) -> bool:
    """Whether some text, in any reading, tries to take over the model that reads it."""
    if has_invisible_words(text):
        return True
    text = _without_mentions(text)
    for number, view in enumerate(read_as(text, STEMS)):
        if _weight(view, is_plain=number == 0) >= ALARM:
            return True
    plain = undisguise(text)
    lowered = plain.lower()
    if any(hint in lowered for hint in _TURNED_HINTS) and any(weigh(view) >= ALARM for view in turn(plain)):
        return True
    return _is_squashed(plain) or any(map(_is_hidden_order, find_hidden(text)))


def _weight(view: str, *, is_plain: bool) -> float:
    weight = weigh(view)
    if weight >= ALARM or (not is_plain and not weight):
        return weight
    if not view.isascii() and _EASTERN.search(view):
        return ALARM
    return weight + _forged(view, looked_for=bool(weight) or len(view) <= SHORT)


def _forged(view: str, *, looked_for: bool) -> float:
    """The weight of delimiters and roles that only the program around a model may write."""
    view = _ELEMENT.sub("", view)  # a setting, not a message
    lowered = view.lower()
    weight = 0.0
    if any(hint in lowered for hint in _DELIMITERS):
        weight = 0.5 * bool(_TOKENS.search(view)) + 0.5 * bool(_CLOSED.search(view))
    if weight or looked_for:
        # In a long text one such line may well be a setting or an element.
        weight += (0.6 if len(view) <= SHORT else 0.4) * bool(_FORGED.search(view))
    if len(view) > SHORT:
        return weight
    weight += 0.6 * bool(_ROLE.search(view))
    return weight + 0.5 if weight else weight


def _is_squashed(plain: str) -> bool:
    """Whether an injection shows without spaces and signs; in a long text only spaced-out letters count."""
    parts = [plain] if len(plain) <= SHORT else [match.group() for match in _SINGLE_LETTERS.finditer(plain)]
    found = (match for part in parts for match in _SQUASHED.finditer(_NOT_LETTERS.sub("", part.lower())))
    # Words that are separated in the text were weighed already.
    words = _WORD.findall(plain.lower()) if len(plain) <= SHORT else []
    parts_of = (filter(None, match.groups()) for match in found)
    return any(not all(any(word.startswith(part) for word in words) for part in parts) for parts in parts_of)


def _is_hidden_order(part: str) -> bool:
    """Whether a part that people do not see speaks to a machine and tells it to do something."""
    plain = undisguise(part[:4000])
    is_order = _OPENING.search(plain) and _ADDRESSED.search(plain) and _ORDERED.search(plain)
    return bool(is_order) or weigh(plain) >= ALARM


def _without_mentions(text: str) -> str:
    """The text without short quotations that are given as examples of attacks, as security prose does."""
    if not _MENTIONED.search(text):
        return text

    def unless_mentioned(match: re.Match[str]) -> str:
        before = text[max(0, match.start() - 200) : match.start()]
        return "…" if _MENTIONED.search(before) else match.group()

    return _QUOTED.sub(unless_mentioned, text)
