#!/usr/bin/python3
"""What a run costs that is forked ahead (ready) or on demand, against one that executes a new Python (cold), and against other launchers.

usage: bench/warm.py [--quick] [--only PART,...] [--rounds N] [--seconds S] [--ready N] [--rtprio N] [--without PEER]... [--table [FILE]] [--json FILE] [--profile]

One service serves all of it but rotation and memory, which start their own, without --ready and --rtprio. What is below a millisecond is measured by a client in C; candidates take turns in an order that is
drawn anew in each round. 5 ms lie between two runs on average (2.5 to 7.5), so that nobody pays for what the one before him has left to be cleaned up; "paced" is with
40 ms, where no loop keeps caches warm, "tight" with none, in blocks whose first run does not count. A peer that cannot run here is left out, and its own words say
why. --table writes the table into docs/benchmarks.md and its main rows into the README, --table FILE into that file, --table - to stdout.

The parts, and the lines NAME VALUE UNIT that they end in; WAY is ready, demand or cold, PLACE is p50, p95 or p99:

latency    warm.[paced.|tight.]first_output.WAY.PLACE ms       from the request to the first byte of output, connected client
           warm.[paced.|tight.]record.WAY.PLACE ms             from the request to the record
pandas     warm.pandas.first_output.WAY.PLACE ms               the same of import pandas; DataFrame(...).sum()
           warm.pandas.record.WAY.PLACE ms, and warm.paced.pandas. of both
           warm.pandas.whole_process.{WAY|PEER}.PLACE ms       a whole process of it
           warm.pandas.whole_process.ratio_PEER x              median of the peer / median of brig run, ready
           warm.pandas.whole_process.demand.ratio_PEER x       the same, on demand
whole      warm.[paced.|tight.]whole_process.{WAY|PEER}.PLACE ms
           warm.[paced.|tight.]whole_process.ratio_PEER x      as above; PEER: bare bwrap bwrap_seccomp firejail crun runc nsjail isolate runsc docker
           warm.[paced.|tight.]whole_process.demand.ratio_PEER x
sustained  warm.sustained.{WAY|bwrap_seccomp|bare}.N_clients.rate /s
           warm.sustained.WAY.N_clients.{p50,p99} ms           to the record
           warm.sustained.WAY.N_clients.ratio_bwrap_seccomp x  rate / that of bwrap + seccomp, so many at once
           warm.sustained.whole_process.N_clients.{rate,ratio_bwrap_seccomp}   brig run, ready
bombs      warm.bombs.ready.N_clients.{p50,p99} ms             the honest ones, a tenth of the runs being bombs
           warm.bombs.ready.N_clients.ratio_p99 x              / that without bombs
           warm.bombs.ready.N_clients.lost runs                that did not end as they should
mcp        warm.mcp.tools_call.PLACE ms                        execute_code print(1) over stdio
rotation   warm.rotation.{steady,replacing}.PLACE ms           first output on demand while Pythons are replaced without end
           warm.rotation.ratio_p99 x
floor      warm.floor.{fault,fork,exec} us                     what this machine takes for a page fault, a fork with its end, and an exec
           warm.floor.{print,30ms}.N_clients.cpu ms            CPU of a bare fork of the same Python that runs the program and ends (bench/floor.py)
           warm.floor.{print,30ms}.N_clients.rate /s
           warm.cpu.WAY.ratio_floor.N_clients x                CPU of a run, print(1), and of the cell after it / that
           warm.cpu.WAY.ratio_floor.30ms.N_clients x           the same, of a program that sleeps for 30 ms
           warm.cpu.WAY.{print,30ms}.N_clients.{cpu ms,rate /s}
cost       warm.cost.WAY.cpu ms                                CPU time of a run and of the cell after it, kernel threads included, the client's own not
           warm.cost.WAY.calls calls                           system calls of the same, all processes of the service, counted by strace
memory     warm.memory.{basic,data_science}.all_in MB          one more ready fork: PSS, page tables, kernel memory of all of its processes
           warm.memory.{basic,data_science}.{pss,page_tables,kernel,fork_pss,supervisor_pss} MB; without_fork instead of all_in when there is only the cell
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import clients
import chart
import floor as bare
import lib
import peers
import served

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import daemon as daemons  # noqa: E402

import footprint  # noqa: E402
import shares  # noqa: E402
import stdio_server  # noqa: E402

BRIG = REPO / "build/bin/brig"
CONFIG = {"runs": 64, "access": [{"uid": 0, "runs": 64, "runs_per_minute": 1000000}]}
SLEEPS = "import time\ntime.sleep(0.03)\nprint(1)\n"
PRINT, PANDAS = "print(1)\n", 'import pandas as pd\nprint(pd.DataFrame({"a": [1, 2, 3]}).sum().iloc[0])\n'
PROGRAMS = {"print": (PRINT, "1\n", ["-I", "-S"]), "pandas": (PANDAS, "6\n", ["-I"])} # pandas lies where only site looks
BOMBS = {
    "memory": "kept = []\nwhile True:\n    kept.append(bytearray(1 << 20))\n",
    "fork": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
    "output": "while True:\n    print('x' * 65536)\n",
    "spin": "while True:\n    pass\n",
}
BOMB_FILES = {f"{name}.py" for name in BOMBS}
BOMB_KEYS = '"limits":{"wall_ms":500}'
MEASURED = {"plain-ready": ("basic", "ready"), "plain-demand": ("basic", "demand"), "science-ready": ("data-science", "ready"), "science-demand": ("data-science", "demand")}
WAYS = {"ready": "all", "demand": "all", "cold": "all"}
BLOCK = 6 # of the runs without a pause; the first one does not count
PARTS = ("floor", "latency", "whole", "pandas", "sustained", "bombs", "mcp", "rotation", "cost", "memory")
OF_THEIR_OWN = ("floor", "rotation", "cost", "memory") # parts that start their own service
PEERS = tuple(make.__name__ for make in (*peers.ALL, peers.chroot))
QUICK = ("floor", "latency", "whole", "pandas", "sustained", "bombs", "mcp")
ZYGOTE_RUNS = 10
# What it wants to reach: a figure, the bound, and whether it is the most or the least.
GOALS = [
    *((f"CPU of a run / bare fork, {way}, {name}, {n} clients", f"warm.cpu.{way}.ratio_floor{key}.{n}_clients", 1.25, "most")
      for way in ("ready", "demand") for name, key in (("print(1)", ""), ("30 ms", ".30ms")) for n in (4, 16)),
    ("first output, ready, p50", "warm.first_output.ready.p50", 0.3, "most"), ("first output, ready, p99", "warm.first_output.ready.p99", 1.0, "most"),
    ("first output, on demand, p50", "warm.first_output.demand.p50", 1.2, "most"), ("first output, on demand, p99", "warm.first_output.demand.p99", 2.0, "most"),
    ("record, on demand, p50", "warm.record.demand.p50", 1.4, "most"),
    ("brig run against bwrap + seccomp, ready", "warm.whole_process.ratio_bwrap_seccomp", 8, "least"),
    ("brig run against bwrap + seccomp, on demand", "warm.whole_process.demand.ratio_bwrap_seccomp", 5, "least"),
    ("brig run against crun, ready", "warm.whole_process.ratio_crun", 10, "least"),
    ("pandas, first output, ready", "warm.pandas.first_output.ready.p50", 1.5, "most"),
    ("pandas, first output, on demand", "warm.pandas.first_output.demand.p50", 6.0, "most"),
    ("pandas, brig run against bwrap", "warm.pandas.whole_process.ratio_bwrap", 20, "least"),
    ("4 clients against bwrap + seccomp, ready", "warm.sustained.ready.4_clients.ratio_bwrap_seccomp", 8, "least"),
    ("16 clients against bwrap + seccomp, ready", "warm.sustained.ready.16_clients.ratio_bwrap_seccomp", 8, "least"),
    ("p99 beside bombs against without", "warm.bombs.ready.4_clients.ratio_p99", 1.5, "most"),
    ("MCP tools/call, p50", "warm.mcp.tools_call.p50", 1.5, "most"),
    ("p99 while Pythons are replaced against steady", "warm.rotation.ratio_p99", 2, "most"),
    ("system calls of a ready run", "warm.cost.ready.calls", 400, "most"),
    ("MB of an idle ready fork, basic", "warm.memory.basic.all_in", 0.85, "most"),
    ("MB of an idle ready fork, data-science", "warm.memory.data_science.all_in", 2.3, "most"),
]


# --- who is measured -----------------------------------------------------------------------------------------------

class Subject:
    """One candidate: a client, and what it has measured, by pace."""

    def __init__(self, key, name, layers, client, shown=""):
        self.key, self.name, self.layers, self.client, self.shown = key, name, layers, client, shown
        self.took = {}

    def run(self, pace, pause, tight):
        runs = self.client.paced(BLOCK if tight else 1, pause).runs
        self.took.setdefault(pace, []).extend(runs[1:] if tight else runs)

    def series(self, pace, kind):
        return [getattr(run, kind) for run in self.took.get(pace, []) if getattr(run, kind) is not None]


class Bench:
    """The service, the place, and every figure in the order in which it was found."""

    def __init__(self, options, scratch):
        self.options, self.scratch, self.figures, self.rows, self.left_out = options, scratch, {}, [], {}
        self.filter = peers.compiled_filter(scratch)
        self.files = {}
        for name, text in [*((name, text) for name, (text, _, _) in PROGRAMS.items()), *BOMBS.items()]:
            self.files[name] = scratch / f"{name}.py"
            self.files[name].write_text(text)
        self.env = {**peers.ENV}
        self.opened, self.service = [], None

    def serve(self, daemon):
        self.service, self.env["BRIG_SOCKET"] = daemon, str(daemon.path)
        served.wait_warm(daemon, MEASURED)

    def note(self, name, value, unit):
        self.figures["warm." + name] = (value, unit)

    def places(self, name, ms, shares_=(0.5, 0.95, 0.99)):
        for share in shares_:
            self.note(f"{name}.p{share * 100:.0f}", lib.percentile(ms, share), "ms")

    def keep(self, client):
        self.opened.append(client)
        return client

    def close(self):
        """Clients go, and what a peer has made for itself."""
        opened, self.opened = self.opened, []
        for client in opened:
            client.close()
            if client.after:
                client.after()

    # a connected client, a whole brig run, a peer

    def asker(self, way, program="print", **kw):
        family = "science" if program == "pandas" else "plain"
        keys = '"cold":true' if way == "cold" else ""
        profile = f"{family}-{'demand' if way == 'cold' else way}"
        return self.keep(clients.service_client(self.env["BRIG_SOCKET"], self.files[program], PROGRAMS[program][1], profile=profile,
                                                warm=way != "cold", keys=keys, **kw))

    def connected(self, way, program="print"):
        return Subject(way, {"ready": "ready fork", "demand": "fork on demand", "cold": "cold"}[way], WAYS[way], self.asker(way, program))

    def command(self, way, program):
        family = "science" if program == "pandas" else "plain"
        return [BRIG, "run", "-p", f"{family}-{'demand' if way == 'cold' else way}", *(["--cold"] if way == "cold" else []), self.files[program]]

    def whole(self, way, program="print"):
        argv = self.command(way, program)
        client = self.keep(clients.process_client(argv, PROGRAMS[program][1], self.env))
        return Subject(way, "brig run, " + {"ready": "ready fork", "demand": "fork on demand", "cold": "cold"}[way], WAYS[way], client)

    def peer(self, place, make, program):
        """A Subject, or None when it cannot do it, which is told."""
        text, expect, flags = PROGRAMS[program]
        one = make(place, ["/usr/bin/python3", *flags, "-c", text.strip().replace("\n", "; ")])
        if one.key in self.options.without:
            return None
        if one.key not in peers.PACKAGED and not one.is_there():
            self.left_out[one.name] = "not installed"
            return None
        if one.before:
            one.before()
        client = self.keep(clients.process_client(one.argv, expect, self.env, opens=one.opens, enter=one.enter))
        client.after = one.after
        try:
            client.paced(2, 0)
        except clients.Failed as e:
            if one.name not in self.left_out:
                print(f"left out: {one.name}: {str(e)[:400]}", flush=True)
            self.left_out[one.name] = str(e)
            return None
        return Subject(one.key, one.name, layers_of(one), client, one.shown())

    def peers_of(self, rootfs, program, wanted=peers.ALL):
        place = peers.Place(self.scratch, peers.find_rootfs(rootfs), self.filter)
        return [found for make in wanted if (found := self.peer(place, make, program))]


def layers_of(peer):
    return "none" if peer.lacks.startswith("everything") else f"all but: {peer.lacks}"


def interleave(subjects, rounds, seconds, pace, pause, tight=False):
    """Turns until there are so many rounds or the time is over; five at least."""
    order, end = random.Random(1), time.monotonic() + seconds
    for subject in subjects:
        subject.client.paced(3, pause)
    done = 0
    while done < rounds and (done < min(5, rounds) or time.monotonic() < end):
        for subject in order.sample(subjects, len(subjects)):
            subject.run(pace, pause, tight)
        done += 1
    return done


# --- the parts -----------------------------------------------------------------------------------------------------

def latency(bench):
    quick, rounds = bench.options.quick, bench.options.rounds
    warm = [bench.connected("ready"), bench.connected("demand")]
    cold = bench.connected("cold")
    interleave([*warm, cold], max(3, rounds // 8), 3 if quick else 60, "", 5)
    interleave(warm, rounds, 4 if quick else 60, "", 5)
    interleave([*warm, cold], max(3, rounds // 10), 2 if quick else 60, "paced.", 40)
    interleave(warm, max(3, rounds // 2), 5 if quick else 120, "paced.", 40)
    interleave(warm, max(3, rounds // 5), 1 if quick else 20, "tight.", 0, tight=True)
    for pace in ("", "paced.", "tight."):
        for subject in [*warm, cold]:
            for kind, name in (("first", "first_output"), ("record", "record")):
                if ms := subject.series(pace, kind):
                    bench.places(f"{pace}{name}.{subject.key}", ms)
    shown = [("first", "to the first output byte"), ("record", "to the result record")]
    for kind, words in shown:
        for subject in [*warm, cold]:
            bench.rows.append((f"request {words}, {subject.name}", subject.series("", kind), subject.series("paced.", kind), None, subject.layers))
    show("print(1), connected client, from the request", [(f"{words}, {s.name}", s.series("", kind), s.series("paced.", kind), s.series("tight.", kind))
                                                           for kind, words in shown for s in [*warm, cold]])
    bench.close()


def ratios(bench, name, pace, ours, others):
    for peer in others:
        for subject in ours:
            if subject.series(pace, "record") and peer.series(pace, "record"):
                ratio = median(peer, pace) / median(subject, pace)
                middle = "" if subject.key == "ready" else f"{subject.key}."
                bench.note(f"{name}.{middle}ratio_{peer.key}", ratio, "x")


def median(subject, pace):
    return statistics.median(subject.series(pace, "record"))


def whole(bench):
    quick, rounds = bench.options.quick, bench.options.rounds
    ours = [bench.whole(way) for way in WAYS]
    others = bench.peers_of("basic", "print")
    some = [s for s in others if s.key in ("bare", "bwrap_seccomp", "crun")]
    interleave([*ours, *others], max(3, rounds // 3), 8 if quick else 120, "", 5)
    interleave([*ours[:2], *some], max(3, rounds // 5), 4 if quick else 90, "paced.", 40)
    interleave([*ours[:2], *some], max(3, rounds // 10), 2 if quick else 30, "tight.", 0, tight=True)
    for pace in ("", "paced.", "tight."):
        for subject in [*ours, *others]:
            if ms := subject.series(pace, "record"):
                bench.places(f"{pace}whole_process.{subject.key}", ms)
        ratios(bench, f"{pace}whole_process", pace, ours[:2], others)
    finish_whole(bench, "print(1), whole process", ours, others)


def finish_whole(bench, title, ours, others):
    base = next((s for s in others if s.key == "bwrap_seccomp"), None)
    for subject in [*ours, *others]:
        ratio = median(base, "") / median(subject, "") if base else None
        bench.rows.append((f"{title}: {subject.name}", subject.series("", "record"), subject.series("paced.", "record"), ratio, subject.layers))
    show(title, [(s.name, *(s.series(pace, "record") for pace in ("", "paced.", "tight."))) for s in [*ours, *others]])
    print()
    for subject in others:
        print(f"{subject.name}: {lib.folded(subject.shown, 4)}\n    layers {lib.folded(subject.layers, 4)}")
    bench.close()


def pandas(bench):
    quick, rounds = bench.options.quick, bench.options.rounds
    warm = [bench.connected(way, "pandas") for way in ("ready", "demand")]
    interleave(warm, max(3, rounds // 2), 3 if quick else 60, "", 5)
    interleave(warm, max(3, rounds // 10), 2 if quick else 60, "paced.", 40)
    for subject in warm:
        for kind, name in (("first", "first_output"), ("record", "record")):
            bench.places(f"pandas.{name}.{subject.key}", subject.series("", kind))
            bench.places(f"paced.pandas.{name}.{subject.key}", subject.series("paced.", kind))
            bench.rows.append((f"pandas, request to {name.replace('_', ' ')}, {subject.name}", subject.series("", kind), subject.series("paced.", kind), None,
                               subject.layers))
    show("DataFrame(...).sum(), connected client", [(f"{words}, {s.name}", s.series("", kind), s.series("paced.", kind), [])
                                                     for kind, words in (("first", "first output"), ("record", "record")) for s in warm])
    bench.close()
    ours = [bench.whole(way, "pandas") for way in ("ready", "demand")]
    wanted = (peers.bwrap, peers.bwrap_seccomp) if quick else (peers.bwrap, peers.bwrap_seccomp, peers.crun, peers.chroot)
    others = bench.peers_of("data-science", "pandas", wanted)
    interleave([*ours, *others], max(3, rounds // 10), 4 if quick else 60, "", 5)
    for subject in [*ours, *others]:
        bench.places(f"pandas.whole_process.{subject.key}", subject.series("", "record"))
    ratios(bench, "pandas.whole_process", "", ours, others)
    finish_whole(bench, "DataFrame(...).sum(), whole process", ours, others)


def sustained(bench):
    """Slices, in turns: a machine that drifts drifts for all of them."""
    seconds, slices = bench.options.seconds, 1 if bench.options.quick else 3
    base = bench.peers_of("basic", "print", (peers.bwrap_seccomp,) if bench.options.quick else (peers.bwrap_seccomp, peers.bare))
    makers = {"ready": lambda: bench.asker("ready"), "demand": lambda: bench.asker("demand")}
    if not bench.options.quick:
        makers |= {"whole_process": lambda: bench.whole("ready").client, "cold": lambda: bench.asker("cold")}
    opened = {**{p.key: p.client for p in base}, **{key: make() for key, make in makers.items()}}
    print(f"\nsustained print(1), {slices} x {seconds:g} s each, in turns, {bench.options.ready} cells kept ready\n")
    print(f"{'':<24} {'clients':>8} {'runs/s':>9} {'p50 ms':>9} {'p99':>9} {'/ bwrap + seccomp':>18} {'own CPU of the client':>22}")
    for parallel in (4, 16):
        rates, ms, cpu = {key: [] for key in opened}, {key: [] for key in opened}, {}
        for _ in range(slices):
            for key, client in opened.items():
                told = client.sustained(seconds, parallel)
                rates[key].append(len(told.runs) / told.seconds)
                ms[key] += [run.record for run in told.runs]
                cpu[key] = told.cpu / told.seconds
        for key in opened:
            name, rate = f"sustained.{key}.{parallel}_clients", statistics.median(rates[key])
            bench.note(f"{name}.rate", rate, "/s")
            bench.places(name, ms[key], (0.5, 0.99))
            ratio = rate / statistics.median(rates["bwrap_seccomp"]) if "bwrap_seccomp" in rates else None
            if ratio and key not in ("bwrap_seccomp", "bare"):
                bench.note(f"{name}.ratio_bwrap_seccomp", ratio, "x")
            print(f"{key:<24} {parallel:>8} {rate:>9.0f} {lib.percentile(ms[key], 0.5):>9.2f} {lib.percentile(ms[key], 0.99):>9.2f} "
                  f"{ratio or 0:>18.2f} {cpu[key]:>21.0%}", flush=True)
    bench.close()


def bombs(bench):
    seconds = bench.options.seconds * (2 if bench.options.quick else 4)
    for parallel in (4,) if bench.options.quick else (4, 16):
        steady, beside = bench.asker("ready"), bench.asker("ready", bombs=[bench.files[name] for name in BOMBS], bomb_keys=BOMB_KEYS)
        before = [run.record for run in steady.sustained(seconds / 2, parallel).runs]
        told = beside.sustained(seconds, parallel)
        honest = [run.record for run in told.runs if run.kind == "run"]
        bombs_ = [run for run in told.runs if run.kind in BOMB_FILES]
        lost = [run for run in told.runs if run.kind == "lost"]
        name = f"bombs.ready.{parallel}_clients"
        if not honest:
            sys.exit("bombs: nobody honest came through")
        bench.places(name, honest, (0.5, 0.99))
        bench.note(f"{name}.lost", len(lost), "runs")
        if lost:
            print(f"\nbeside bombs {len(lost)} runs did not end as they should: {beside.said()}")
        bench.note(f"{name}.ratio_p99", lib.percentile(honest, 0.99) / lib.percentile(before, 0.99), "x")
        print(f"\n{parallel} clients, {len(honest)} honest runs beside {len(bombs_)} bombs (memory, fork, output, spin; 500 ms each at most): "
              f"record p50 {lib.percentile(honest, 0.5):.2f} p99 {lib.percentile(honest, 0.99):.2f} ms; "
              f"without bombs {lib.percentile(before, 0.5):.2f} and {lib.percentile(before, 0.99):.2f}", flush=True)
        bench.close()


def mcp(bench):
    calls, ms = min(bench.options.rounds, 100 if bench.options.quick else 1000), []
    with stdio_server.Server({"BRIG_SOCKET": bench.env["BRIG_SOCKET"]}, "--server", "service", "--profile", "plain-ready") as server:
        for i in range(-3, calls):
            time.sleep(0.005)
            line = server.line("tools/call", name="execute_code", arguments={"code": PRINT})
            began = time.perf_counter_ns()
            server.write(line)
            said = server.read()
            took = (time.perf_counter_ns() - began) / 1e6
            if stdio_server.stdout_of(said) != "1\n":
                sys.exit(f"brig-mcp: {said[:500]}")
            if i >= 0:
                ms.append(took)
    bench.places("mcp.tools_call", ms)
    bench.rows.append(("MCP tools/call execute_code over stdio, ready fork", ms, [], None, "all"))
    show("MCP tools/call execute_code print(1) over stdio", [("brig-mcp, ready fork", ms, [], [])])


def rotation(bench):
    """On demand, for a fork that stands ready does not feel it. The other zygote's import is what the CPU has to do beside."""
    rounds = bench.options.rounds
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as name:
        folder = served.profiles(pathlib.Path(name), {"steady": ("basic", {"warm": "demand", "zygote_runs": 1000000}),
                                               "replacing": ("basic", {"warm": "demand", "zygote_runs": ZYGOTE_RUNS})})
        with daemons.Daemon(CONFIG, env={"BRIG_PRESETS": str(folder)}) as daemon:
            served.wait_warm(daemon, ("steady", "replacing"))
            before = set(daemon.of_kind("zygote"))
            subjects = [Subject(key, key, "all", bench.keep(clients.service_client(daemon.path, bench.files["print"], "1\n", profile=key)))
                        for key in ("steady", "replacing")]
            interleave(subjects, rounds, 20 if bench.options.quick else 120, "", 5)
            replaced = before - set(daemon.of_kind("zygote"))
            bench.close()
    if rounds > 3 * ZYGOTE_RUNS and not replaced:
        sys.exit("rotation: no Python was replaced, so there is nothing to compare")
    found = {s.key: s.series("", "first") for s in subjects}
    for key, ms in found.items():
        bench.places(f"rotation.{key}", ms)
        bench.rows.append((f"first output, on demand, {key}", ms, [], None, "all"))
    bench.note("rotation.ratio_p99", lib.percentile(found["replacing"], 0.99) / lib.percentile(found["steady"], 0.99), "x")
    show(f"first output on demand; replacing: a new Python every {ZYGOTE_RUNS} runs", [(key, ms, [], []) for key, ms in found.items()])


