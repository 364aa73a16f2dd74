"""Questions with InquirerPy: a fuzzy choice, a number, a secret, a confirmation, with work between them."""
import time

from InquirerPy import inquirer

inquirer.fuzzy(message="Which service?", choices=["auth", "billing", "mail", "search", "web"]).execute()
time.sleep(7)
inquirer.number(message="How many copies?", default=2).execute()
inquirer.secret(message="Token:").execute()
for step in range(12):
    print(f"copy {step}")
    time.sleep(0.5)
inquirer.confirm(message="Restart all of them?", default=False).execute()
time.sleep(7)
