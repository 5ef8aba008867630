"""Configuration of the loop, and the context it works on."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any, Generic, Literal, Protocol, get_args

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace
from typing_extensions import TypeVar

from swink.agent.context.compaction import Transform, checked_transformers
from swink.agent.context.prefixguard import PrefixGuard, TokenRatio
from swink.agent.context.windows import DEFAULT
from swink.agent.policy import Approve, Policy, check_slots
from swink.agent.retry import ExponentialBackoff, RetryStrategy
from swink.errors import (
    AuthError,
    InvalidInput,
)
from swink.messages import (
    LlmMessage,
    Message,
    ModelSpec,
    Price,
    ToolCall,
)
from swink.messages.checks import check_hook, check_list, check_positive, check_type, check_word
from swink.messages.jsondata import copy_data
from swink.messages.providertools import Hosted, check_hosted
from swink.messages.records import Record
from swink.models import catalog
from swink.stream import StreamFn, StreamOptions, asked_through
from swink.stream.urls import origin_of
from swink.tools import DepsT, Tool, ToolSource
from swink.tools.schema import check_is_type

T = TypeVar("T", default=Any)
Model = str | ModelSpec
Route = tuple[ModelSpec, StreamFn]
"""A model, and the stream function that asks it."""
ApprovalMode = Literal["on", "smart", "off"]
QueueMode = Literal["one_at_a_time", "all"]
APPROVAL_MODES, QUEUE_MODES = get_args(ApprovalMode), get_args(QueueMode)
Partition = Callable[[Sequence[ToolCall]], Sequence[Sequence[int]]]
ToolExecution = Literal["concurrent", "sequential", "priority"] | Partition
_EXECUTIONS = ("concurrent", "sequential", "priority")
Poll = Callable[[], Sequence[Message] | Awaitable[Sequence[Message]]]


Validate = Callable[[T], T | Awaitable[T | None] | None]


class PlainSession(Protocol):
    """Where messages are kept: `append` is one durable transaction."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation that an agent begins with."""
        ...

    @property
    def state(self) -> dict[str, Any]:
        """The session state that an agent begins with."""
        ...

    def append(self, messages: Sequence[Message]) -> Awaitable[None] | None:
        """Add messages; async, or plain and then called in a thread."""
        ...


class Session(PlainSession, Protocol):
    """Where all of an agent is kept: with a `conversation`, it is taken up again as it was."""

    def append(
        self,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        records: Sequence[Record] = (),
    ) -> Awaitable[None] | None:
        """Add messages, the whole state if it has changed, and records, in one transaction."""
        ...


class KeyOwner(Struct, frozen=True):
    """Whom an API key was given for: a provider, at the address that its stream function names."""

    provider: str
    origin: str | None = None

    @classmethod
    def of(cls, model: ModelSpec, stream_fn: StreamFn) -> "KeyOwner":
        """Who gets the key when this model is asked through this stream function."""
        provider = _SAME_ACCOUNT.get(model.provider, model.provider)
        return cls(provider, origin_of(getattr(stream_fn, "base_url", None)))

    def is_also(self, other: "KeyOwner") -> bool:
        """Whether a key given for one may go to the other; an unknown address does not tell them apart."""
        same_address = self.origin == other.origin or None in (self.origin, other.origin)
        return self.provider == other.provider and same_address


_SAME_ACCOUNT = {"openai-responses": "openai", "azure-responses": "azure", "xai-responses": "xai"}


class PromptContext(Struct, Generic[DepsT], frozen=True):
    """What a function that writes the system prompt is given.

    Args:
        deps: the dependencies of the run
        state: the session's state
        messages: the history so far
    """

    deps: DepsT
    state: Mapping[str, Any]
    messages: Sequence[Message]

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("state", self.state), ("messages", self.messages)]

    def __repr__(self) -> str:
        return f"PromptContext(state={self.state!r}, messages={self.messages!r})"


SystemPrompt = str | Callable[[PromptContext[DepsT]], str | Awaitable[str]]