def busy_ms():
    """CPU time of this machine that was not idle, since it began."""
    idle, whole = lib.idle_and_all()
    return (whole - idle) * 1000 / os.sysconf("SC_CLK_TCK")


def cpu_of_a_run(client, seconds):
    """Of the whole machine: what a quiet one does without runs is taken off."""
    before = busy_ms()
    time.sleep(seconds)
    idle, before = busy_ms() - before, busy_ms()
    began = time.monotonic()
    told = client.sustained(seconds, 4)
    return (busy_ms() - before - idle * (time.monotonic() - began) / seconds) / len(told.runs) - told.cpu * 1000 / len(told.runs)


def calls_of_a_run(daemon, client, runs, scratch):
    """strace makes everything slower: the number of calls is what to look at."""
    counts = scratch / "calls"
    traced = [word for pid in (daemon.pid, *daemon.below()) for word in ("-p", str(pid))]
    with subprocess.Popen(["strace", "-f", "-c", "-U", "calls,name", "-S", "calls", "-o", counts, *traced], stderr=subprocess.PIPE, text=True) as strace:
        for _ in range(len(traced) // 2):
            strace.stderr.readline() # "Process N attached": the runs begin when it looks at all of them
        client.paced(runs, 50)
        daemon.settle() # the cell after the last one
        strace.send_signal(signal.SIGINT)
        strace.communicate()
    return int(re.search(r"(\d+) total", counts.read_text())[1]) / runs


@contextlib.contextmanager
def service_of(way, bench, scratch):
    """A service with one profile, in a group that counts its CPU time, and a client for each program."""
    meter = served.CpuOf(way)
    try:
        folder = served.profiles(scratch, {"plain": ("basic", {"warm": way, "ready": bench.options.ready})}, alone=True)
        with daemons.Daemon(CONFIG, env={"BRIG_PRESETS": str(folder)}, through=[*daemons.with_accounts(), *meter.through]) as daemon:
            served.wait_warm(daemon, ("plain",))
            meter.learn_idle()
            yield meter, {name: bench.keep(clients.service_client(daemon.path, bench.files[name], "1\n", profile="plain")) for name in FLOOR_PROGRAMS}
            bench.close()
    finally:
        meter.close()


FLOOR_PROGRAMS = {"print": PRINT, "30ms": SLEEPS}


def floor(bench):
    """In turns: a bare fork, a run on demand, a ready one."""
    for name, us in (("fault", bare.fault_us()), ("fork", bare.fork_us()), ("exec", bare.exec_us())):
        bench.note(f"floor.{name}", us, "us")
    print("\nthis machine: a page fault {:.2f} us, a fork with its end {:.0f} us, an exec with its end {:.0f} us".format(*(bench.figures[f"warm.floor.{name}"][0] for name in ("fault", "fork", "exec"))))
    for name, text in FLOOR_PROGRAMS.items():
        bench.files[name] = bench.scratch / f"{name}.py"
        bench.files[name].write_text(text)
    rounds, found = 3 if bench.options.quick else 7, {}
    with contextlib.ExitStack() as stack:
        folders = {way: pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="brig-bench-"))) for way in ("ready", "demand")}
        services = {way: stack.enter_context(service_of(way, bench, folder)) for way, folder in folders.items()}
        forks = bare.Floor(peers.find_rootfs("basic"), bench.scratch)
        stack.callback(forks.close)
        for _ in range(rounds):
            for parallel in (4, 16):
                for name, text in FLOOR_PROGRAMS.items():
                    _, cpu, rate = forks.sustained(text, bench.options.seconds, parallel)
                    found.setdefault(("floor", name, parallel), []).append((cpu, rate))
                    for way, (meter, asked) in services.items():
                        told, cpu = meter.of(lambda: asked[name].sustained(bench.options.seconds, parallel))
                        found.setdefault((way, name, parallel), []).append((cpu / len(told.runs), len(told.runs) / told.seconds))
    print(f"\nCPU of a run and of the cell after it, {rounds} rounds in turns; floor: a bare fork of the same Python that runs the program and ends\n")
    print(f"{'':<26} {'CPU ms':>8} {'p95':>8} {'/ floor':>8} {'runs/s':>8}")
    for (way, name, parallel), measured in sorted(found.items(), key=lambda item: (item[0][1:], item[0][0] != "floor")):
        cpu, rate = (statistics.median(values) for values in zip(*measured))
        least = statistics.median(value for value, _ in found["floor", name, parallel])
        where = f"floor.{name}" if way == "floor" else f"cpu.{way}.{name}"
        bench.note(f"{where}.{parallel}_clients.cpu", cpu, "ms")
        bench.note(f"{where}.{parallel}_clients.rate", rate, "/s")
        if way != "floor":
            bench.note(f"cpu.{way}.ratio_floor{'.30ms' if name == '30ms' else ''}.{parallel}_clients", cpu / least, "x")
        print(f"{f'{name}, {parallel} clients, {way}':<26} {cpu:>8.2f} {lib.percentile([value for value, _ in measured], 0.95):>8.2f} {cpu / least:>8.2f} {rate:>8.0f}", flush=True)


