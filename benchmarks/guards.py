"""Guards: what they find in the tests' corpus, their false alarms on harmless files, and CPU time per kB.

    python benchmarks/guards.py [files]

`aside` is the part of the corpus that was written before the guards were tuned. The harmless files are
sources and documents of Python's standard library and of the installed packages. The last table gives each
guard texts that are made to be slow; its ratio is the time for four times the text, and 4 is linear.
"""

import random
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "policies"))

from corpora import keys, samples

from swink.messages.redact import redact_text
from swink.policies import ContentFilter, PiiRedactor, PromptInjectionGuard

GUARD = PromptInjectionGuard()
REDACTOR = PiiRedactor()
FILTER = ContentFilter(["secret project"], categories=["profanity", "self_harm", "weapons"])
SEARCHES: dict[str, Callable[[str], object]] = {
    "injection": GUARD.finds,
    "personal data": REDACTOR.redact,
    "keys": redact_text,
    "content": FILTER.finds,
}
SHAPES = [
    "a",
    "a-",
    "1.2.3.4-",
    "password=",
    "+1 2125550123",
    "ignore the ",
    "i g n ",
    "<!-- ",
    "%41",
    "QUFB",
    "\u00e9",
    "s*",
]


def main() -> None:
    """Print the three tables."""
    print("caught                       tuned on       aside")
    for name, caught in (
        ("direct", _injections),
        ("indirect", _injections),
        ("personal", _personal),
        ("keys", _keys),
        ("evasions", _words),
    ):
        shares = [
            f"{sum(found)}/{len(found)}" for found in (list(caught(name)), list(caught(f"{name}_aside")))
        ]
        print(f"{name:24}{shares[0]:>13}{shares[1]:>12}")
    texts = _harmless(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
    size = sum(map(len, texts)) / 1000
    print(f"\n{len(texts)} harmless files, {size:,.0f} kB      alarms    µs per kB")
    for name, search in SEARCHES.items():
        began = time.process_time()
        found = [search(text) for text in texts]
        spent = time.process_time() - began
        alarms = sum(
            item is True or (isinstance(item, str) and item != text)
            for item, text in zip(found, texts, strict=True)
        )
        print(f"{name:24}{_named(name, alarms):>13}{spent / size * 1e6:>12,.0f}")
    print("\nfour times the text takes, ×" + "".join(f"{name:>15}" for name in SEARCHES))
    for shape in SHAPES:
        print(f"{shape!r:28}" + "".join(f"{_growth(search, shape):>15.1f}" for search in SEARCHES.values()))


def _injections(name: str) -> Iterable[bool]:
    return (GUARD.finds(text) for _, text in samples(name))


def _personal(name: str) -> Iterable[bool]:
    return (f"[{kind}]" in REDACTOR.redact(text) for kind, text in samples(name))


def _keys(name: str) -> Iterable[bool]:
    return (not any(part in redact_text(text) for part in parts) for _, text, parts in keys(name))


def _words(name: str) -> Iterable[bool]:
    return (
        ContentFilter([family[5:]]).finds(text) is not None
        for family, text in samples(name)
        if family.startswith("word ")
    )


def _harmless(count: int) -> list[str]:
    roots = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib")]
    paths = sorted(
        {
            path
            for root in roots
            for path in root.rglob("*")
            if path.suffix in (".py", ".md", ".txt", ".json", ".toml", ".rst")
        }
    )
    random.Random(1).shuffle(paths)
    texts: list[str] = []
    for path in paths:
        if len(texts) < count and path.is_file() and 100 < path.stat().st_size < 100_000:
            try:
                texts.append(path.read_text("utf-8"))
            except UnicodeDecodeError:
                continue
    return texts


def _named(name: str, alarms: int) -> str:
    # Addresses of authors are personal data, so a number there is no error.
    return f"{alarms} changed" if name == "personal data" else str(alarms)


def _growth(search: Callable[[str], object], shape: str) -> float:
    times: list[float] = []
    for length in (20_000, 80_000):
        text = shape * (length // len(shape))
        began = time.process_time()
        search(text)
        times.append(time.process_time() - began)
    return times[1] / max(times[0], 1e-4)


if __name__ == "__main__":
    main()
