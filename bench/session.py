#!/usr/bin/python3
"""What sessions cost: opened, called, commands and files in them, many of them idle; beside live interpreters of others.

usage: bench/session.py [--quick] [--only PART,...] [--rounds N] [--without PEER]... [--table [FILE]] [--json FILE]

Clients in C ask one service; candidates take turns in an order that is drawn anew in each round, about 5 ms lie between two runs. The peers run the same snippets:
ipykernel over jupyter_client, `python3 -i` over a pipe, `crun exec` into a container that runs. A peer that cannot run here is left out, and its own words say
why. --table writes the table into docs/benchmarks.md, --table FILE into that file, --table - to stdout.

The parts, and the lines NAME VALUE UNIT that they end in; PLACE is p50 or p95:

open      session.open.{ready,demand}.{opened,first,record}.PLACE ms   until it is open; the first byte of its first call; the record of that call
          session.open.{ipykernel,pipe}.{first,record}.PLACE ms        from the start of the interpreter
call      session.call.{print,sum}.{brig,ipykernel,pipe}.{first,record}.PLACE ms   a call in a live interpreter: the first byte of output; its end
          session.call.{print,sum}.ratio_{ipykernel,pipe} x            median record of the peer / of brig
          session.call.{print,sum}.tight.{...} the same without a pause, in blocks of each whose first call does not count
exec      session.exec.{brig,crun}.PLACE ms                            `true`, to the record; `crun exec`, the whole process
          session.exec.ratio_crun x
files     session.files.PLACE ms                                       1 MB in and out again over one socket
memory    session.memory.{basic,data_science}.all_in MB                one more idle session that has made a call, beyond the zygote: PSS, page tables, kernel memory
          session.memory.{basic,data_science}.{pss,page_tables,kernel} MB
many      session.many.opened ms                                       500 sessions, with their first call, each
          session.many.call_in_each s                                  a call in each of 500, sixteen at a time
          session.many.slowest ms                                      of these calls
          session.many.idle_cpu ms                                     CPU time of all processes in a second in which nobody asks anything
reuse     session.reuse.{ready,demand,call,fresh}.cpu ms               CPU time of a program of brig.map(): a run, ready or on demand; with reuse=True; and fresh_files.
                                                                       Of the service, its jails and the kernel, with the sessions' begin and end, without the client's own
          session.reuse.{ready,demand,call,fresh}.rate /s              programs a second, on two workers
          session.reuse.{call,fresh}.ratio_{ready,demand} x            CPU of such a program / of a run
"""
import argparse
import contextlib
import json
import pathlib
import random
import statistics
import sys
import tempfile
import time

import clients
import footprint
import lib
import peers
import served

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO / "tests"), str(REPO / "python")]

import brig  # noqa: E402
from support import daemon as daemons  # noqa: E402
from support import host  # noqa: E402

CLIENT, PEERS = clients.BUILD / "bench/session_client", REPO / "bench/session_peers.py"
PYTHON = "/usr/bin/python3"
SNIPPETS = {"print": ("print(1)", "1"), "sum": ("print(sum(i * i for i in range(10000)))", "333283335000")}
MANY, MEGABYTE = 500, 1000000
HALVES = "one", "other" # profiles, each with half of many: the monitor counts with fifty-six descriptors of a supervisor for each, and `ulimit -Hn` may be 20,000
CONFIG = {"runs": 64, "access": [{"uid": 0, "runs": 64, "runs_per_minute": 1000000}]}
CONFIG_MANY = {"runs": 512, "access": [{"uid": 0, "runs": 512, "runs_per_minute": 1000000}]}
MEASURED = {"ready": ("basic", {"warm": "ready", "ready": 4}), "demand": ("basic", {"warm": "demand"})}
FEW, SOME = 2, 20
BLOCKS = 10
WORKERS = 2
MAPPED = {"ready": (1, {"profile": "ready"}), "demand": (1, {"profile": "demand"}), "call": (5, {"profile": "demand", "reuse": True}),
          "fresh": (3, {"profile": "demand", "reuse": True, "fresh_files": True})} # programs in a turn, in hundreds; options of brig.map()
