#!/usr/bin/python3
"""What a run costs that a zygote forks into its cell, against one that executes a new interpreter, through the same service.

usage: bench/warm.py [--rounds N] [--pause MS] [--quick] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import daemon as daemons  # noqa: E402

BRIG = REPO / "build/bin/brig"
PYTHON = "/usr/bin/python3"
PROGRAM = "print(1)\n"
CONFIG = {"runs": 64, "access": [{"uid": 0, "runs": 64, "runs_per_minute": 1000000}]}
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class Series:
    """One figure of one candidate."""

    def __init__(self, name):
        self.name, self.ms = name, []

    def at(self, share):
        return lib.percentile(self.ms, share)


class Service:
    """Runs on a kept connection, asked by this script: from the request to the first byte of output, and to the record."""

    def __init__(self, name, talk, is_warm, **keys):
        self.talk, self.is_warm, self.keys = talk, is_warm, keys
        self.series = [Series(f"{name}, first output"), Series(f"{name}, record"), Series(f"{name}, set-up")]

    def once(self, _):
        began = time.perf_counter_ns()
        run = self.talk.start(PROGRAM, **self.keys)
        said = run.line()
        first = time.perf_counter_ns()
        record = run.wait()
        end = time.perf_counter_ns()
        run.close()
        if said != "1" or record["exit_code"] != 0 or record["warm"] != self.is_warm:
            sys.exit(f"{self.series[0].name}: {said!r}, {record}")
        return (first - began) / 1e6, (end - began) / 1e6, record["setup_ms"]


class Command:
    """A whole process, from its start to its end."""

    def __init__(self, name, argv, env=None):
        self.candidate, self.series = lib.Candidate(name, argv, env=env or ENV), [Series(name)]

    def once(self, i):
        ms, status = lib.once(self.candidate, i)
        if status != 0:
            sys.exit(f"{self.series[0].name}: status {status}: {self.candidate.shown()}")
        return (ms,)


def profiles_with_a_zygote(scratch):
    """The shipped ones, and basic with a zygote."""
    folder = scratch / "profiles"
    shutil.copytree(REPO / "profiles", folder)
    for path in (scratch, folder):
        path.chmod(0o755)
    path = folder / "basic.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "warm": "demand"}))
    return folder


def interleave(candidates, rounds, pause, warmup=5):
    for i in range(-warmup, rounds):
        turn = i % len(candidates)
        for candidate in candidates[turn:] + candidates[:turn]: # nobody is always behind the same one
            time.sleep(pause) # the next cell is built meanwhile, and no loop hides what an idle machine pays
            figures = candidate.once(i)
            if i >= 0:
                for series, ms in zip(candidate.series, figures):
                    series.ms.append(ms)


def candidates_of(daemon, talk, scratch):
    file = scratch / "print.py"
    file.write_text(PROGRAM)
    env = {**ENV, "BRIG_SOCKET": str(daemon.path)}
    return [
        Service("warm", talk, True),
        Service("cold", talk, False, cold=True),
        Command("whole brig run, warm", [BRIG, "run", file], env),
        Command("whole brig run, cold", [BRIG, "run", "--cold", file], env),
        Command("bare python3 -I -S", [PYTHON, "-I", "-S", "-c", PROGRAM]),
    ]


def show(candidates):
    print(f"{'':<28} {'p50 ms':>8} {'p95':>8} {'p99':>8}")
    for series in (s for c in candidates for s in c.series):
        print(f"{series.name:<28} {statistics.median(series.ms):>8.2f} {series.at(0.95):>8.2f} {series.at(0.99):>8.2f}")


def tell(candidates):
    """For programs: one figure a line."""
    by_name = {s.name: statistics.median(s.ms) for c in candidates for s in c.series}
    bare = by_name["bare python3 -I -S"]
    print()
    for series in (s for c in candidates for s in c.series):
        name = "warm." + series.name.replace(", ", "_").replace(" ", "_").replace("-", "_")
        for words, value in (("p50", by_name[series.name]), ("p95", series.at(0.95)), ("p99", series.at(0.99))):
            print(f"{name}_{words} {value:.3f} ms")
    for name in ("warm, first output", "warm, record", "whole brig run, warm"):
        print(f"warm.ratio_bare_{name.replace(', ', '_').replace(' ', '_')} {bare / by_name[name]:.2f} x")
    print(f"warm.ratio_cold_record {by_name['cold, record'] / by_name['warm, record']:.2f} x")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].strip())
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--pause", type=float, default=40, help="between two runs, in ms")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    rounds = min(options.rounds, 100) if options.quick else options.rounds
    if os.getloadavg()[0] > os.cpu_count() / 4:
        print(f"This machine is busy (load {os.getloadavg()[0]:.2f}): the figures below are not worth quoting.")
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as name:
        scratch = pathlib.Path(name)
        with daemons.Daemon(CONFIG, env={"BRIG_PROFILES": str(profiles_with_a_zygote(scratch))}) as daemon, daemon.connect() as talk:
            daemon.settle()
            candidates = candidates_of(daemon, talk, scratch)
            interleave(candidates, rounds, options.pause / 1000)
    print(f"\n{rounds} interleaved rounds, {options.pause:g} ms between two runs\n")
    show(candidates)
    tell(candidates)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({s.name: s.ms for c in candidates for s in c.series}, indent=1))


main()
