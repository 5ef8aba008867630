"""An area that takes pastes and images: those that the terminal marks, and bursts of keys that it does not.

keys ─→ Burst ─┬─ typing     inserted at once
               └─ a paste    kept back until it is over, then inserted as one
"""

from pathlib import Path
from typing import Any, cast

from textual import events

from swink.app.tui.editor.area import FoldedArea
from swink.app.tui.editor.attaching import pasted_images, read_image
from swink.app.tui.editor.bursts import HOLD, Burst
from swink.app.tui.editor.clipboardimage import save_clipboard_image
from swink.app.tui.editor.typed import make_harmless
from swink.errors import AgentError
from swink.system.threads import in_thread


class PastingArea(FoldedArea):
    """Text with pastes and images; `images` is the folder for images of the clipboard, if any are kept."""

    def __init__(self, images: Path | None, *, placeholder: str = "") -> None:
        super().__init__(placeholder=placeholder)
        self.detects_bursts: bool | None = None
        """Whether keys that come at once are a paste; by default where there is a terminal."""
        self._image_folder = images
        self._burst = Burst()
        self._burst_grew = False

    @property
    def is_searching(self) -> bool:
        """Whether what is typed is what to look for: then only the first words of a paste count."""
        return False

    async def send_burst(self) -> None:
        """A burst of one line ended with Enter: nobody has seen what is offered for it."""

    def on_mount(self) -> None:
        if self.detects_bursts is None:
            self.detects_bursts = not cast("Any", self).app.is_headless

    def warn(self, text: str) -> None:
        """Tell the user what could not be done."""
        self.notify(text, severity="warning", markup=False)

    def is_pasted(self, event: events.Key) -> bool:
        """Whether a key came faster than anybody types."""
        return bool(self.detects_bursts) and self._burst.is_rapid(event.time)

    def put_character(self, character: str, at: float) -> None:
        """Insert a key, or keep it back as a part of a paste."""
        if text := self._burst.take_character(character, at):
            self.put_text(text)
        else:
            self._wait_for_burst()

    def take_enter(self, at: float) -> bool:
        """Whether an Enter is a part of a paste, and kept back."""
        is_kept = bool(self.detects_bursts) and self._burst.take_enter(at)
        if is_kept:
            self._wait_for_burst()
        return is_kept

    async def end_burst(self, event: events.Key, key: str) -> None:
        """Insert what was kept back, if this key is none of the burst any more."""
        belongs = event.is_printable or key in ("enter", "tab")
        if self._burst.is_waiting and (not belongs or self._burst.is_over(event.time)):
            await self._settle()

    def _wait_for_burst(self) -> None:
        if not self._burst_grew:
            self.set_timer(HOLD, self._after_burst)
        self._burst_grew = True

    async def _after_burst(self) -> None:
        """A key that came meanwhile prolongs the wait."""
        grew, self._burst_grew = self._burst_grew, False
        if grew and self._burst.is_waiting:
            self.set_timer(HOLD, self._after_burst)
        elif self._burst.is_waiting:
            await self._settle()

    async def _settle(self) -> None:
        settled = self._burst.settle()
        self._put_pasted(settled.text)
        if settled.sends:
            await self.send_burst()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if self._burst.is_waiting:
            self._put_pasted(self._burst.settle().text)
        if not event.text:  # some terminals say so when the clipboard holds an image
            await self.action_paste_clipboard()
        elif paths := await in_thread(pasted_images, event.text):
            await self._put_images(paths)
        else:
            self._put_pasted(await in_thread(make_harmless, event.text))
        self.focus()

    async def action_paste_clipboard(self) -> None:
        """Insert the image of the clipboard, or what was copied here."""
        folder = self._image_folder
        if folder is not None and (image := await in_thread(save_clipboard_image, folder)) is not None:
            self.put_image(image)
        else:
            self._put_pasted(make_harmless(cast("Any", self).app.clipboard))

    def _put_pasted(self, text: str) -> None:
        if self.is_searching:
            self.put_text(text[:200].partition("\n")[0])
        elif text:
            self.put_paste(text)

    async def _put_images(self, paths: list[str]) -> None:
        for path in paths:
            try:
                await in_thread(read_image, path)  # again when it is sent; now to say what is wrong with it
            except AgentError as error:
                self.warn(str(error))
                self.put_text(path + " ")
            else:
                self.put_image(path)

    def open_touched_paste(self) -> bool:
        """Open the paste that the cursor touches; whether there is one."""
        if (name := self.paste_here) is None:
            return False
        if not self.open_paste(name):
            self.warn(f"{name} is too long to be opened here; Ctrl+G opens your own editor")
        return True
