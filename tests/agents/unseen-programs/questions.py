"""Questions with questionary: a choice, a checkbox, a path, a confirmation, with quiet work between them."""
import time

import questionary

questionary.select("Delete which database?", choices=["none", "test", "production"]).ask()
time.sleep(7)
questionary.checkbox("What else goes?", choices=["backups", "logs", "users"]).ask()
questionary.text("Why?").ask()
print("deleting")
time.sleep(7)
questionary.confirm("Tell the team?").ask()
time.sleep(6)
