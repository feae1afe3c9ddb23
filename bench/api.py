#!/usr/bin/python3
"""What HTTP costs on top of a run: POST /run_code of print(1) to brig-api, against the same run by brigd's protocol, in turns.

usage: bench/api.py [--rounds N] [--at-once N] [--json FILE]

api.run_code ms        on one connection that stays, from the request to the whole answer, median
api.connect ms         the same with a connection for each request, as clients without keep-alive do
api.protocol ms        the same run on one connection of brigd's protocol, asked by the same script
api.over_protocol ms   run_code - protocol
api.ratio_protocol x   run_code / protocol
api.at_once.N /s       N requests on N connections at once: runs a second; every answer is looked at, and api.at_once.N.false counts wrong ones
"""
import argparse
import json
import os
import pathlib
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time

import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import daemon as daemons  # noqa: E402

SERVER = REPO / "build/bin/brig-api"
PROGRAM = "print(1)\n"
CONFIG = {"runs": 128, "access": [{"uid": 0, "profiles": ["basic"], "runs": 128, "runs_per_minute": 1000000}]}


def request(program):
    body = json.dumps({"code": program, "language": "python", "run_timeout": 10}).encode()
    return b"POST /run_code HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def whole(data):
    """The body of the answer in these bytes; None: it is not complete."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return None
    return body if len(body) >= int(re.search(rb"(?i)content-length: (\d+)", head)[1]) else None


class Http:
    """One connection to brig-api; with anew one for each request."""

    def __init__(self, port, anew=False):
        self.port, self.anew, self.sock, self.bytes = port, anew, None, request(PROGRAM)

    def call(self):
        if self.anew or self.sock is None:
            self.sock = socket.create_connection(("127.0.0.1", self.port))
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.sendall(self.bytes)
        data = b""
        while (body := whole(data)) is None:
            got = self.sock.recv(65536)
            if not got:
                sys.exit("brig-api has closed the connection")
            data += got
        if self.anew:
            self.sock.close()
        return json.loads(body).get("run_result", {}).get("stdout", body)


def interleave(candidates, rounds, warmup=10):
    for i in range(-warmup, rounds):
        turn = i % len(candidates)
        for candidate in candidates[turn:] + candidates[:turn]:
            began = time.perf_counter_ns()
            said = candidate.call()
            ms = (time.perf_counter_ns() - began) / 1e6
            if said not in ("1\n", b"1\n"):
                sys.exit(f"{candidate.name}: {said!r}")
            if i >= 0:
                candidate.ms.append(ms)


def at_once(port, n):
    """(seconds, wrong answers) of n requests on n connections."""
    answers, selector = {}, selectors.DefaultSelector()
    began = time.perf_counter()
    for i in range(n):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.sendall(request(f"print({i})\n"))
        selector.register(sock, selectors.EVENT_READ, (i, bytearray()))
    while selector.get_map():
        for key, _ in selector.select():
            i, data = key.data
            got = key.fileobj.recv(65536)
            data += got
            if not got or whole(bytes(data)) is not None:
                answers[i] = whole(bytes(data))
                selector.unregister(key.fileobj)
                key.fileobj.close()
    seconds = time.perf_counter() - began
    wrong = sum(1 for i, body in answers.items() if not body or json.loads(body).get("run_result", {}).get("stdout") != f"{i}\n")
    return seconds, wrong


def start(service):
    process = subprocess.Popen([SERVER, "--insecure-loopback", "--listen", "127.0.0.1:0", "--apis", "run_code", "--wait", "600", "--runs", "128", "--server", "service"], stderr=subprocess.PIPE,
                               env={"PATH": "/usr/bin:/bin", "BRIG_SOCKET": str(service.path)})
    for line in process.stderr:
        if found := re.search(rb"serving http://127.0.0.1:(\d+)", line):
            return process, int(found[1])
    sys.exit("brig-api does not start")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0].strip())
    parser.add_argument("--rounds", type=lib.count, default=500)
    parser.add_argument("--at-once", type=lib.count, action="append", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    lib.look_whether_busy()
    with daemons.Daemon(CONFIG) as service, service.connect() as talk:
        service.settle()
        process, port = start(service)
        try:
            candidates = [lib.Asked("run_code", Http(port).call, "POST /run_code"), lib.Asked("connect", Http(port, anew=True).call, "POST /run_code, a connection each"),
                          lib.Asked("protocol", lambda: talk.run(PROGRAM).stdout, "run by the protocol")]
            interleave(candidates, options.rounds)
            found = {f"api.{one.name} ms": statistics.median(one.ms) for one in candidates}
            found["api.over_protocol ms"] = found["api.run_code ms"] - found["api.protocol ms"]
            found["api.ratio_protocol x"] = found["api.run_code ms"] / found["api.protocol ms"]
            for n in options.at_once or [256]:
                seconds, wrong = at_once(port, n)
                found |= {f"api.at_once.{n} /s": n / seconds, f"api.at_once.{n}.false runs": wrong}
        finally:
            process.terminate()
            process.wait(60)
    for one in candidates:
        print(f"{one.shown():<36} {min(one.ms):>8.3f} {lib.percentile(one.ms, 0.5):>8.3f} {lib.percentile(one.ms, 0.95):>8.3f} {lib.percentile(one.ms, 0.99):>8.3f}")
    for name, value in found.items():
        print(f"{name:<28} {value:.3f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(any(value for name, value in found.items() if name.endswith("false runs")) and os.EX_DATAERR)


if __name__ == "__main__":
    main()
