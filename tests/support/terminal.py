"""Characters that a terminal obeys in the place of showing them, and names that are made of such."""
import re

# C0 but the end of a line, DEL, C1, marks of direction, separators of lines and paragraphs, embeddings, overrides and isolates
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NAMES = {
    # what is in it: a name of at most 15 bytes, as a process may have
    "a newline": "a\n{\"uid\":0}", "an escape sequence": "\x1b[2J\x1b[1;1Hx", "a title": "\x1b]0;x\x07", "C1": "\u009b31mx", "DEL": "a\x7fb",
    "an override of direction": "a\u202ecba", "an isolate": "\u2066x\u2069", "a mark of direction": "a\u200f\u061cb", "a line separator": "a\u2028b",
    "quotes": "\"},{\"a\":\"", "backslashes": "\\u001b\\", "blanks": " uid 0  x",
}


def obeyed(text):
    """What of a text must reach no terminal; bytes are taken as one would."""
    return OBEYED.findall(text.decode(errors="replace") if isinstance(text, bytes) else text)


def plain(name):
    """As brig shows it within a line: a question mark for each byte of what a terminal obeys, and of what is no text."""
    text = (name.encode() if isinstance(name, str) else name).decode(errors="replace").replace("\ufffd", "?").replace("\n", "?")
    return OBEYED.sub(lambda found: "?" * len(found[0].encode()), text)
