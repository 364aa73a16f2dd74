"""Asks for a name, a password and a code, as a login does."""
import getpass
import sys
import time

name = input("Username: ")
while True:
    password = getpass.getpass(f"Password for {name}: ")
    time.sleep(6.5)
    if password == "right":
        break
    print("rejected")
code = input("6-digit code: ")
for done in range(0, 101, 5):
    sys.stdout.write(f"\rdownloading {done}%")
    sys.stdout.flush()
    time.sleep(0.4)
print()
