"""The cells of cells.txt, and what a client has seen of each."""
import dataclasses
import json
import pathlib
import re

from support.png import Png

PATH = pathlib.Path(__file__).parent / "cells.txt"
NOT_TEXT = "image/png", "image/jpeg"
USUAL = {"value": None, "stdout": "", "displays": [], "error": None, "traceback": [], "pictures": [], "state": "kept", "reason": "exited", "timeout": None, "interrupt": False}


@dataclasses.dataclass
class Cell:
    name: str
    code: str
    wanted: dict # a key of USUAL: what is expected; all are there

    @property
    def seconds(self):
        return self.wanted["timeout"] or 20


@dataclasses.dataclass
class Seen:
    """What a client has of a call. state None: it was not told."""
    value: object
    stdout: str
    displays: list  # texts
    pictures: list  # PNG
    traceback: str
    state: str
    reason: str


def parts():
    """(name, lines) of what begins with "# %%"."""
    for part in re.split(r"^# %% ", PATH.read_text(), flags=re.M)[1:]:
        name, _, text = part.partition("\n")
        yield name, text.rstrip("\n").split("\n")


def cells():
    made = []
    for name, lines in parts():
        if name.startswith("file "):
            continue
        told = [line[3:].split(maxsplit=1) for line in lines if line.startswith("#: ")]
        wanted = {**USUAL, **{key: json.loads(value) for key, value in told}}
        assert set(wanted) == set(USUAL), name
        made.append(Cell(name, "\n".join(line for line in lines if not line.startswith("#: ")), wanted))
    return made


def files():
    """{name: text} of the session at the end."""
    return {name.removeprefix("file "): "\n".join(lines) for name, lines in parts() if name.startswith("file ")}


def last_line(traceback):
    return traceback.strip().rpartition("\n")[2] or None


def in_order(pieces, text):
    """All are there, each behind the one before."""
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def plain(value):
    """Line ends in files of csv are its own."""
    return value.replace("\r\n", "\n")


def picture(data, wanted):
    """[width, height, [x, y, red, green, blue]...] where `wanted` looks."""
    png = Png(data)
    return [png.width, png.height, *([x, y, *png.pixel(x, y)] for x, y, *_ in wanted[2:])]


def judge(cell, seen):
    """None, or what is not as it should be."""
    wanted = cell.wanted
    found = {"value": seen.value, "stdout": seen.stdout, "displays": seen.displays, "error": last_line(seen.traceback), "state": seen.state, "reason": seen.reason}
    wrong = {key: value for key, value in found.items() if value != wanted[key]}
    if not in_order(wanted["traceback"], seen.traceback):
        wrong["traceback"] = seen.traceback
    if len(seen.pictures) != len(wanted["pictures"]):
        wrong["pictures"] = f"{len(seen.pictures)} pictures"
    else:
        shown = [picture(data, one) for data, one in zip(seen.pictures, wanted["pictures"])]
        wrong |= {"pictures": shown} if shown != wanted["pictures"] else {}
    return f"{cell.name}: {wrong}, not {({key: wanted[key] for key in wrong})}" if wrong else None


def text_of(bundle):
    """What is shown, where it is no picture."""
    return [] if any(mime in bundle for mime in NOT_TEXT) else [bundle["text/plain"]]
