"""How much the guards catch of the corpus beside these tests, and what they leave alone.

The parts named `aside` were written before the guards were tuned and are only ever counted; those named `later` by somebody else,
after it.
"""

import sysconfig
from pathlib import Path

import pytest
from corpora import keys, samples
from tests.counts import MORE

from swink.messages.redact import redact_text
from swink.policies import ContentFilter, PiiRedactor, PromptInjectionGuard

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("direct", 0.97),
        ("direct_aside", 0.9),
        ("direct_later", 0.92),
        ("indirect", 0.94),
        ("indirect_aside", 0.9),
        ("indirect_later", 0.88),
    ],
)
def test_injections_are_found(name: str, share: float):
    guard = PromptInjectionGuard()
    found = [guard.finds(text) for _, text in samples(name)]
    assert sum(found) >= share * len(found)


@pytest.mark.parametrize("name", ["personal", "personal_aside"])
def test_every_kind_of_personal_data_is_found(name: str):
    redactor = PiiRedactor()
    missed = [(kind, text) for kind, text in samples(name) if f"[{kind}]" not in redactor.redact(text)]
    assert not missed


@pytest.mark.parametrize(("name", "share"), [("keys", 0.98), ("keys_aside", 0.98)])
def test_key_formats_are_redacted(name: str, share: float):
    hidden = [not any(part in redact_text(text) for part in parts) for _, text, parts in keys(name)]
    assert sum(hidden) >= share * len(hidden)


@pytest.mark.parametrize(("name", "share"), [("evasions", 0.96), ("evasions_aside", 0.96)])
def test_listed_words_are_found_in_disguise(name: str, share: float):
    found = [
        ContentFilter([family[5:]]).finds(text) is not None
        for family, text in samples(name)
        if family.startswith("word ")
    ]
    assert sum(found) >= share * len(found)


@pytest.mark.parametrize("text", [text for _, text in samples("harmless")])
def test_harmless_text_raises_no_alarm(text: str):
    assert not PromptInjectionGuard().finds(text)
    assert redact_text(text) == text


@pytest.mark.parametrize("text", [text for family, text in samples("evasions") if family == "harmless"])
def test_words_that_only_resemble_a_listed_one_are_let_pass(text: str):
    assert ContentFilter(["secret", "project x", "ass", "fuck"]).finds(text) is None


@pytest.mark.more
def test_source_files_raise_no_alarm():
    """On the standard library of whichever Python runs this; a handful of files may differ between versions."""
    paths = [
        path
        for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        if path.stat().st_size < 25_000
    ][: 120 if MORE else 30]
    paths += sorted((ROOT / "src" / "swink" / "messages").glob("*.py"))
    guard = PromptInjectionGuard()
    alarms = [path.name for path in paths if guard.finds(path.read_text("utf-8"))]
    assert len(alarms) <= len(paths) // 100, alarms
    changed = [path.name for path in paths if redact_text(text := path.read_text("utf-8")) != text]
    assert len(changed) <= len(paths) // 100, changed