def cost(bench):
    print("\nwhat one run costs the machine, and the cell after it\n")
    for way in ("ready", "demand"):
        with tempfile.TemporaryDirectory(prefix="brig-bench-") as name:
            folder = served.profiles(pathlib.Path(name), {"plain": ("basic", {"warm": way})}, alone=True)
            with daemons.Daemon(CONFIG, env={"BRIG_PRESETS": str(folder)}) as daemon:
                served.wait_warm(daemon, ("plain",))
                client = bench.keep(clients.service_client(daemon.path, bench.files["print"], "1\n", profile="plain"))
                client.paced(5, 5)
                bench.note(f"cost.{way}.cpu", cpu_of_a_run(client, bench.options.seconds), "ms")
                daemon.settle()
                bench.note(f"cost.{way}.calls", calls_of_a_run(daemon, client, 50, bench.scratch), "calls")
                bench.close()
        print(f"{way:<14} CPU {bench.figures[f'warm.cost.{way}.cpu'][0]:.2f} ms, {bench.figures[f'warm.cost.{way}.calls'][0]:.0f} system calls", flush=True)


def memory(bench):
    print("\nmemory of one more ready fork (MB: 1,000,000 bytes), everything that comes with it\n")
    for key, base in (("basic", "basic"), ("data_science", "data-science")):
        found = footprint.of_one_fork(lambda folder, ready, base=base: served.profiles(folder, {"plain": (base, {"warm": "ready", "ready": ready})}, alone=True),
                                      CONFIG, repeats=1 if bench.options.quick else 3)
        for name, mb in found.items():
            bench.note(f"memory.{key}.{name}", mb, "MB")
        print(f"{key:<14} " + ", ".join(f"{name.replace('_', ' ')} {mb:.3f}" for name, mb in found.items()), flush=True)


