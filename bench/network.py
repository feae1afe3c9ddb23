#!/usr/bin/python3
"""What a network by name costs: the first byte of an HTTPS request, a gigabyte, a run that does not use its network, and a lookup of a name while
another run of the same profile floods brig-proxy; beside other proxies.

usage: bench/network.py [--rounds N] [--table [FILE]]

Servers are in a network namespace of their own (tests/support/internet.py), all on this machine. --table writes docs/benchmarks.md ("-": to the screen).
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

import lib  # noqa: E402
import served  # noqa: E402
from support import brig, host  # noqa: E402
from support import daemon as daemons  # noqa: E402
from support import internet as internets  # noqa: E402

PAGE = REPO / "docs/benchmarks.md"
HELD = 600 # connections
MARKS = "<!-- bench network --table: begin -->", "<!-- bench network --table: end -->"
REQUESTS = 40
# proxy: None, or (host, port) of one that takes CONNECT.
PROGRAM = """
import json, socket, ssl, statistics, sys, time
proxy, trust, count, size = json.loads(WORDS)
context = ssl.create_default_context(cafile=trust)
def connect(port):
    if not proxy:
        return socket.create_connection(("shop.example", port))
    sock = socket.create_connection(tuple(proxy))
    sock.sendall(f"CONNECT shop.example:{port} HTTP/1.1\\r\\nHost: shop.example:{port}\\r\\n\\r\\n".encode())
    heard = b""
    while b"\\r\\n\\r\\n" not in heard:
        more = sock.recv(4096)
        assert more, heard
        heard += more
    assert b" 200" in heard.split(b"\\r\\n")[0], heard
    return sock
def first():
    began = time.perf_counter()
    with context.wrap_socket(connect(443), server_hostname="shop.example") as sock:
        sock.sendall(b"GET /hello.txt HTTP/1.1\\r\\nHost: shop.example\\r\\nConnection: close\\r\\n\\r\\n")
        assert sock.recv(1)
        return (time.perf_counter() - began) * 1000
def much(opened):
    room, got = bytearray(1 << 20), 0
    if opened:
        sock = context.wrap_socket(connect(443), server_hostname="shop.example")
    else:
        sock = socket.create_connection(tuple(proxy)) if proxy else connect(80)
    with sock:
        target = "http://shop.example/big" if proxy and not opened else "/big"
        sock.sendall(f"GET {target} HTTP/1.1\\r\\nHost: shop.example\\r\\nConnection: close\\r\\n\\r\\n".encode())
        began = time.perf_counter()
        while (n := sock.recv_into(room)):
            got += n
        assert got > size, got
        return got / (time.perf_counter() - began) / 1e6
