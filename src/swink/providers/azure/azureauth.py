"""Who asks Azure: a key, or the bearer token of an Entra ID identity."""

import os
from collections.abc import Awaitable, Callable

from swink.errors import MissingKey
from swink.providers.azure.entra import AUTHORITY, ClientCredentials
from swink.providers.endpoint import Endpoint, digest_of
from swink.providers.http import HttpClient, client_for, timeout_for
from swink.stream import StreamOptions, Timeout
from swink.system.aio import resolve

TokenProvider = Callable[[], str | Awaitable[str]]
_VARIABLES = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_OPENAI_AD_TOKEN")


class Identity:
    """The key of `endpoint`, else a token: of the provider, the credentials, or the environment."""

    def __init__(
        self, endpoint: Endpoint, credentials: ClientCredentials | None, token_provider: TokenProvider | None
    ) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._token_provider = token_provider

    async def headers(self, options: StreamOptions, client: HttpClient, timeout: Timeout) -> dict[str, str]:
        """The header that says who asks; none for a server without keys."""
        given = options.api_key if options.api_key is not None else self._endpoint.api_key
        if given is None and (token := await self._token(options, client, timeout)):
            return {"authorization": f"Bearer {token}"}
        key = self._key(given)
        return {"api-key": key} if key else {}

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if there is neither a key nor an identity whose token could be sent."""
        given = options.api_key if options.api_key is not None else self._endpoint.api_key
        if given is None and (self._token_provider or self._client_credentials() or self._ad_token()):
            return
        if given is not None or not self._endpoint.has_key():
            self._key(given)

    def asker(self, *others: object) -> str:
        """A digest of the account that asks."""
        named = (*others, [os.environ.get(name) for name in _VARIABLES])
        identity = self._token_provider or self._credentials
        if self._endpoint.api_key is None and identity is not None:
            return digest_of(self._endpoint.base_url, identity, *named)
        return self._endpoint.asker(*named)

    def _key(self, given: str | None) -> str:
        try:
            return self._endpoint.key(given)
        except MissingKey as error:
            raise MissingKey(f"{error.message}; or give Entra ID credentials") from None

    async def _token(self, options: StreamOptions, client: HttpClient, timeout: Timeout) -> str:
        if self._token_provider is not None:
            return await resolve(self._token_provider())
        if self._credentials is None:
            await self._endpoint.prepare_key()
        if (credentials := self._client_credentials()) is not None:
            return await credentials.token(client_for(options, client), timeout_for(options, timeout))
        return self._ad_token()

    def _client_credentials(self) -> ClientCredentials | None:
        """Those of the constructor, or of the environment if it has no key; kept, as they cache a token."""
        if self._credentials is None and self._endpoint.takes_environment and not self._endpoint.has_key():
            self._credentials = _credentials_from_environment()
        return self._credentials

    def _ad_token(self) -> str:
        return os.environ.get("AZURE_OPENAI_AD_TOKEN", "").strip() if self._endpoint.takes_environment else ""


def _credentials_from_environment() -> ClientCredentials | None:
    tenant, client, secret = (
        os.environ.get(f"AZURE_{name}", "").strip() for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET")
    )
    if not (tenant and client and secret):
        return None
    authority = os.environ.get("AZURE_AUTHORITY_HOST", "") or AUTHORITY
    return ClientCredentials(tenant, client, secret, authority=authority)