# --- what is told ---------------------------------------------------------------------------------------------------

def show(title, rows):
    """Name, then p50, p95, p99 of the usual pace, p50 and p99 of the two others."""
    print(f"\n{title}\n\n{'ms':<42} {'runs':>6} {'p50':>8} {'p95':>8} {'p99':>8} {'paced p50':>10} {'p99':>8} {'tight p50':>10} {'p99':>8}")
    at = lambda ms, share: served.place(ms, share) or "-"
    for name, usual, paced, tight in rows:
        print(f"{name:<42} {len(usual):>6} {at(usual, .5):>8} {at(usual, .95):>8} {at(usual, .99):>8} {at(paced, .5):>10} {at(paced, .99):>8} "
              f"{at(tight, .5):>10} {at(tight, .99):>8}", flush=True)


def judge(figures):
    print("\nwhat it wants to reach\n")
    for words, name, bound, which in GOALS:
        if name in figures:
            value, unit = figures[name]
            reached = value <= bound if which == "most" else value >= bound
            print(f"  {words:<48} {value:>8.2f} {unit:<3} goal: at {which} {bound:g}   {'reached' if reached else 'MISSED'}")


def table(bench):
    """Markdown."""
    options = [word for word in sys.argv[1:] if word != "--table" and word != bench.options.table]
    lines = ["| ms | p50 | p95 | p99 | p50, 40 ms apart | bwrap + seccomp / this | layers |", "|---|---:|---:|---:|---:|---:|---|"]
    for name, usual, paced, ratio, layers in bench.rows:
        lines.append(f"| {name} | {served.place(usual, .5)} | {served.place(usual, .95)} | {served.place(usual, .99)} | {served.place(paced, .5)} | {f'{ratio:.1f} x' if ratio else ''} | {layers} |")
    rates = [(name, value) for name, (value, unit) in bench.figures.items() if name.endswith(".rate")]
    if rates:
        lines += ["", "| runs a second | 4 at once | 16 at once |", "|---|---:|---:|"]
        of = lambda key, n: bench.figures[f"warm.sustained.{key}.{n}_clients.rate"][0]
        ratio = lambda key, n: bench.figures.get(f"warm.sustained.{key}.{n}_clients.ratio_bwrap_seccomp")
        cell = lambda key, n: f"{of(key, n):.0f}" + (f" ({ratio(key, n)[0]:.1f} x)" if ratio(key, n) else "")
        for key in dict.fromkeys(name.split(".")[2] for name, _ in rates):
            lines.append(f"| {RATE_NAMES.get(key, key)} | {cell(key, 4)} | {cell(key, 16)} |")
    lines += ["", *(f"- {words}: {figure(bench, name)}" for words, name in BESIDE if name in bench.figures)]
    lines += ["", f"{served.machine()}, {time.strftime('%Y-%m-%d', time.gmtime())}. Medians of one interleaved run with about 5 ms between two runs; ratios count, figures drift. "
              + f"{bench.options.ready} cells kept ready."
              + (f" Did not run here: {'; '.join(bench.left_out)}." if bench.left_out else "")
              + (f" The machine was busy ({bench.busy:.0%} of its CPU time): not worth quoting." if bench.busy else ""), "", "    " + " ".join(["./dev bench warm", *options, "--table"])]
    return "\n".join(lines) + "\n"


