"""What honest runs and a process of the host get beside each bomb. Asserted is what is bounded: ends, and what is left. How fast it was is
measured, and told in docs/neighbours.md (support/neighbours.py)."""
import collections
import concurrent.futures
import gc
import multiprocessing
import os
import sys
import time

import pytest

from support import brig, client, host, kernel_log, neighbours, warm
from support import daemon as daemons

sys.path.append(str(host.REPO / "bench"))
import lib

import bombs
import storms

pytestmark = [pytest.mark.neighbours, pytest.mark.alone("measures what is left of the whole machine")]

SECONDS = float(os.environ.get("BRIG_NEIGHBOURS_SECONDS", "4"))
AT_ONCE = 2 # runs, or processes of a client
HONEST = host.own_id(6)
CONFIG = {"access": [{"uid": 0}, {"uid": HONEST, "runs_per_minute": 0}]} # the bomb has the presets
ENDS = {"exited", "oom", "timeout_wall", "timeout_cpu", "output_limit"}
SERVICE = {"server", "monitor", "supervisor", "zygote", "sweeper", "reader", "init"} # the other processes below it are programs


def honest_runs(path, seconds):
    """A client's runs, one after the other: milliseconds of each, and those that were not as they should be."""
    took, wrong = [], []
    with client.connect_as(path, HONEST) as talk:
        end = time.monotonic() + seconds
        while not took or time.monotonic() < end:
            began = time.perf_counter()
            run = talk.run("print(1)")
            took.append((time.perf_counter() - began) * 1000)
            if (run.reason, run.status, run.stdout) != ("exited", 0, "1\n"):
                wrong.append(str(run))
    return took, wrong


def wakes(seconds):
    """A process of the host sleeps for a millisecond again and again: the milliseconds from each time it woke to the next."""
    gaps, end = [], time.monotonic() + seconds
    gc.disable()
    last = time.perf_counter()
    while not gaps or time.monotonic() < end:
        time.sleep(0.001)
        now = time.perf_counter()
        gaps.append((now - last) * 1000)
        last = now
    return gaps


class Quiet:
    """Nothing goes off."""

    def __init__(self, daemon, pool, name):
        self.daemon, self.pool, self.name, self.ends, self.rounds = daemon, pool, name, collections.Counter(), 0

    def begin(self):
        pass

    def go_on(self):
        pass

    def finish(self):
        pass


class Programs(Quiet):
    """A bomb in two runs at once of a client; one that has ended is run again."""

    def __init__(self, daemon, pool, name):
        super().__init__(daemon, pool, name)
        self.running, self.end = [], time.monotonic() + SECONDS + 0.5

    def start(self):
        seconds = max(0.5, self.end - time.monotonic()) # as long as honest runs go on
        text = f"{host.read(bombs.__file__)}\nmain({self.name!r}, {seconds:.1f})\n"
        limits = ["--output", "64K", *bombs.BOMBS[self.name].limits, "--timeout", f"{seconds + 2:.1f}"]
        return brig.start(*limits, program=text, env={"BRIG_SOCKET": str(self.daemon.path)})

    def begin(self):
        self.running = [self.start() for _ in range(AT_ONCE)]
        with self.daemon.connect() as talk:
            host.poll(lambda: len(talk.ask("list")["runs"]) == AT_ONCE or any(one.process.poll() is not None for one in self.running))

    def go_on(self):
        for n, one in enumerate(self.running):
            if one.process.poll() is not None:
                self.note(one)
                self.running[n] = self.start()

    def finish(self):
        for one in self.running:
            self.note(one)

    def note(self, one):
        run = one.wait()
        assert run.record, str(run)
        self.ends[run.reason] += 1
        assert run.reason in ENDS, str(run)
        if run.reason == "exited":
            self.rounds += neighbours.report(run)["rounds"]


class Storm(Quiet):
    """A client that is the bomb itself, in two processes."""

    def __init__(self, daemon, pool, name):
        super().__init__(daemon, pool, name)
        self.going = []

    def begin(self):
        self.going = [self.pool.submit(storms.STORMS[self.name].go, self.daemon.path, SECONDS + 0.5) for _ in range(AT_ONCE)]

    def finish(self):
        self.rounds = sum(one.result(host.HANG) for one in self.going)


ALL = {neighbours.QUIET: storms.Storm(None, "no bomb"), **bombs.BOMBS, **storms.STORMS}
BETWEEN = 18 # so many others come between two that are compared with


def order():
    """The names of all rows."""
    base = (neighbours.QUIET, neighbours.SPIN)
    names = []
    for n, name in enumerate(name for name in ALL if name not in base):
        names += [*(base if n % BETWEEN == 0 else ()), name]
    return names


ORDER = order()


def places(values):
    return [lib.percentile(values, 0.5), lib.percentile(values, 0.99), max(values)]


def measure(daemon, name):
    """(the row of the table, honest runs that were not as they should have been)"""
    with concurrent.futures.ProcessPoolExecutor(2 + AT_ONCE, mp_context=multiprocessing.get_context("fork")) as pool:
        kind = Quiet if name == neighbours.QUIET else Storm if name in storms.STORMS else Programs
        goes_off = kind(daemon, pool, name)
        log = None if kernel_log.lacks() else kernel_log.KernelLog(kernel_log.ANY)
        goes_off.begin()
        runs, gaps = pool.submit(honest_runs, daemon.path, SECONDS), pool.submit(wakes, SECONDS)
        while not (runs.done() and gaps.done()):
            concurrent.futures.wait([runs, gaps], timeout=0.01)
            goes_off.go_on()
        goes_off.finish()
    took, wrong = runs.result()
    row = {"name": name, "about": ALL[name].about, "of": len(ORDER), "seconds": SECONDS, "runs": len(took), "honest": places(took), "host": places(gaps.result()),
           "log": len(log.lines()) if log else None, "ends": dict(goes_off.ends), "rounds": goes_off.rounds}
    if log:
        log.close()
    return row, wrong


def more_than_stands_ready(daemon):
    """What a service without a run has beside cells that stand ready and the forks in them, in words; "" is nothing."""
    with daemon.connect() as talk:
        stats = talk.ask("stats")
    ready = sum(one["ready"] + one["building"] for one in stats["profiles"])
    forks = sum(one["ready"] + one["building"] for one in stats["profiles"] if one["warm"] == "ready")
    kinds = collections.Counter(kind for kind, _ in daemon.tree().values())
    found = {"runs": stats["running"], "cells": kinds["init"] - ready,
             "programs": sum(kinds.values()) - sum(kinds[kind] for kind in SERVICE) - forks, "groups": len(host.abandoned_groups())}
    return ", ".join(f"{much} {what}" for what, much in found.items() if much > 0)


@pytest.mark.parametrize("name", ORDER)
def test_what_a_bomb_leaves_to_its_neighbours(jail, name, record_property):
    before, busy = host.Snapshot(), lib.look_whether_busy() if name == neighbours.QUIET else 0 # before each of them: others come and go
    with daemons.Daemon(CONFIG) as daemon:
        daemon.path.chmod(0o666) # whom it serves is said in its configuration
        with daemon.connect() as talk:
            warm.wait(talk)
        daemon.settle()
        row, wrong = measure(daemon, name)
        row["busy"] = busy
        record_property(neighbours.PROPERTY, row)
        assert wrong == [] and row["runs"] > 0
        assert row["rounds"] > 0 or row["name"] == neighbours.QUIET or "exited" not in row["ends"], row
        assert host.poll(lambda: not more_than_stands_ready(daemon)), more_than_stands_ready(daemon)
    left = before.left_since()
    assert not left, f"left behind: {left}"
