#!/usr/bin/python3
"""What one cold run costs through the service, against a server of one's own, and what the service itself spends.

usage: bench/daemon.py [--rounds N] [--seconds S] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import daemon as daemons  # noqa: E402
from support import host  # noqa: E402
from support import warm  # noqa: E402

BRIG = REPO / "build/bin/brig"
PROGRAM = "print(1)\n"
CLIENTS = (1, 2, 4, 16)
MOST = {"v1": 500, "v2": 300}  # CPU-us of server and monitor together, for one run
LARGEST = 6.0  # MiB of each
# Nothing here is about quotas.
CONFIG = {"runs": 64, "access": [{"uid": 0, "profiles": ["basic"], "runs": 64, "runs_per_minute": 1000000}]}


def once(candidate, i):
    """Milliseconds; ends everything when a run is not what it should be."""
    if isinstance(candidate, lib.Asked):
        began = time.perf_counter_ns()
        said = candidate.call()
        ms = (time.perf_counter_ns() - began) / 1e6
        good = said == "1\n"
    else:
        ms, status = lib.once(candidate, i)
        said, good = f"status {status}", status == 0
    if not good:
        sys.exit(f"{candidate.name}: {said!r} in round {i}: {candidate.shown()}")
    return ms


def interleave(candidates, rounds, warmup=5):
    for i in range(-warmup, rounds):
        turn = i % len(candidates)
        for candidate in candidates[turn:] + candidates[:turn]:  # nobody is always behind the same one
            ms = once(candidate, i)
            if i >= 0:
                candidate.ms.append(ms)


def private_run():
    """A server for one run: started, asked, gone."""
    with daemons.Private() as own:
        said = own.client.run(PROGRAM).stdout
    return said


def candidates_of(daemon, talk, scratch):
    file = scratch / "print.py"
    file.write_text(PROGRAM)
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    found = [
        lib.Asked("service, kept connection", lambda: talk.run(PROGRAM).stdout, "one connection, a run after the other, asked by this script"),
        lib.Asked("server of one's own", private_run, "brigd --private for each run, asked by this script"),
        lib.Candidate("brig run, service", [BRIG, "run", file], env={**env, "BRIG_SOCKET": str(daemon.path)}),
        lib.Candidate("brig run --private", [BRIG, "run", "--private", file], env=env),
    ]
    return [c for c in found if isinstance(c, lib.Asked) or lib.works(c, "1\n", scratch)]


def ends(env, scratch, rounds, *options):
    """Milliseconds from the death of a client to that of its program."""
    file, ms = scratch / "sleep.py", []
    file.write_text("import time\nprint('up', flush=True)\ntime.sleep(100)\n")
    for n in range(rounds):
        mark = f"brig-bench-{os.getpid()}-{n}"
        brig = subprocess.Popen([BRIG, "run", *options, file, mark], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        brig.stdout.readline()
        program = os.pidfd_open(next(pid for pid, uid in host.with_token(mark) if uid >= 65536))
        began = time.perf_counter_ns()
        brig.send_signal(signal.SIGKILL)
        select.select([program], [], [])
        ms.append((time.perf_counter_ns() - began) / 1e6)
        os.close(program)
        brig.communicate()
    return ms


def table(candidates):
    """lib.table() with the tail."""
    print(f"{'':<26} {'p50 ms':>8} {'p95':>8} {'p99':>8}")
    for c in candidates:
        print(f"{c.name:<26} {lib.median(c):>8.2f} {lib.percentile(c.ms, 0.95):>8.2f} {lib.percentile(c.ms, 0.99):>8.2f}")


def ratio(candidates, name, base):
    found = {c.name: c for c in candidates}
    if name not in found or base not in found:
        return None
    return lib.median(found[name]) / lib.median(found[base])


# --- runs per second ----------------------------------------------------------------------------------------------

def client(daemon, seconds, gate, told):
    """One client process: how many runs it got through."""
    with daemon.connect(60) as talk:
        talk.run(PROGRAM)
        os.write(told, b"r")
        os.read(gate, 1)
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            n += talk.run(PROGRAM).stdout == "1\n"
        os.write(told, n.to_bytes(4, "little"))


def runs_per_second(daemon, clients, seconds):
    gate, told, pids = os.pipe(), os.pipe(), []
    for _ in range(clients):
        pids.append(os.fork())
        if pids[-1] == 0:
            try:
                client(daemon, seconds, gate[0], told[1])
            finally:
                os._exit(0)
    os.close(told[1])
    for _ in range(clients):  # all are connected, and have had a run
        if os.read(told[0], 1) != b"r":
            sys.exit("a client could not run")
    os.write(gate[1], b"g" * clients)
    counts = b""
    while data := os.read(told[0], 4096):
        counts += data
    for pid in pids:
        os.waitpid(pid, 0)
    for fd in (*gate, told[0]):
        os.close(fd)
    if len(counts) != 4 * clients:
        sys.exit("a client was lost")
    return sum(int.from_bytes(counts[n:n + 4], "little") for n in range(0, len(counts), 4)) / seconds


# --- what the service spends ----------------------------------------------------------------------------------------

def cpu_per_run(daemon, talk, runs):
    """CPU-us of each process of the service, for one run. Building the next cell is the supervisor's and its children's, and not told here."""
    kinds = {kind: daemon.of_kind(kind) for kind in ("server", "monitor", "supervisor")}
    take = lambda: {kind: sum(daemons.cpu_seconds(pid) for pid in pids) for kind, pids in kinds.items()}
    before = take()
    for _ in range(runs):
        talk.run(PROGRAM)
    host.poll(lambda: False, 0.3)  # what it does after the end is part of the cost
    after = take()
    return {kind: (after[kind] - before[kind]) * 1e6 / runs for kind in kinds}


def memory(daemon):
    """MiB of server and monitor: resident, and their share of it."""
    found = {}
    for kind in ("server", "monitor"):
        pid = daemon.one(kind)
        share = [int(line.split()[1]) for line in host.read(f"/proc/{pid}/smaps_rollup").splitlines() if line.startswith("Pss:")]
        found[kind] = (daemons.resident(pid) / 2**20, share[0] / 1024 if share else 0)
    return found


def tell(name, value, unit):
    """For programs: one figure a line."""
    print(f"{name} {value:.3f} {unit}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].strip())
    parser.add_argument("--rounds", type=lib.count, default=200)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json")
    options = parser.parse_args()
    lib.look_whether_busy()
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as scratch:
        profiles = warm.profiles(scratch, warm="never") # cells stand ready, as they do for warm runs
        with daemons.Daemon(CONFIG, env={"BRIG_PRESETS": str(profiles)}) as daemon, daemon.connect() as talk:
            figures = measure(daemon, talk, pathlib.Path(scratch), options)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1))


def measure(daemon, talk, scratch, options):
    candidates = candidates_of(daemon, talk, scratch)
    interleave(candidates, options.rounds)
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    killed = {"service": ends({**env, "BRIG_SOCKET": str(daemon.path)}, scratch, 20), "private": ends(env, scratch, 20, "--private")}
    cpu = cpu_per_run(daemon, talk, options.rounds)
    rates = {n: runs_per_second(daemon, n, options.seconds) for n in CLIENTS}
    mib, groups = memory(daemon), "v1" if "cgroup" in host.kinds_of_groups() else "v2"

    print(f"\ncold print(1), {options.rounds} interleaved rounds\n")
    table(candidates)
    print(f"\nruns per second, {options.seconds:g} s each\n")
    for n, rate in rates.items():
        print(f"{n:>4} clients {rate:>8.1f}")
    print("\nfrom the death of brig run to that of its program\n")
    for way, ms in killed.items():
        print(f"{way:<8} {lib.percentile(ms, 0.5):>8.2f} ms p50, {max(ms):.2f} at most")
    print("\nwhat the service spends\n")
    for kind, us in cpu.items():
        print(f"{kind:<8} {us:>8.0f} CPU-us a run" + (f"   {mib[kind][0]:>5.1f} MiB resident, {mib[kind][1]:.1f} its share" if kind in mib else ""))

    print("\nwhat it wants to reach")
    pairs = [("service / private, asked here", "service, kept connection", "server of one's own"),
             ("brig run: service / --private", "brig run, service", "brig run --private")]
    for words, name, base in pairs:
        if (found := ratio(candidates, name, base)) is not None:
            lib.goal(words, found, 0.90)
    lib.goal(f"CPU-us of server and monitor for a run, cgroup {groups}", cpu["server"] + cpu["monitor"], MOST[groups])
    for kind, (resident, _) in mib.items():
        lib.goal(f"MiB of the {kind}", resident, LARGEST)
    for way, ms in killed.items():
        lib.goal(f"ms from a client's death to its program's, {way}", max(ms), 1000)

    print()
    for c in candidates:
        name = re.sub(r"\W+", "_", c.name)
        for words, value in (("p50", lib.median(c)), ("p95", lib.percentile(c.ms, 0.95)), ("p99", lib.percentile(c.ms, 0.99))):
            tell(f"{name}_{words}", value, "ms")
    for way, ms in killed.items():
        tell(f"killed_{way}_p50", lib.percentile(ms, 0.5), "ms")
    for n, rate in rates.items():
        tell(f"rate_{n}_clients", rate, "runs/s")
    for kind, us in cpu.items():
        tell(f"{kind}_cpu", us, "us/run")
    for kind, (resident, share) in mib.items():
        tell(f"{kind}_resident", resident, "MiB")
        tell(f"{kind}_share", share, "MiB")
    return {"ms": {c.name: c.ms for c in candidates}, "runs_per_second": rates, "cpu_us": cpu, "mib": mib, "killed_ms": killed}


main()
