"""Questions with rich: choices, a number, a confirmation; work with a progress bar, a status and silence."""
import time

from rich.console import Console
from rich.progress import track
from rich.prompt import Confirm, IntPrompt, Prompt

console = Console()
Prompt.ask("Which branch", choices=["main", "next"], default="next")
for _ in track(range(70), description="Merging"):
    time.sleep(0.1)
IntPrompt.ask("How many reviewers")
with console.status("Asking them"):
    time.sleep(7)
Confirm.ask("Push to the server?")
time.sleep(7)
Prompt.ask("Another one")
