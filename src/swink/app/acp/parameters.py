"""What an editor sends: the parameters of its requests and its answers, as far as they are used here.

Fields that are not known are ignored, as the protocol says; what is missing or of another type is refused.
"""

from typing import Literal

from msgspec import Struct, field


class FileAccess(Struct, frozen=True, rename="camel"):
    """Whether the editor reads and writes files for us, those in its windows among them."""

    read_text_file: bool = False
    write_text_file: bool = False


class SessionExtras(Struct, frozen=True):
    """Updates that an editor shows only if it says so."""

    compaction: dict[str, object] | None = None
    notices: dict[str, object] | None = None


class Elicits(Struct, frozen=True):
    """Which ways of asking for input there are."""

    form: dict[str, object] | None = None


class Logins(Struct, frozen=True):
    """Which ways of logging in the editor can start."""

    terminal: bool = False


class EditorAbilities(Struct, frozen=True):
    """What the editor can do for an agent."""

    fs: FileAccess | None = None
    terminal: bool = False
    session: SessionExtras | None = None
    elicitation: Elicits | None = None
    auth: Logins | None = None
    meta: dict[str, object] | None = field(default=None, name="_meta")

    @property
    def reads(self) -> bool:
        return self.fs is not None and self.fs.read_text_file

    @property
    def writes(self) -> bool:
        return self.fs is not None and self.fs.write_text_file

    @property
    def has_forms(self) -> bool:
        return self.elicitation is not None and self.elicitation.form is not None

    @property
    def shows_notices(self) -> bool:
        return self.session is not None and self.session.notices is not None

    @property
    def shows_compaction(self) -> bool:
        return self.session is not None and self.session.compaction is not None

    @property
    def shows_output(self) -> bool:
        """Whether what a command of ours prints is shown in a terminal of the editor's."""
        return self.meta is not None and self.meta.get("terminal_output") is True


class Initialize(Struct, frozen=True, rename="camel"):
    """The first request: which protocol, and what the editor can do."""

    protocol_version: int
    client_capabilities: EditorAbilities | None = None


class Authenticate(Struct, frozen=True, rename="camel"):
    """Which way of logging in was taken."""

    method_id: str


class NamedValue(Struct, frozen=True):
    """A variable of an environment, or a header."""

    name: str
    value: str


class EditorServerEntry(Struct, frozen=True):
    """An MCP server that the editor has configured: a program, or an address."""

    name: str
    type: str = "stdio"
    command: str = ""
    args: tuple[str, ...] | None = ()
    env: tuple[NamedValue, ...] | None = ()
    url: str = ""
    headers: tuple[NamedValue, ...] | None = ()


class Place(Struct, frozen=True, rename="camel"):
    """Where a session works, and with which servers."""

    cwd: str
    mcp_servers: tuple[EditorServerEntry, ...] | None = ()
    additional_directories: tuple[str, ...] | None = ()


class SavedPlace(Place, frozen=True, rename="camel"):
    """A session that was saved, and where it is to work."""

    session_id: str = ""


class OfSession(Struct, frozen=True, rename="camel"):
    """Only which session is meant."""

    session_id: str


class ListSessions(Struct, frozen=True):
    """Which saved sessions to name, and after which."""

    cwd: str | None = None
    cursor: str | None = None


class SetMode(Struct, frozen=True, rename="camel"):
    """The mode to go on in."""

    session_id: str
    mode_id: str


class SetOption(Struct, frozen=True, rename="camel"):
    """Another value of an option."""

    session_id: str
    config_id: str
    value: str


class TextBlock(Struct, frozen=True, tag="text"):
    """Words that the person wrote."""

    text: str


class ImageBlock(Struct, frozen=True, tag="image", rename="camel"):
    """A picture, with its bytes."""

    data: str
    mime_type: str


class AudioBlock(Struct, frozen=True, tag="audio", rename="camel"):
    """A recording, with its bytes."""

    data: str
    mime_type: str


class LinkBlock(Struct, frozen=True, tag="resource_link", rename="camel"):
    """A file or resource that is only named."""

    uri: str
    name: str


class Contents(Struct, frozen=True, rename="camel"):
    """What a resource holds: text, or bytes."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class ResourceBlock(Struct, frozen=True, tag="resource"):
    """A file or resource with what is in it."""

    resource: Contents


PromptBlockSent = TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock


class Prompt(Struct, frozen=True, rename="camel"):
    """What the person says in a session."""

    session_id: str
    prompt: tuple[PromptBlockSent, ...]


class Chosen(Struct, frozen=True, rename="camel"):
    """The answer to a question: an option, or none."""

    outcome: Literal["selected", "cancelled"]
    option_id: str = ""


class PermissionAnswer(Struct, frozen=True):
    """What the person answered to a question."""

    outcome: Chosen


class FormAnswer(Struct, frozen=True):
    """What the person filled in."""

    action: str
    content: dict[str, object] | None = None


class FileText(Struct, frozen=True):
    """What the editor has of a file, also if it is not saved."""

    content: str


class Done(Struct, frozen=True):
    """An answer that says nothing more."""