OTHERS = "ipykernel", "pipe", "crun"
NAMES = {"brig": "a session", "ready": "a session, ready fork", "demand": "a session, fork on demand", "ipykernel": "ipykernel, jupyter_client", "pipe": "`python3 -i`, a pipe",
         "crun": "`crun exec`"}
PARTS = "open", "call", "exec", "files", "memory", "many", "reuse"
GOALS = [
    ("open to the first byte, ready, ms", "session.open.ready.first.p50", 3, "most"), ("open to the first byte, on demand, ms", "session.open.demand.first.p50", 5, "most"),
    ("a call to the first byte, ms", "session.call.print.brig.first.p50", 0.25, "most"), ("a call to its record, ms", "session.call.print.brig.record.p50", 0.5, "most"),
    ("ipykernel against a call", "session.call.print.ratio_ipykernel", 20, "least"), ("exec true, ms", "session.exec.brig.p50", 2, "most"),
    ("1 MB in and out, ms", "session.files.p50", 2, "most"), ("one idle session of basic, MB", "session.memory.basic.all_in", 1.5, "most"),
    ("one idle session of data-science, MB", "session.memory.data_science.all_in", 3, "most"), (f"a call in each of {MANY}, s", "session.many.call_in_each", 1, "most"),
    *((f"CPU of a program with reuse / of a run, {way}", f"session.reuse.call.ratio_{way}", 0.1, "most") for way in MEASURED),
]


