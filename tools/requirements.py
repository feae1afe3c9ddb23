#!/usr/bin/python3
"""Makes docs/requirements.md of tools/requirement_rows.py and of the marks on tests: ./dev requirements.

usage: tools/requirements.py [--check]    --check: only says whether the page is up to date
"""
import ast
import collections
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from requirement_rows import GROUPS, ROWS

PAGE = ROOT / "docs" / "requirements.md"
HEAD = """# Requirements, and the tests that show them

Three published designs describe a sandbox for Python. Each of their promises is a row here. `./dev requirements` makes this page from
`tools/requirement_rows.py` and from the marks on tests; changes here are lost.

**shown**: the named tests try it, on every run of the tests; `escape X1` is a row of the [escape matrix](escape-matrix.md). **in part**: the row
says what is missing. **open**: brig does not have the feature. The page does not say whether the tests passed.
"""


def is_mark(node):
    """pytest.mark.requirement(...)"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement"


def marks_below(node):
    for found in ast.walk(node):
        if is_mark(found):
            yield from (word.value for word in found.args if isinstance(word, ast.Constant))


def marks_of_file(path):
    """(row, test) of one file. A mark in a table of parameters is told with the file alone, unless one test is named by `pytestmark`."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield from ((row, node.name) for row in marks_below(node))
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)):
            yield from ((row, "") for row in marks_below(node))


def marks():
    """{row: [place]}"""
    found = collections.defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for row, test in marks_of_file(path):
            place = f"{path.relative_to(ROOT / 'tests')}" + (f" {test}" if test else "")
            if place not in found[row]:
                found[row].append(place)
    return found


def escape_rows():
    sys.path.insert(0, str(ROOT / "tests" / "attack"))
    try:
        import rows
    finally:
        del sys.path[0]
    return rows.ROWS


def status(row, places):
    shown = bool(places or row.escape)
    if not shown:
        return "open" if row.waits else "**no test**"
    return "in part" if row.waits else "shown"


def problems(found):
    known, escape = {row.id for row in ROWS}, escape_rows()
    yield from (f"{place}: there is no row {key}" for key, places in found.items() if key not in known for place in places)
    yield from (f"{row.id}: the escape matrix has no row {name}" for row in ROWS for name in row.escape if name not in escape)
    yield from (f"{row.id}: no test carries it, and it waits for nothing" for row in ROWS if status(row, found.get(row.id)) == "**no test**")
    twice = [key for key, n in collections.Counter(row.id for row in ROWS).items() if n > 1]
    yield from (f"{key}: twice in the table" for key in twice)


def places_cell(row, places):
    words = [f"`{place}`" for place in places]
    if row.escape:
        words.append("escape " + " ".join(row.escape))
    return "<br>".join(words)


def page(found):
    yield HEAD
    count = collections.Counter(status(row, found.get(row.id)) for row in ROWS)
    yield ", ".join(f"{n} {name}" for name, n in sorted(count.items(), key=lambda pair: -pair[1])) + ".\n"
    for letter, about in GROUPS.items():
        yield f"## {letter}: {about}\n"
        yield "| row | what was promised | tests | status |\n|---|---|---|---|"
        for row in (row for row in ROWS if row.id[0] == letter):
            said = status(row, found.get(row.id)) + (f": waits for {row.waits}" if row.waits else "")
            yield f"| {row.id} | {row.claim} | {places_cell(row, found.get(row.id, []))} | {said} |"
        yield ""
    yield "## Open\n"
    waiting = collections.defaultdict(list)
    for row in ROWS:
        if row.waits:
            waiting[row.waits].append(row.id)
    yield from (f"- {what}: {', '.join(keys)}" for what, keys in waiting.items())


def main():
    found = marks()
    text = "\n".join(page(found)) + "\n"
    bad = list(problems(found))
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            bad.append(f"{PAGE.relative_to(ROOT)} is not up to date: ./dev requirements")
    else:
        PAGE.write_text(text)
        shown = sum(status(row, found.get(row.id)) in ("shown", "in part") for row in ROWS)
        print(f"{PAGE.relative_to(ROOT)}: {len(ROWS)} rows, {shown} of them with tests")
    for line in bad:
        print(line, file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
