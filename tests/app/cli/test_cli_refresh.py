"""`swink models update` and `swink models show`: newer prices, through the user's own package index."""

import os
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from command_line import call
from tests.counts import MORE

from swink.app.cli.refresh import UpdateFailed, convert_wheel, parse, save
from swink.models import catalog
from swink.models.data.copies import BUILT_IN, read
from swink.models.data.genaiprices import MEMBER, PACKAGE, DataError


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The user's list, in a home of its own, and an index that has only what the test puts into it."""
    for name, value in {
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    catalog.forget()
    yield tmp_path / "data" / "swink" / "models.json"
    catalog.forget()


def wheel(directory: Path, text: str, version: str = "999.0", member: str = MEMBER) -> Path:
    path = directory / f"genai_prices-{version}-py3-none-any.whl"
    info = f"genai_prices-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, text)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_data_that_cannot_be_used_changes_nothing_and_is_never_run(own: Path, tmp_path: Path):
    ran = tmp_path / "ran"
    wheel(tmp_path, f"open({str(ran)!r}, 'w')\nproviders = [open({str(ran)!r}, 'w')]\n")
    with pytest.raises(DataError, match="line 2 has something that is no plain value"):
        call("models", "update")
    assert not ran.exists()
    assert not own.exists()


@pytest.mark.skipif(not MORE, reason="starts pip; make test-more runs it")
@pytest.mark.more
def test_an_update_is_used_until_it_is_reset(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(UpdateFailed, match=r"No matching distribution .* Nothing has changed. Check the"):
        call("models", "update")
    text = Path(str(distribution(PACKAGE).locate_file(MEMBER))).read_text("utf-8")
    wheel(tmp_path, text)
    assert call("models", "update") == 0
    shown = capsys.readouterr()
    assert shown.out == f"{own}\n"
    assert "(genai-prices 999.0)" in shown.err
    assert own.read_bytes().replace(b"genai-prices 999.0", read(BUILT_IN).source.encode()) == (
        BUILT_IN.read_bytes()
    )
    catalog.forget()
    assert call("models", "list", "xai") == 0
    assert f"genai-prices 999.0 in {own}" in capsys.readouterr().out


def test_a_reset_goes_back_to_the_list_of_swink(own: Path, capsys: pytest.CaptureFixture[str]):
    save(own, BUILT_IN.read_bytes())
    assert call("models", "update", "--reset") == 0
    assert call("models", "update", "--reset") == 0
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("swink: deleted; the list of 20")
    assert second.startswith("swink: there is no list of your own; ")
    assert not own.exists()


def test_a_wheel_that_is_broken_or_another_is_named(tmp_path: Path):
    with pytest.raises(UpdateFailed, match=r"has no genai_prices/data\.py: a newer swink may"):
        convert_wheel(wheel(tmp_path, "", member="genai_prices/data.json"))
    broken = wheel(tmp_path, "providers = []" * 1000)
    broken.write_bytes(broken.read_bytes()[:-50])
    with pytest.raises(UpdateFailed, match="arrived damaged"):
        convert_wheel(broken)
    locked = wheel(tmp_path, "providers = []")
    data = bytearray(locked.read_bytes())
    data[6] |= 1  # encrypted, it says
    data[data.index(b"PK\x01\x02") + 8] |= 1
    locked.write_bytes(data)
    with pytest.raises(UpdateFailed, match="arrived damaged"):
        convert_wheel(locked)


def test_a_list_that_has_lost_its_models_is_not_used():
    made = BUILT_IN.read_bytes()
    assert parse(made).source.startswith("genai-prices ")
    start = made.index(b'"x-ai":[') + len(b'"x-ai":[')
    lost = made[:start] + made[made.index(b"\n]", start) :]
    with pytest.raises(UpdateFailed, match="0 models of x-ai where there were"):
        parse(lost)


def test_a_list_that_cannot_be_stored_leaves_nothing_behind(tmp_path: Path):
    path = tmp_path / "models.json"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(UpdateFailed, match=r"cannot be stored: .*; nothing has changed"):
        save(path, b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["models.json"]


def test_without_a_home_an_update_says_what_to_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(UpdateFailed, match="set HOME or XDG_DATA_HOME"):
        call("models", "update")


def test_all_that_is_known_of_a_model_is_shown(own: Path, capsys: pytest.CaptureFixture[str]):
    assert call("models", "show", "openai:gpt-5.4") == 0
    rows = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    rows = {name.strip(): text.strip() for name, text in rows.items()}
    assert rows["context"] == "1,050,000"
    assert rows["json schema"] == "yes"
    assert rows["structured output"] == "?"
    assert rows["$ per million"] == "in 2.5, out 15, cache read 0.25"
    assert rows["over 272,000"] == "in 5, out 22.5, cache read 0.5"
    assert rows["priority"] == "in 5, out 30, cache read 0.5"
    assert rows["$ per web search"] == "0.01"
    assert call("models", "show", "ollama:qwen3") == 0
    shown = capsys.readouterr().out
    assert "price              ?" in shown, "unknown, never 0"


def test_a_model_that_the_catalog_lacks_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str]):
    assert call("models", "show", "openai:gpt-5-minni") == 0
    shown = capsys.readouterr()
    assert "yes" not in shown.out
    assert "openai:gpt-5-minni is not in the catalog" in shown.err
    assert "openai:gpt-5-mini" in shown.err.split("near it are")[1]
