"""Load on a service with zygotes: clients that ask for one run after the other, helpers that are killed meanwhile, what a service holds."""
import collections
import json
import os
import random
import threading
import time

from support import client, host, warm
from support import daemon as daemons

KEPT_COLD = ("data-science", "filesystem", "network", "strict")
KILLED = ("zygote", "supervisor", "init")
HONEST = {"cancelled", "setup_failed", "signaled", "client_gone"} # how a run may end whose helper was killed: no limit's name


def only_basic(way, **keys):
    """The folder, which is kept by who calls, and profiles of which none but basic is warm, in this way: one zygote."""
    scratch, profiles = warm.scratch_profiles(*KEPT_COLD, warm="never")
    path = profiles / "basic.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "warm": way, **keys}))
    return scratch, profiles


def is_told(record, stdout, printed):
    """Who has no answer hears why; and that nothing ran, only when nothing did."""
    if record["exit_reason"] == "setup_failed" and stdout:
        return False
    return stdout in ("", printed) and (record["error"] is not None or record["exit_reason"] not in ("cancelled", "setup_failed"))


class Load(threading.Thread):
    """A client whose programs print something of their own. runs: so many, or None until `stop`."""

    def __init__(self, daemon, name, runs=None, stop=None):
        super().__init__(daemon=True)
        self.connect, self.name_, self.runs, self.stop_, self.n = daemon.connect, name, runs, stop, 0
        self.may_end = HONEST if stop else set() # where nobody is killed every run is one
        self.ends, self.wrong = collections.Counter(), []

    def one(self, talk):
        self.n += 1
        own = f"{self.name_}-{self.n}"
        try:
            run = talk.run(f"print({own!r})")
        except (client.Refused, client.NotStarted) as e:
            self.ends[f"refused, {getattr(e, 'code', 'not started')}"] += 1
            self.wrong += [] if self.may_end else [f"{own}: {e}"]
            return
        record = run.record
        self.ends[f"{record['exit_reason']}, {'warm' if record['warm'] else 'cold'}"] += 1
        if record["exit_reason"] == "exited":
            self.wrong += [] if (run.stdout, run.stderr, record["exit_code"]) == (own + "\n", "", 0) else [f"{own}: {run}"]
        elif record["exit_reason"] not in self.may_end or not is_told(record, run.stdout, own + "\n"):
            self.wrong.append(f"{own}: {run}")

    def is_over(self):
        return self.n == self.runs if self.runs else self.stop_.is_set()

    def run(self):
        try:
            with self.connect() as talk:
                while not self.is_over():
                    self.one(talk)
        except BaseException as e: # lost: neither a record nor an error
            self.wrong.append(f"{self.name_}-{self.n}: {e!r}")


def together(clients, seconds):
    """(how the runs ended, what is wrong), when all of them are through."""
    ends, wrong, end = collections.Counter(), [], time.monotonic() + seconds
    for one in clients:
        one.join(max(0, end - time.monotonic()))
        ends += one.ends
        wrong += one.wrong + ([f"{one.name_} is still waiting"] if one.is_alive() else [])
    return ends, wrong


def run_many(daemon, runs, clients=4):
    load = [Load(daemon, f"client{n}", runs=runs // clients) for n in range(clients)]
    for one in load:
        one.start()
    return together(load, 50 * host.HANG)


def kill_under_load(daemon, kills, seed, clients=3):
    """(how runs ended, who was hit, what is wrong)"""
    dice, stop, hit = random.Random(seed), threading.Event(), collections.Counter()
    load = [Load(daemon, f"client{n}", stop=stop) for n in range(clients)]
    for one in load:
        one.start()
    for n in range(kills):
        time.sleep(dice.uniform(0, 0.1) * host.SLOWER) # the random moment
        who = KILLED[n % len(KILLED)]
        found = host.poll(lambda: daemon.of_kind(who)) # one that imports has another name
        hit[who] += bool(found) and daemons.kill(dice.choice(found))
    stop.set()
    ends, wrong = together(load, 2 * host.HANG)
    return ends, hit, wrong


def is_warm_again(daemon):
    with daemon.connect() as talk:
        def once():
            try:
                run = talk.run("print('again')")
                return run.stdout == "again\n" and run.record["warm"]
            except (client.Refused, client.NotStarted):
                return False
        return host.poll(once)


# --- what it holds --------------------------------------------------------------------------------------------------------

KINDS = ("server", "monitor", "supervisor", "zygote")


def pss(pid):
    """Bytes of its memory, what it shares counted in parts."""
    for line in host.read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def namespaces(pids):
    found = set()
    for pid in pids:
        for name in daemons.listed(f"/proc/{pid}/ns"):
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{name}"))
            except OSError:
                pass
        for fd in daemons.listed(f"/proc/{pid}/fd"):
            try:
                link = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if link.endswith("]") and link.split(":")[0] in ("net", "mnt", "pid", "user", "ipc", "uts", "cgroup"):
                found.add(link)
    return found


def groups_of(daemon):
    """Control groups of this service's cells."""
    return {folder for folder, _ in host.cgroup_dirs() if f"brigd-{daemon.pid}/" in folder}


def held(daemon):
    """{what: how much}, of the whole service and of the largest of each kind of process."""
    pids = [daemon.pid, *daemon.below()]
    found = {"processes": len(pids), "namespaces": len(namespaces(pids)), "groups": len(groups_of(daemon))}
    for kind in KINDS:
        ours = daemon.of_kind(kind)
        found[f"{kind}: descriptors"] = max(map(daemons.descriptors, ours), default=0)
        found[f"{kind}: mounts"] = max((len(host.read(f"/proc/{pid}/mountinfo").splitlines()) for pid in ours), default=0)
        found[f"{kind}: PSS KiB"] = max(map(pss, ours), default=0) >> 10
    return found


OF_SUPERVISOR = 3 * 8 + 2 * 30 # its networks, three descriptors each; a cell or two that are being built or taken down
OF_SLOTS = 4 * 8 # slots that rest: a descriptor for each of their groups

# What moves up and down by itself: cells that are being built or taken down, a heap that is used for the first time.
SLACK = {"processes": 12, "namespaces": 70, "groups": 24 + OF_SLOTS, "PSS KiB": 700, "descriptors": 8, "mounts": 0}


def grown(before, after):
    """What holds more than it may, as sentences."""
    kept = {"supervisor: descriptors": OF_SUPERVISOR, "monitor: descriptors": OF_SLOTS}

    def slack(what):
        if what == "server: descriptors": # leases
            return 36
        return SLACK[what.rpartition(": ")[2]] + kept.get(what, 0)
    return [f"{what}: {before[what]} -> {after[what]}" for what in before if after[what] > before[what] + slack(what)]


def grown_since(daemon, before):
    """The same, as soon as nothing does; or what still does. Each look is behind a few runs: forks of a zygote that was replaced, and still stand
    ready, share no memory with the new one, which then has all of its pages to itself."""
    def more():
        _, wrong = run_many(daemon, 8)
        daemon.settle()
        return wrong or grown(before, held(daemon))
    found = []
    host.poll(lambda: found.clear() or found.extend(more()) or not found)
    return found