PAGE = REPO / "docs/benchmarks.md"
MARKS = "<!-- bench warm --table: begin -->", "<!-- bench warm --table: end -->"
RATE_NAMES = {"ready": "connected, ready forks", "demand": "connected, forks on demand", "cold": "connected, cold", "whole_process": "`brig run`, ready forks",
              "bwrap_seccomp": "bwrap + seccomp", "bare": "bare `python3 -I -S`"}
BESIDE = [*((f"CPU of a run in bare forks of the same Python, {words}, {name}, 4 clients", f"warm.cpu.{way}.ratio_floor{key}.4_clients")
            for way, words in (("ready", "ready"), ("demand", "on demand")) for name, key in (("`print(1)`", ""), ("a program that sleeps 30 ms", ".30ms"))),
          ("p99 of honest runs beside 10 % bombs, 4 clients", "warm.bombs.ready.4_clients.p99"), ("that against no bombs", "warm.bombs.ready.4_clients.ratio_p99"),
          ("p99 while Pythons are replaced against steady", "warm.rotation.ratio_p99"),
          ("system calls of a ready run, and of the cell after it", "warm.cost.ready.calls"),
          ("one idle ready fork of `basic`, all in", "warm.memory.basic.all_in"), ("of `data-science`", "warm.memory.data_science.all_in")]


