"""What one more ready fork or idle session costs: a service with few of them against one with more, both at rest."""
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import served

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import daemon as daemons  # noqa: E402
from support import host  # noqa: E402

FEW, MANY = 2, 20
PROFILE = "plain" # what profiles_of() calls it
KERNEL = ("Slab", "KernelStack", "Percpu") # of the whole machine: only a quiet one says something


def kib(path, *names):
    said = host.read(path)
    return sum(int(n) for name in names for n in re.findall(rf"^{name}:\s+(\d+) kB", said, re.M))


def in_cells(daemon):
    """(PID 1 of each cell, every other process in one)."""
    inits, others = [], []
    for pid in daemon.below():
        found = re.search(r"^NSpid:\s+(.*)$", host.read(f"/proc/{pid}/status"), re.M)
        numbers = found[1].split() if found else []
        if len(numbers) > 1:
            (inits if numbers[-1] == "1" else others).append(pid)
    return inits, others


def rest(daemon, ready):
    """Waits until so many cells stand there, each with its fork if there are forks, and no process has come or gone for a second."""
    since, last, began = time.monotonic(), None, time.monotonic()
    while time.monotonic() - began < 60 * host.SLOWER:
        now = sorted(daemon.below())
        if now != last:
            since, last = time.monotonic(), now
        inits, forks = in_cells(daemon)
        is_full = len(inits) >= ready and (len(forks) >= ready or time.monotonic() - began > 10 * host.SLOWER)
        if is_full and time.monotonic() - since > 1:
            return
        time.sleep(0.05)
    raise RuntimeError(f"memory: {ready} cells do not stand ready: {daemon.tree()}\n{daemon.words()}")


def held(daemon):
    """KiB of the service and all below it; kernel is of the whole machine."""
    pids = [daemon.pid, *daemon.below()]
    return {"pss": sum(kib(f"/proc/{pid}/smaps_rollup", "Pss") for pid in pids),
            "page_tables": sum(kib(f"/proc/{pid}/status", "VmPTE") for pid in pids),
            "kernel": kib("/proc/meminfo", *KERNEL)}


def sample(profiles_of, config, ready):
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as name:
        folder = profiles_of(pathlib.Path(name), ready)
        with daemons.Daemon({**config, "runs": 2 * MANY + 8}, env={"BRIG_PRESETS": str(folder)}) as daemon:
            host.poll(lambda: daemon.run("pass", profile=PROFILE).record["warm"], 60, every=0.1) # its Python may have much to import
            rest(daemon, ready)
            _, forks = in_cells(daemon)
            return held(daemon) | {
                "fork_pss": sum(kib(f"/proc/{pid}/smaps_rollup", "Pss") for pid in forks),
                "supervisor_pss": sum(kib(f"/proc/{pid}/smaps_rollup", "Pss") for pid in daemon.of_kind("supervisor")),
                "forks": len(forks),
            }


def of_one_fork(profiles_of, config, repeats=3):
    """MB of each kind. profiles_of(folder, ready) makes the profiles; fork_pss is that process alone, supervisor_pss what the supervisor has for it, the rest is of all."""
    found = []
    for _ in range(repeats):
        os.sync() # what others have to write is not written meanwhile
        few, many = (sample(profiles_of, config, ready) for ready in (FEW, MANY))
        found.append({key: (many[key] - few[key]) / (MANY - FEW) * 1024 / 1e6 for key in ("pss", "page_tables", "kernel", "supervisor_pss")}
                     | {"fork_pss": many["fork_pss"] / max(1, many["forks"]) * 1024 / 1e6})
    middle = {key: statistics.median(one[key] for one in found) for key in found[0]}
    together = "all_in" if many["forks"] >= MANY else "without_fork" # a cell whose fork is made on demand
    return {together: middle["pss"] + middle["page_tables"] + middle["kernel"], **middle}


# --- sessions ---

def come_and_gone(daemon):
    """Waits until no process of the service has come or gone for a second."""
    seen = []

    def is_still():
        seen.append(sorted(daemon.below()))
        return seen[-20:] == [seen[-1]] * 20
    host.poll(is_still, every=0.05)


def of_one_session(base, idle, config, counts, repeats):
    """MB of each kind, as of_one_fork(). idle(daemon, profile, count) opens so many sessions, and returns a client that is to be closed."""
    found = []
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as name:
        folder = served.profiles(pathlib.Path(name), {PROFILE: (base, {"warm": "demand"})}, alone=True)
        for _ in range(repeats):
            os.sync()
            with daemons.Daemon(config, env={"BRIG_PRESETS": str(folder)}) as daemon:
                served.wait_warm(daemon, [PROFILE])
                samples = []
                for count in counts: # of one service: what it has for itself is the same
                    client = idle(daemon, PROFILE, count - (counts[0] if samples else 0))
                    come_and_gone(daemon)
                    samples.append((held(daemon), client))
                (few, first), (many, second) = samples
                found.append({key: (many[key] - few[key]) / (counts[1] - counts[0]) * 1024 / 1e6 for key in few})
                first.close()
                second.close()
    middle = {key: statistics.median(one[key] for one in found) for key in found[0]}
    return {"all_in": sum(middle.values()), **middle}


def idle_cpu(daemon, seconds):
    """CPU seconds of all its processes in a second."""
    come_and_gone(daemon)
    spent = lambda: {pid: daemons.cpu_seconds(pid) for pid in [daemon.pid, *daemon.below()]}
    before, began = spent(), time.monotonic()
    time.sleep(seconds)
    after = spent()
    return sum(after[pid] - before.get(pid, 0) for pid in after) / (time.monotonic() - began)
