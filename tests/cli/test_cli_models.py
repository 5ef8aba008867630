"""`swink models`: what is listed, fetched and deleted."""

import os
from pathlib import Path

from command_line import Place

from swink import catalog
from swink.local import KNOWN

SIZE = KNOWN["smollm2-135m"].size


def own_cache(place: Place, *, size: int | None = None) -> tuple[dict[str, str], Path]:
    """A cache of the test's own, with a file of the right name and the given size in it."""
    file = place.home / "cache" / "models" / "smollm2-135m.gguf"
    if size is not None:
        file.parent.mkdir(parents=True)
        with file.open("wb") as sparse:
            os.truncate(sparse.fileno(), size)
    return {"SWINK_CACHE_DIR": str(place.home / "cache")}, file


def test_the_list_shows_limits_prices_their_date_and_what_is_here(place: Place):
    env, file = own_cache(place, size=SIZE)
    done = place.swink("models", "list", env=env)
    assert done.code == 0
    rows = {line.split()[0]: line.split() for line in done.out.splitlines() if line.startswith(("openai:", "mistral:", "local:"))}
    assert rows["openai:gpt-5"][1:] == ["400,000", "128,000", "1.25", "10", "0.125", "no"]
    assert rows["mistral:mistral-small-latest"][-2] == "-"
    assert rows["local:smollm2-135m"][1:] == ["8,192", "98.4", "MB", str(file)]
    assert f"as of {catalog.catalog_date()}" in done.out
    assert "\x1b" not in done.out


def test_the_list_of_one_provider_knows_who_has_a_key(place: Place):
    done = place.swink("models", "list", "xai", env={"XAI_API_KEY": "x"})
    assert [line.split()[-1] for line in done.out.splitlines() if line.startswith("xai:")] == ["yes"]
    assert "openai:" not in done.out


def test_a_model_that_is_here_is_not_pulled_again(place: Place):
    env, file = own_cache(place, size=SIZE)
    done = place.swink("models", "pull", "local:smollm2-135m", env=env)
    assert (done.code, done.out) == (0, f"{file}\n")
    assert done.err == "swink: local:smollm2-135m is already here\n"


def test_a_broken_download_says_what_is_kept_and_how_to_go_on(place: Place):
    env, file = own_cache(place)
    nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(place.here), "PIP_CONFIG_FILE": os.devnull, "PYTHONWARNINGS": "default"}
    done = place.swink("models", "pull", "smollm2-135m", env={**env, **nowhere})
    assert done.code == 1
    assert "No half file is kept. Start it again with: swink models pull smollm2-135m" in done.err
    assert not file.exists()


def test_a_pulled_model_is_deleted(place: Place):
    env, file = own_cache(place, size=SIZE)
    done = place.swink("models", "rm", "smollm2-135m", env=env)
    assert (done.code, done.err) == (0, "swink: local:smollm2-135m deleted, 98.4 MB freed\n")
    assert not file.exists()


def test_what_was_never_pulled_cannot_be_deleted(place: Place):
    env, _ = own_cache(place)
    done = place.swink("models", "rm", "smollm2-135m", env=env)
    assert done.code == 1
    assert "nothing to remove" in done.err or "pip uninstall" in done.err


def test_only_local_models_are_pulled(place: Place):
    done = place.swink("models", "pull", "openai:gpt-5")
    assert done.code == 2
    assert "nothing to keep on this machine" in done.err
