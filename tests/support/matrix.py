"""Gathers what became of every row of the escape matrix, here and in guests; tools/matrix.py makes the table of it."""
import json
import pathlib
import re
import sys

from support import host, tiers

RESULTS = "matrix.json" # in the build directory: {where: {row: {kind: {test: outcome}}}}
KINDS = ("row", "control")


def rows():
    sys.path.insert(0, str(host.REPO / "tests" / "attack"))
    try:
        import rows as table
    finally:
        del sys.path[0]
    return table


def where():
    """This host, as far as it matters to a jail."""
    kernel = re.match(r"\d+\.\d+", host.read("/proc/sys/kernel/osrelease"))[0]
    kinds = [line.split()[2] for line in host.read("/proc/mounts").splitlines()]
    cgroup = "v2" if "cgroup" not in kinds else "v1" if "cgroup2" not in kinds else "v1, hybrid"
    init = host.read("/proc/1/comm").strip()
    return f"Linux {kernel}, cgroup {cgroup}, {'' if init == 'systemd' else 'no '}systemd"


class Matrix:
    """Rows travel in the reports themselves, so those of a guest tell theirs, too."""

    def __init__(self):
        self.found = {} # {where: {row: {kind: {test: [outcome, reason]}}}}

    def pytest_collection_modifyitems(self, items):
        here = where()
        for item in items:
            marks = [(mark.name, mark.args[0]) for mark in item.iter_markers() if mark.name in KINDS]
            item.user_properties += [("where", here), *marks] if marks else []

    def pytest_runtest_logreport(self, report):
        marks = [tuple(pair) for pair in report.user_properties]
        place = dict(marks).get("where")
        for kind, row in marks:
            if kind in KINDS:
                tests = self.found.setdefault(place, {}).setdefault(row, {}).setdefault(kind, {})
                note(tests, report)

    def pytest_sessionfinish(self, session):
        """A run of nearly every row replaces what is known of its host; another one corrects the tests it ran again."""
        if hasattr(session.config, "workerinput"): # the session that reports hears of all
            return
        path = host.build_dir() / RESULTS
        saved = known(path)
        for place, found in self.found.items():
            if len(found) > 0.9 * len(rows().ROWS):
                saved[place] = {row: {**saved.get(place, {}).get(row, {}), **kinds} for row, kinds in found.items()} # controls run less often
            elif place in saved:
                correct(saved[place], found)
        if self.found and saved:
            path.write_text(json.dumps(saved, indent=1, sort_keys=True))


def correct(saved, found):
    for row, kinds in found.items():
        for kind, tests in kinds.items():
            old = saved.get(row, {}).get(kind, {})
            old.update({test: outcome for test, outcome in tests.items() if test in old})


def note(tests, report):
    name = tiers.plain(report.nodeid)
    if report.failed:
        tests[name] = ["failed", ""]
    elif hasattr(report, "wasxfail"):
        tests[name] = ["skipped", report.wasxfail] # "known: ...", of a strict xfail
    elif report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, (tuple, list)) else str(report.longrepr)
        tests[name] = ["skipped", reason.removeprefix("Skipped: ")]
    elif report.when == "call":
        tests.setdefault(name, ["passed", ""])


def known(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError):
        return {}
