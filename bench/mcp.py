#!/usr/bin/python3
"""What MCP costs on top of a run: tools/call execute_code print(1) over stdio, against brig run of the same program.

usage: bench/mcp.py [--rounds N] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import select
import sys
import tempfile
import time

import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import daemon as daemons  # noqa: E402
from support import host  # noqa: E402

from stdio_server import PATHS, Server, stdout_of  # noqa: E402

BRIG = REPO / "build/bin/brig"
PROGRAM = "print(1)\n"
CONFIG = {"runs": 128, "access": [{"uid": 0, "profiles": ["basic"], "runs": 128, "runs_per_minute": 1000000}]}
CALLS = 100


def once(candidate, i):
    if isinstance(candidate, lib.Asked):
        began = time.perf_counter_ns()
        said = candidate.call()
        return (time.perf_counter_ns() - began) / 1e6, said == "1\n", said
    ms, status = lib.once(candidate, i)
    return ms, status == 0, f"status {status}"


def interleave(candidates, rounds, warmup=5):
    for i in range(-warmup, rounds):
        turn = i % len(candidates)
        for candidate in candidates[turn:] + candidates[:turn]:  # nobody is always behind the same one
            ms, good, said = once(candidate, i)
            if not good:
                sys.exit(f"{candidate.name}: {said!r} in round {i}: {candidate.shown()}")
            if i >= 0:
                candidate.ms.append(ms)


def report_run(talk):
    """The same work without MCP: the guest runner and its report."""
    return lambda: talk.run(PROGRAM, mode="report").stdout


def candidates_of(service, talk, served, own, scratch):
    file = scratch / "print.py"
    file.write_text(PROGRAM)
    env = {**PATHS, "BRIG_SOCKET": str(service.path)}
    return [
        lib.Asked("tools/call, service", served.execute, "one brig-mcp before the service, a call after the other"),
        lib.Asked("tools/call, its own brigd", own.execute, "one brig-mcp with a brigd of its own, a call after the other"),
        lib.Candidate("brig run, service", [BRIG, "run", file], env=env),
        lib.Candidate("brig run --json, service", [BRIG, "run", "--json", file], env=env),
        lib.Candidate("brig run --json --private", [BRIG, "run", "--json", "--private", file], env=PATHS),
        lib.Asked("brigd's protocol, service", report_run(talk), "one connection, mode report, asked by this script: what a call costs without MCP"),
    ]


def lists(server, rounds=2000):
    """Milliseconds of tools/list and of server/discover, one after the other."""
    found = {}
    for method in ("tools/list", "server/discover"):
        found[method] = []
        for _ in range(rounds):
            line = server.line(method)
            began = time.perf_counter_ns()
            server.write(line)
            server.read()
            found[method].append((time.perf_counter_ns() - began) / 1e6)
    return found


def at_once(server):
    """CALLS calls in one write: seconds until the last answer, and of the calls one after the other."""
    lines = [server.line("tools/call", name="execute_code", arguments={"code": PROGRAM}) for _ in range(CALLS)]
    began = time.perf_counter()
    server.write(b"".join(lines))
    good = sum(stdout_of(server.read()) == "1\n" for _ in lines)
    together = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(CALLS):
        server.execute()
    if good != CALLS:
        sys.exit(f"{CALLS - good} of {CALLS} calls did not run")
    return together, time.perf_counter() - began


def list_beside_runs(server):
    """Milliseconds of tools/list while programs run that spin."""
    spin = [server.line("tools/call", name="execute_code", arguments={"code": "import time\ntime.sleep(2)"}) for _ in range(4)]
    server.write(b"".join(spin))
    ms = []
    for _ in range(200):
        line = server.line("tools/list")
        began = time.perf_counter_ns()
        server.write(line)
        while b'"tools"' not in server.read()[:400]:
            pass
        ms.append((time.perf_counter_ns() - began) / 1e6)
    for _ in spin:
        server.read()
    return ms


def cancels(server, rounds):
    """Milliseconds from the cancel of a call until its program is gone."""
    ms = []
    for n in range(rounds):
        mark = f"brig-bench-{os.getpid()}-{n}"
        server.write(server.line("tools/call", name="execute_code", arguments={"code": "import time\ntime.sleep(100)", "args": [mark]}))
        program = os.pidfd_open(host.poll(lambda mark=mark: host.with_token(mark))[0][0])
        began = time.perf_counter_ns()
        server.cancel()
        select.select([program], [], [])
        ms.append((time.perf_counter_ns() - began) / 1e6)
        os.close(program)
    return ms


def starts(rounds):
    """Milliseconds from the start of the program to its first answer, and until it is gone after the end of its input."""
    first, gone = [], []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        server = Server({})
        server.ask("server/discover")
        first.append((time.perf_counter_ns() - began) / 1e6)
        began = time.perf_counter_ns()
        server.close()
        gone.append((time.perf_counter_ns() - began) / 1e6)
    return first, gone


def row(name, values):
    p50, p95, p99 = (lib.percentile(values, share) for share in (0.5, 0.95, 0.99))
    print(f"{name:<28} {min(values):>8.3f} {p50:>8.3f} {p95:>8.3f} {p99:>8.3f}")
    return p50


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].strip())
    parser.add_argument("--rounds", type=lib.count, default=200)
    parser.add_argument("--json")
    options = parser.parse_args()
    lib.look_whether_busy()
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as scratch, daemons.Daemon(CONFIG) as service, service.connect() as talk:
        served, own, idle = Server({"BRIG_SOCKET": str(service.path)}), Server({}, "--server", "private"), Server({})
        try:
            figures = measure(service, talk, served, own, idle, pathlib.Path(scratch), options.rounds)
        finally:
            for server in (served, own, idle):
                server.close()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1))


def measure(service, talk, served, own, idle, scratch, rounds):
    idle.ask("tools/list")
    memory = {"idle": idle.memory()}
    candidates = candidates_of(service, talk, served, own, scratch)
    interleave(candidates, rounds)
    before = served.cpu_us()
    for _ in range(rounds):
        served.execute()
    cpu = (served.cpu_us() - before) / rounds
    memory[f"after {rounds} calls"] = served.memory()
    listed, beside = lists(served), list_beside_runs(served)
    cancelled = cancels(served, 50)
    together, after_another = at_once(served)
    memory[f"after {CALLS} calls at once"] = served.memory()
    first, gone = starts(50)

    print(f"\nprint(1), {rounds} interleaved rounds\n\n{'':<28} {'least ms':>8} {'p50':>8} {'p95':>8} {'p99':>8}")
    for c in candidates:
        row(c.name, c.ms)
    print("\nother requests\n")
    for name, ms in [*listed.items(), ("tools/list beside 4 runs", beside), ("cancel to program gone", cancelled), ("start to first answer", first), ("end of input to exit", gone)]:
        row(name, ms)
    print(f"\n{CALLS} calls at once {together:.3f} s ({CALLS / together:.0f} a second), one after the other {after_another:.3f} s")
    print(f"brig-mcp spends {cpu:.0f} CPU-us of its own on a call\n")
    for name, (resident, share, private) in memory.items():
        print(f"memory {name:<24} {resident:>6.2f} MiB resident, {share:.2f} its share, {private:.2f} its own")

    by_name = {c.name: lib.median(c) for c in candidates}
    call, runs = by_name["tools/call, service"], by_name["brig run --json, service"]
    print(f"\nratios: tools/call / brig run --json {call / runs:.3f}, tools/call / brig run {call / by_name['brig run, service']:.3f}, "
          f"with a brigd of its own / brig run --json --private {by_name['tools/call, its own brigd'] / by_name['brig run --json --private']:.3f}")
    print("\nwhat it wants to reach")
    lib.goal("ms more than brig run --json, service", call - runs, 1.0)
    lib.goal("ms more than brig run, service", call - by_name["brig run, service"], 1.0)
    lib.goal("ms more than brigd's protocol", call - by_name["brigd's protocol, service"], 1.0)
    lib.goal("ms of tools/list, p50", lib.percentile(listed["tools/list"], 0.5), 0.2)
    lib.goal("ms of tools/list beside 4 runs, p50", lib.percentile(beside, 0.5), 50)
    lib.goal("ms from cancel to program gone, p50", lib.percentile(cancelled, 0.5), 100)
    lib.goal("ms from start to first answer, p50", lib.percentile(first, 0.5), 20)
    lib.goal("MiB resident of an idle brig-mcp", memory["idle"][0], 8)
    return {"ms": {c.name: c.ms for c in candidates}, "requests": listed, "beside": beside, "cancels": cancelled, "starts": first, "ends": gone,
            "at_once_s": together, "one_after_another_s": after_another, "cpu_us": cpu, "mib": memory}


main()
