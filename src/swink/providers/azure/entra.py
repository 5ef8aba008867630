"""Entra ID tokens by client credentials."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from swink.errors import AuthError, MisuseError, NetworkError
from swink.providers.bearertokens import Token, TokenCache
from swink.providers.endpoint import check_base_url
from swink.providers.failure import parse_error, read_capped, retry_after
from swink.providers.http import HttpClient, Request
from swink.providers.secretechoes import shown
from swink.stream import Timeout
from swink.stream.urls import is_loopback

AUTHORITY = "https://login.microsoftonline.com"
SCOPE = "https://cognitiveservices.azure.com/.default"


class _Answer(Struct, frozen=True):
    access_token: str
    expires_in: float = 3600.0

    def __repr__(self) -> str:
        return "_Answer(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class ClientCredentials:
    """An application's identity; `await token(client)` gives its bearer token."""

    def __init__(
        self,
        tenant_id: str,
        client_id: str,
        client_secret: str,
        *,
        authority: str = AUTHORITY,
        scope: str = SCOPE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = f"{_checked(authority)}/{quote(tenant_id, safe='')}/oauth2/v2.0/token"
        self._client_id = client_id
        self._secret = client_secret
        self._scope = scope
        self._tokens = TokenCache(clock)

    def __repr__(self) -> str:
        return f"ClientCredentials(client_id={self._client_id!r})"

    async def token(self, client: HttpClient, timeout: Timeout) -> str:
        """The bearer token, fetched if there is none that stays valid; concurrent callers share one fetch."""
        return await self._tokens.token(lambda: self._fetch(client, timeout))

    async def _fetch(self, client: HttpClient, timeout: Timeout) -> Token:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client_id,
            "client_secret": self._secret,
            "scope": self._scope,
        }
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        response = await client.send(Request(self._url, headers, urlencode(form).encode()), timeout)
        try:
            body = await read_capped(response)
        finally:
            await response.aclose()
        if response.status >= 500 or response.status == 429:
            wait = retry_after(response.headers)
            raise NetworkError(f"Entra ID answered {response.status}", retry_after=wait)
        if response.status != 200:
            said = shown(parse_error(body)[0], [self._secret])[:500]
            raise AuthError(f"Entra ID refused the client credentials: {said}")
        try:
            answer = msgspec.json.decode(body, type=_Answer, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise AuthError("Entra ID gave no token") from error
        return Token(answer.access_token, answer.expires_in)


def _checked(authority: str) -> str:
    url = check_base_url(authority)
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise MisuseError(
            f"the authority {parts.hostname} would get the client secret in clear text; use https"
        )
    return url
