#!/usr/bin/python3
"""Makes docs/compatibility.md of tests/soak/accepted.json and docs/compatibility-run.log: ./dev compat."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, LOG = ROOT / "docs" / "compatibility.md", ROOT / "docs" / "compatibility-run.log"
ACCEPTED, MODULES = ROOT / "tests" / "soak" / "accepted.json", ROOT / "tests" / "soak" / "modules.json"
HEAD = """# Compatibility: CPython's own tests

CPython's own tests, version 3.11, run in a jail (with the policy `python`, and limits raised for the tests) and in the same tree without a jail:
as a plain user, with all devices, a whole `/proc`, no filter and no limits. The results of all methods are compared; the score says how many methods
that pass outside pass inside. Warm runs are forks of the profile's zygote, cold runs execute a new Python; both have the same filter, mounts and limits.
`./dev compat` makes this page; changes here are lost. `./dev test nightly compat` compares 20 modules, `./dev test long` all of them
(tests/soak/test_cpython.py; [compatibility-run.log](compatibility-run.log) is the log of the last run).
"""
GROUPS = {
    "pure": "modules whose sources use almost nothing that a jail could change",
    "jail": "modules for processes, threads, signals, files, terminals, which a jail restricts",
    "loopback": "servers and clients on the loopback interface",
    "other": "all other modules, except those that need windows",
}


def blocks(text):
    return {title: body for title, body in re.findall(r"^== (.*?) ==\n(.*?)(?=^== |\Z)", text, re.M | re.S)}


def found(pattern, text):
    match = re.search(pattern, text, re.M)
    return match.groups() if match else ("?",) * re.compile(pattern).groups


def scores(text):
    yield "| group | | modules | methods | pass outside | of these warm | of these cold | measured at |"
    yield "|---|---|---:|---:|---:|---:|---:|---|"
    for name, about in GROUPS.items():
        body = blocks(text).get(name, "")
        modules, methods = found(r"^(\d+) modules", body)[0], found(r"^(\d+) methods", body)[0]
        there, warm, percent = found(r"^warm: of (\d+) that pass outside (\d+) pass, ([\d.]+) %", body)
        _, cold = found(r"^cold: of (\d+) that pass outside (\d+) pass", body)
        commit, date = found(r"^measured at commit: (\w+)", body)[0], found(r"^date     (.*)", body)[0]
        yield f"| {name} | {about} | {modules} | {methods} | {there} | {warm} ({percent} %) | {cold} | {commit}, {date} |"


def reasons(rows):
    """By reason: most are those of several modules."""
    yield "| module | methods | inside | why |"
    yield "|---|---|---|---|"
    for row in rows:
        module = row["module"]
        names = ", ".join(f"`{pattern.removeprefix(f'test.{module}.')}`" if pattern else "the module" for pattern in row["methods"])
        yield f"| {module} | {names} | {row['inside']}{' (' + row['way'] + ' only)' if 'way' in row else ''} | {row['why']} |".replace("\n", " ")


def page():
    rows = json.loads(ACCEPTED.read_text())
    yield HEAD
    yield "## Score\n"
    yield from scores(LOG.read_text() if LOG.exists() else "")
    yield "\n## What differs, and why\n"
    yield "Reviewed one by one; each run checks that nothing else differs.\n"
    yield from reasons(sorted(rows, key=lambda row: row["module"]))
    yield "\n## Not run\n"
    yield ", ".join(json.loads(MODULES.read_text())["not run"]) + ": they want windows. Resources `network`, `urlfetch`, `gui`, `largefile` and `audio` are off."


def main(*words):
    text = "\n".join(page()) + "\n"
    if words == ("--check",):
        return None if PAGE.exists() and PAGE.read_text() == text else f"{PAGE.relative_to(ROOT)} is of other results: ./dev compat"
    PAGE.write_text(text)
    return print(f"{PAGE.relative_to(ROOT)}: {len(json.loads(ACCEPTED.read_text()))} reasons")


sys.exit(main(*sys.argv[1:]))
