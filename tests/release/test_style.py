"""What STYLE.md says of names, includes and lines, where a program can judge it. EXCEPTIONS may only become shorter."""
import collections
import graphlib
import pathlib
import re

import pytest

from support import host

REPO = host.REPO
PRODUCT = ("common", "jail", "mcp", "api", "rootfs-builder")
COLUMNS = 120
FUNCTION = re.compile(r"^static\s[^;={}()]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
EXCEPTIONS = [line.split(" ", 1) for line in (pathlib.Path(__file__).parent / "style-exceptions.txt").read_text().splitlines() if not line.startswith("#")]


def sources(*endings):
    return sorted(path.relative_to(REPO) for top in PRODUCT for ending in endings for path in (REPO / top).rglob(f"*{ending}"))


def excepted(kind):
    return {what for of, what in EXCEPTIONS if of == kind}


def test_no_base_name_is_used_twice():
    """A reader who sees `run.c` in a message or a backtrace knows which one is meant."""
    folders = collections.defaultdict(set)
    for path in sources(".c", ".h", ".def"):
        folders[path.name].add(str(path.parent))
    assert {name: where for name, where in folders.items() if len(where) > 1} == {}


def test_no_two_units_share_a_static_name_of_one_word():
    """Statics carry their noun: gate_refuse(), not refuse()."""
    units = collections.defaultdict(set)
    for path in sources(".c"):
        for name in FUNCTION.findall((REPO / path).read_text()):
            units[name].add(str(path))
    shared = {name for name, where in units.items() if "_" not in name and len(where) > 1}
    assert shared == excepted("static"), "give new ones a noun; take those that are gone off the list"


def test_headers_of_a_floor_include_each_other_in_no_circle():
    graph, here = {}, {path.name: path for path in sources(".h")}
    for path in here.values():
        graph[path.name] = {name for name in re.findall(r'^#include "([^"/]+)"', (REPO / path).read_text(), re.M) if name in here}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as e:
        pytest.fail(" includes ".join(reversed(e.args[1])))


def test_no_line_is_wider_than_a_window():
    long = {str(path) for path in sources(".c", ".h", ".def")
            if any(len(line.expandtabs(8)) > COLUMNS for line in (REPO / path).read_text().split("\n"))}
    assert long == excepted("columns"), f"at most {COLUMNS} columns; take files that keep to it off the list"
