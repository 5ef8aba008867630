"""Azure OpenAI: chat completions under a resource's own URL, with a key or an Entra ID token.

What follows the base URL:

https://NAME.openai.azure.com                       /openai/deployments/MODEL/chat/completions?api-version=…
                                                    or, without an api_version, /openai/v1/chat/completions
https://NAME.openai.azure.com/openai/v1             /chat/completions, the deployment named in the body
https://NAME.openai.azure.com/openai/deployments/D  /chat/completions?api-version=…
"""

import os
from collections.abc import AsyncGenerator
from urllib.parse import quote, urlsplit

from swink.messages import ModelSpec
from swink.providers.azure.entra import ClientCredentials
from swink.providers.azure.identity import Identity, TokenProvider
from swink.providers.chat.body import request_body
from swink.providers.chat.dialect import Dialect
from swink.providers.chat.stream import ChatDecoder
from swink.providers.convert import prepare
from swink.providers.endpoint import provider_endpoint, segment
from swink.providers.exchange import encode_body, exchange
from swink.providers.http import Request, client_for
from swink.providers.notices import Notices
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout

DEPLOYMENTS = Dialect("azure", limit_field="max_completion_tokens", thinking="azure")
V1 = Dialect("azure", limit_field="max_completion_tokens", thinking="azure", session_field="prompt_cache_key")


class AzureStreamFn:
    """OpenAI models on Azure. The model id is the deployment's name, unless `deployment` says otherwise.

    The key is `api_key`, AZURE_OPENAI_API_KEY or the stored one. Without one, a bearer token is used: of
    `token_provider`, of `credentials` (or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET), or
    AZURE_OPENAI_AD_TOKEN.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_version: str | None = None,
        deployment: str | None = None,
        credentials: ClientCredentials | None = None,
        token_provider: TokenProvider | None = None,
        allow_http: bool = False,
    ) -> None:
        self._endpoint = provider_endpoint("azure", base_url, api_key, allow_http=allow_http)
        self._api_version = api_version or os.environ.get("OPENAI_API_VERSION", "")
        self._deployment = deployment
        self._identity = Identity(self._endpoint, credentials, token_provider)
        self._dialect = DEPLOYMENTS if "/openai/v1" not in self._url("any") else V1
        self.base_url = self._endpoint.base_url
        self._notices = Notices("azure", self._dialect.honours)
        self.honours = self._dialect.honours
        self.timeout = Timeout(idle=600, first=600) if self._endpoint.is_local else Timeout()

    def __repr__(self) -> str:
        return f"AzureStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)

        async def request() -> Request:
            body = request_body(
                model, context, await prepare(context.messages, model), options, self._dialect, self._notices
            )
            deployment = self._deployment or model.model_id
            body["model"] = deployment
            headers = {
                "content-type": "application/json",
                "accept": "text/event-stream",
                **await self._identity.headers(options, self.timeout),
            }
            return Request(
                self._url(deployment), self._endpoint.check_headers(headers), encode_body(body, options.extra)
            )

        return exchange(request, lambda reply: ChatDecoder(reply, options), options, self.timeout)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if there is neither a key nor an identity whose token could be sent."""
        self._identity.check_key(options)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._identity.asker(self._deployment, self._api_version)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()

    def _url(self, deployment: str) -> str:
        base = self._endpoint.base_url
        path = urlsplit(base).path
        query = f"?api-version={quote(self._api_version, safe='')}" if self._api_version else ""
        if path.endswith("/openai/v1") or "/openai/deployments/" in path:
            return f"{base}/chat/completions{query}"
        root = base if path.endswith("/openai") else f"{base}/openai"
        if not query:
            return f"{root}/v1/chat/completions"
        return f"{root}/deployments/{segment(deployment)}/chat/completions{query}"
