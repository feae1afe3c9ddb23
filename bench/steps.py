#!/usr/bin/python3
"""Where the time of one cold run goes: the record's own figures, and the system calls of one traced run.

usage: bench/steps.py [--rounds N]
"""
import argparse
import collections
import json
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
BRIG = str(REPO / "build/bin/brig")


def timed(argv):
    start = time.perf_counter_ns()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return (time.perf_counter_ns() - start) / 1e6, done.stdout


def records(argv, rounds):
    """Medians of: brig doing nothing, the whole client, what the record says of it."""
    rows = collections.defaultdict(list)
    for _ in range(rounds):
        rows["start"].append(timed([BRIG, "--version"])[0])
        total, out = timed(argv)
        record = json.loads(out)
        rows["total"].append(total)
        rows["setup"].append(record["setup_ms"])
        rows["wall"].append(record["wall_ms"])
        rows["cpu"].append(record["cpu_ms"] or 0)
    return {name: statistics.median(values) for name, values in rows.items()}


def show_records(title, argv, rounds):
    at = records(argv, rounds)
    print(f"\n{title} ({rounds} rounds, medians, ms)\n")
    print(f"  {at['total']:7.2f}  the whole client, seen from outside (fork of the measuring Python included)")
    print(f"  {at['start']:7.2f}    a brig that only prints its version")
    print(f"  {at['setup']:7.2f}    building the cell (setup_ms)")
    print(f"  {at['wall']:7.2f}    the program (wall_ms; {at['cpu']:.2f} ms of CPU)")
    print(f"  {at['total'] - at['start'] - at['setup'] - at['wall']:7.2f}    the rest: reading the profile, the end, counters, removing the cell")


def show_calls(argv, most=16):
    """strace slows everything down; the order and the number of calls are what to look at."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["strace", "-f", "-qq", "-T", "-o", f"{scratch}/trace", *argv], capture_output=True, check=True)
        calls = collections.Counter()
        spent = collections.Counter()
        slow = []
        for line in pathlib.Path(scratch, "trace").read_text(errors="replace").splitlines():
            found = re.match(r"\d+ +(\w+)\(.*<([\d.]+)>$", line)
            if found:
                calls[found[1]] += 1
                spent[found[1]] += float(found[2]) * 1000
                slow.append((float(found[2]) * 1000, re.sub(r"^\d+ +", "", line)))
    waiting = {"wait4", "waitid", "poll", "ppoll", "epoll_wait", "read", "recvmsg", "futex", "pselect6", "select"}
    print(f"\n{sum(calls.values())} system calls under strace, brig's and the program's; those that wait are left out\n")
    for ms, line in sorted(slow, reverse=True):
        if line.split("(")[0] not in waiting and most > 0:
            print(f"  {ms:7.2f}  {line[:96]}")
            most -= 1
    print("\n  most often:", ", ".join(f"{name} {n}" for name, n in calls.most_common(8)))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].strip())
    parser.add_argument("--rounds", type=lib.count, default=50)
    options = parser.parse_args()
    true = [BRIG, "exec", "--json", "--", "/bin/true"]
    with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
        program.write("print(1)\n")
        program.flush()
        show_records("brig run print(1)", [BRIG, "run", "--json", program.name], options.rounds)
    show_records("brig exec /bin/true", true, options.rounds)
    show_calls(true)
    print(f"\n  {statistics.median(timed([BRIG, 'doctor'])[0] for _ in range(options.rounds)):7.2f}  brig doctor, ms")


main()
