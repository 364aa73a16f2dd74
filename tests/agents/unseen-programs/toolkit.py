"""A chat made with prompt_toolkit: a bottom bar, completion, work with and without a status line, a yes or no."""
import sys
import time

from prompt_toolkit import PromptSession
from prompt_toolkit.shortcuts import confirm, radiolist_dialog

SPINNER = "-\\|/"
session = PromptSession(bottom_toolbar="F1 help   ctrl-d ends")
while True:
    try:
        text = session.prompt("chat> ")
    except EOFError:
        break
    if text == "quiet":
        time.sleep(7)
        print("done")
    elif text == "busy":
        for n in range(60):
            sys.stdout.write(f"\r{SPINNER[n % 4]} thinking {n / 10:.1f}s")
            sys.stdout.flush()
            time.sleep(0.1)
        print("\rdone                 ")
    elif text == "danger":
        print("told so" if confirm("Run `git push --force`?") else "refused")
    elif text == "dialog":
        radiolist_dialog(title="Model", text="Which one?", values=[("a", "small"), ("b", "large")]).run()