class AgentContext(Struct):
    """What a conversation consists of. A running loop reads it at every turn, so changes act at the next.

    Args:
        system_prompt: a text, or a function of a `PromptContext` that writes it at the start of each run
        messages: the history
        tools: tools and sources of tools
    """

    system_prompt: SystemPrompt = ""
    """A text, or a function that is asked for it at the start of each run."""
    messages: Sequence[Message] = ()
    tools: Sequence[Tool | ToolSource] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.system_prompt, str) and not callable(self.system_prompt):
            kind = type(self.system_prompt).__name__
            raise InvalidInput(f"system_prompt is a str or a function that returns one, not {kind}")


class AgentLoopConfig(Struct, kw_only=True):
    """How the loop works. A running loop takes it once per turn, so a change takes effect at the next.

    Args:
        model: the model to ask
        options: `StreamOptions` of every request
        retry: when a failed request is sent again
        fallbacks: models to ask when the retries of the one before are used up
        policies: asked in this order
        approve: asked about calls that need approval
        approval_mode: which calls those are
        get_api_key: gives the key of a provider
        get_steering: takes what was said while the loop works
        get_follow_up: takes what waits for when it would stop
        tool_execution: whether calls run at once or one after the other
        tool_timeout: seconds after which a call is given up
        price: the price of a model, if it is known
        state: the session's JSON dict
        guard: notices what would break the provider's cache
    """

    model: Model
    stream_fn: StreamFn | None = None
    """Asks every model, except those of a provider registered beside it; without one, the catalog's does."""
    options: StreamOptions = StreamOptions()
    retry: RetryStrategy = ExponentialBackoff()
    fallbacks: Sequence[Model | tuple[Model, StreamFn]] = ()
    policies: Sequence[Policy] = ()
    approve: Approve | None = None
    approval_mode: ApprovalMode = "smart"
    transform_context: Transform = "window"
    """"window", "prune", "summary", a function, or a list of those; functions once it is made."""
    convert_to_llm: Callable[[Message], LlmMessage | None] | None = None
    """Per message, None to leave it out; without one, custom messages are left out."""
    get_api_key: Callable[[str], str | Awaitable[str | None] | None] | None = None
    get_steering: Poll | None = None
    get_follow_up: Poll | None = None
    peek_steering: Callable[[], int] | None = None
    """How much steering waits, without taking it; without a peek, it is polled and held until delivered."""
    tool_execution: ToolExecution = "concurrent"
    tool_timeout: float | None = None
    hosted: Hosted = ()
    """Tools that the provider runs itself; a function gives those for the model that is asked."""
    price: Callable[[ModelSpec], Price | None] | None = catalog.price_of
    state: dict[str, Any] = {}
    deps: Any = None
    """The application's own objects, for tools, policies and the system prompt; never saved or sent."""
    deps_type: Any = None
    """What they have to be; a run without them is refused."""
    name: str | None = None
    """What people call the agent: in logs, spans and events."""
    output: Any = None
    """The type of the answer of every run that names none."""
    save: Callable[[Sequence[Message]], Awaitable[None] | None] | None = None
    """Called with each turn's messages once they are final."""
    key_owner: KeyOwner | None = None
    """Whom the `api_key` and `headers` of the options were given for; nobody else gets them. By default model
    and stream_fn."""
    own_provider: str | None = None
    """Whom `stream_fn` was given for: it asks this provider even if the provider is registered."""
    made: dict[str, tuple[Any, StreamFn]] = {}
    """Stream functions that the catalog made, by provider."""
    warned: list[str] = []
    """What was told once, and is not told again."""
    guard: PrefixGuard = field(default_factory=PrefixGuard)
    ratio: TokenRatio = field(default_factory=TokenRatio)
    """The last request, and how far estimates of its size are off."""
    version: int = 0
    """Grows with every assignment, so that a turn sees whether anything has changed."""

    def __post_init__(self) -> None:
        if self.own_provider is None:
            force_setattr(self, "own_provider", self.spec.provider)
        if type(self.options) is not StreamOptions:
            check_type("options", self.options, StreamOptions)
        if type(self.state) is not dict:
            check_type("state", self.state, dict)
        if self.approval_mode not in APPROVAL_MODES:
            check_word("approval_mode", self.approval_mode, APPROVAL_MODES)
        if self.tool_execution != "concurrent" and not callable(self.tool_execution):
            check_word(
                "tool_execution", self.tool_execution, _EXECUTIONS, " or a function that groups the calls"
            )
        if type(self.retry) is not ExponentialBackoff:
            _check_retry(self.retry)
        if self.policies != ():
            check_policies(self.policies)
        if self.name is not None:
            check_type("name", self.name, str)
        if self.output is not None:
            check_is_type("output", self.output)
        if self.tool_timeout is not None:
            check_positive("tool_timeout", self.tool_timeout)
        if self.hosted != () and (isinstance(self.hosted, type) or not callable(self.hosted)):
            self.hosted = check_hosted(self.hosted)
        if isinstance(self.approve, bool):
            raise InvalidInput("approve is a function of the request; approval_mode='off' asks for no call")
        if self.stream_fn is not None:
            check_hook("stream_fn", self.stream_fn)
        if self.approve is not None:
            check_hook("approve", self.approve)
        if self.convert_to_llm is not None:
            check_hook("convert_to_llm", self.convert_to_llm)
        if self.get_api_key is not None:
            check_hook("get_api_key", self.get_api_key)
        if self.transform_context == "window":
            force_setattr(self, "transform_context", DEFAULT)
        else:
            force_setattr(self, "transform_context", checked_transformers(self.transform_context))
        routes = self.routes()
        for model, stream_fn in routes:
            if isinstance(stream_fn, type) and not hasattr(stream_fn, "__anext__"):
                raise InvalidInput(f"{stream_fn.__name__} is a class; write {stream_fn.__name__}(...)")
            if not callable(stream_fn):
                check_hook(f"the stream function of {model}", stream_fn)
            catalog.check_name(model, stream_fn)
        if self.key_owner is None:
            force_setattr(self, "key_owner", KeyOwner.of(*routes[0]))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        force_setattr(self, "version", self.version + 1)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("model", self.model), ("options", self.options)]  # never the dependencies

    def __repr__(self) -> str:
        return f"AgentLoopConfig(model={self.model!r}, options={self.options!r})"

    @property
    def spec(self) -> ModelSpec:
        """The model, with what the catalog knows of it if it was given by its name."""
        return self.model if type(self.model) is ModelSpec else catalog.parse_model(self.model)

    def routes(self) -> tuple[Route, ...]:
        """Whom a turn may ask, and how: the model, then its fallbacks, less those that name it too."""
        first = self.route_to(self.model)
        if not self.fallbacks:
            return (first,)
        name, items = str(first[0]), check_list("fallbacks", self.fallbacks, "models")
        others = [(item, self.fallback_route(item)) for item in items]
        return (first, *[route for item, route in others if type(item) is tuple or str(route[0]) != name])

    def route_to(self, model: Model) -> Route:
        """The model, and what asks it: the stream function given, or the one registered or in the catalog."""
        spec = model if type(model) is ModelSpec else catalog.parse_model(model)
        provider, own = spec.provider, self.stream_fn
        make = catalog.registered(provider)
        if own is not None and (make is None or provider == self.own_provider):
            return spec, asked_through(own)
        made = self.made.get(provider)
        if made is None or made[0] is not make:
            made = self.made[provider] = make, catalog.stream_fn_for(spec)
        return spec, asked_through(made[1])

    def fallback_route(self, item: Model | tuple[Model, StreamFn]) -> Route:
        """A fallback model, an `item` of `fallbacks`, and what asks it."""
        if not isinstance(item, tuple):
            return self.route_to(item)
        if len(item) != 2:
            raise InvalidInput("fallbacks are models, or pairs of a model and its stream function")
        return catalog.parse_model(item[0]), asked_through(item[1])

    def withholds_key(self, model: ModelSpec, stream_fn: StreamFn) -> bool:
        """Whether the key in the options was given for another provider than `model` is asked at by
        `stream_fn`.
        """
        return self.options.api_key is not None and not self._is_for(model, stream_fn)

    def options_for(self, model: ModelSpec, stream_fn: StreamFn) -> StreamOptions:
        """The options to ask `model` by `stream_fn`: a key and headers given for another provider are left
        out.
        """
        options = self.options
        if (options.api_key is None and not options.headers) or self._is_for(model, stream_fn):
            return options
        return replace(options, api_key=None, headers={})

    def _is_for(self, model: ModelSpec, stream_fn: StreamFn) -> bool:
        owner = self.key_owner
        return owner is not None and owner.is_also(KeyOwner.of(model, stream_fn))

    def check_key(self, model: ModelSpec, stream_fn: StreamFn) -> None:
        """Raise `MissingKey` if it is clear that `stream_fn` has no key to send to this `model`."""
        check: Callable[[StreamOptions], None] | None = getattr(stream_fn, "check_key", None)
        if check is None or self.get_api_key is not None:
            return
        try:
            check(self.options_for(model, stream_fn))
        except AuthError as error:
            if not self.withholds_key(model, stream_fn):
                raise
            raise self.explain_withheld(error, model) from None

    def explain_withheld(self, error: AuthError, model: ModelSpec) -> AuthError:
        """The `error` with the hint that there is a key, given for another provider than that of `model`."""
        given = self.key_owner.provider if self.key_owner else "another model"
        hint = f"the api_key in the options was given for {given} and is not sent to {model}"
        text = f"{error.message}; {hint}: get_api_key= can give each provider its own"
        explained = type(error)(text, model=error.model)
        explained.__cause__ = error.__cause__
        return explained


