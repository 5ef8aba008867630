"""Who asks Vertex AI: credentials of google-auth, found where Google's own tools find them.

GOOGLE_APPLICATION_CREDENTIALS, what `gcloud auth application-default login` left, or the metadata server of
the machine; or credentials that the caller has. Finding and renewing them blocks, so both happen in a thread.
"""

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from swink.errors import AuthError, MissingKey, NetworkError
from swink.providers.bearertokens import EARLY_SECONDS, Token, TokenCache
from swink.providers.secretechoes import shown
from swink.system.threads import in_thread

SCOPE = "https://www.googleapis.com/auth/cloud-platform"

NONE_FOUND = (
    "no Google credentials for vertex: run: gcloud auth application-default login, or set "
    "GOOGLE_APPLICATION_CREDENTIALS, or pass credentials=; or use an API key: set GOOGLE_VERTEX_API_KEY, "
    "or run: swink keys set vertex, or pass api_key="
)
_PLACES = ("GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST", "K_SERVICE", "CLOUD_RUN_JOB", "GAE_ENV")
"""Variables that name credentials, or say that the program runs on Google Cloud."""
_MACHINE = Path("/sys/class/dmi/id/product_name")


class GoogleIdentity:
    """An identity at Google: `await token()`, and the project it belongs to."""

    def __init__(self, credentials: Any = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._credentials = credentials
        self._project = ""
        self._cache = TokenCache(clock)
        self._lock = Lock()

    def __repr__(self) -> str:
        return "GoogleIdentity(…)"

    async def token(self) -> str:
        """The bearer token, renewed before it runs out."""
        return await self._cache.token(lambda: in_thread(self._fetch))

    async def project(self) -> str:
        """The project that the credentials name; empty if they name none."""
        await in_thread(self._find)
        return self._project

    @property
    def quota_project(self) -> str:
        """The project that is billed, where the credentials name one."""
        return getattr(self._credentials, "quota_project_id", None) or ""

    @property
    def name(self) -> str:
        """What tells one identity from another; empty for that of this machine."""
        names = ("service_account_email", "client_id")
        found = [value for name in names if (value := getattr(self._credentials, name, None))]
        return str(found[0]) if found else os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")

    def _find(self) -> Any:
        with self._lock:
            if self._credentials is None:
                auth, errors = google_auth(), import_module("google.auth.exceptions")
                try:
                    self._credentials, project = auth.default(scopes=[SCOPE])
                except errors.DefaultCredentialsError as error:
                    raise MissingKey(f"{NONE_FOUND} ({_said(error)})") from error
                self._project = project or ""
            self._project = self._project or getattr(self._credentials, "project_id", None) or ""
            return self._credentials

    def _fetch(self) -> Token:
        credentials = self._find()
        with self._lock:  # a fetch that was cancelled may still be under way
            left = _seconds_left(credentials)
            if not credentials.token or (left is not None and left < EARLY_SECONDS):
                _renew(credentials)
            return Token(credentials.token, _seconds_left(credentials))


def may_be_found() -> bool:
    """Whether credentials may be on this machine, without asking anybody; a container may not know."""
    if any(os.environ.get(name) for name in (*_PLACES, "KUBERNETES_SERVICE_HOST")) or sys.platform == "win32":
        return True
    folder = os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud"
    if (Path(folder) / "application_default_credentials.json").exists():
        return True
    try:
        is_google = _MACHINE.read_text("utf-8").startswith("Google")
    except (OSError, UnicodeDecodeError):
        return False
    return is_google and os.environ.get("NO_GCE_CHECK", "").lower() != "true"


def google_auth() -> Any:
    """google-auth, or an error with the command that installs it."""
    try:
        return import_module("google.auth")
    except ImportError as error:
        from swink.system.extras import install_command  # it takes 20 ms to import

        needed = "vertex needs google-auth, unless api_key= is given"
        raise MissingKey(f"{needed}; install it with: {install_command('vertex')}") from error


def _renew(credentials: Any) -> None:
    errors = import_module("google.auth.exceptions")
    try:
        credentials.refresh(import_module("google.auth.transport.requests").Request())
    except errors.GoogleAuthError as error:
        if isinstance(error, errors.TransportError) or error.retryable:
            raise NetworkError(f"no token from Google: {_said(error)}") from error
        raise AuthError(f"Google refused the credentials: {_said(error)}") from error
    if not credentials.token:
        raise AuthError("Google gave no token for these credentials")


def _said(error: Exception) -> str:
    """What google-auth says, which is the first of its arguments; others are the answer it was given."""
    return shown(str(error.args[0]) if error.args else type(error).__name__, ())[:500]


def _seconds_left(credentials: Any) -> float | None:
    """The seconds until the token runs out; None if it does not."""
    if (expiry := credentials.expiry) is None:
        return None
    if expiry.tzinfo is None:
        expiry = expiry.replace(tzinfo=UTC)
    return max(0.0, (expiry - datetime.now(UTC)).total_seconds())
