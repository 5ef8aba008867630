"""Credentials in the tool chains of a home: commands see the tool chains, and not these."""

import sys
from pathlib import Path
from typing import Any

import pytest
from calling import call, shell
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import in_cells

from swink.tools import Tool, Workspace
from swink.tools.coding import toolchains
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.credentials import (
    SAMPLE,
    holds_credentials,
    is_known_place,
    is_unsuspicious,
    shows_credentials,
    suspect,
)
from swink.tools.coding.sandbox import Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")
backends = pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
on_bubblewrap = in_cells("backend", ["bubblewrap", "landlock"], every=2)
on_landlock = in_cells("backend", ["landlock", "bubblewrap"], every=2)

PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n"
HIDDEN = {
    ".local/share/uv/credentials/credentials.toml": "CANARY",
    ".local/share/uv/credentials/other": "CANARY",
    ".local/share/uv/.env": "CANARY",
    ".dotnet/corefx/cryptography/x509stores/my/1234.pfx": "CANARY",
    ".dotnet/corefx/cryptography/x509stores/my/unnamed": "CANARY",
    ".dotnet/tools/.env": "CANARY",
    ".conda/.condarc": "channels:\n  - https://conda.example.org/t/CANARY-4f1d/main\n",
    "miniconda3/.condarc": "channel_alias: https://me:CANARY@conda.example.org\n",
    "miniconda3/condarc.d/work.yml": "channels: [https://conda.example.org/t/CANARY-4f1d/main]\n",
    ".cargo/credentials.toml": "CANARY",
    ".cargo/credentials": "CANARY",
    ".cargo/config.toml": '[registries.work]\ntoken = "CANARY"\n',
    ".cargo/config": '[registries]\nwork = { index = "x", token = "CANARY" }\n',
    ".cargo/.netrc": "CANARY",
    ".npm-global/.npmrc": "CANARY",
    ".npm-global/etc/npmrc": "//registry.example.org/:_authToken=CANARY\n",
    ".nvm/versions/node/v20.1.0/etc/npmrc": "_password=CANARY\n",
    ".gem/credentials": "CANARY",
    "go/src/example.org/me/server/.env": "CANARY",
    "go/.netrc": "CANARY",
    "bin/deploy.env": "CANARY",
    "bin/id_rsa": "CANARY",
    "bin/key.pem": PRIVATE_KEY,
    ".bun/bunfig.toml": '[install.scopes]\nwork = { token = "CANARY" }\n',
    ".volta/.yarnrc.yml": "npmAuthToken: CANARY\n",
    "tool/prefix/.env": "CANARY",
    "tool/prefix/pip.conf": "[global]\nindex-url = https://me:CANARY@example.org/simple\n",
}
SHOWN = {
    ".cargo/bin/tool": "#!/bin/sh\necho SHOWN\n",
    ".cargo/env": "SHOWN",
    ".rbenv/config.toml": "SHOWN",
    ".conda/environments.txt": "SHOWN",
    "miniforge3/.condarc": "channels:\n  - conda-forge # SHOWN\n",
    ".asdf/cert.pem": "-----BEGIN CERTIFICATE-----\nSHOWN\n",
    ".cargo/registry/src/index/openssl-1/test/key.pem": PRIVATE_KEY.replace("CANARY", "SHOWN"),
    "tool/prefix/lib/library.py": "SHOWN",
    "tool/prefix/etc/npmrc": "prefix=/x SHOWN\n",
}


