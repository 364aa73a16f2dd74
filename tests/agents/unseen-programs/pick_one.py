"""Menus with pick (curses) and simple-term-menu, with quiet work between them."""
import time

from pick import pick
from simple_term_menu import TerminalMenu

pick(["keep it", "drop it", "ask again"], "What about the change?", indicator=">")
print("applying")
time.sleep(7)
TerminalMenu(["[a] all", "[s] some", "[n] none"], title="Which files?").show()
print("copying")
time.sleep(7)
TerminalMenu(["yes", "no"], title="Stop now?").show()
