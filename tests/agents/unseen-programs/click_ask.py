"""Questions with click: a hidden value, a choice, a confirmation that aborts, a pause; a progress bar and silence."""
import time

import click

click.prompt("Account")
click.prompt("Passphrase", hide_input=True)
time.sleep(7)
click.prompt("Size", type=click.Choice(["small", "large"]))
with click.progressbar(range(60), label="Creating") as bar:
    for _ in bar:
        time.sleep(0.1)
click.confirm("Charge the account?", abort=False)
time.sleep(7)
click.pause("Press any key")