copied: Callable[[AgentLoopConfig], AgentLoopConfig] = methodcaller("__copy__")


def check_session(session: PlainSession) -> None:
    """Refuse an object that lacks what a session has, or the class of a session instead of one."""
    if (
        isinstance(session, type)
        or not callable(getattr(session, "append", None))
        or not (hasattr(session, "messages") and hasattr(session, "state"))
    ):
        kind = f"the class {session.__name__}" if isinstance(session, type) else type(session).__name__
        raise InvalidInput(
            "session is what `await store.create()` or `await store.open(id)` gives, or an object of yours "
            f"with messages, state and an async append(messages), not {kind}"
        )


def as_state(session: PlainSession | None, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """A state of one's own: a JSON copy of the saved one and what is given for this agent."""
    saved: Any = {} if session is None else session.state
    if not isinstance(saved, Mapping) or not isinstance(given, Mapping | None):
        wrong = given if isinstance(saved, Mapping) else saved
        raise InvalidInput(f"state is a dict of JSON data, not {type(wrong).__name__}")
    try:
        return copy_data({**saved, **(given or {})})
    except Exception as error:
        # What is no JSON, and whatever a foreign `model_dump` raises.
        raise InvalidInput(f"state is a dict of JSON data ({error}); pass other objects as deps=") from error


def _check_retry(retry: object) -> None:
    if isinstance(retry, type) or not (hasattr(retry, "should_retry") and hasattr(retry, "delay")):
        raise InvalidInput(f"retry is a strategy such as ExponentialBackoff(max_attempts=5), not {retry!r}")


def check_policies(policies: Sequence[Policy]) -> None:
    """Refuse what is not a policy, such as the class of one."""
    for policy in check_list("policies", policies, "policy objects"):
        if not isinstance(policy, Policy):
            made = f"{policy.__name__}(...)" if isinstance(policy, type) else "a Policy"
            raise InvalidInput(f"policies holds policy objects: write {made} instead of {policy!r}")
        check_slots(policy)