class Bench:
    """Every figure, in the order in which it was found, and the rows of the table."""

    def __init__(self, options, scratch):
        self.options, self.scratch, self.figures, self.rows, self.left_out, self.opened = options, scratch, {}, [], {}, []
        self.paths = {}
        for name, (text, _) in SNIPPETS.items():
            self.paths[name] = scratch / f"{name}.py"
            self.paths[name].write_text(text + "\n")

    def note(self, name, value, unit):
        self.figures["session." + name] = value
        print(f"session.{name} {value:.3f} {unit}", flush=True)

    def places(self, name, ms, words, peer_of=None):
        for share in (0.5, 0.95):
            self.note(f"{name}.p{share * 100:.0f}", lib.percentile(ms, share), "ms")
        self.rows.append((words, ms, peer_of))

    def rounds(self, many, quick):
        return self.options.rounds or (quick if self.options.quick else many)

    # --- candidates: a key, and a client ---

    def session(self, *words, profile="ready"):
        return self.keep(clients.Client([CLIENT, "--keys", f'"profile":"{profile}"', *words], {"BRIG_SOCKET": str(self.service.path)}))

    def keep(self, client):
        self.opened.append(client)
        return client

    def close(self):
        opened, self.opened = self.opened, []
        for client in opened:
            client.close()
            if client.after:
                client.after()

    def other(self, key, make):
        """A client that has shown that it can, or None."""
        if key in self.options.without:
            return None
        try:
            client = self.keep(make())
            client.paced(1, 0)
            return client
        except (clients.Failed, OSError) as e:
            print(f"left out: {NAMES[key]}: {str(e)[-400:]}", flush=True)
            self.left_out[NAMES[key]] = str(e)
            return None

    def interpreters(self, what, snippet):
        argv = lambda key: [PYTHON, PEERS, key, what, *SNIPPETS[snippet]]
        made = {key: self.other(key, lambda key=key: clients.Client(argv(key), peers.ENV)) for key in ("ipykernel", "pipe")}
        return {key: client for key, client in made.items() if client}

    def container(self):
        """`crun exec` of a container that was started before, and that goes with us."""
        place = peers.Place(self.scratch, peers.find_rootfs("basic"), None)
        bundle = place.bundle("crun-exec", ["/usr/bin/python3", "-c", "import time; time.sleep(100000)"])
        words = ["crun", "--cgroup-manager", "cgroupfs", "--root", str(self.scratch / "crun-exec-state")]
        started = [*words, "run", "--detach", "--bundle", str(bundle), "brig-bench-exec"]
        enter = f"{place.bound()}; {' '.join(started)} >/dev/null 2>&1 </dev/null; trap '{' '.join([*words, 'delete', '--force', 'brig-bench-exec'])}' EXIT"
        argv = [clients.SPAWN_CLIENT, "", *words, "exec", "brig-bench-exec", "/usr/bin/true"]
        return clients.Client(["unshare", "--mount", "--propagation", "private", "sh", "-ec", f'{enter}\n"$@"', "sh", *argv], peers.ENV)

    def interleave(self, candidates, rounds, pause=5):
        """{key: what it took}, after some turns that do not count."""
        took, order = {key: [] for key in candidates}, random.Random(1)
        for client in candidates.values():
            client.paced(3, pause)
        for _ in range(rounds):
            for key in order.sample(list(candidates), len(candidates)):
                took[key] += candidates[key].paced(1, pause).runs
        return took

    def blocks(self, candidates, rounds):
        """{key: what it took} without a pause: the caches are warm, as those of a program that calls and calls."""
        took = {key: [] for key in candidates}
        for _ in range(BLOCKS):
            for key, client in candidates.items():
                took[key] += client.paced(rounds // BLOCKS + 1, 0).runs[1:]
        return took

    # --- the parts ---

    def open(self):
        ours = {key: self.session("open", self.paths["print"], "1\n", profile=key) for key in MEASURED}
        took = self.interleave(ours, self.rounds(300, 40), pause=20)
        others = self.interpreters("open", "print")
        for key, client in others.items(): # a second each: in turns they would make ours wait
            took[key] = client.paced(self.rounds(5, 2), 20).runs
        for key in [*ours, *others]:
            if key in ours:
                self.places(f"open.{key}.opened", [run.setup for run in took[key]], f"until it is open: {NAMES[key]}")
            self.places(f"open.{key}.first", [run.first for run in took[key]], f"until the first byte of the first call: {NAMES[key]}", key in others and "open.ready.first")
            self.places(f"open.{key}.record", [run.record for run in took[key]], f"until the end of the first call: {NAMES[key]}", key in others and "open.ready.record")
        self.close()

    def call(self):
        for snippet, (_, expect) in SNIPPETS.items():
            made = {"brig": self.session("call", self.paths[snippet], f"{expect}\n"), **self.interpreters("call", snippet)}
            self.calls(f"call.{snippet}", SNIPPETS[snippet][0], self.interleave(made, self.rounds(1000, 150)))
            self.calls(f"call.{snippet}.tight", f"{SNIPPETS[snippet][0]}, one after the other,", self.blocks(made, self.rounds(1000, 150)))
            self.close()

    def calls(self, name, program, took):
        for what, words in ("first", "to the first byte"), ("record", "to its end"):
            for key, runs in took.items():
                self.places(f"{name}.{key}.{what}", [getattr(run, what) for run in runs], f"{program} {words}: {NAMES[key]}", key != "brig" and f"{name}.brig.{what}")
        self.ratios(name, took)

    def ratios(self, name, took):
        median = lambda key: statistics.median(run.record for run in took[key])
        for key in took:
            if key != "brig":
                self.note(f"{name}.ratio_{key}", median(key) / median("brig"), "x")

    def exec(self):
        made = {"brig": self.session("exec", "", "true"), "crun": self.other("crun", self.container)}
        took = self.interleave({key: client for key, client in made.items() if client}, self.rounds(500, 80))
        for key, runs in took.items():
            self.places(f"exec.{key}", [run.record for run in runs], f"true: {NAMES[key]}", key != "brig" and "exec.brig")
        self.ratios("exec", took)
        self.close()

    def files(self):
        took = self.interleave({"brig": self.session("files", str(MEGABYTE))}, self.rounds(500, 100))
        self.places("files", [run.record for run in took["brig"]], "1 MB in and out again")
        self.close()

    def memory(self):
        for key, base in ("basic", "basic"), ("data_science", "data-science"):
            if lack := host.lacks(f"rootfs:{base}"):
                print(f"left out: memory of {base}: {lack}", flush=True)
                continue
            found = footprint.of_one_session(base, self.idle, CONFIG, (FEW, SOME), repeats=1 if self.options.quick else 3)
            for name, mb in found.items():
                self.note(f"memory.{key}.{name}", mb, "MB")

    def idle(self, daemon, profile, count):
        """So many sessions that have made a call; a client that keeps them."""
        client = clients.Client([CLIENT, "--keys", f'"profile":"{profile}"', "each", str(count), self.paths["print"], "1\n"], {"BRIG_SOCKET": str(daemon.path)})
        client.paced(2, 0)
        return client

    def many(self):
        count = MANY
        with tempfile.TemporaryDirectory(prefix="brig-bench-") as name:
            folder = served.profiles(pathlib.Path(name), {half: MEASURED["demand"] for half in HALVES}, alone=True)
            with daemons.Daemon(CONFIG_MANY, env={"BRIG_PRESETS": str(folder)}) as daemon:
                served.wait_warm(daemon, HALVES)
                began = time.monotonic()
                both = [self.idle(daemon, half, count // 2) for half in HALVES]
                self.note("many.opened", (time.monotonic() - began) * 1000 / count, "ms")
                rounds = [[client.paced(1, 500).runs[0] for client in both] for _ in range(3 if self.options.quick else 10)]
                self.note("many.call_in_each", statistics.median(sum(run.record for run in runs) for runs in rounds) / 1000, "s")
                self.note("many.slowest", statistics.median(max(run.first for run in runs) for runs in rounds), "ms")
                self.note("many.idle_cpu", footprint.idle_cpu(daemon, 3 if self.options.quick else 10) * 1000, "ms")
                for client in both:
                    client.close()

    def reuse(self):
        with tempfile.TemporaryDirectory(prefix="brig-bench-") as name, contextlib.closing(served.CpuOf("reuse")) as meter:
            folder = served.profiles(pathlib.Path(name), MEASURED)
            with daemons.Daemon(CONFIG, env={"BRIG_PRESETS": str(folder)}, through=[*daemons.with_accounts(), *map(str, meter.through)]) as daemon:
                served.wait_warm(daemon, MEASURED)
                meter.learn_idle()
                for key, measured in self.mapped(daemon, meter).items():
                    for what, values in zip(("cpu", "rate"), zip(*measured)):
                        self.note(f"reuse.{key}.{what}", statistics.median(values), {"cpu": "ms", "rate": "/s"}[what])
        for key in "call", "fresh":
            for way in MEASURED:
                self.note(f"reuse.{key}.ratio_{way}", self.figures[f"session.reuse.{key}.cpu"] / self.figures[f"session.reuse.{way}.cpu"], "x")

    def mapped(self, daemon, meter):
        """{key: [(CPU ms of a program, programs a second)] of each turn}."""
        found, order = {key: [] for key in MAPPED}, random.Random(1)
        for _ in range(self.rounds(9, 3)):
            for key in order.sample(list(MAPPED), len(MAPPED)):
                hundreds, options = MAPPED[key]
                programs = [SNIPPETS["print"][0]] * 100 * hundreds
                began = time.monotonic()
                took, cpu = meter.of(lambda: [time.monotonic() - began for _ in brig.map(programs, workers=WORKERS, server="service", path=str(daemon.path), **options)])
                found[key].append((cpu / len(programs), len(programs) / took[-1]))
        return found


# --- what is told ---------------------------------------------------------------------------------------------------

def judge(figures):
    print("\nwhat it wants to reach\n")
    for words, name, bound, which in GOALS:
        if name in figures:
            reached = figures[name] <= bound if which == "most" else figures[name] >= bound
            print(f"  {words:<42} {figures[name]:>8.2f}   goal: at {which} {bound:g}   {'reached' if reached else 'MISSED'}")


PAGE = REPO / "docs/benchmarks.md"
MARKS = "<!-- bench session --table: begin -->", "<!-- bench session --table: end -->"
BESIDE = [("MB of one more idle session of `basic`, everything counted", "memory.basic.all_in", ".2f"), ("of `data-science`", "memory.data_science.all_in", ".2f"),
          (f"seconds for a call in each of {MANY} idle sessions, sixteen at a time", "many.call_in_each", ".2f"),
          (f"ms of CPU time a second, all processes of a service with {MANY} idle sessions", "many.idle_cpu", ".1f"),
          ("ms of CPU time of a program of `brig.map()`, ready, without reuse", "reuse.ready.cpu", ".2f"), ("with `reuse=True`", "reuse.call.cpu", ".2f"),
          ("times that of a run, ready", "reuse.call.ratio_ready", ".3f"), ("with `fresh_files=True` as well, ms", "reuse.fresh.cpu", ".2f")]


def table(bench):
    """Markdown."""
    options = [word for word in sys.argv[1:] if word != "--table" and word != bench.options.table]
    lines = ["| ms | p50 | p95 | this / a session's |", "|---|---:|---:|---:|"]
    for words, ms, against in bench.rows:
        ratio = f"{lib.percentile(ms, 0.5) / bench.figures[f'session.{against}.p50']:.1f} x" if against else ""
        lines.append(f"| {words} | {lib.percentile(ms, 0.5):.2f} | {served.place(ms, 0.95)} | {ratio} |")
    told = [(words, bench.figures[f"session.{name}"], form) for words, name, form in BESIDE if f"session.{name}" in bench.figures]
    lines += ["", *(f"- {words}: {value:{form}}" for words, value, form in told)]
    lines += ["", f"{served.machine()}, {time.strftime('%Y-%m-%d', time.gmtime())}. In turns, about 5 ms between two runs; ratios count, figures drift."
              + (f" Did not run here: {'; '.join(bench.left_out)}." if bench.left_out else "")
              + (f" The machine was busy ({bench.busy:.0%} of its CPU time): not worth quoting." if bench.busy else ""), "", "    " + " ".join(["./dev bench session", *options, "--table"])]
    return "\n".join(lines) + "\n"


# --- the way in -----------------------------------------------------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0].strip())
    parser.add_argument("--quick", action="store_true", help="in a minute")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=lib.count)
    parser.add_argument("--without", action="append", default=[], choices=OTHERS, help="a peer to leave out")
    parser.add_argument("--table", metavar="FILE", nargs="?", const=str(PAGE))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.parts = options.only.split(",")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"--only: no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    return options


def measure(bench):
    shared = [part for part in bench.options.parts if part not in ("memory", "many", "reuse")] # these have services of their own
    if shared:
        with daemons.Daemon(CONFIG, env={"BRIG_PRESETS": str(served.profiles(bench.scratch, MEASURED))}) as bench.service:
            served.wait_warm(bench.service, MEASURED)
            try:
                for part in shared:
                    getattr(bench, part)()
            finally:
                bench.close()
    for part in bench.options.parts:
        if part not in shared:
            getattr(bench, part)()


def main():
    options = parse()
    busy = lib.look_whether_busy()
    with served.scratch("session") as scratch:
        bench = Bench(options, scratch)
        bench.busy = busy
        measure(bench)
    judge(bench.figures)
    if options.table:
        served.write_table(options.table, table(bench), MARKS)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"machine": served.machine(), "figures": bench.figures, "left_out": bench.left_out}, indent=1))


if __name__ == "__main__":
    main()
