"""Languages: which of the thirty languages of IFEval a text is in, by its letters and its small words."""

import re
from collections import Counter

_SCRIPTS = {
    "bn": r"[\u0980-\u09ff]",
    "pa": r"[\u0a00-\u0a7f]",
    "gu": r"[\u0a80-\u0aff]",
    "ta": r"[\u0b80-\u0bff]",
    "te": r"[\u0c00-\u0c7f]",
    "kn": r"[\u0c80-\u0cff]",
    "ml": r"[\u0d00-\u0d7f]",
    "th": r"[\u0e00-\u0e7f]",
    "ko": r"[\uac00-\ud7af\u1100-\u11ff]",
    "ja": r"[\u3040-\u30ff]",
    "zh": r"[\u4e00-\u9fff]",
    "he": r"[\u0590-\u05ff]",
    "arabic": r"[\u0600-\u06ff]",
    "devanagari": r"[\u0900-\u097f]",
    "cyrillic": r"[\u0400-\u04ff]",
    "latin": r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]",
}
_WORDS = {
    "latin": {
        "en": "the and of to in is that it for you with are this on be as not have was or your we can",
        "es": "el la de que y en los se del las un por con no una su para es al lo como más pero está",
        "pt": "o a de que e do da em um para é com não uma os no se na por mais as dos como mas você são",
        "fr": "le la les de des et en un une du que est pour dans qui sur au pas avec ce il vous nous sont",
        "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es sie",
        "it": "il di che la e un per è in una non del si da con sono della i gli le nel più come anche",
        "pl": "i w na z do się nie to że jest o jak ale po co tak za od przez dla są oraz może",
        "vi": "và của là có trong được cho một với các không những này đến người để khi như từ bạn",
        "sw": "na ya wa kwa ni za katika la kuwa hii cha ili pia kama au yako watu yake vya hiyo",
        "fi": "ja on ei se että hän oli ovat joka mutta niin myös kun tai ole sen voi jos kuin tämä",
    },
    "cyrillic": {
        "ru": "и в не на что с по это как для но к из все так от ы э он она они мы вы ё",
        "uk": "і в не на що з до та як це для але є від ми ви він вона вони їх щоб або ї",
        "bg": "и на да в се за не е от с че по това как са но до ще ли като със той тя те",
    },
    "arabic": {
        "ar": "في من على أن إلى هذا التي ما لا هو هي كان عن مع أو هذه ذلك كل",
        "fa": "و در به از که این را با است برای آن یک خود تا بر می شود ها است",
        "ur": "کے میں کی ہے اور سے کا کو اس پر نے ہیں کہ یہ ایک بھی ہو تھا",
    },
    "devanagari": {
        "hi": "के में की है और से का को इस पर ने हैं कि यह एक भी हो था नहीं लिए",
        "mr": "आहे आणि या च्या ते ही हे तो की मध्ये आहेत नाही होते एक साठी असे",
        "ne": "छ र को मा का हो पनि लागि गर्न यो छन् हुन्छ एक गरेको भएको तथा",
    },
}
_LETTERS = {"ur": "ٹڈڑںےہھ", "fa": "پچژگ", "uk": "їієґ", "ru": "ыэё", "bg": "ъ", "vi": "ăđơưạảấầẩậắằặẹẻẽếềểệ"}


def language_of(text: str) -> str | None:
    """The code of the language of a text, such as "en"; None if it has no letters."""
    counts = Counter({name: len(re.findall(letters, text)) for name, letters in _SCRIPTS.items()})
    if counts["ja"]:  # Japanese has Chinese characters too
        counts["ja"] += counts.pop("zh")
    script, number = counts.most_common(1)[0]
    if not number:
        return None
    if script not in _WORDS:
        return script
    words = Counter(re.findall(r"[^\W\d_]+(?:[\u0900-\u097f]+)?", text.lower()))

    def score(name: str) -> int:
        letters = sum(text.lower().count(letter) for letter in _LETTERS.get(name, ""))
        return letters + sum(words[word] for word in set(_WORDS[script][name].split()))

    return max(_WORDS[script], key=score)
