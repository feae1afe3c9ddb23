"""brigd's figures: the page, read by Prometheus' own reader, and a listener that serves it over HTTP."""
import re
import socket
import subprocess

import pytest

from support import brig, host
from support.mcp_http import Raw, Serving

TYPE = "text/plain; version=0.0.4; charset=utf-8"


def environment(daemon, **extra):
    return brig.environment({"BRIG_SOCKET": str(getattr(daemon, "path", daemon)), **extra})


class Page:
    """What was counted: page("brig_runs_total", profile="basic", reason="exited", warm="true")."""

    def __init__(self, text):
        parser = pytest.importorskip("prometheus_client.parser", reason="missing package: python3-prometheus-client")
        self.text = text
        self.families = list(parser.text_string_to_metric_families(text))
        self.samples = {}
        for sample in (sample for family in self.families for sample in family.samples):
            key = sample.name, frozenset(sample.labels.items())
            assert key not in self.samples, f"twice: {key}"
            self.samples[key] = sample.value

    def __call__(self, name, **labels):
        return self.samples.get((name, frozenset(labels.items())))

    def of(self, name, **labels):
        """The samples of one name that have these labels, in their order: [(labels, value)]."""
        wanted = labels.items()
        return [(dict(has), value) for (is_called, has), value in self.samples.items() if is_called == name and wanted <= dict(has).items()]

    def sum(self, name, **labels):
        return sum(value for _, value in self.of(name, **labels))


def ask(daemon, *options, **popen):
    return subprocess.run([brig.binary(), "metrics", *options], env=environment(daemon), capture_output=True, text=True, timeout=host.HANG, **popen)


def page(daemon):
    done = ask(daemon)
    assert (done.returncode, done.stderr) == (0, ""), done
    return Page(done.stdout)


class Listener(Serving):
    """`brig metrics --listen`."""

    def __init__(self, daemon, at="127.0.0.1:0", **popen):
        super().__init__(subprocess.Popen([brig.binary(), "metrics", "--listen", str(at)], env=environment(daemon), stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **popen))
        self.at = str(at)
        if found := re.fullmatch(r"http://(.*):([0-9]+)/metrics", self.address):
            self.host, self.port = found[1].strip("[]"), int(found[2])

    def connect(self, timeout=host.HANG):
        if not self.at.startswith("/"):
            return Raw(socket.create_connection((self.host, self.port), timeout=timeout))
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout)
        sock.connect(self.at)
        return Raw(sock)

    def say(self, data):
        """(status, headers, body)"""
        with self.connect() as raw:
            raw.send(data)
            return raw.reply()

    def get(self, path="/metrics"):
        return self.say(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def page(self):
        status, headers, body = self.get()
        assert (status, headers["content-type"]) == (200, TYPE), body
        return Page(body.decode())

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