def figure(bench, name):
    value, unit = bench.figures[name]
    return f"{value:.2f} {unit}"


# --- the service -----------------------------------------------------------------------------------------------------

def measured_profiles(scratch, ready):
    return served.profiles(scratch, {name: (base, {"warm": way, "ready": ready}) for name, (base, way) in MEASURED.items()})


def through(rtprio):
    """The service's words before its own: what LimitRTPRIO= does in a unit."""
    return [*daemons.with_accounts(), *(["prlimit", f"--rtprio={rtprio}"] if rtprio else [])]


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0].strip())
    parser.add_argument("--quick", action="store_true", help="the main figures, in less than 50 s on a quiet machine")
    parser.add_argument("--only", default="", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=lib.count)
    parser.add_argument("--seconds", type=float, help="of one slice of what is sustained")
    parser.add_argument("--ready", type=int, default=8, help="cells that each profile keeps ready")
    parser.add_argument("--rtprio", type=int, help="as LimitRTPRIO= of the unit")
    parser.add_argument("--without", action="append", default=[], help="a peer to leave out")
    parser.add_argument("--table", metavar="FILE", nargs="?", const=str(PAGE))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--profile", action="store_true", help="only: where the CPU time of sustained print(1) goes, by perf")
    options = parser.parse_args()
    if options.seconds is not None and not options.seconds > 0:
        parser.error("--seconds: more than 0")
    if not 1 <= options.ready <= 64:
        parser.error("--ready: from 1 to 64")
    if unknown := set(options.without) - set(PEERS):
        parser.error(f"--without: no peer {', '.join(sorted(unknown))}; there are: {', '.join(PEERS)}")
    options.rounds = options.rounds or (150 if options.quick else 1000)
    options.seconds = options.seconds or (1.2 if options.quick else 5.0)
    options.parts = options.only.split(",") if options.only else QUICK if options.quick else PARTS
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"--only: no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    return options


