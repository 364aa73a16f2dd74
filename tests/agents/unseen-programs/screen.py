"""A full-screen program made with textual: a list, an input, a loading sign, a dialog."""
import asyncio

from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Footer, Header, Input, Label, LoadingIndicator, Static


class Sure(ModalScreen[bool]):
    CSS = "Sure { align: center middle; } #box { width: 50; height: 9; border: thick $accent; background: $surface; padding: 1; }"

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Label("Remove 3 files?")
            yield Button("Remove", id="yes", variant="error")
            yield Button("Keep", id="no")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


class Files(App):
    CSS = "LoadingIndicator { height: 3; }"

    def compose(self) -> ComposeResult:
        yield Header()
        yield Static("Nothing yet", id="said")
        yield Input(placeholder="a command")
        yield Footer()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.value = ""
        self.run_worker(self.work(event.value))

    async def work(self, text: str) -> None:
        said = self.query_one("#said", Static)
        said.update("Working")
        sign = LoadingIndicator()
        if text != "quiet":
            await self.mount(sign)
        await asyncio.sleep(7)
        if text != "quiet":
            await sign.remove()
        if text == "remove":
            said.update("Asking")
            answer = await self.push_screen_wait(Sure())
            said.update(f"Answered {answer}")
        else:
            said.update(f"Finished {text}")


Files().run()
