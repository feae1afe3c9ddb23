#!/usr/bin/python3
"""Asks a person about each call that changes something. Reading is allowed, deleting is not."""
import brig

NOTES = {"milk": "two bottles", "bread": "one"}


class Notes:
    """Its methods are the tools."""

    def read(self, name: str) -> str:
        """The text of a note."""
        return NOTES[name]

    def write(self, name: str, text: str) -> None:
        """Makes or replaces a note."""
        NOTES[name] = text

    def delete(self, name: str) -> None:
        """Removes a note."""
        del NOTES[name]


def ask(call: brig.Call) -> bool:
    """The program waits meanwhile, and its wall clock stands still."""
    try:
        return input(f"{call.name}({call.args})? [y/N] ").strip().lower() == "y"
    except EOFError:
        return False


PROGRAM = """
print("milk:", tools.notes.read(name="milk"))
for change in (lambda: tools.notes.write(name="milk", text="three bottles"), lambda: tools.notes.delete(name="bread")):
    try:
        change()
    except ToolDenied as error:
        print(error)
"""

print(brig.run(PROGRAM, tools={"notes": Notes()}, allow="notes.read", deny="notes.delete", ask=ask).stdout, end="")
print(NOTES)