def lay(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with tool chains, one of them found by the PATH alone, and a project."""
    home = tmp_path / "home"
    for name in ("project", "tool/prefix/bin"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/tool/prefix/bin:/usr/local/bin:/usr/bin:/bin")
    return home


def box_in(home: Path, backend: Any, **options: Any) -> Sandbox:
    return Sandbox(home / "project", backends=(backend,), environment={"REAL": str(home)}, **options)


@backends
async def test_commands_read_no_credentials_of_tool_chains(home: Path, backend: Any, need):
    need(backend)
    lay(home, SHOWN)
    lay(home, HIDDEN)
    box = box_in(home, backend)
    reads = "; ".join(f'cat "$REAL/{name}"' for name in (*HIDDEN, *SHOWN))
    _, output = await shell(box, f'{reads}; grep -rh CANARY "$REAL" "$REAL"/*/ "$REAL"/.*/ 2>&1')
    assert "CANARY" not in output
    assert output.count("SHOWN") >= len(SHOWN)
    lay(home, {"bin/later/.env": "CANARY"})
    assert "CANARY" not in (await shell(box, 'cat "$REAL/bin/later/.env"'))[1]


@on_bubblewrap
async def test_cargo_reads_its_configuration_unless_there_is_a_token(home: Path, backend: Any, need):
    need(backend)
    box = box_in(home, backend)
    read = 'cat "$REAL/.cargo/config.toml"'
    plain = '[net]\ngit-fetch-with-cli = true\n[registry]\nglobal-credential-providers = ["cargo:token"]\n'
    lay(home, {".cargo/config.toml": plain})
    assert await shell(box, read) == (0, plain)
    lay(home, {".cargo/config.toml": plain + '[registries.work]\n"token" = "CANARY"\n'})
    assert "CANARY" not in (await shell(box, read))[1]
    lay(home, {".cargo/config.toml": plain})
    assert await shell(box, read) == (0, plain)


@on_landlock
async def test_the_result_says_which_credential_of_a_tool_chain_was_hidden(home: Path, backend: Any, need):
    need(backend)
    lay(home, {".cargo/config.toml": HIDDEN[".cargo/config.toml"], ".cargo/bin/x": "x"})
    bash = bash_for(home, backend)
    path = f"{home}/.cargo/config.toml"
    assert f"readable=['{path}']" in (await call(bash, command=f"cat {path}")).text
    assert "readable" not in (await call(bash, command="echo my own config.toml")).text
    assert "CANARY" in (await call(bash_for(home, backend, readable=[path]), command=f"cat {path}")).text
    allowed = bash_for(home, backend, readable=["~/.cargo"])
    assert "CANARY" in (await call(allowed, command=f"cat {path}")).text


def bash_for(home: Path, backend: Any, **options: Any) -> Tool:
    return bash_tools(Workspace(home / "project"), box_in(home, backend, **options))[0]


def test_package_stores_are_not_searched(tmp_path: Path):
    """They hold what registries publish, keys for tests among it, in hundreds of thousands of files."""
    for name in ("lib/node_modules/a", "registry/src/a", "pkg/mod/a", "lib/python3.12/site-packages/a"):
        lay(tmp_path, {f"{name}/.env": "x"})
    lay(tmp_path, {"etc/.env": "x"})
    assert toolchains.search([str(tmp_path)]) == [str(tmp_path / "etc/.env")]


def test_what_changes_in_a_tool_chain_is_seen(tmp_path: Path):
    lay(tmp_path, {"a/config.toml": "x", "a/b/.condarc": "channels: []\n"})
    search = lambda: toolchains.search([str(tmp_path)])  # noqa: E731
    assert search() == []
    lay(tmp_path, {"a/b/.condarc": "channels: [https://x/t/abcdefgh/y]\n", "a/new/.netrc": "x"})
    assert search() == [str(tmp_path / "a/b/.condarc"), str(tmp_path / "a/new/.netrc")]
    (tmp_path / "a/new/.netrc").unlink()
    assert search() == [str(tmp_path / "a/b/.condarc")]


def test_links_in_a_tool_chain_hide_what_they_lead_to(tmp_path: Path):
    lay(tmp_path, {"chain/plain": "x", "elsewhere/secret": "x"})
    (tmp_path / "chain/.env").symlink_to("plain")
    (tmp_path / "chain/.netrc").symlink_to(tmp_path / "elsewhere/secret")
    (tmp_path / "chain/loop").symlink_to("loop")
    found = toolchains.search([str(tmp_path / "chain")])
    assert found == [str(tmp_path / "chain/plain"), str(tmp_path / "elsewhere/secret")]


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        (".cargo/config.toml", 'token = "abc"', True),
        (".cargo/config.toml", '[registries]\nx = {token="abc"}', True),
        (".cargo/config.toml", '[http]\nproxy = "http://me:abc@proxy:1"', True),
        (".cargo/config.toml", '[source.x]\nregistry = "https://example.org/index"', False),
        (".cargo/config.toml", 'credential-provider = "cargo:token"', False),
        (".cargo/config.toml", "[build]\n# token = none\nrustflags = []", False),
        (".yarnrc.yml", "npmAuthToken: abc", True),
        (".yarnrc.yml", 'npmAuthToken: "${NPM_TOKEN}"', False),
        (".yarnrc.yml", "nodeLinker: node-modules", False),
        ("etc/npmrc", "//r.example.org/:_authToken=${NPM_TOKEN}", False),
        ("etc/npmrc", "//r.example.org/:_authToken=abc", True),
        (".condarc", "channels: [defaults]", False),
        (".condarc", "proxy_servers:\n  http: http://me:abc@proxy", True),
        ("pip.conf", "[global]\nindex-url = https://example.org/simple", False),
        ("pip.conf", "[global]\nindex-url = https://token@example.org/simple", True),
        ("config.toml", 'token = "abc"', False),
    ],
)
def test_content_decides_about_configuration(tmp_path: Path, name: str, text: str, hidden: bool):
    lay(tmp_path, {name: text})
    assert holds_credentials(str(tmp_path / name)) is hidden


@pytest.mark.parametrize(
    "name",
    [".cargo/config", ".cargo/config.toml", "cargo/config.toml", ".condarc", "condarc", "condarc.d/a.yml", ".yarnrc.yml", "bunfig.toml", "pip.conf", "npmrc"],
)  # fmt: skip
def test_the_quick_look_at_a_name_passes_over_no_settings(name: str):
    assert suspect(name) == suspect(f"a/{name}") == suspect(f"a/{name}~") == "perhaps"
    assert is_known_place(name.rpartition("/")[0] + "/") or not is_unsuspicious(name.rpartition("/")[2])


@in_cells(
    "text",
    ["\n", "http://", "http://a/t/", "token", "token=", "token= ", "' \t", "secret_key", "a:b@", "https://a"],
    every=5,
)
def test_hostile_content_does_not_take_long(text: str):
    for end in ("", "\n", "$"):  # eight times what is read of a file: its square would take minutes
        shows_credentials(".cargo/config.toml", (text * 8 * SAMPLE)[: 8 * SAMPLE].encode() + end.encode())


@given(st.binary(max_size=300))
def test_any_content_gets_a_verdict(head: bytes):
    for name in (".cargo/config.toml", "a.pem", "a.key"):
        assert shows_credentials(name, head) in (True, False)
    assert shows_credentials(".cargo/config.toml", head + b'\ntoken = "CANARY"\n')
