"""brig-mcp over stdio, for who measures it."""
import json
import os
import pathlib
import re
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import host  # noqa: E402

SERVER = REPO / "build/bin/brig-mcp"
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
PATHS = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class Server:
    """brig-mcp, and the least that a client can do: a line out, a line in. Nothing is validated, or it would be measured."""

    def __init__(self, env, *args):
        self.process = subprocess.Popen([SERVER, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**PATHS, **env})
        self.out, self.rest, self.last = self.process.stdout.fileno(), b"", 0

    def line(self, method, **params):
        self.last += 1
        return json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": {**params, "_meta": META}}).encode() + b"\n"

    def cancel(self):
        """The last call."""
        self.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": self.last, "_meta": META}}).encode() + b"\n")

    def write(self, data):
        os.write(self.process.stdin.fileno(), data)

    def read(self):
        while b"\n" not in self.rest:
            data = os.read(self.out, 1 << 20)
            if not data:
                sys.exit("brig-mcp has ended")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def ask(self, method, **params):
        self.write(self.line(method, **params))
        return self.read()

    def execute(self, program="print(1)\n"):
        """What the program has printed."""
        return stdout_of(self.ask("tools/call", name="execute_code", arguments={"code": program}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(10)

    def memory(self):
        """MiB: resident, its share of it, and what nobody else has."""
        said = host.read(f"/proc/{self.process.pid}/smaps_rollup")
        field = lambda name: sum(int(kib) for kib in re.findall(rf"^{name}:\s+(\d+)", said, re.M)) / 1024
        return field("Rss"), field("Pss"), field("Private_Clean") + field("Private_Dirty")

    def cpu_us(self):
        """What it has spent itself, without its brigd."""
        return int(host.read(f"/proc/{self.process.pid}/schedstat").split()[0]) / 1000


def stdout_of(line):
    return json.loads(json.loads(line)["result"]["content"][0]["text"])["stdout"]
