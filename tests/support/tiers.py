"""Tiers of tests, what a session runs of them, and how long each file took."""
import collections
import fnmatch
import json
import os

import pytest

from support import host

# A test without a mark is of the tier "test". The order decides where a test has several marks.
TIERS = {
    "long": "takes many minutes, or hours; run by hand",
    "neighbours": "measures what is left of the whole machine beside bombs; run by hand",
    "nightly": "whole matrices, packages, builds, foreign clients, many runs, a fault in every call, guests; run before an issue is called resolved",
    "gate": "what CI runs beside the fast tests: sanitizers, fuzz corpora, conformance, one guest",
}
# The groups of the tier nightly: each can run alone. The first whose pattern fits a file has its tests; "matrices" has the rest.
GROUPS = {
    "guests": ["tests/vm/guests.py"],
    "arm64": ["tests/vm/arm64.py"],
    "fuzz": ["tests/fuzz/test_fuzzing.py"],
    "sanitizers": ["tests/release/test_whole_programs.py"],
    "packages": ["tests/release/test_*package*.py", "tests/release/test_tarball.py", "tests/release/test_clone.py", "tests/release/test_maintainer_scripts.py", "tests/release/test_in_guest.py", "tests/run/test_install.py"],
    "builds": ["tests/soak/test_builds.py", "tests/release/test_fortified.py", "tests/release/test_lint.py", "tests/attack/test_layers.py"],
    "rootfs": ["tests/rootfs/*"],
    "walkthroughs": ["tests/release/*", "tests/run/test_bench.py"],
    "clients": ["tests/mcp/*", "tests/python/test_notebook.py", "tests/api/test_api_clients.py"],
    "kills": ["tests/service/test_kills.py", "tests/service/test_zygote_kills.py", "tests/service/test_*_leaks.py", "tests/attack/test_beside.py", "tests/attack/test_bombs.py"],
    "faults": ["tests/*/test_*faults.py", "tests/attack/test_failing_steps.py"],
    "compat": ["tests/soak/test_compat.py", "tests/jail/test_guest_scripts.py"],
    "matrices": ["*"],
}
LIMITS = {"test": 300, "gate": 900, "nightly": 900, "neighbours": 900, "long": 3600} # seconds of one test; a mark may give its own: nightly(seconds=3600)
FAST = "test"
ALONE = "@alone" # at the end of the nodeid of a test marked alone: the process that schedules sees names only
TIMES = host.REPO / "tests" / "times"


def of(item):
    """A control shows that an attack works where there is no jail. Brig is no part of it, so none is fast."""
    fast = "nightly" if item.get_closest_marker("control") else FAST
    return next((tier for tier in TIERS if item.get_closest_marker(tier)), fast)


def group(nodeid):
    """The group of the tier nightly that has this test."""
    return next(name for name, patterns in GROUPS.items() if any(fnmatch.fnmatchcase(file_of(nodeid), pattern) for pattern in patterns))


def in_groups(item, asked):
    """Whether --group has this test: names with commas, or -name for all but one."""
    names = asked.split(",") if asked else []
    out, only = {name[1:] for name in names if name.startswith("-")}, {name for name in names if not name.startswith("-")}
    return not names or (group(item.nodeid) not in out and (not only or group(item.nodeid) in only))


def limit(item):
    """Seconds after which this test fails where it stands: of a machine of usual pace, or just as many as its mark names."""
    tier = of(item)
    mark = item.get_closest_marker(tier)
    given = mark.kwargs.get("seconds") if mark else None
    return given or int(LIMITS[tier] * (1 if tier == "long" else host.SLOWER))


def amounts(few, many, variable=None, tier="nightly"):
    """Parameters of a test that repeats something: a few in the fast tier, many in another, on a slow host fewer, but a multiple of the few; or as many as the environment says."""
    if variable and variable in os.environ:
        return [int(os.environ[variable])]
    many = max(few, int(many / host.SLOWER) // few * few)
    return [few, pytest.param(many, marks=getattr(pytest.mark, tier))]


def few(names, *fast):
    """Parameters of a matrix: these in the fast tier, the others in nightly."""
    assert set(fast) <= set(names), set(fast) - set(names)
    return [name if name in fast else pytest.param(name, marks=pytest.mark.nightly) for name in names]


def mark_diagonals(items):
    """@pytest.mark.diagonal("mode"): of every row of a test (all its other parameters) one mode stays in the fast tier, each in turn; the
    whole matrix is in nightly. A mode that is in nightly anyway takes no turn."""
    seen = collections.defaultdict(dict) # {test, parameter: {value: its number}}
    rows = [(item, mark.args[0]) for item in items for mark in item.iter_markers("diagonal") if of(item) == FAST]
    numbers = {}
    for item, _ in rows:
        given = {**getattr(item.callspec, "funcargs", {}), **item.callspec.params} # pytest 8 has all of them in params
        numbers[item] = {name: seen[item.originalname, name].setdefault(repr(value), len(seen[item.originalname, name])) for name, value in given.items()}
    for item, name in rows:
        row = sum(number for other, number in numbers[item].items() if other != name)
        if row % len(seen[item.originalname, name]) != numbers[item][name]:
            item.add_marker("nightly")


def mark_samples(items):
    """@pytest.mark.sample(3, "a name"): three rows of a test, evenly apart, and those with this name stay in the fast tier; all are in nightly."""
    rows = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample") and of(item) == FAST:
            rows[item.parent, item.originalname].append(item)
    for of_one in rows.values():
        few, *named = of_one[0].get_closest_marker("sample").args
        for number, item in enumerate(of_one):
            is_one = (number + 1) * few // len(of_one) > number * few // len(of_one)
            if not is_one and item.callspec.id not in named:
                item.add_marker("nightly")


def wanted(config):
    """The tiers that --tier names."""
    names = config.option.tier.split(",")
    return [FAST, *TIERS] if names == ["all"] else names


def file_of(nodeid):
    return nodeid.split("::", 1)[0]


def plain(nodeid):
    return nodeid.removesuffix(ALONE)


def repeatable(nodeid):
    """What pytest is given to run this test once more; of a test in a guest its whole part."""
    return "::".join(plain(nodeid).split("::")[:2]) if file_of(nodeid).endswith("vm/guests.py") else plain(nodeid)


def times(config):
    """{file: seconds} of the tiers that run, as `./dev times` wrote them."""
    found = collections.Counter()
    for line in host.read(TIMES).splitlines():
        tier, seconds, name = line.split(maxsplit=2)
        if tier in wanted(config):
            found[name] += float(seconds)
    return found


class Stopwatch:
    """Writes build/times/TIER.json, {test: seconds}, for `./dev times`."""

    def __init__(self, config):
        self.config, self.seconds = config, collections.defaultdict(float)

    def pytest_runtest_logreport(self, report):
        self.seconds[plain(report.nodeid)] += report.duration

    def pytest_sessionfinish(self):
        if not self.seconds or self.config.option.keyword or any("::" in arg for arg in self.config.args) or host.SLOWER != 1: # a guest, or a slow host
            return
        path = host.build_dir() / "times" / f"{self.config.option.tier}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        files = {file_of(nodeid) for nodeid in self.seconds}
        known = {nodeid: seconds for nodeid, seconds in known.items() if file_of(nodeid) not in files}
        path.write_text(json.dumps({**known, **self.seconds}, indent=0))