first()
print(json.dumps([statistics.median(first() for _ in range(count)), much(False), much(True)]))
"""


def program(proxy, trust):
    return PROGRAM.replace("WORDS", repr(json.dumps([proxy, trust, REQUESTS, internets.BIG])))


def outside(net, proxy=None):
    return json.loads(net.host.run(host.PYTHON, "-c", program(proxy, None)).stdout)


def inside(net, proxy=None):
    run = net.brig("-p", "network", "--net", "shop.example", "--net-bytes", "4G", program=program(proxy, "/etc/ssl/certs/ca-certificates.crt"))
    assert run.reason == "exited" and run.status == 0, str(run)
    return json.loads(run.out)


def peers(net):
    """(name, port) of each other proxy that is installed, running."""
    squid = net.folder / "squid.conf"
    squid.write_text(f"http_port 127.0.0.1:3201\nhttp_access allow all\ncache deny all\npid_filename none\nshutdown_lifetime 0 seconds\n"
                     f"access_log none\ncache_log {net.folder}/squid.log\ncoredump_dir {net.folder}\ndns_nameservers {internets.RESOLVER}\n")
    tiny = net.folder / "tinyproxy.conf"
    tiny.write_text("Port 3202\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nAllow 127.0.0.1\n")
    for name, port, argv in (("squid", 3201, ["squid", "-N", "-f", squid]), ("tinyproxy", 3202, ["tinyproxy", "-d", "-c", tiny]),
                             ("mitmproxy, not opening TLS", 3203, ["mitmdump", "-q", "--listen-host", "127.0.0.1", "-p", "3203", "--ignore-hosts", ".*", "--set", "stream_large_bodies=1m", "--set", f"confdir={net.folder}/mitm"])):
        if shutil.which(argv[0]):
            net.host.start(*argv)
            net.host.listens("127.0.0.1", port)
            yield name, port


def starts(net, rounds):
    """Milliseconds of a whole private run that opens no connection, by whether it could."""
    took = {"none": [], "named": []}
    for n in range(rounds):
        for name, options in sorted({"none": (), "named": ("--net", "shop.example")}.items(), reverse=n % 2): # neither is always the second
            run = net.brig("-p", "network", *options, program="pass")
            assert run.status == 0, str(run)
            took[name].append(run.seconds * 1000)
    return {name: statistics.median(ms) for name, ms in took.items()}


def allowing(*hosts):
    """What a profile like "network" has, with these hosts."""
    network = json.loads((REPO / "profiles/network.json").read_text())
    return {"network": {**network.get("network", {}), "allow": hosts}}


def of_a_service(net, rounds):
    """The same of a ready fork, request to record, and of a run that starts a Python."""
    took = {(name, cold): [] for name in ("none", "named") for cold in (False, True)}
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as folder:
        profiles = served.profiles(pathlib.Path(folder), {"none": ("network", {}), "named": ("network", allowing("shop.example"))})
        with net.daemon({"ready": 2}, env={"BRIG_PROFILES": str(profiles)}) as daemon:
            served.wait_warm(daemon, ("none", "named"))
            with daemon.connect() as talk:
                for n in range(rounds):
                    for name, cold in sorted(took, reverse=n % 2):
                        time.sleep(0.04) # until another fork is ready
                        began = time.perf_counter()
                        record = talk.run("pass", profile=name, cold=cold).record
                        took[name, cold].append((time.perf_counter() - began) * 1000)
                        assert record["exit_code"] == 0 and (record["network"] is None) == (name == "none"), record
                        if record["warm"] == cold:
                            took[name, cold].pop() # it came too early
    return {key: statistics.median(ms) for key, ms in took.items()}


# Milliseconds of a lookup, the median of many, for each line of the input.
LOOKUPS = """
import socket, statistics, sys, time
def lookup():
    began = time.perf_counter()
    socket.gethostbyname("shop.example")
    return (time.perf_counter() - began) * 1000
lookup()
print("ready", flush=True)
for line in sys.stdin:
    print(statistics.median(lookup() for _ in range(3000)), flush=True)
"""
# What a run does to keep brig-proxy busy, in four processes.
FLOODS = {"connections that send a ClientHello and close": """
import os, socket, ssl
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
try:
    ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="shop.example").do_handshake()
except ssl.SSLWantReadError:
    hello = outgoing.read()
where = socket.gethostbyname("shop.example")
for _ in range(2): os.fork()
print("ready", flush=True)
while True:
    try:
        with socket.create_connection((where, 443)) as sock:
            sock.sendall(hello)
    except OSError:
        pass
""", "lookups of names below a wildcard": """
import os, socket, struct
for _ in range(2): os.fork()
print("ready", flush=True)
sock, n = socket.socket(type=socket.SOCK_DGRAM), 0
sock.connect(("198.18.0.1", 53))
sock.settimeout(0.05)
while True:
    n += 1
    try:
        label = b"n%d" % (n % 4096)
        sock.send(struct.pack(">HHHHHH", n & 0xffff, 0x100, 1, 0, 0, 0) + bytes([len(label)]) + label + b"\\4shop\\7example\\0\\0\\1\\0\\1")
        if n % 16 == 0:
            sock.recv(512)
    except OSError:
        pass
