"""A local model behind llama.cpp's own HTTP server, which speaks the OpenAI and Anthropic protocols."""

from types import TracebackType

from swink.errors import MisuseError
from swink.hosts import is_loopback
from swink.local.download import Report
from swink.local.gguf import read_head
from swink.local.lifetime import close_at_exit
from swink.local.modelerrors import LoadFailed
from swink.local.progress import say_on_stderr
from swink.local.pull import pull
from swink.local.runtime import Listen, LlamaServer, Settings, open_http, require_runtime
from swink.local.weights import DEFAULT_MODEL


class ServedModel:
    """A running server; `stop` it, or leave the `with` block."""

    def __init__(self, server: LlamaServer, name: str) -> None:
        self._server: LlamaServer | None = server
        self.address = server.listening_address
        self.name = name
        close_at_exit(self)

    @property
    def openai_base_url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"{self.address}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """The base URL for an Anthropic client."""
        return self.address

    def stop(self) -> None:
        """Stop answering and free the memory."""
        self._server = None

    close = stop

    def servers(self) -> list[LlamaServer]:
        """The llama.cpp servers that are in memory."""
        return [] if self._server is None else [self._server]

    def __enter__(self) -> "ServedModel":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def serve_model(
    model_id: str = DEFAULT_MODEL,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    api_key: str | None = None,
    context: int | None = None,
    threads: int | None = None,
    parallel: int = 2,
    progress: Report | None = None,
) -> ServedModel:
    """Load a model and serve it; returns when it answers.

    Port 0 takes a free one; any address but loopback needs an `api_key`. Blocking: where an event loop runs,
    call it in a thread.
    """
    if not api_key and not is_loopback(host):
        raise MisuseError(
            f"serving on {host} lets the whole network use the model; give an api_key, or serve on 127.0.0.1"
        )
    require_runtime()
    path = pull(model_id, progress=progress or say_on_stderr())
    settings = Settings(context, threads, parallel)
    try:
        server = open_http(path, read_head(path), settings, Listen(host, port, api_key, model_id))
    except LoadFailed as error:
        if port:
            raise LoadFailed(f"{error.message}; or port {port} of {host} is taken") from error
        raise
    return ServedModel(server, model_id)
