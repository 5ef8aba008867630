"""Vertex AI: Gemini and Claude under a project and a location of Google Cloud.

https://aiplatform.googleapis.com                       the location "global"
https://us-central1-aiplatform.googleapis.com           a region
https://aiplatform.eu.rep.googleapis.com                "us" and "eu"
    /v1beta1/projects/P/locations/L/publishers/google/models/MODEL:streamGenerateContent?alt=sse
    /v1/projects/P/locations/L/publishers/anthropic/models/MODEL:streamRawPredict
"""

import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from swink.errors import MissingKey, MisuseError, StreamError
from swink.messages import ModelSpec
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.anthropic.wire import Messages
from swink.providers.endpoint import provider_endpoint, segment
from swink.providers.exchange import Again
from swink.providers.gemini.wire import GenerateContent
from swink.providers.http import Request
from swink.providers.notices import Notices
from swink.providers.vertex.googleauth import NONE_FOUND, GoogleIdentity, google_auth, may_be_found
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions

CLAUDE_VERSION = "vertex-2023-10-16"
_NAMES = {
    "project": re.compile(r"[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*(?::[a-z0-9-]+)?"),
    "location": re.compile(r"[a-z0-9-]+"),
}
_VERSION = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?$")


class ClaudeOnVertex(Messages):
    """Anthropic's protocol with the model in the address, and the version of the API in the body."""

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        body = super().body(ask, messages)
        version = ask.options.extra.get("anthropic_version", CLAUDE_VERSION)
        return {"anthropic_version": version, **{name: body[name] for name in body if name != "model"}}

    def headers(self, ask: Ask) -> Mapping[str, str]:
        """The betas that the request needs."""
        return {name: value for name, value in super().headers(ask).items() if name != "anthropic-version"}


_PUBLISHERS: Mapping[str, Wire] = {"google": GenerateContent("vertex"), "anthropic": ClaudeOnVertex()}


