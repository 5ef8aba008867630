"""Credential files in the workspace: no tool and no sandboxed command reads them unless they are named."""

import os
from pathlib import Path

import pytest
from calling import call, complaint, named, shell
from tests.counts import in_cells

from swink.tools import ToolError, Workspace, coding_tools
from swink.tools.coding.credentials import holds_credentials, is_known_place, is_unsuspicious
from swink.tools.coding.sandbox import Sandbox, SandboxUnavailable

PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n"
HIDDEN = [
    ".env", ".env.local", ".env.production", ".ENV", ".envrc", "deploy/prod.env", ".envs/.production/.django", "id_rsa", "keys/id_ed25519",
    "a.p12", "a.pfx", "a.jks", "passwords.kdbx", "a.ppk", "AuthKey_1.p8", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials",
    ".pgpass", ".htpasswd", ".aws/credentials", "sub/.docker/config.json", ".kube/config", ".ssh/work", "service-account.json",
    "my-service-account-key.json", "client_secret_1.json", "terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", "secrets.yaml",
    "config/secrets.yml", "credentials.json", "config/master.key", "x-firebase-adminsdk-1.json", ".vault_pass", ".bash_history",
    ".env~", "prod.env~", "id_rsa~", "credentials.json.bak", ".credentials.json.swp", ".npmrc.orig", "secrets.yaml.old", "a.p12.bak",
]  # fmt: skip
SHOWN = [
    ".env.example", ".env.sample", ".env.template", ".env.local.example", "example.env", "secrets.example.yaml", "id_rsa.pub", "environment.py",
    "env.py", "secrets.py", "credentials.md", "keys.py", "monkey.txt", "config.json", "config", "settings.xml", ".environment", "auth.py",
    "terraform.tfvars.example", ".ssh/id_rsa.pub", "package.json", ".gitignore", "keyboard.keymap",
    "notes.bak", "main.py~", ".env.example~", "settings.xml.old", "x.tmp",
]  # fmt: skip


def lay(root: Path, name: str, text: str = "CANARY") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@in_cells("name", HIDDEN, every=8)
async def test_file_tools_do_not_show_credentials(tmp_path: Path, name: str):
    lay(tmp_path, name)
    tools = coding_tools(tmp_path, sandbox="none")
    said = await complaint(named(tools, "read_file"), path=name)
    assert "CANARY" not in said
    assert f"readable=[{name!r}]" in said
    for pattern in ("CANARY", "CAN.RY"):
        assert "CANARY" not in (await call(named(tools, "search_text"), pattern=pattern)).text
    allowed = coding_tools(tmp_path, sandbox="none", readable=[name])
    assert "CANARY" in (await call(named(allowed, "read_file"), path=name)).text


@in_cells("name", SHOWN, every=3)
async def test_what_only_looks_like_credentials_is_shown(tmp_path: Path, name: str):
    lay(tmp_path, name)
    assert "CANARY" in (await call(named(coding_tools(tmp_path), "read_file"), path=name)).text


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        ("a.pem", PRIVATE_KEY, True),
        ("a.pem", "-----BEGIN CERTIFICATE-----\nCANARY\n-----END CERTIFICATE-----\n", False),
        ("chain.pem", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n" + PRIVATE_KEY, True),
        ("server.key", PRIVATE_KEY.replace("PRIVATE", "RSA PRIVATE"), True),
        ("server.key", "-----BEGIN PUBLIC KEY-----\nCANARY\n-----END PUBLIC KEY-----\n", False),
        ("production.key", "CANARY0123456789abcdef", True),
        ("messages.key", "the CANARY of a catalogue\nanother\n", False),
        ("id_rsa_work", PRIVATE_KEY.replace("PRIVATE", "OPENSSH PRIVATE"), True),
        ("id_rsa_test.py", "CANARY = 1", False),
        ("backup.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nCANARY", True),
        ("backup.asc", "-----BEGIN PGP SIGNATURE-----\nCANARY", False),
    ],
)
async def test_content_decides_where_the_name_does_not(tmp_path: Path, name: str, text: str, hidden: bool):
    lay(tmp_path, name, text)
    tools = coding_tools(tmp_path, sandbox="none")
    if hidden:
        assert "readable=" in await complaint(named(tools, "read_file"), path=name)
    else:
        assert "CANARY" in (await call(named(tools, "read_file"), path=name)).text
    assert ("CANARY" in (await call(named(tools, "search_text"), pattern="CANARY")).text) is not hidden
    assert holds_credentials(str(tmp_path / name)) is hidden


@pytest.mark.parametrize("name", [*HIDDEN, "a.pem", "a.key", "id_rsa.old", "a.tfstate.1"])
def test_the_quick_look_at_a_name_passes_over_nothing(name: str):
    assert is_known_place(name.rpartition("/")[0] + "/") or not is_unsuspicious(name.rpartition("/")[2])


