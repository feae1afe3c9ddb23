"""Tiers of tests, what a session runs of them, and how long each file took."""
import collections
import json
import os

import pytest

from support import host

# A test without a mark is of the tier "test". The order decides where a test has several marks.
TIERS = {
    "vm": "needs another kernel in a virtual machine",
    "long": "takes more than a minute, or hours; run by hand",
    "full": "what CI runs beside the fast tests: whole matrices, sanitizers, foreign clients, many runs, a fault in every call",
}
FAST = "test"
ALONE = "@alone" # at the end of the nodeid of a test marked alone: the process that schedules sees names only
TIMES = host.REPO / "tests" / "times"


def of(item):
    return next((tier for tier in TIERS if item.get_closest_marker(tier)), FAST)


def amounts(few, many, variable=None):
    """Parameters of a test that repeats something: a few in the fast tier, many in full; or as many as the environment says."""
    if variable and variable in os.environ:
        return [int(os.environ[variable])]
    return [few, pytest.param(many, marks=pytest.mark.full)]


def mark_diagonals(items):
    """@pytest.mark.diagonal("mode"): of every row of a test (all its other parameters) one mode stays in the fast tier, each in turn; the
    whole matrix is in full."""
    modes = collections.defaultdict(int)
    rows = [(item, mark.args[0]) for item in items for mark in item.iter_markers("diagonal")]
    for item, name in rows:
        modes[item.originalname, name] = max(modes[item.originalname, name], item.callspec.indices[name] + 1)
    for item, name in rows:
        row = sum(index for other, index in item.callspec.indices.items() if other != name)
        if row % modes[item.originalname, name] != item.callspec.indices[name]:
            item.add_marker("full")


def wanted(config):
    """The tiers that --tier names."""
    names = config.option.tier.split(",")
    return [FAST, *TIERS] if names == ["all"] else names


def file_of(nodeid):
    return nodeid.split("::", 1)[0]


def plain(nodeid):
    return nodeid.removesuffix(ALONE)


def times():
    """{file: seconds}, as `./dev times` wrote them."""
    if not TIMES.exists():
        return {}
    rows = [line.split() for line in TIMES.read_text().splitlines() if line and not line.startswith("#")]
    return {row[1]: float(row[0]) for row in rows}


class Stopwatch:
    """Writes build/times/TIER.json, {test: seconds}, for `./dev times`."""

    def __init__(self, config):
        self.config, self.seconds = config, collections.defaultdict(float)

    def pytest_runtest_logreport(self, report):
        self.seconds[plain(report.nodeid)] += report.duration

    def pytest_sessionfinish(self):
        if not self.seconds or self.config.option.keyword or any("::" in arg for arg in self.config.args):
            return
        path = host.build_dir() / "times" / f"{self.config.option.tier}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        files = {file_of(nodeid) for nodeid in self.seconds}
        known = {nodeid: seconds for nodeid, seconds in known.items() if file_of(nodeid) not in files}
        path.write_text(json.dumps({**known, **self.seconds}, indent=0))
