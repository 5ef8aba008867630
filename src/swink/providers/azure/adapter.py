"""Azure OpenAI: chat completions or responses under a resource's own URL, with a key or an Entra ID token.

What follows the base URL, for chat completions and for responses:

https://NAME.openai.azure.com                       /openai/deployments/MODEL/chat/completions?api-version=…
                                                    or, without an api_version, /openai/v1/chat/completions
https://NAME.openai.azure.com/openai/v1             /chat/completions, the deployment named in the body
https://NAME.openai.azure.com/openai/deployments/D  /chat/completions?api-version=…
https://NAME.openai.azure.com                       /openai/v1/responses, the deployment named in the body,
                                                    or, with an api_version, /openai/responses?api-version=…
"""

import os
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from swink.errors import MisuseError
from swink.messages import ModelSpec
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.azure.azureauth import Identity, TokenProvider
from swink.providers.azure.entra import ClientCredentials
from swink.providers.chat import presets
from swink.providers.chat.wire import Chat
from swink.providers.endpoint import provider_endpoint, segment
from swink.stream import StreamOptions


class AzureStreamFn(Adapter):
    """OpenAI models on Azure. The model id is the deployment's name, unless `deployment` says otherwise.

    The key is `api_key`, AZURE_OPENAI_API_KEY or the stored one. Without one, a bearer token is used: of
    `token_provider`, of `credentials` (or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET), or
    AZURE_OPENAI_AD_TOKEN.

    Args:
        base_url: the resource, by default AZURE_OPENAI_ENDPOINT
        api_key: by default AZURE_OPENAI_API_KEY or the stored key
        api_version: of Azure's API, by default OPENAI_API_VERSION; without one, the newest, /openai/v1
        deployment: the deployment to ask, whatever the model is called
        credentials: those of an application in Entra ID
        token_provider: a function that gives a token of Entra ID
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
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
        endpoint = provider_endpoint(self.provider, base_url, api_key, allow_http=allow_http)
        self.base_url = endpoint.base_url
        self._api_version = api_version or ""
        self._deployment = deployment
        self._identity = Identity(endpoint, credentials, token_provider)
        self._set_up(endpoint, self._wire(), headers)

    def name_of(self, model: ModelSpec) -> str:
        """The name of the deployment."""
        return self._deployment or model.model_id

    def url(self, ask: Ask) -> str:
        return self._url(ask.name)

    async def authorization(self, ask: Ask, url: str, body: bytes) -> Mapping[str, str]:
        """A token of Entra ID, or the key."""
        return await self._identity.headers(ask.options, self._http, self.timeout)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if there is neither a key nor an identity whose token could be sent."""
        self._identity.check_key(options)

    def asker(self) -> str:
        return self._identity.asker(self._deployment, self._api_version, sorted(self._headers.items()))

    def _wire(self) -> Wire:
        self._api_version = self._api_version or os.environ.get("OPENAI_API_VERSION", "")
        if "/openai/v1" in self._url("any"):
            return Chat(presets.AZURE)
        return Chat(replace(presets.AZURE, session_field=""))  # deployments of a version refuse the field

    def _url(self, deployment: str) -> str:
        path = urlsplit(self.base_url).path
        if path.endswith("/openai/v1") or "/openai/deployments/" in path:
            return f"{self.base_url}/chat/completions{self._query()}"
        if not self._api_version:
            return f"{self._root()}/v1/chat/completions"
        return f"{self._root()}/deployments/{segment(deployment)}/chat/completions{self._query()}"

    def _root(self) -> str:
        return self.base_url if self.base_url.endswith("/openai") else f"{self.base_url}/openai"

    def _query(self) -> str:
        return f"?api-version={quote(self._api_version, safe='')}" if self._api_version else ""


class AzureResponsesStreamFn(AzureStreamFn):
    """OpenAI models on Azure by the Responses API, with the keys and identities of `AzureStreamFn`."""

    provider = "azure-responses"

    def _wire(self) -> Wire:
        # Chat completions alone, which most deployments are asked for, cost no other adapter's import.
        from swink.providers.responses.dialect import AZURE
        from swink.providers.responses.wire import Responses

        # OPENAI_API_VERSION is the version of chat completions: not all of them have responses.
        if "/openai/deployments/" in urlsplit(self.base_url).path:
            raise MisuseError("responses have no address of one deployment: base_url is that of the resource")
        return Responses(AZURE)

    def _url(self, deployment: str) -> str:
        if urlsplit(self.base_url).path.endswith("/openai/v1"):
            return f"{self.base_url}/responses{self._query()}"
        return f"{self._root()}{'' if self._api_version else '/v1'}/responses{self._query()}"
