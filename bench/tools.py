#!/usr/bin/python3
"""What the Python package costs, and calls of tools from a program in a jail: one service, ready cells, functions of this process.

usage: bench/tools.py [--seconds S] [--rounds N] [--only PART,...]

The parts, and the lines NAME VALUE UNIT that they end in:

call      tools.call.{p50,p95} us          a call from inside to a function of this process and back, one after the other
          tools.call.bare.{p50,p95} us     the same between two processes of the host without a jail, one of them the same Python
rate      tools.rate /s                    calls of one program, one after the other
          tools.rate.{threads,coroutines} /s  of a program with 16 threads, with 64 coroutines
many      tools.at_once ms                 200 calls at once to a function that waits for 100 ms
run       tools.run.{new,kept}.{p50,p95} ms  brig.run("1 + 1") to its Result: with a connection of its own, over one that is kept
          tools.run.with_tools.p50 ms      the same with tools that it calls once
map       tools.map.rate /s                brig.map, 16 at once, of programs as small
          tools.map.client.rate /s         the same by the client in C of the other benches, in turns with it
          tools.map.ratio x                the first / the second, median of the turns
"""
import argparse
import asyncio
import pathlib
import statistics
import sys
import tempfile
import time

import clients
import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO / "tests"), str(REPO / "python")]

import brig  # noqa: E402
from support import daemon as daemons  # noqa: E402
from support import host, tool_bridge  # noqa: E402

CONFIG = {"runs": 64, "access": [{"uid": 0, "runs": 64, "runs_per_minute": 1000000}]}
SMALL, PLACES, SLICES = "1 + 1", 16, 6
CALLS = 2000
TIMED = f"""
from time import perf_counter
tools.add(1, 2)
took = []
for i in range({CALLS}):
    began = perf_counter()
    tools.add(i, b=2)
    took.append(round((perf_counter() - began) * 1e6, 1))
took
"""
RATES = {
    "": f"for i in range({CALLS}):\n    tools.add(i, b=2)",
    ".threads": f"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(16) as pool:\n    list(pool.map(lambda i: tools.add(i, b=2), range({CALLS})))",
    ".coroutines": f"import asyncio\nasync def some():\n    for i in range({CALLS // 64}):\n        await tools.add(i, b=2)\nasync def main():\n"
                   "    await asyncio.gather(*[some() for _ in range(64)])\nasyncio.run(main())",
}
AT_ONCE = "import asyncio\nasync def main():\n    return sum(await asyncio.gather(*[tools.nap() for _ in range(200)]))\nasyncio.run(main())"
GOALS = [("a call and back, us", "tools.call.p50", 150, "most"), ("calls a second of one program", "tools.rate", 5000, "least"),
         ("brig.run, ready, ms", "tools.run.kept.p50", 1.5, "most"), ("brig.map against the client in C", "tools.map.ratio", 0.95, "least")]


def add(a: int, b: int) -> int:
    return a + b


async def nap() -> int:
    await asyncio.sleep(0.1)
    return 1


BOX = brig.Toolbox({"add": add, "nap": nap}, limits=brig.ToolLimits(calls=100_000, at_once=256))


class Bench:
    def __init__(self, options, path, scratch):
        self.options, self.where, self.scratch, self.figures = options, {"server": "service", "path": path}, scratch, {}

    def note(self, name, value, unit):
        self.figures[f"tools.{name}"] = value
        print(f"tools.{name} {value:.3f} {unit}", flush=True)

    def places(self, name, values, unit, places=(50, 95)):
        for place in places:
            self.note(f"{name}.p{place}", lib.percentile(values, place / 100), unit)

    def value(self, code):
        done = brig.run(code, tools=BOX, **self.where)
        if not done.ok:
            sys.exit(f"{code}\n{done.error}")
        return done

    # --- the parts ---

    def call(self):
        program = tool_bridge.Program(tool_bridge.pack(self.scratch), self.scratch)
        took = {"call": [], "call.bare": []}
        for _ in range(self.options.rounds):
            took["call"] += self.value(TIMED).value
            took["call.bare"] += program(TIMED, BOX).value
        for name, values in took.items():
            self.places(name, values, "us")

    def rate(self):
        for name, code in RATES.items():
            rates = []
            for _ in range(self.options.rounds):
                done = self.value(code)
                rates.append(done.record["tool_calls"]["n"] / done.seconds)
            self.note(f"rate{name}", statistics.median(rates), "/s")

    def many(self):
        self.note("at_once", statistics.median(self.value(AT_ONCE).record["tool_calls"]["wait_ms"] for _ in range(self.options.rounds)), "ms")

    def run(self):
        took = {"run.new": [], "run.kept": [], "run.with_tools": []}
        with brig.Connection(**self.where) as kept:
            ways = {"run.new": lambda: brig.run(SMALL, **self.where), "run.kept": lambda: brig.run(SMALL, connection=kept),
                    "run.with_tools": lambda: brig.run("tools.add(1, 1)", tools=BOX, connection=kept)}
            for _ in range(40 * self.options.rounds):
                for name, way in ways.items():
                    began = time.perf_counter()
                    done = way()
                    took[name].append((time.perf_counter() - began) * 1000)
                    assert done.value == 2, done
                    time.sleep(0.005) # the next one does not pay for what this one has left to be cleaned up
        for name, values in took.items():
            self.places(name, values, "ms")

    def map(self):
        (self.scratch / "small.py").write_text(SMALL + "\n")
        client = clients.service_client(self.where["path"], self.scratch / "small.py", "", profile="basic", keys='"mode":"report"')
        rates = {"map": [], "map.client": []}
        try:
            for _ in range(SLICES):
                rates["map"].append(self.mapped())
                told = client.sustained(self.options.seconds, PLACES)
                rates["map.client"].append(len(told.runs) / told.seconds)
        finally:
            client.close()
        for name, values in rates.items():
            self.note(f"{name}.rate", statistics.median(values), "/s")
        self.note("map.ratio", statistics.median(own / other for own, other in zip(rates["map"], rates["map.client"])), "x")

    def mapped(self):
        """Runs a second, of so many that they take about as long as a slice of the client's."""
        count, began = 0, time.perf_counter()

        def programs():
            while time.perf_counter() - began < self.options.seconds:
                yield SMALL
        for done in brig.map(programs(), workers=PLACES, **self.where):
            assert done.value == 2, done
            count += 1
        return count / (time.perf_counter() - began)


PARTS = "call", "rate", "many", "run", "map"


def parts(text):
    names = text.split(",")
    if set(names) - set(PARTS):
        raise argparse.ArgumentTypeError(f"there are: {', '.join(PARTS)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=lib.count, default=5)
    parser.add_argument("--only", type=parts, default=PARTS)
    options = parser.parse_args()
    busy = lib.look_whether_busy()
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as scratch, daemons.Daemon(CONFIG) as service:
        service.settle()
        if not host.poll(lambda: brig.run("1", server="service", path=str(service.path)).record["warm"], 60, every=0.1):
            sys.exit(f"runs stay cold\n{service.words()}")
        bench = Bench(options, str(service.path), pathlib.Path(scratch))
        for name in PARTS:
            if name in options.only:
                getattr(bench, name)()
    print()
    for words, name, bound, kind in GOALS:
        if name in bench.figures:
            good = bench.figures[name] <= bound if kind == "most" else bench.figures[name] >= bound
            print(f"  {words:<38} {bench.figures[name]:9.2f}   goal: at {kind} {bound}   {'reached' if good else 'MISSED'}")
    if busy:
        print("  The machine was busy.")


if __name__ == "__main__":
    main()
