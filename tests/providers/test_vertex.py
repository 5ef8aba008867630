"""Vertex AI: Google credentials and their tokens, addresses, and both kinds of models against the official SDKs."""

import asyncio
import json
from functools import cache
from pathlib import Path

import msgspec
import pytest
from loopback import LoopbackServer

from swink.errors import AuthError, MissingKey, NetworkError
from swink.providers.tokens import Token, TokenCache
from swink.providers.vertex.identity import GoogleIdentity


@pytest.fixture(autouse=True)
def _no_google_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "no-gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("PATH", str(tmp_path))  # nor is a gcloud on this machine asked for its project
    for name in (
        "CLOUD_ML_REGION",
        "GCLOUD_PROJECT",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "http_proxy",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@cache
def private_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def key_file(server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account whose tokens come from the loopback server, where google-auth looks for it."""
    path = tmp_path / "service-account.json"
    account = {
        "type": "service_account",
        "project_id": "sa-project",
        "private_key_id": "1",
        "private_key": private_key(),
        "client_email": "robot@sa-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{server.url}/token",
    }
    path.write_text(json.dumps(account), "utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    return path


def token_answer(server: LoopbackServer, token: str = "ya29.token-one", seconds: int = 3600) -> None:
    body = msgspec.json.encode({"token_type": "Bearer", "expires_in": seconds, "access_token": token})
    server.reply(body, headers={"content-type": "application/json"})


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("key_file")
async def test_callers_at_the_same_time_share_one_token_of_the_service_account(server: LoopbackServer):
    token_answer(server)
    identity = GoogleIdentity()
    tokens = await asyncio.gather(*(identity.token() for _ in range(20)))
    assert tokens == ["ya29.token-one"] * 20
    assert [request.path for request in server.requests] == ["/token"]
    assert b"jwt-bearer" in server.requests[0].body
    assert await identity.project() == "sa-project"


@pytest.mark.usefixtures("key_file")
async def test_a_cancelled_fetch_leaves_the_next_caller_free(server: LoopbackServer):
    token_answer(server)
    identity = GoogleIdentity()
    first, second = (asyncio.create_task(identity.token()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second == "ya29.token-one"


@pytest.mark.usefixtures("key_file")
async def test_a_token_is_renewed_before_it_runs_out(server: LoopbackServer):
    token_answer(server, seconds=200)  # so short that half its life is the limit
    token_answer(server, "ya29.token-two")
    clock = Clock()
    identity = GoogleIdentity(clock=clock)
    assert await identity.token() == "ya29.token-one"
    clock.now += 99
    assert await identity.token() == "ya29.token-one"
    clock.now += 2
    assert await identity.token() == "ya29.token-two"


async def test_a_token_serves_to_its_end_while_its_early_renewal_fails():
    async def fetch() -> Token:
        if clock.now > 1000:
            raise NetworkError("Google cannot be reached")
        return Token("ya29.token-one", 3600)

    clock = Clock()
    cache = TokenCache(clock)
    assert await cache.token(fetch) == "ya29.token-one"
    clock.now += 3500
    assert await cache.token(fetch) == "ya29.token-one"
    clock.now += 200
    with pytest.raises(NetworkError):
        await cache.token(fetch)
    assert "ya29" not in repr((cache, Token("ya29.x")))


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b'{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}', AuthError),
        (200, b'{"nothing": 1}', AuthError),
    ],
)
@pytest.mark.usefixtures("key_file")
async def test_a_refused_token_is_typed_and_tells_no_secret(
    status: int, body: bytes, error: type[Exception], server: LoopbackServer
):
    server.reply(body, status=status, headers={"content-type": "application/json"})
    identity = GoogleIdentity()
    with pytest.raises(error) as caught:
        await identity.token()
    assert "PRIVATE KEY" not in str(caught.value)
    assert "ya29" not in repr(identity)


async def test_a_token_server_that_cannot_be_reached_is_a_network_error(key_file: Path):
    key_file.write_text(key_file.read_text("utf-8").replace('/token"', '0/token"'), "utf-8")  # no such port
    with pytest.raises(NetworkError):
        await GoogleIdentity().token()


async def test_without_credentials_the_error_says_what_to_do():
    with pytest.raises(MissingKey, match="gcloud auth application-default login"):
        await GoogleIdentity().token()


async def test_credentials_of_the_callers_own_are_used_as_they_are():
    from google.oauth2.credentials import Credentials

    identity = GoogleIdentity(Credentials("ya29.mine", quota_project_id="billed"))
    assert await identity.token() == "ya29.mine"
    assert identity.quota_project == "billed"