async def test_a_file_that_appears_later_counts_too_and_its_name_may_be_listed(tmp_path: Path):
    tools = coding_tools(tmp_path, sandbox="none")
    lay(tmp_path, "sub/.env")
    assert "readable=" in await complaint(named(tools, "read_file"), path="sub/.env")
    assert "sub/.env" in (await call(named(tools, "find_files"), pattern="*env*")).text
    assert "CANARY" not in (await call(named(tools, "search_text"), pattern="CANARY", path="sub")).text
    assert "readable=" in await complaint(named(tools, "search_text"), pattern="CANARY", path="sub/.env")


async def test_links_to_credentials_are_not_followed(tmp_path: Path):
    lay(tmp_path, ".env")
    lay(tmp_path, "plain")
    (tmp_path / "innocent").symlink_to(".env")
    (tmp_path / ".env.linked").symlink_to("plain")
    tools = coding_tools(tmp_path, sandbox="none")
    for path in ("innocent", ".env.linked"):
        assert "CANARY" not in await complaint(named(tools, "read_file"), path=path)


async def test_a_new_credential_file_may_be_written_and_an_old_one_not(tmp_path: Path):
    lay(tmp_path, ".env")
    tools = coding_tools(tmp_path, sandbox="none")
    for refused in (
        await complaint(named(tools, "write_file"), path=".env", content="x"),
        await complaint(named(tools, "edit_file"), path=".env", edits=[{"old": "missing", "new": "x"}]),
    ):
        assert "CANARY" not in refused
        assert "readable=" in refused
    await call(named(tools, "write_file"), path=".env.new", content="x")


def test_a_directory_may_be_named_readable(tmp_path: Path):
    lay(tmp_path, "fixtures/a/.env")
    for readable in (["fixtures"], [tmp_path / "fixtures"], ["."]):
        with Workspace(tmp_path, readable=readable).at("fixtures/a/.env") as spot:
            os.close(spot.open_file())
    with (
        pytest.raises(ToolError, match="readable="),
        Workspace(tmp_path, readable=["fix"]).at("fixtures/a/.env"),
    ):
        pass


async def test_commands_cannot_read_credentials(tmp_path: Path, need):
    need("bubblewrap")
    for name in HIDDEN:
        lay(tmp_path, name)
    lay(tmp_path, "tls/server.key", PRIVATE_KEY)
    lay(tmp_path, "tls/server.pem", "-----BEGIN CERTIFICATE-----\npublic\n")
    (tmp_path / ".env.linked").symlink_to("real-values")
    lay(tmp_path, "real-values")
    box = Sandbox(tmp_path, backends=("bubblewrap",))
    code, output = await shell(
        box,
        "grep -rh CANARY . ; cat .env real-values; cp .env copy; ln .env link; mv .env moved; cat copy link moved; cat tls/server.pem; true",
    )
    assert code == 0
    assert "CANARY" not in output
    assert "public" in output
    assert (tmp_path / ".env").read_text() == "CANARY"
    lay(tmp_path, "later/deep/.env")
    assert "CANARY" not in (await shell(box, "cat later/deep/.env"))[1]
    allowed = Sandbox(tmp_path, readable=[".env"], backends=("bubblewrap",))
    assert (await shell(allowed, "cat .env; cat .npmrc 2>/dev/null"))[1] == "CANARY"


async def test_moving_the_directory_of_a_credential_file_shows_nothing(tmp_path: Path, need):
    need("bubblewrap")
    lay(tmp_path, "service/api/.env")
    box = Sandbox(tmp_path, backends=("bubblewrap",))
    for place in ("node_modules", ".git/objects", "other"):
        _, output = await shell(box, f"mkdir -p {place}; mv service {place}/; cat {place}/service/api/.env")
        assert "CANARY" not in output
        _, output = await shell(box, f"grep -r CANARY . ; mv {place}/service .")
        assert "CANARY" not in output


async def test_the_result_of_a_command_says_how_to_allow_a_file(tmp_path: Path, need):
    need("bubblewrap")
    lay(tmp_path, ".env")
    bash = named(coding_tools(tmp_path), "bash")
    assert "readable=['.env']" in (await call(bash, command="cat .env")).text
    assert "readable" not in (await call(bash, command="echo hello")).text


async def test_landlock_refuses_a_workspace_with_credentials_and_says_why(tmp_path: Path, need):
    need("landlock")
    lay(tmp_path, ".env")
    with pytest.raises(SandboxUnavailable, match=r"cannot hide .*\.env.*readable=\['\.env'\]"):
        await Sandbox(tmp_path, backends=("landlock",)).backend()
    assert await shell(Sandbox(tmp_path, readable=[".env"], backends=("landlock",)), "cat .env") == (
        0,
        "CANARY",
    )


async def test_a_workspace_with_too_many_credentials_is_refused(tmp_path: Path, need):
    need("bubblewrap")
    for number in range(400):
        lay(tmp_path, f"keys/{number}.p12")
    with pytest.raises(SandboxUnavailable, match=r"more than .* readable="):
        await Sandbox(tmp_path, backends=("bubblewrap",)).backend()
    assert await shell(Sandbox(tmp_path, readable=["keys"], backends=("bubblewrap",)), "cat keys/1.p12") == (
        0,
        "CANARY",
    )
