"""Both ends of the bridge between a program and its tools without a jail: the runner under the host's Python, and brig's end of the socket."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading

from support import host

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import brig  # noqa: E402
from brig.bridge import Bridge  # noqa: E402

PYTHON = "/usr/bin/python3"
LINE_MAX = 1 << 20


def pack(folder):
    path = folder / "guest.pyc"
    subprocess.run([PYTHON, "-I", "-S", "-B", ROOT / "jail/guest/pack.py", path], check=True)
    return path


class Done:
    """What the runner has reported, what it has printed, and what brig's end has counted."""

    def __init__(self, process, out, err, report, figures):
        self.status, self.out, self.err, self.report, self.figures = process.returncode, out, err, report, figures

    @property
    def value(self):
        assert self.report and self.report["error"] is None, (self.report, self.err)
        return self.report["result"]

    @property
    def error(self):
        """As Python prints it, or None."""
        error = self.report["error"]
        return error and f"{error['type']}: {error['message']}"


@contextlib.contextmanager
def looked_after(bridge):
    """As the loop of a run does, which waits for events beside it."""
    is_over = threading.Event()

    def look():
        while not is_over.wait(0.02):
            bridge.relieve()
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        bridge.close()


class Program:
    """Runs a program with tools. imports: those that it may import."""

    def __init__(self, pyc, folder):
        self.pyc, self.folder = pyc, folder

    def start(self, source, bridge_fd, imports="*"):
        (self.folder / "main.py").write_text(source)
        reading, writing = os.pipe()
        fds = [writing] if bridge_fd is None else [writing, bridge_fd]
        argv = [PYTHON, "-I", self.pyc, "report", ",".join(map(str, fds)), imports, "*", "", "--"]
        process = subprocess.Popen(argv, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, pass_fds=fds,
                                   env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
        os.close(writing)
        return process, reading

    @staticmethod
    def end(process, reading, figures=None):
        pieces = []
        reader = threading.Thread(target=lambda: pieces.append(os.fdopen(reading, "rb").read()))
        reader.start()
        out, err = process.communicate(timeout=host.HANG)
        reader.join()
        return Done(process, out, err, json.loads(pieces[0]) if pieces[0] else None, figures() if figures else None)

    def __call__(self, source, tools=None, imports="*", **rules):
        """With functions of this process."""
        bridge = Bridge(tools if isinstance(tools, brig.Toolbox) else brig.Toolbox(tools or {}, **rules))
        ours, theirs = socket.socketpair()
        with theirs:
            bridge.open(ours.detach())
            process, reading = self.start(source, theirs.fileno(), imports)
        with looked_after(bridge):
            done = self.end(process, reading)
        done.figures = bridge.figures()
        return done

    def plain(self, source):
        """Without tools."""
        return self.end(*self.start(source, None))

    def against(self, source, outside):
        """With an other end that says what a test wants: outside(socket) is called in a thread."""
        ours, theirs = socket.socketpair()
        with theirs:
            process, reading = self.start(source, theirs.fileno())
        thread = threading.Thread(target=outside, args=(ours,), daemon=True)
        thread.start()
        try:
            return self.end(process, reading)
        finally:
            ours.close()


class Raw:
    """In the place of a program: a socket to brig's end, on which anything can be said."""

    def __init__(self, tools, **rules):
        self.bridge = Bridge(brig.Toolbox(tools, **rules))
        ours, self.sock = socket.socketpair()
        self.sock.settimeout(host.HANG)
        self.bridge.open(ours.detach())
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bridge.close()
        self.sock.close()

    def say(self, *bodies):
        for body in bodies:
            self.sock.sendall(body if isinstance(body, bytes) else json.dumps(body).encode() + b"\n")

    def hear(self):
        """The next answer, or None at the end of the bridge."""
        while b"\n" not in self.rest:
            try:
                chunk = self.sock.recv(1 << 16)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                return None
            self.rest += chunk
        line, self.rest = self.rest.split(b"\n", 1)
        assert len(line) < LINE_MAX
        return json.loads(line)

    def ask(self, body):
        self.say(body)
        return self.hear()


def call(number, name, **args):
    return {"id": number, "op": "call", "name": name, "args": args}


def lines_of(sock):
    with sock.makefile("rb") as file:
        yield from map(json.loads, file)
