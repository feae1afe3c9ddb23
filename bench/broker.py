#!/usr/bin/python3
"""What brig-mcp adds to a call of a tool: from a program in a jail, over its bridge and brig-mcp, to a server on stdio; against the same server, asked directly.

usage: bench/broker.py [--rounds N] [--json FILE]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import mcp  # noqa: E402

SERVER = ["/usr/bin/python3", "-S", str(REPO / "tests/mcp/tool_server.py")]
CALLS = 300
PROGRAM = f"""
import time
def batch(call):
    began = time.perf_counter()
    for _ in range({CALLS}):
        call()
    return (time.perf_counter() - began) / {CALLS} * 1000
tools.t.echo(text="x")
one = batch(lambda: tools.t.echo(text="x"))
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(32) as pool:
    began = time.perf_counter()
    list(pool.map(lambda _: tools.t.echo(text="x"), range(640)))
    many = 640 / (time.perf_counter() - began)
one, many
"""


def ask(server, number, method, **params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())


def direct():
    """Milliseconds a call, without brig."""
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        ask(server, 0, "initialize", protocolVersion="2025-11-25")
        began = time.perf_counter()
        for number in range(CALLS):
            ask(server, number, "tools/call", name="echo", arguments={"text": "x"})
        took = time.perf_counter() - began
        server.stdin.close()
    return took / CALLS * 1000


def bridged(client):
    said = client.execute(PROGRAM, timeout_s=60)
    assert said["success"], said
    return said["result"]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--json")
    given = options.parse_args()
    alone, through, rate = [], [], []
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as folder:
        file = pathlib.Path(folder) / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"t": {"command": SERVER[0], "args": SERVER[1:]}}}))
        with mcp.McpStdio("--servers", str(file), "--tool-audit", f"{folder}/audit", "--tool-calls", "2000", "--tool-rate", "0") as client:
            for _ in range(given.rounds):
                alone.append(direct())
                one, many = bridged(client)
                through.append(one)
                rate.append(many)
    said = {"server alone, ms a call": statistics.median(alone), "from a jail, ms a call": statistics.median(through),
            "more, ms": statistics.median(through) - statistics.median(alone), "calls a second from 32 threads": statistics.median(rate)}
    for name, value in said.items():
        print(f"{name:35} {value:10.3f}")
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(said))


if __name__ == "__main__":
    main()
