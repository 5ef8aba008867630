"""`swink models`: what is listed, fetched and deleted."""

import os
import signal
import socket
from pathlib import Path

import pytest
from command_line import Place, call

from swink.app.cli.model_commands import parse_local_name
from swink.errors import UnknownModel
from swink.local import KNOWN, LocalModelError, PullFailed
from swink.messages import ModelSpec
from swink.models import catalog

SIZE = KNOWN["smollm2-135m"].size


def own_cache(place: Place, *, size: int | None = None) -> tuple[dict[str, str], Path]:
    """A cache of the test's own, with a file of the right name and the given size in it."""
    file = place.home / "cache" / "models" / "smollm2-135m.gguf"
    if size is not None:
        file.parent.mkdir(parents=True)
        with file.open("wb") as sparse:
            os.truncate(sparse.fileno(), size)
    return {"SWINK_CACHE_DIR": str(place.home / "cache")}, file


@pytest.fixture
def file(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process keeps the default model: an empty cache, and an empty configuration."""
    env, file = own_cache(place)
    for name, value in {**env, "XDG_CONFIG_HOME": str(place.home)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(place.here)  # to look through the repository takes most of the doctor's time
    return file


@pytest.fixture
def pulled(file: Path) -> Path:
    """A file of the right size under the name of the default model."""
    file.parent.mkdir(parents=True)
    with file.open("wb") as sparse:
        os.truncate(sparse.fileno(), SIZE)
    return file


def test_the_list_shows_limits_prices_their_date_and_what_is_here(place: Place):
    env, file = own_cache(place, size=SIZE)
    done = place.swink("models", "list", env=env)
    assert done.code == 0
    rows = {
        line.split()[0]: line.split()
        for line in done.out.splitlines()
        if line.startswith(("openai:", "mistral:", "local:"))
    }
    assert rows["openai:gpt-5"][1:] == ["400,000", "128,000", "1.25", "10", "0.125", "no"]
    assert rows["mistral:mistral-large-latest"][-2] == "-", "no price of its own for cached tokens"
    assert rows["mistral:mistral-large-latest"][2] == "?", "an unknown limit"
    assert rows["local:smollm2-135m"][1:] == ["8,192", "98.4", "MB", str(file)]
    assert f"as of {catalog.catalog_date()}" in done.out
    assert "\x1b" not in done.out


def test_the_list_of_one_provider_knows_who_has_a_key(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("XAI_API_KEY", "x")
    assert call("models", "list", "xai") == 0
    shown = capsys.readouterr().out
    assert [line.split()[-1] for line in shown.splitlines() if line.startswith("xai:")][:1] == ["yes"]
    assert "openai:" not in shown


def test_a_provider_without_a_catalog_and_one_that_is_none(file: Path, capsys: pytest.CaptureFixture[str]):
    assert call("models", "list", "azure") == 0
    assert "name yours as azure:MODEL" in capsys.readouterr().out
    with pytest.raises(UnknownModel, match="unknown provider 'nobody'; swink models list"):
        call("models", "list", "nobody")


def test_the_list_names_every_provider(file: Path, capsys: pytest.CaptureFixture[str]):
    assert call("models", "list") == 0
    shown = capsys.readouterr().out.replace(":", " ").replace(",", " ").replace(".", " ").split()
    assert set(catalog.PROVIDERS) <= set(shown)


def test_a_price_that_is_unknown_is_not_nought():
    from swink.app.cli.model_commands import _row

    assert _row(ModelSpec("openai", "unheard-of"))[3:6] == ("?", "?", "?")


def test_a_model_that_is_here_is_not_pulled_again(pulled: Path, capsys: pytest.CaptureFixture[str]):
    assert call("models", "pull", "local:smollm2-135m") == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (f"{pulled}\n", "swink: local:smollm2-135m is already here\n")


def test_a_broken_download_says_what_is_kept_and_how_to_go_on(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        PullFailed, match=r"No half file is kept. Start it again with: swink models pull smollm2-135m"
    ):
        call("models", "pull", "smollm2-135m")
    assert not file.exists()


def test_a_pulled_model_is_deleted(pulled: Path, capsys: pytest.CaptureFixture[str]):
    assert call("models", "rm", "smollm2-135m") == 0
    assert capsys.readouterr().err == "swink: local:smollm2-135m deleted, 98.4 MB freed\n"
    assert not pulled.exists()


def test_what_was_never_pulled_cannot_be_deleted(file: Path):
    with pytest.raises(LocalModelError, match=r"nothing to remove|pip uninstall"):
        call("models", "rm", "smollm2-135m")


def test_only_local_models_are_pulled():
    with pytest.raises(UnknownModel, match="nothing to keep on this machine"):
        call("models", "pull", "openai:gpt-5")


@pytest.mark.parametrize("command", [("models", "pull"), ("models", "rm"), ("serve", "model")])
@pytest.mark.parametrize(
    ("name", "meant"), [("lcoal:smollm2-135m", "local:smollm2-135m"), ("smollm2:135m", "local:smollm2-135m")]
)
def test_a_local_model_of_an_unknown_provider_is_no_local_model(
    command: tuple[str, ...], name: str, meant: str
):
    with pytest.raises(
        UnknownModel, match=rf"unknown provider .* in '{name}'; did you mean {meant}\? swink models list"
    ):
        call(*command, name)


@pytest.mark.parametrize("name", ["dir/a:b.gguf", "C:\\model.gguf", "hf/owner/repo:x", "here:it.gguf"])
def test_a_file_with_a_colon_in_its_name_names_no_provider(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here:it.gguf").touch()
    assert parse_local_name(name) == name


def test_ctrl_c_ends_a_download_and_the_child_that_does_it(place: Place):
    env, file = own_cache(place)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = {
            "PIP_INDEX_URL": f"http://127.0.0.1:{silent.getsockname()[1]}/",
            "PIP_FIND_LINKS": "",
            "PIP_CONFIG_FILE": os.devnull,
        }
        process = place.start(
            "models", "pull", "smollm2-135m", env={**env, **index, "PYTHONWARNINGS": "default"}
        )
        silent.settimeout(60)
        child, _ = silent.accept()
        with child:
            child.settimeout(30)
            assert child.recv(4) == b"GET "
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
            while child.recv(4096):  # until its end, which is the child's
                pass
    assert process.returncode == 130
    assert (
        err.decode()
        .splitlines()[-1]
        .startswith("swink: interrupted; the next swink models pull smollm2-135m")
    )
    assert not file.exists()
    assert b"Traceback" not in err
