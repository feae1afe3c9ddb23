"""Sessions by the protocol: opened, called, and what became of a call."""
import contextlib
import json
import os
import socket
import struct

from support import client, host

END, FILE, EXECUTABLE, GET, LEFT, LIST, FOLDER, STAT, RENAME, REMOVE = range(10)
REASONS = ["link", "special", "size", "unreadable", "deep", "room", "unwritable", "changed", "missing", "not_empty"]
SHORT = {"wall_ms": 20000} # more than any call of these tests needs


class Session:
    """One that is open. talk: the connection that opened it, on which it is called as well, unless a call says another."""

    def __init__(self, talk, tag, body):
        self.talk, self.tag, self.id, self.opened = talk, tag, body["session"], body

    def on(self, talk):
        """The same session for another connection."""
        return Session(talk, None, self.opened)

    # --- calls ---

    def begin(self, program, **keys):
        """Asks, and does not wait; its tag."""
        fd = client.sealed(program)
        try:
            return self.talk.begin("run", [fd], session=self.id, **keys)
        finally:
            os.close(fd)

    def start(self, program, **keys):
        return self.talk.started(self.begin(program, **keys))

    def run(self, program, **keys):
        return Answer(self.start(program, **keys).finish())

    def value(self, program, **keys):
        """What the last line is, as text; the test fails where there is none."""
        answer = self.run(program, **keys)
        assert answer.status == 0 and answer.report, answer
        return answer.report["result"]

    def start_command(self, *argv, **keys):
        return self.talk.started(self.talk.begin("exec", argv=list(argv), session=self.id, **keys))

    def command(self, *argv, **keys):
        return Answer(self.start_command(*argv, **keys).finish())

    def shell(self, text, **keys):
        return self.command("sh", "-c", text, **keys)

    def restart(self, context="main"):
        return self.talk.ask("restart", session=self.id, context=context)

    def renew(self, lifetime_ms):
        return self.talk.ask("renew", session=self.id, lifetime_ms=lifetime_ms)

    def row(self):
        """Of `list`; None: it is not there."""
        return next((row for row in self.talk.ask("list")["sessions"] if row["session"] == self.id), None)

    # --- its end ---

    def close(self):
        self.talk.ask("close", session=self.id)
        return self.ended()

    def ended(self, timeout=None):
        """Its record, as who opened it hears it."""
        return self.talk.until(lambda body: body.get("run") == self.id and body.get("event") == "ended", timeout).body["record"]

    # --- files ---

    @contextlib.contextmanager
    def files(self):
        self.talk.send({"op": "files", "session": self.id, "tag": 0})
        said = self.talk.until(lambda body: body.get("tag") == 0)
        if "error" in said.body:
            raise client.Refused(said.body["error"])
        with socket.socket(fileno=said.fds[0]) as sock:
            sock.settimeout(host.HANG)
            yield Files(sock)

    def get(self, *patterns, put=None):
        """(files, names that were left out and why)"""
        with self.files() as moved:
            return moved.exchange(put or {}, [(GET, one) for one in patterns])

    def put(self, files):
        return self.get(put=files)[1]

    def mkdir(self, path):
        return self.change((FOLDER, path, 0, b""))

    def rename(self, path, to):
        return self.change((RENAME, path, len(as_bytes(to)), as_bytes(to)))

    def remove(self, path, tree=False):
        return self.change((REMOVE, path, int(tree), b""))

    def change(self, *entries):
        """{name: why} of what could not be done."""
        with self.files() as moved:
            for entry in entries:
                moved.say(*entry)
            return moved.exchange({}, [])[1]

    def stat(self, path, depth=0):
        """({name: (mode, size, mtime in ns, target)}, {name: why})"""
        with self.files() as moved:
            moved.say(END)
            moved.say(STAT, path, depth)
            moved.say(END)
            found, left = moved.take()
            return {name: (*struct.unpack("=I4xQq", data[:24]), data[24:]) for name, data in found.items()}, left

    def list(self, pattern="*"):
        """{name: size}"""
        with self.files() as moved:
            return moved.exchange({}, [(LIST, pattern)])[0]


def as_bytes(name):
    return name.encode() if isinstance(name, str) else name


class Files:
    """The client's end of a session's socket for files."""

    def __init__(self, sock):
        self.sock = sock

    def say(self, kind, name=b"", size=0, data=b""):
        name = as_bytes(name)
        self.sock.sendall(struct.pack("=IIQ", kind, len(name), size) + name + data)

    def exactly(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self.sock.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise client.Closed()
            data += piece
        return bytes(data)

    def next(self):
        kind, length, size = struct.unpack("=IIQ", self.exactly(16))
        name = self.exactly(length)
        return kind, name, size

    def ask(self, put, patterns):
        for name, data in put.items():
            self.say(FILE, name, len(data), data)
        self.say(END)
        for kind, pattern in patterns:
            self.say(kind, pattern)
        self.say(END)

    def exchange(self, put, patterns):
        self.ask(put, patterns)
        return self.take()

    def take(self):
        found, left = {}, {}
        while True:
            kind, name, size = self.next()
            if kind == END:
                return found, left
            if kind == LEFT:
                left[name] = REASONS[size]
            else:
                found[name] = size if kind == LIST else self.exactly(size)


class Answer:
    """What became of a call."""

    def __init__(self, ended):
        self.ended, self.record, self.events = ended, ended.record, ended.events
        self.reason, self.status, self.out, self.err = ended.reason, ended.status, ended.stdout, ended.stderr
        self.state = ended.record["session"]["state"]
        self.lines = self.out.splitlines()

    @property
    def report(self):
        return json.loads(self.ended.result) if self.ended.result else None

    def __str__(self):
        return f"{self.ended}\n  {self.record['session']}"

    __repr__ = __str__


def open_session(talk, ro=(), **keys):
    fds = [os.open(path, os.O_PATH) for _, path in ro]
    try:
        tag = talk.begin("open", fds, **({"ro": [name for name, _ in ro]} if ro else {}), **keys)
    finally:
        client.close_all(fds)
    said = talk.until(lambda body: body.get("tag") == tag and ("error" in body or body.get("event") in ("opened", "ended")))
    if "error" in said.body:
        raise client.Refused(said.body["error"])
    if said.body["event"] == "ended":
        raise client.NotStarted(said.body)
    assert not said.fds, said
    return Session(talk, tag, said.body)