"""}


def beside_floods(net, rounds):
    """{flood, or "quiet": (ms of a lookup of another run, processors that brig-proxy uses)}: rounds take turns, so that "quiet" is of the same minutes."""
    found = {name: [] for name in ("quiet", *FLOODS)}
    with tempfile.TemporaryDirectory(prefix="brig-bench-") as folder:
        profiles = served.profiles(pathlib.Path(folder), {"named": ("network", allowing("shop.example", "*.shop.example"))})
        with net.daemon({"ready": 0}, env={"BRIG_PROFILES": str(profiles)}) as daemon, daemon.connect() as good, daemon.connect() as bad:
            asks = good.start(LOOKUPS, profile="named", stdin=True, limits={"wall_ms": 300000, "cpu_ms": 300000})
            assert asks.line() == "ready"
            proxy = next(pid for pid in daemon.below() if host.read(f"/proc/{pid}/comm") == "brig-proxy\n")
            for _ in range(rounds):
                for name in found:
                    flood = FLOODS.get(name) and bad.start(FLOODS[name], profile="named", limits={"wall_ms": 300000, "net_bytes": 1 << 34})
                    if flood:
                        assert flood.line() == "ready"
                        time.sleep(0.5) # it has used up what its share holds in advance
                    began, used = time.perf_counter(), daemons.cpu_seconds(proxy)
                    os.write(asks.stream["stdin"], b"\n")
                    found[name].append((float(asks.line()), (daemons.cpu_seconds(proxy) - used) / (time.perf_counter() - began)))
                    if flood:
                        bad.ask("cancel", run=flood.id)
                        flood.finish()
            asks.finish()
    return {name: [statistics.median(column) for column in zip(*all_of)] for name, all_of in found.items()}


def held(net):
    """MiB in the kernel that brig-proxy's sockets hold for 600 connections of a run which are not read."""
    return internets.most_held(net, HELD) / 2**20


def commit():
    said = subprocess.run(["git", "-C", REPO, "describe", "--always", "--dirty", "--abbrev=8"], capture_output=True, text=True)
    return said.stdout.strip() or "unknown commit"


def table(rows, private, service, beside, held_mib):
    direct = rows["direct, no jail"]
    text = f"| {REQUESTS} HTTPS requests, then 1 GB each | first byte, ms | that over direct | 1 GB over HTTP, MB/s | of direct | 1 GB over HTTPS, MB/s | of direct |\n|---|---:|---:|---:|---:|---:|---:|\n"
    for name, (first, much, opened) in rows.items():
        text += f"| {name} | {first:.2f} | {first - direct[0]:+.2f} | {much:.0f} | {much / direct[1]:.0%} | {opened:.0f} | {opened / direct[2]:.0%} |\n"
    text += "\n| a run that opens no connection, ms | without a network | with one | more |\n|---|---:|---:|---:|\n"
    for name, without, named in (("service, ready fork: request to record", service["none", False], service["named", False]),
                                 ("service, cold: request to record", service["none", True], service["named", True]),
                                 ("private: whole `brig run`", private["none"], private["named"])):
        text += f"| {name} | {without:.2f} | {named:.2f} | {named - without:+.2f} |\n"
    quiet = beside["quiet"][0]
    text += "\n| what another run does meanwhile | a lookup of this run, ms | that over quiet | processors used by brig-proxy |\n|---|---:|---:|---:|\n"
    for name, (ms, used) in beside.items():
        text += f"| {name if name != 'quiet' else 'nothing (quiet)'} | {ms:.3f} | {ms / quiet:.2f} | {used:.2f} |\n"
    text += f"\nSockets of brig-proxy to servers, for {HELD} connections of one run that neither side reads: {held_mib:.0f} MiB.\n"
    return text + f"\n{served.machine()}, commit {commit()}, {datetime.date.today()}. Medians of interleaved rounds.\n\n    ./dev bench network --table\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=lib.count, default=5)
    parser.add_argument("--table", nargs="?", const=str(PAGE), default="-", metavar="FILE")
    args = parser.parse_args()
    lack = internets.lacks()
    if lack:
        sys.exit(f"bench network: {lack}")
    lib.look_whether_busy()
    net = internets.Internet()
    try:
        ways = {"direct, no jail": lambda: outside(net), "brig, no proxy variables": lambda: inside(net), "brig, by its proxy": lambda: inside(net, ["198.18.0.1", 3128])}
        for name, port in peers(net):
            ways[f"{name}, no jail"] = lambda port=port: outside(net, ["127.0.0.1", port])
        found = {name: [] for name in ways}
        for _ in range(args.rounds):
            for name, measure in ways.items():
                found[name].append(measure())
        rows = {name: [statistics.median(column) for column in zip(*all_of)] for name, all_of in found.items()}
        served.write_table(args.table, table(rows, starts(net, args.rounds * 10), of_a_service(net, args.rounds * 20), beside_floods(net, args.rounds * 3), held(net)), MARKS)
    finally:
        net.close()
        brig.SCRATCH.cleanup()


main()
