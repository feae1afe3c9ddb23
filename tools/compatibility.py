#!/usr/bin/python3
"""Makes docs/compatibility.md of tests/compat/accepted.json and docs/compatibility-run.log: ./dev compat."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, LOG = ROOT / "docs" / "compatibility.md", ROOT / "docs" / "compatibility-run.log"
ACCEPTED, MODULES = ROOT / "tests" / "compat" / "accepted.json", ROOT / "tests" / "compat" / "modules.json"
HEAD = """# Compatibility: CPython's own tests

The tests that CPython 3.11 brings along, run in a jail (the policy `python`, limits raised so that the tests have room) and in the very same tree without one:
a plain user, all devices, a whole `/proc`, no filter and no limits. What became of every method is compared; the score is of those that pass
outside, how many pass inside. Warm runs are forks of the profile's zygote, cold ones are executed; both have a filter, mounts and limits that are the same.
Made by `./dev compat`; changes here are lost. `./dev test full` compares 20 modules, `./dev test long` all of them
(tests/long/test_cpython.py; [compatibility-run.log](compatibility-run.log) is what the last one said).
"""
GROUPS = {
    "pure": "what their sources use is nothing that a jail could change, or only in a corner",
    "jail": "processes, threads, signals, files, terminals: what a jail is about",
    "loopback": "servers and clients that meet on the loopback",
    "other": "all others but those that want windows",
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
