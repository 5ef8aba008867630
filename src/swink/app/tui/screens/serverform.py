"""A server of one's own: its name, how it speaks, its address, the variable of its key, and its models."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Label, Static

from swink.app.assistant.ownproviders import add_provider
from swink.app.tui.escaping import visible
from swink.app.tui.screens import AnswerScreen
from swink.errors import AgentError, MisuseError
from swink.system.threads import in_thread

KINDS = ("openai", "anthropic")
_FIELDS = {
    "name": ("Name", "a short word, as in mine:MODEL"),
    "kind": ("Speaks like", " or ".join(KINDS)),
    "base_url": ("Address", "http://localhost:8000/v1"),
    "key_env": ("Variable of the key", "MY_SERVER_KEY; empty if it needs none"),
    "models": ("Models", "names, with commas between them"),
}


class ServerForm(AnswerScreen[str | None]):
    """Left with the first model of the server that was added, or with None."""

    DEFAULT_CSS = """
    ServerForm { align: center middle; background: $background 60%; }
    ServerForm > Vertical { width: 90%; max-width: 84; height: auto; max-height: 100%; border: round $primary;
        background: $surface; padding: 0 1; }
    ServerForm Label { color: $text-muted; }
    ServerForm Input { border: none; height: 1; padding: 0; background: $background; }
    ServerForm Input:focus { border: none; }
    ServerForm #problem { color: $error; display: none; margin: 1 0 0 0; }
    ServerForm #hints { color: $text-muted; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave", priority=True),
        Binding("down", "app.focus_next", "the next field"),
        Binding("up", "app.focus_previous", "the field before"),
    ]

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "a server of my own"
            for id, (label, example) in _FIELDS.items():
                yield Label(label)
                yield Input("openai" if id == "kind" else "", placeholder=example, id=id)
            yield Static("", id="problem", markup=False)
            yield Static(
                "Tab goes on · Enter in the last field adds it · Esc leaves", id="hints", markup=False
            )

    def on_mount(self) -> None:
        self.query_one("#name", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "models":
            self.run_worker(self._add(), exclusive=True)
        else:
            self.focus_next()

    async def _add(self) -> None:
        said = {id: self.query_one(f"#{id}", Input).value.strip() for id in _FIELDS}
        models = tuple(name for name in (each.strip() for each in said["models"].split(",")) if name)
        try:
            _check(said, models)
            await in_thread(add_server, said, models)
        except AgentError as error:
            problem = self.query_one("#problem", Static)
            problem.update(visible(str(error)))
            problem.display = True
        else:
            self.dismiss(f"{said['name']}:{models[0]}")


def add_server(said: dict[str, str], models: tuple[str, ...]) -> None:
    """Keep a server in the settings; raises an `AgentError` that says what is wrong with it."""
    add_provider(said["name"], said["kind"], said["base_url"], said["key_env"] or None, models)


def _check(said: dict[str, str], models: tuple[str, ...]) -> None:
    for id, (label, _) in _FIELDS.items():
        if not said[id] and id != "key_env":
            raise MisuseError(f"{label}: nothing is written there")
    if said["kind"] not in KINDS:
        raise MisuseError(f"it speaks like {' or '.join(KINDS)}, not like {said['kind']}")
    if not models:
        raise MisuseError("Models: nothing is written there")
