"""The first run: a model to begin with."""

import asyncio
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Resize
from textual.widgets import Input, OptionList, Static

from swink.app.assistant import firstrun
from swink.app.assistant.localfigures import figures_source, figures_text, read_figures
from swink.app.assistant.localspeed import expectation
from swink.app.tui.escaping import visible
from swink.app.tui.screens import AnswerScreen
from swink.app.tui.screens.listscreen import ListRow, key_of
from swink.app.tui.screens.modelpicker import ModelPicker
from swink.app.tui.screens.serverform import ServerForm
from swink.errors import AgentError
from swink.models.keys.accounts import ACCOUNTS, ProviderAccount
from swink.stream import StreamFn

if TYPE_CHECKING:
    from swink.app.tui.commands.commandtable import CommandContext

_WIDEST, _FRAME = 84, 6  # columns of the box, and of its border with padding and scrollbar
_SHORT = 30  # lines below which no blank ones are between its parts
Step = Literal["begin", "provider", "key", "kept", "fetch"]

_HINTS: dict[Step, str] = {
    "begin": "Enter takes · Esc begins with the embedded model · PgDn shows more",
    "provider": "Enter takes · Esc goes back",
    "key": "Enter checks and stores it · Esc goes back",
    "kept": "Enter takes · Esc goes back",
    "fetch": "Esc stops it; what arrived is kept for the next time",
}