def measure(bench):
    started = [part for part in bench.options.parts if part not in OF_THEIR_OWN]
    if started or bench.options.profile:
        with daemons.Daemon(CONFIG, env={"BRIG_PRESETS": str(measured_profiles(bench.scratch, bench.options.ready))}, through=through(bench.options.rtprio)) as daemon:
            bench.serve(daemon)
            try:
                if bench.options.profile:
                    return shares.tell(bench.asker("ready"), daemon, bench.options.seconds, bench.scratch)
                for part in started:
                    globals()[part](bench)
            finally:
                bench.close()
    for part in bench.options.parts:
        if part in OF_THEIR_OWN:
            globals()[part](bench)


def main():
    options = parse()
    busy = lib.look_whether_busy()
    with served.scratch("warm") as scratch:
        bench = Bench(options, scratch)
        bench.busy = busy
        try:
            measure(bench)
        finally:
            bench.close()
    if options.profile:
        return
    judge(bench.figures)
    print()
    for name, (value, unit) in bench.figures.items():
        print(f"{name} {value:.3f} {unit}")
    if options.table:
        served.write_table(options.table, table(bench), MARKS)
        if pathlib.Path(options.table) == PAGE:
            chart.update()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"machine": served.machine(), "figures": bench.figures, "left_out": bench.left_out}, indent=1))


main()
