"""Azure OpenAI: chat completions under a resource's own URL, with a key or an Entra ID token.

What follows the base URL:

https://NAME.openai.azure.com                       /openai/deployments/MODEL/chat/completions?api-version=…
                                                    or, without an api_version, /openai/v1/chat/completions
https://NAME.openai.azure.com/openai/v1             /chat/completions, the deployment named in the body
https://NAME.openai.azure.com/openai/deployments/D  /chat/completions?api-version=…
"""

import os
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from swink.messages import ModelSpec
from swink.providers.adapter import Adapter, Ask
from swink.providers.azure.entra import ClientCredentials
from swink.providers.azure.identity import Identity, TokenProvider
from swink.providers.chat.dialect import Dialect
from swink.providers.chat.wire import Chat
from swink.providers.endpoint import provider_endpoint, segment
from swink.stream import StreamOptions

DEPLOYMENTS = Dialect("azure", limit_field="max_completion_tokens", thinking="azure")
V1 = Dialect("azure", limit_field="max_completion_tokens", thinking="azure", session_field="prompt_cache_key")


class AzureStreamFn(Adapter):
    """OpenAI models on Azure. The model id is the deployment's name, unless `deployment` says otherwise.

    The key is `api_key`, AZURE_OPENAI_API_KEY or the stored one. Without one, a bearer token is used: of
    `token_provider`, of `credentials` (or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET), or
    AZURE_OPENAI_AD_TOKEN.
    """

    provider = "azure"

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_version: str | None = None,
        deployment: str | None = None,
        credentials: ClientCredentials | None = None,
        token_provider: TokenProvider | None = None,
        headers: Mapping[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        endpoint = provider_endpoint("azure", base_url, api_key, allow_http=allow_http)
        self.base_url = endpoint.base_url
        self._api_version = api_version or os.environ.get("OPENAI_API_VERSION", "")
        self._deployment = deployment
        self._identity = Identity(endpoint, credentials, token_provider)
        self._set_up(endpoint, Chat(DEPLOYMENTS if "/openai/v1" not in self._url("any") else V1), headers)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if there is neither a key nor an identity whose token could be sent."""
        self._identity.check_key(options)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._identity.asker(self._deployment, self._api_version, sorted(self._headers.items()))

    def name_of(self, model: ModelSpec) -> str:
        """The name of the deployment."""
        return self._deployment or model.model_id

    def url(self, ask: Ask) -> str:
        """Where the deployment is."""
        return self._url(ask.name)

    async def authorization(self, ask: Ask, url: str, body: bytes) -> Mapping[str, str]:
        """A token of Entra ID, or the key."""
        return await self._identity.headers(ask.options, self.timeout)

    def _url(self, deployment: str) -> str:
        base = self.base_url
        path = urlsplit(base).path
        query = f"?api-version={quote(self._api_version, safe='')}" if self._api_version else ""
        if path.endswith("/openai/v1") or "/openai/deployments/" in path:
            return f"{base}/chat/completions{query}"
        root = base if path.endswith("/openai") else f"{base}/openai"
        if not query:
            return f"{root}/v1/chat/completions"
        return f"{root}/deployments/{segment(deployment)}/chat/completions{query}"
