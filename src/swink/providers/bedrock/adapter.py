"""Bedrock: `POST {base_url}/model/{id}/converse-stream`, signed with SigV4 or with a Bedrock API key."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from swink.errors import MissingKey, StreamError
from swink.models.keys.accounts import ACCOUNTS
from swink.providers.adapter import Adapter, Ask
from swink.providers.bedrock.awsconfig import find_credentials, find_region
from swink.providers.bedrock.sigv4 import Credentials, sign_headers
from swink.providers.bedrock.wire import Converse
from swink.providers.endpoint import Endpoint, check_base_url, digest_of, segment
from swink.stream import StreamOptions
from swink.stream.urls import is_private
from swink.system.aio import resolve

FindCredentials = Callable[[], Credentials | Awaitable[Credentials]]

_REGION_IN_HOST = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


class BedrockStreamFn(Adapter):
    """Models on Amazon Bedrock; `base_url` replaces the endpoint, as `endpoint_url` does in boto3.

    `api_key` is a Bedrock API key, by default AWS_BEARER_TOKEN_BEDROCK. Without one, requests are signed with
    `credentials`, or with those that `profile`, the environment or the shared AWS files hold. `credentials`
    may be a function, for keys that expire.

    Args:
        base_url: the endpoint, by default AWS_ENDPOINT_URL_BEDROCK_RUNTIME or that of the region
        api_key: a Bedrock API key
        region: by default AWS_REGION, or that of the profile
        profile: a section of the shared AWS files
        credentials: a pair of AWS keys, or a function that gives one
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "bedrock"

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        credentials: Credentials | FindCredentials | None = None,
        headers: Mapping[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        named = os.environ.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME") or os.environ.get("AWS_ENDPOINT_URL")
        url = base_url or named
        self._address = check_base_url(url, allow_http=allow_http) if url else None
        self._region = region
        self._profile = profile
        self._credentials = credentials
        address = self._address or "https://bedrock-runtime.any.amazonaws.com"
        variables, owned = ACCOUNTS["bedrock"].variables, not base_url or is_aws(base_url)
        endpoint = Endpoint("bedrock", address, api_key, variables, owned, allow_http, "bedrock")
        self._set_up(endpoint, Converse(), headers)

    def __repr__(self) -> str:
        shown = {"base_url": self._address, "region": self._region, "profile": self._profile}
        return f"BedrockStreamFn({', '.join(f'{name}={value!r}' for name, value in shown.items() if value)})"

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if there is neither an API key nor a pair of AWS keys; calls no function."""
        endpoint = self._endpoint
        given = (options.api_key, endpoint.api_key, self._credentials) != (None, None, None)
        if not given and (self._profile is not None or not endpoint.has_key()):
            self._find_pair()

    def asker(self) -> str:
        given = self._credentials
        given = (given.access_key, given.secret_key) if isinstance(given, Credentials) else given
        names = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION")
        named = [os.environ.get(name) for name in names]
        settings = self._region, self._profile, given, sorted(self._headers.items()), named
        return digest_of(self._address, self._bearer(StreamOptions()), *settings)

    def url(self, ask: Ask) -> str:
        """Where the request goes: the region is in the host, unless the address is given."""
        base = self._address
        if base is None:
            region = self._find_region()
            suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
            base = f"https://bedrock-runtime.{region}.{suffix}"
        return f"{base}/model/{segment(ask.name)}/converse-stream"

    async def authorization(self, ask: Ask, url: str, body: bytes) -> Mapping[str, str]:
        """The API key as a bearer token, or a signature over the request."""
        if self._credentials is None and self._profile is None:
            await self._endpoint.prepare_key(ask.options.api_key)
        key = self._bearer(ask.options)
        if key:
            return {"authorization": f"Bearer {key}"}
        if key is not None or (found := await self._find_credentials()) is None:
            return {}
        sent = {"content-type": "application/json", "accept": self.wire.accept}
        sent |= {**self._headers, **ask.options.headers}
        region = self._find_region()
        signed = sign_headers("POST", url, sent, body, credentials=found, region=region, service="bedrock")
        return {name.lower(): value for name, value in signed.items() if name not in sent}

    def _bearer(self, options: StreamOptions) -> str | None:
        """The API key, empty to send none, None to sign."""
        explicit = options.api_key if options.api_key is not None else self._endpoint.api_key
        if explicit is not None:
            return explicit.strip()
        if self._credentials is not None or self._profile is not None:
            return None
        return self._endpoint.found_key() or None

    def _find_region(self) -> str:
        try:
            region = find_region(self._region, self._profile)
        except StreamError:
            found = _REGION_IN_HOST.search(self._address or "")
            if found is None and (self._address is None or is_aws(self._address)):
                raise
            region = found[1] if found else "us-east-1"  # a server that is not AWS only wants a signature
        if not re.fullmatch(r"[a-z0-9-]+", region):
            raise StreamError(f"bedrock: {region!r} is not the name of a region")
        return region

    async def _find_credentials(self) -> Credentials | None:
        if self._credentials is None:
            return self._find_pair()
        if isinstance(self._credentials, Credentials):
            return self._credentials
        return await resolve(self._credentials())

    def _find_pair(self) -> Credentials | None:
        """The keys of the profile, the environment or the AWS files; None for a local server without any."""
        try:
            if self._profile is not None or self._endpoint.takes_environment:
                return find_credentials(self._profile)
            raise MissingKey(
                f"bedrock: the AWS keys found here are not used for {self._endpoint.host}; "
                "pass api_key=, credentials= or profile="
            )
        except MissingKey:
            if self._profile is None and is_private(self._endpoint.host):
                return None
            raise


def is_aws(url: str) -> bool:
    """Whether an address is one of Amazon's own."""
    host = urlsplit(url.strip()).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
