"""What keys look like: formats with a prefix of their own, and private keys in blocks.

Every search begins at a literal that is rare in text, and reads no further than the value that follows: the
time is linear in the text, whatever it holds.
"""

import re
from collections.abc import Iterator
from functools import cache

Span = tuple[int, int]

_PREFIXES = (
    # The prefixes, and what follows them.
    ("sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or- sk-live- sk-test-", r"[A-Za-z0-9_-]{8,}"),
    ("sk- pk- rk- xai- nvapi- pplx-", r"(?:(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{8,}|[A-Za-z0-9]{16,})"),
    (
        "gsk_ hf_ r8_ fw_ rpa_ pcsk_ rnd_ npm_ phc_ phx_ ntn_ tfp_ pnu_ y0_",
        r"(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{16,}+(?!-|[A-Za-z0-9_]*\()",
    ),
    ("pcsk_ figd_ tvly- y0_ tgp_v1_ cfut_ fm2_ fo1_", r"(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_-]{24,}"),
    ("fc- sbp_ sgp_ e2b_", r"[0-9a-f]{32,}(?![A-Za-z0-9])"),
    ("re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    (
        "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_ bb_live_ duffel_live_ duffel_test_",
        r"[A-Za-z0-9_/+=-]{10,}",
    ),
    ("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"[A-Za-z0-9_]{16,}"),
    (
        "glpat- glptt- gldt- glrt- glft- glsoat- glimt- glagent- glcbt- gloas- glffct- GR1348941",
        r"[A-Za-z0-9_.-]{16,}",
    ),
    ("xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxe. xapp- xoxc- xoxd-", r"[A-Za-z0-9%.-]{8,}"),
    ("AIza", r"[A-Za-z0-9_-]{30,}"),
    ("GOCSPX- ya29. 1//0", r"[A-Za-z0-9_.-]{20,}"),
    ("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{12,}(?![a-z])"),
    ("A3T", r"[A-Z0-9]{17}(?![A-Za-z0-9])"),
    ("LTAI AKID AQVN EZAK EZTK", r"(?=[A-Za-z]{0,20}\d)[A-Za-z0-9_-]{16,}"),
    ("SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    ("SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("AC", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    (
        "pypi- dckr_pat_ dckr_oat_ rubygems_ CLOJARS_ ory_pat_ oy2",
        r"(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_-]{20,}",
    ),
    (
        "api_org_ lin_api_ lin_oauth_ secret_ apify_api_ sb_secret_ esecret_",
        r"(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{24,}(?![A-Za-z0-9_])",
    ),
    ("dop_v1_ doo_v1_ dor_v1_ shpat_ shpca_ shppa_ shpss_ sntryu_ waka_", r"[0-9A-Fa-f-]{20,}"),
    ("sq0atp- sq0csp- sq0idp- sandbox-sq0idb-", r"[A-Za-z0-9_-]{20,}"),
    ("EAAA", r"(?<![/+]EAAA)(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_-]{20,}"),
    ("ATATT3 ATCTT3 ATBB ATSTT3", r"(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_=-]{20,}"),
    ("glc_ glsa_ sntrys_ eyJrIjoi", r"(?=[A-Za-z_]{0,30}\d)[A-Za-z0-9_=+/-]{24,}"),
    ("NRAK- NRII- NRJS- NRRA- NRIQ-", r"[A-Za-z0-9_-]{16,}"),
    ("hvs. hvb. hvr.", r"[A-Za-z0-9_-]{20,}"),
    ("s.", r"(?=[A-Za-z]{0,20}\d)[A-Za-z0-9]{24}(?![A-Za-z0-9_.(-])"),
    ("sl.", r"(?=[A-Za-z]{0,20}\d)[A-Za-z0-9_-]{100,}"),
    ("t1.", r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{60,}"),
    ("PMAK-", r"[0-9a-f]{24}-[0-9a-f]{30,}"),
    ("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{36,}"),
    ("AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    ("pscale_tkn_ pscale_pw_ pscale_oauth_ CFPAT- p8e- ops_eyJ lsv2_pt_ lsv2_sk_", r"[A-Za-z0-9_=.-]{24,}"),
    ("dapi", r"[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    ("FLWSECK- FLWSECK_TEST- xkeysib- v1.0-", r"[0-9a-f]{20,}(?:-[A-Za-z0-9]{1,160})?"),
    ("vercel_blob_rw_", r"[A-Za-z0-9_]{20,}"),
    ("pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}(?![0-9a-f])"),
    ("hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/]{16,}"),
    ("discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"\d{16,20}/[A-Za-z0-9_-]{50,}"),
    ("eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
)
_TAILS = tuple((prefix, tail) for prefixes, tail in _PREFIXES for prefix in prefixes.split())
_WITHIN = (
    # A part that every such key has, and the whole key, which begins at a word.
    ("-us", r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),
    (":AA", r"(?<![A-Za-z0-9])\d{8,10}:AA[A-Za-z0-9_-]{32,35}(?![A-Za-z0-9_-])"),
    (".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    ("Q~", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])"),
    (
        ".",
        r"(?<![A-Za-z0-9_.-])[MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6}\."
        r"(?=[A-Za-z_-]{0,20}\d)[A-Za-z\d_-]{27,38}(?![A-Za-z0-9_.-])",
    ),
    (".ingest.", r"(?<=://)[0-9a-f]{32}(?=@[a-z0-9.]{1,40}\.ingest\.)"),
    ("@github.com", r"(?<=://)[A-Za-z0-9_-]{20,}(?=@github\.com)"),
)
_LONG_WORD = re.compile(r"[A-Za-z0-9_.:/~@-]{14,}")
_LIKELY = re.compile(
    r"[0-9]|sk-|gh[oprsu]_|github_pat_|gl(?:pat|ptt|dt|rt)-|xox[a-z][-.]|AIza|AKIA|ASIA|dckr_|_live_|npm_"
)
_BEGIN = re.compile(
    r"----[- ]?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[- ]?----[- ]?"
    r"(?=(?:\s|\\[rn]){0,20}[A-Za-z0-9+/])(?!(?:\s|\\[rn]){0,20}(?:[Xx.*]{3}|\.\.))"
)
_END = re.compile(r"----[- ]?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[- ]?-{4,5}")
_BODY = re.compile(r"[A-Za-z0-9+/=\s\\,:.()-]*")
_PUTTY = re.compile(
    r"PuTTY-User-Key-File-\d: [\w-]{1,40}\s"
    r"(?:[A-Z][\w-]{1,30}: [^\n]{0,200}\n|[A-Za-z0-9+/=]{1,80}\s)*(?:Private-MAC: [0-9a-f]*)?"
)


def find_formats(text: str) -> Iterator[Span]:
    """The places of keys that are recognised by their form alone."""
    # Keys are long words with digits, or with an unmistakable prefix: the prefixes are searched in those few
    # words, not in the whole text.
    words = "\n".join({word for word in _LONG_WORD.findall(text) if _LIKELY.search(word)})
    for prefix, tail in _TAILS:
        if prefix in words:
            yield from (match.span() for match in _format(prefix, tail).finditer(text))
    for part, pattern in _WITHIN:
        if part in words:
            yield from (match.span() for match in _compiled(pattern).finditer(text))
    yield from _blocks(text)


@cache
def _format(prefix: str, tail: str) -> re.Pattern[str]:
    """A prefix at the start of a word, and its tail; the literal comes first, which makes the search fast."""
    return re.compile(rf"{re.escape(prefix)}(?<![A-Za-z0-9_-]{re.escape(prefix)}){tail}")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _blocks(text: str) -> Iterator[Span]:
    """Private keys between their BEGIN and END lines, or to the end of the key if END is missing."""
    position = 0
    if "PRIVATE KEY" in text:
        while (opened := _BEGIN.search(text, position)) is not None:
            body = _BODY.match(text, opened.end())
            assert body is not None
            closed = _END.search(text, opened.end(), body.end() + 100)
            position = closed.end() if closed is not None else body.end()
            yield opened.start() - (text[opened.start() - 1 : opened.start()] == "-"), position
    if "PuTTY-User-Key-File-" in text:
        for match in _PUTTY.finditer(text):
            yield match.span()