class Wizard(AnswerScreen[str | None]):
    """Left with the model to use, which is remembered; None if there is none to take."""

    DEFAULT_CSS = """
    Wizard { align: center middle; background: $background 60%; }
    Wizard > Vertical { width: 90%; max-width: 84; height: auto; max-height: 100%; border: round $primary;
        background: $surface; padding: 0 1; }
    Wizard OptionList { height: auto; max-height: 40vh; border: none; background: $surface; padding: 0;
        margin: 0 0 1 0; }
    Wizard Input { border: none; height: 1; padding: 0; background: $boost; margin: 0 0 1 0; }
    Wizard .said { margin: 0 0 1 0; }
    Wizard VerticalScroll { height: auto; max-height: 33vh; }
    Wizard.-short OptionList, Wizard.-short .said { margin: 0; }
    Wizard OptionList:focus { border: none; }
    Wizard OptionList:focus > .option-list--option-highlighted { color: $text; background: $primary 30%;
        text-style: bold; }
    Wizard OptionList:ansi > .option-list--option-highlighted { text-style: reverse; }
    Wizard Input:focus { border: none; }
    Wizard .hints { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", priority=True),
        Binding("pageup", "turn('up')", "earlier figures", priority=True),
        Binding("pagedown", "turn('down')", "later figures", priority=True),
    ]

    def __init__(self, *, only: ProviderAccount | None = None, stream_fn: StreamFn | None = None) -> None:
        super().__init__()
        self._step: Step = "begin" if only is None else "key"
        self._account = only
        self._asks_key_alone = only is not None
        self._stream_fn = stream_fn
        self._figures = read_figures() if only is None else ()
        self._stop = Event()
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "welcome" if self._account is None else "key"
            yield Static("", classes="said", id="said", markup=False)
            yield OptionList(markup=False)
            yield Input(password=True, placeholder="paste the key; it is not shown")
            yield Static("", classes="said", id="problem", markup=False)
            with VerticalScroll(can_focus=False):
                for id in ("figures", "speed", "source"):
                    yield Static("", classes="said", id=id, markup=False)
            yield Static("", classes="hints", id="hints", markup=False)

    def on_mount(self) -> None:
        self._go(self._step)
        self._say("speed", "")
        self._say("source", figures_source(self._figures))
        if not self._asks_key_alone:
            self.run_worker(self._measure(firstrun.EMBEDDED))

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.height < _SHORT, "-short")
        width = min(_WIDEST, event.size.width * 9 // 10) - _FRAME
        self._say("figures", figures_text(self._figures, width) if self._figures else "")

    def action_turn(self, where: Literal["up", "down"]) -> None:
        """Show more of the figures, where they have too little room."""
        pane = self.query_one(VerticalScroll)
        pane.scroll_page_up() if where == "up" else pane.scroll_page_down()

    def action_back(self) -> None:
        """A step back; from the first one on with the embedded model."""
        self._stop.set()
        if self._busy and self._step == "key":
            self._checking.cancel()
            self._busy = False
        match self._step:
            case "begin":
                self.run_worker(self._take_embedded())
            case "key" if self._asks_key_alone:
                self.dismiss(None)
            case "key" | "kept":
                self._go("provider")
            case _:
                self._go("begin")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        chosen = key_of(event.option)
        match self._step, chosen:
            case "begin", "embedded":
                self.run_worker(self._take_embedded())
            case "begin", "brighter":
                self._go("fetch")
                self._stop = Event()
                self.run_worker(self._fetch())
            case "begin", "server":
                self.run_worker(self._take_server())
            case "begin", _:
                self._go("provider")
            case "provider", provider:
                self._account = ACCOUNTS[provider]
                self._go("key")
            case "kept", "again":
                self._go("key")
            case "kept", _:
                self.run_worker(self._store(self.query_one(Input).value))
            case _:
                pass

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if not self._busy:
            self._checking = self.run_worker(self._check(event.value.strip()))

    def _go(self, step: Step) -> None:
        self._step = step
        options, field = self.query_one(OptionList), self.query_one(Input)
        options.display, field.display = step in ("begin", "provider", "kept"), step == "key"
        self.query_one(VerticalScroll).display = step in ("begin", "fetch")
        options.clear_options()
        provider = "" if self._account is None else self._account.provider
        offered: list[ListRow] = []
        match step:
            case "begin":
                said = "No model is chosen yet and no API key was found. What shall we begin with?"
                offered = [_option(one.id, one.title, one.about) for one in firstrun.BEGINNINGS]
            case "provider":
                said = "Whose key is it?"
                accounts = firstrun.providers()
                offered = [_option(one.provider, one.provider, one.default_model or "") for one in accounts]
            case "key":
                field.value = ""
                said = f"The API key of {provider}. It goes to your keychain, else to a file of your own."
            case "kept":
                said = "The key could not be checked. What now?"
                offered = [_option("again", "Another key", ""), _option("keep", "Keep it anyway", "")]
            case "fetch":
                said = "Fetching the brighter local model …"
        options.add_options(offered)
        self._say("said", said)
        if step != "kept":
            self._say("problem", "")
        self._say("hints", _HINTS[step])
        if options.display:
            options.highlighted = 0
            options.focus()
        elif field.display:
            field.focus()

    def _say(self, where: str, text: str) -> None:
        line = self.query_one(f"#{where}", Static)
        line.display = bool(text)
        line.update(visible(text))

    async def _measure(self, model: str) -> None:
        """Say what to expect of a local model on this machine."""
        name = model.removeprefix("local:")
        self._say("speed", f"Measuring how fast {name} is on this machine …")
        self._say("speed", await expectation(name))

    async def _check(self, key: str) -> None:
        account = self._account
        if account is None:
            return
        if (problem := firstrun.problem_with(key)) is not None:
            self._say("problem", problem)
            return
        self._busy = True
        self._say("problem", f"asking {account.provider} …")
        problem = await firstrun.check_key(account, key, stream_fn=self._stream_fn)
        self._busy = False
        if problem is None:
            await self._store(key)
        else:
            self._go("kept")
            self._say("problem", problem)

    async def _store(self, key: str) -> None:
        assert self._account is not None
        try:
            model, where = await firstrun.remember_key(self._account, key)
        except AgentError as error:
            self._say("problem", str(error))
            return
        finally:
            self.query_one(Input).value = ""
        self.notify(f"the key of {self._account.provider} is in {where}", markup=False)
        if not self._asks_key_alone:
            model = await self._choose_model(self._account.provider, model)
        self.dismiss(model)

    async def _choose_model(self, provider: str, usual: str | None) -> str | None:
        """Which of the provider's models; Esc takes the usual one."""
        picker = ModelPicker(usual or "", provider=provider, title=f"models of {provider}")
        chosen = await _app(self).ask(picker)
        if chosen is None or chosen == usual:
            return usual
        try:
            await firstrun.remember_model(chosen)
        except AgentError as error:
            self.notify(str(error), markup=False, severity="warning")
        return chosen

    async def _take_server(self) -> None:
        model = await _app(self).ask(ServerForm())
        if model is None:
            return
        try:
            await firstrun.remember_model(model)
        except AgentError as error:
            self._say("problem", str(error))
        else:
            self.dismiss(model)

    async def _fetch(self) -> None:
        loop = asyncio.get_running_loop()

        def show(text: str) -> None:
            loop.call_soon_threadsafe(self._say, "problem", text)

        try:
            model = await firstrun.fetch_brighter(show, self._stop)
        except AgentError as error:
            self._go("begin")
            if not self._stop.is_set():
                self._say("problem", str(error))
            return
        await self._measure(model)
        self.notify(str(self.query_one("#speed", Static).content), markup=False, timeout=20)
        self.dismiss(model)

    async def _take_embedded(self) -> None:
        try:
            await firstrun.remember_model(firstrun.EMBEDDED)
        except AgentError as error:
            self.notify(str(error), markup=False, severity="warning")
        self.dismiss(firstrun.EMBEDDED)


def _app(screen: Wizard) -> "CommandContext":
    return cast("CommandContext", cast("Any", screen).app)


def _option(id: str, title: str, about: str) -> ListRow:
    text = Text(title)
    return ListRow(id, text.append(f"\n  {about}", style="dim") if about else text)