class VertexStreamFn(Adapter):
    """Gemini (`vertex:gemini-…`) and Claude (`vertex:claude-…`) on Vertex AI.

    `project` and `location` default to GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, else to the project of
    the credentials and "global". `credentials` are google-auth's; without them they are found where Google's
    own tools find them. With an API key (express mode) none are needed. `base_url` may end in the version of
    the API, as it does for AnthropicVertex, or not, as for google-genai.

    Args:
        project: the project at Google
        location: the region, or "global"
        credentials: those of google-auth
        base_url: the server, by default GOOGLE_VERTEX_BASE_URL or the one of the location
        api_key: by default GOOGLE_VERTEX_API_KEY or the stored key
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "vertex"

    def __init__(
        self,
        *,
        project: str | None = None,
        location: str | None = None,
        credentials: Any = None,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        if credentials is not None and api_key:
            raise MisuseError("VertexStreamFn takes credentials= or api_key=, not both")
        named = _first("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID")
        region = location or ("" if api_key else _first("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"))
        self._given_project = _checked("project", project or "")
        self._project = _checked("project", project or named)
        self._location = _checked("location", region or "global")
        self._credentials = credentials
        self._google = GoogleIdentity(credentials)
        default = _host(self._location)
        made = provider_endpoint("vertex", base_url, api_key, allow_http=allow_http, default=default)
        self._set_up(made, _PUBLISHERS["google"], headers)
        self._reports = {wire: Notices("vertex", wire.honours) for wire in _PUBLISHERS.values()}

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply; Gemini and Claude do not honour the same options."""
        self._notices = self._reports[self.wire_for(model)]
        return super().__call__(model, context, options)

    def wire_for(self, model: ModelSpec) -> Wire:
        return _PUBLISHERS.get(_publisher(model.model_id), _PUBLISHERS["google"])

    def name_of(self, model: ModelSpec) -> str:
        """The model without its publisher."""
        return model.model_id if model.model_id.startswith("projects/") else model.model_id.rpartition("/")[2]

    def url(self, ask: Ask) -> str:
        """The address of a model, or of the endpoint of a tuned one."""
        publisher = _publisher(ask.model.model_id)
        if publisher not in _PUBLISHERS:
            raise StreamError(f"vertex serves models of google and anthropic here, none of {publisher}")
        is_claude = publisher == "anthropic"
        has_key = self._takes_key(ask.options)
        project = self._given_project if has_key else self._project
        if is_claude and not project:
            other = "use Google credentials instead of the API key" if has_key else "set GOOGLE_CLOUD_PROJECT"
            raise StreamError(f"Claude on Vertex AI needs a project: pass project=, or {other}")
        place = f"projects/{quote(project, safe=':')}/locations/{self._location}/" if project else ""
        path = f"{place}publishers/{publisher}/models/{segment(ask.name)}"
        if ask.name.startswith("projects/"):
            path = "/".join(segment(part) for part in ask.name.split("/"))
        version = "" if _VERSION.search(self.base_url) else "/v1" if is_claude else "/v1beta1"
        method = "streamRawPredict" if is_claude else "streamGenerateContent?alt=sse"
        return f"{self.base_url}{version}/{path}:{method}"

    async def authorization(self, ask: Ask, url: str, body: bytes) -> Mapping[str, str]:
        """The key of express mode, or a token and the project that pays."""
        if self._takes_key(ask.options):
            await self._endpoint.prepare_key(ask.options.api_key)
            key = self._endpoint.key(ask.options.api_key)
            return {"x-goog-api-key": key} if key else {}
        headers = {"authorization": f"Bearer {await self._google.token()}"}
        return headers | ({"x-goog-user-project": payer} if (payer := self._google.quota_project) else {})

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request could not say who asks; whether credentials work is seen later."""
        if self._takes_key(options):
            self._endpoint.check_key(options.api_key)
        else:
            self._check_credentials()

    def asker(self) -> str:
        others = self._project, self._location, self._google.name
        return self._endpoint.asker(sorted(self._headers.items()), *others)

    async def _request(self, wire: Wire, ask: Ask, again: Again | None = None) -> Request:
        if not self._takes_key(ask.options):
            self._check_credentials()
            self._project = self._project or _checked("project", await self._google.project())
            if not self._project:
                how = "pass project=, or set GOOGLE_CLOUD_PROJECT"
                raise MissingKey(f"the Google credentials name no project: {how}")
        return await super()._request(wire, ask, again)

    def _takes_key(self, options: StreamOptions) -> bool:
        """Whether an API key says who asks; one that was not given only where nothing else was."""
        if options.api_key is not None or self._endpoint.api_key is not None:
            return True
        return self._credentials is None and not self._given_project and self._endpoint.has_key()

    def _check_credentials(self) -> None:
        """Credentials that were found on this machine go to Google, or where the environment says."""
        if self._credentials is not None:
            return
        if not self._endpoint.takes_environment:
            raise MissingKey(
                f"the Google credentials of this machine are not sent to {self._endpoint.host}: "
                "pass credentials= or api_key="
            )
        google_auth()
        if not may_be_found():
            raise MissingKey(NONE_FOUND)


def _publisher(name: str) -> str:
    """Whose model it is: named in its path, or known by its name."""
    first, slash, rest = name.partition("/")
    if not slash:
        return "anthropic" if "claude" in name else "google"
    if first == "publishers":
        return rest.partition("/")[0]
    return "google" if first in ("projects", "models") else first


def _host(location: str) -> str:
    if location == "global":
        return "https://aiplatform.googleapis.com"
    if location in ("us", "eu"):
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


def _first(*variables: str) -> str:
    return next((value for name in variables if (value := os.environ.get(name, "").strip())), "")


def _checked(what: str, value: str) -> str:
    """The name of a project or a location, which become part of an address."""
    if value and not _NAMES[what].fullmatch(value):
        raise MisuseError(f"{value!r:.80} is no {what} of Google Cloud")
    return value
