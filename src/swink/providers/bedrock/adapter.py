"""Bedrock: `POST {base_url}/model/{id}/converse-stream`, signed with SigV4 or with a Bedrock API key."""

import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from urllib.parse import urlsplit

from swink.engine.waiting import resolve
from swink.errors import MissingKey, StreamError
from swink.hosts import is_private
from swink.keys.accounts import ACCOUNTS
from swink.messages import ModelSpec
from swink.providers.bedrock.body import request_body
from swink.providers.bedrock.config import find_credentials, find_region
from swink.providers.bedrock.history import History
from swink.providers.bedrock.sigv4 import Credentials, sign_headers
from swink.providers.bedrock.stream import ConverseDecoder, explain
from swink.providers.convert import paired_messages, prepare
from swink.providers.endpoint import Endpoint, check_base_url, digest_of, segment
from swink.providers.exchange import encode_body, exchange, merge_objects
from swink.providers.http import Request, client_for
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout

FindCredentials = Callable[[], Credentials | Awaitable[Credentials]]

_REGION_IN_HOST = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


class BedrockStreamFn:
    """Models on Amazon Bedrock; `base_url` replaces the endpoint, as `endpoint_url` does in boto3.

    `api_key` is a Bedrock API key, by default AWS_BEARER_TOKEN_BEDROCK. Without one, requests are signed with
    `credentials`, or with those that `profile`, the environment or the shared AWS files hold. `credentials`
    may be a function, for keys that expire.
    """

    honours = ALL_OPTIONS - {"session_id", "seed", "verbosity", "parallel_tool_calls"}

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        credentials: Credentials | FindCredentials | None = None,
        allow_http: bool = False,
    ) -> None:
        named = os.environ.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME") or os.environ.get("AWS_ENDPOINT_URL")
        url = base_url or named
        self.base_url = check_base_url(url, allow_http=allow_http) if url else None
        self._owned = not base_url or is_aws(base_url)
        self._allow_http = allow_http
        self._api_key = api_key
        self._region = region
        self._profile = profile
        self._credentials = credentials
        self._notices = Notices("bedrock", self.honours)
        local = self.base_url is not None and self._endpoint("").is_local
        self.timeout = Timeout(idle=600, first=600) if local else Timeout()

    def __repr__(self) -> str:
        shown = {"base_url": self.base_url, "region": self._region, "profile": self._profile}
        return f"BedrockStreamFn({', '.join(f'{name}={value!r}' for name, value in shown.items() if value)})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)

        async def request() -> Request:
            history = History(model)
            for message in await prepare(paired_messages(context.messages), model):
                history.add(message)
            body = request_body(model, context, history.items, options, self._notices)
            return await self._request(model, encode_body(merge_objects(options.extra, body), {}), options)

        return exchange(
            request, lambda reply: ConverseDecoder(reply, options), options, self.timeout, explain=explain
        )

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if there is neither an API key nor a pair of AWS keys; calls no function."""
        endpoint = self._endpoint()
        given = options.api_key is not None or self._api_key is not None or self._credentials is not None
        if not given and (self._profile is not None or not endpoint.has_key()):
            self._find_pair(endpoint)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        given = self._credentials
        given = (given.access_key, given.secret_key) if isinstance(given, Credentials) else given
        names = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION")
        return digest_of(
            self.base_url,
            self._bearer(self._endpoint(), StreamOptions()),
            self._region,
            self._profile,
            given,
            [os.environ.get(name) for name in names],
        )

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()

    def _endpoint(self, region: str = "any") -> Endpoint:
        suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        url = self.base_url or check_base_url(f"https://bedrock-runtime.{region}.{suffix}")
        variables = ACCOUNTS["bedrock"].variables
        return Endpoint("bedrock", url, self._api_key, variables, self._owned, self._allow_http, "bedrock")

    async def _request(self, model: ModelSpec, body: bytes, options: StreamOptions) -> Request:
        endpoint = self._endpoint(self._find_region()) if self.base_url is None else self._endpoint()
        url = f"{endpoint.base_url}/model/{segment(model.model_id)}/converse-stream"
        headers = {"content-type": "application/json", "accept": "application/vnd.amazon.eventstream"}
        if self._credentials is None and self._profile is None:
            await endpoint.prepare_key(options.api_key)
        key = self._bearer(endpoint, options)
        if key:
            headers["authorization"] = f"Bearer {key}"
        elif key is None and (found := await self._find_credentials(endpoint)) is not None:
            signed = sign_headers(
                "POST", url, headers, body, credentials=found, region=self._find_region(), service="bedrock"
            )
            headers = {name.lower(): value for name, value in signed.items()}
        return Request(url, endpoint.check_headers(headers), body)

    def _bearer(self, endpoint: Endpoint, options: StreamOptions) -> str | None:
        """The API key, empty to send none, None to sign."""
        explicit = options.api_key if options.api_key is not None else self._api_key
        if explicit is not None:
            return explicit.strip()
        if self._credentials is not None or self._profile is not None:
            return None
        return endpoint.found_key() or None

    def _find_region(self) -> str:
        try:
            region = find_region(self._region, self._profile)
        except StreamError:
            found = _REGION_IN_HOST.search(self.base_url or "")
            if found is None and (self.base_url is None or is_aws(self.base_url)):
                raise
            region = found[1] if found else "us-east-1"  # a server that is not AWS only wants a signature
        if not re.fullmatch(r"[a-z0-9-]+", region):
            raise StreamError(f"bedrock: {region!r} is not the name of a region")
        return region

    async def _find_credentials(self, endpoint: Endpoint) -> Credentials | None:
        if self._credentials is None:
            return self._find_pair(endpoint)
        if isinstance(self._credentials, Credentials):
            return self._credentials
        return await resolve(self._credentials())

    def _find_pair(self, endpoint: Endpoint) -> Credentials | None:
        """The keys of the profile, the environment or the AWS files; None for a local server without any."""
        try:
            if self._profile is not None or endpoint.takes_environment:
                return find_credentials(self._profile)
            raise MissingKey(
                f"bedrock: the AWS keys found here are not used for {endpoint.host}; "
                "pass api_key=, credentials= or profile="
            )
        except MissingKey:
            if self._profile is None and is_private(endpoint.host):
                return None
            raise


def is_aws(url: str) -> bool:
    """Whether an address is one of Amazon's own."""
    host = urlsplit(url.strip()).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
