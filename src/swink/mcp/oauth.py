"""The SDK's OAuth in our words: its providers, and what they learn, from and to a stored `Login`."""

import importlib
import logging
from typing import Any

from swink.errors import InvalidInput
from swink.mcp.logins import Login
from swink.mcp.serverconfig import HttpServer

_NOWHERE = "http://127.0.0.1/callback"
"""A placeholder: a token that is only renewed needs no redirect."""


class OAuth:
    """The names of the SDK that a login needs."""

    def __init__(self) -> None:
        auth = importlib.import_module("mcp.client.auth")
        self._values: Any = importlib.import_module("mcp.shared.auth")
        self._tools: Any = importlib.import_module("mcp.client.auth.utils")
        self._httpx: Any = importlib.import_module("httpx2")
        self._provider: Any = auth.OAuthClientProvider
        self.failures: tuple[type[Exception], ...] = (auth.OAuthFlowError, self._httpx.InvalidURL)
        # It logs what it raises, with states and replies; what is raised is reported in our words.
        logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)

    def provider(self, server: HttpServer, known: Login, uri: str | None, show: Any, come_back: Any) -> Any:
        """One login, with what is known of it; `uri` is None where a token is only to be renewed."""
        about = self._values.OAuthClientMetadata(
            client_name="swink",
            redirect_uris=[uri or _NOWHERE],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        )
        document = server.client_id if (server.client_id or "").startswith("https://") else None
        provider = self._provider(
            server.url, about, _Kept(known, self._values), show, come_back, client_metadata_url=document
        )
        if uri is None:
            provider.context.oauth_metadata = _read(self._values.OAuthMetadata, known.metadata)
            resource = _read(self._values.ProtectedResourceMetadata, known.resource)
            provider.context.protected_resource_metadata = resource
            if resource is not None:
                provider.context.auth_server_url = str(resource.authorization_servers[0])
        return provider

    def login_of(self, provider: Any) -> Login:
        """What a provider has learnt, to be stored."""
        context = provider.context
        return Login(
            _write(context.current_tokens),
            context.token_expiry_time,
            _write(context.client_info),
            _write(context.oauth_metadata),
            _write(context.protected_resource_metadata),
        )

    def check_offer(self, provider: Any, registered: str | None) -> None:
        """Refuse a server without PKCE, and take the way to prove who we are that it has."""
        offer, client = provider.context.oauth_metadata, provider.context.client_info
        if offer is None:
            return
        if "S256" not in (offer.code_challenge_methods_supported or ()):
            raise InvalidInput("its authorisation server does not offer PKCE with S256")
        methods = offer.token_endpoint_auth_methods_supported
        is_ours = client.client_id == registered and client.client_secret
        if is_ours and methods and "client_secret_basic" not in methods:
            client.token_endpoint_auth_method = "client_secret_post"

    def came_back(self, code: str, state: str, issuer: str | None) -> Any:
        """The browser's return, for the SDK."""
        return self._values.AuthorizationCodeResult(code=code, state=state, iss=issuer)

    def scope_of(self, response: Any) -> str:
        """The scope that a server says is missing."""
        return self._tools.extract_scope_from_www_auth(response) or ""

    def with_scope(self, response: Any, scope: str) -> Any:
        """A refusal that asks for a scope besides what it asks for itself."""
        if not scope:
            return response
        wanted = f"{self.scope_of(response)} {scope}".replace('"', "").strip()
        place = self._tools.extract_resource_metadata_from_www_auth(response)
        said = f'Bearer error="insufficient_scope", scope="{wanted}"'
        said += f', resource_metadata="{place}"' if place else ""
        return self._httpx.Response(403, headers={"www-authenticate": said}, request=response.request)

    def refusal(self, request: Any, status: int, text: str) -> Any:
        """A response that tells the SDK why a request failed."""
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32_001, "message": text}}
        return self._httpx.Response(status, json=error, request=request)

    def read_response(self, response: Any, body: bytes) -> Any:
        """A response whose body has been read."""
        gone = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in gone]
        status, request = response.status_code, response.request
        whole = self._httpx.Response(status, headers=headers, content=body, request=request)
        whole.next_request = response.next_request
        return whole


class _Kept:
    """A stored login as the SDK reads it; what it writes is read from its provider at the end."""

    def __init__(self, known: Login, values: Any) -> None:
        self._known = known
        self._values = values

    async def get_tokens(self) -> Any:
        return _read(self._values.OAuthToken, self._known.tokens)

    async def set_tokens(self, tokens: Any) -> None: ...

    async def get_client_info(self) -> Any:
        return _read(self._values.OAuthClientInformationFull, self._known.client)

    async def set_client_info(self, client_info: Any) -> None: ...


def _read(kind: Any, data: dict[str, Any] | None) -> Any:
    try:
        return None if data is None else kind.model_validate(data)
    except ValueError:
        return None  # stored by another version


def _write(model: Any) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
