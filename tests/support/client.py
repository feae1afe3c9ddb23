"""A second reader of brigd's protocol: the standard library, and none of brig's own code."""
import array
import collections
import fcntl
import itertools
import json
import os
import selectors
import socket
import struct
import time

from support import first_clients, host, runs

SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
DATAGRAM_MAX = 64 * 1024
FDS_MAX = 253 # what the kernel takes in one message
ERRORS = {"bad_message", "unknown_request", "bad_field", "bad_descriptors", "denied", "above_ceiling", "unknown_profile", "missing", "busy",
          "not_found", "unavailable", "broken"}


class Closed(Exception):
    """The other end has closed the connection."""


class Refused(Exception):
    """An error of the protocol in the place of what was asked for."""

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.error, self.code, self.field = error, error["code"], error["field"]


class NotStarted(Exception):
    """The run ended before there was a program."""

    def __init__(self, body):
        super().__init__(json.dumps(body))
        self.record, self.exec_error = body["record"], body["exec_error"]


def connect(sock, path, timeout):
    """Waits when the queue of the listener is full: a socket with a timeout of Python's would be told EAGAIN."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(timeout), 0))
    sock.connect(str(path))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))


def sealed(text, seals=SEALS):
    """A memfd as the protocol wants code: nobody can change it any more."""
    fd = os.memfd_create("code", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    data = memoryview(text.encode() if isinstance(text, str) else text)
    while data:
        data = data[os.write(fd, data):]
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


Said = collections.namedtuple("Said", "body fds") # one datagram: the JSON object and what came beside it


class Client:
    """One connection. Every wait ends: TimeoutError after so many seconds."""

    def __init__(self, sock, timeout=host.HANG):
        self.sock, self.timeout = sock, timeout
        self.waiting = collections.deque() # read while something else was waited for
        self.tags = itertools.count(1)
        self.takes_additions = False # it has sent a hello with a version

    @classmethod
    def at(cls, path, timeout=host.HANG):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        try:
            connect(sock, path, timeout)
        except BaseException:
            sock.close()
            raise
        return cls(sock, timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()
        for said in self.waiting:
            close_all(said.fds)
        self.waiting.clear()

    # --- datagrams ---

    def send(self, message, fds=()):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.takes_additions |= b'"hello"' in data and b'"version"' in data
        self.sock.settimeout(self.timeout)
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.sock.sendmsg([data], beside, socket.MSG_NOSIGNAL)
        except BrokenPipeError: # who is turned away can still read why
            pass

    def read(self, timeout=None):
        """The next datagram of the socket itself."""
        self.sock.settimeout(self.timeout if timeout is None else timeout)
        room = socket.CMSG_SPACE(FDS_MAX * 4)
        try:
            data, beside, flags, _ = self.sock.recvmsg(DATAGRAM_MAX + 1, room, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError: # said once, when it was closed with a datagram of ours unread; what it sent before comes after that
            data, beside, flags, _ = self.sock.recvmsg(DATAGRAM_MAX + 1, room, socket.MSG_CMSG_CLOEXEC)
        fds = array.array("i")
        for level, kind, bytes_ in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(bytes_[:len(bytes_) - len(bytes_) % fds.itemsize])
        if not data:
            raise Closed()
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC), "a datagram that does not fit"
        body = json.loads(data.decode())
        assert isinstance(body, dict), f"no object: {data[:200]}"
        if not self.takes_additions:
            first_clients.check(body)
        return Said(body, list(fds))

    def next(self, timeout=None):
        return self.waiting.popleft() if self.waiting else self.read(timeout)

    def until(self, wanted, timeout=None):
        """The first datagram that is wanted; the others wait for whoever wants them."""
        for n, said in enumerate(self.waiting):
            if wanted(said.body):
                del self.waiting[n]
                return said
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            said = self.read(max(0.001, end - time.monotonic()))
            if wanted(said.body):
                return said
            self.waiting.append(said)

    # --- requests ---

    def ask(self, op, fds=(), **keys):
        """The reply to a request that has one."""
        tag = keys.setdefault("tag", next(self.tags))
        self.send({"op": op, **keys}, fds)
        body = self.until(lambda body: body.get("tag") == tag and ("reply" in body or "error" in body)).body
        if "error" in body:
            raise Refused(body["error"])
        assert body["reply"] == op, body
        return body

    def begin(self, op, fds=(), **keys):
        """Asks for a run and does not wait; returns its tag."""
        tag = keys.setdefault("tag", next(self.tags))
        self.send({"op": op, **keys}, fds)
        return tag

    def started(self, tag):
        said = self.until(lambda body: body.get("tag") == tag and ("error" in body or body.get("event") in ("started", "ended")))
        if "error" in said.body:
            raise Refused(said.body["error"])
        if said.body["event"] == "ended":
            raise NotStarted(said.body)
        return Run(self, said)

    def start(self, program, ro=(), **keys):
        """`run`, up to the event started. ro: [(name, path)]."""
        fds = [sealed(program), *(os.open(path, os.O_PATH) for _, path in ro)]
        try:
            tag = self.begin("run", fds, **({"ro": [name for name, _ in ro]} if ro else {}), **keys)
        finally:
            close_all(fds)
        return self.started(tag)

    def start_command(self, *argv, **keys):
        return self.started(self.begin("exec", argv=list(argv), **keys))

    def run(self, program, **keys):
        return self.start(program, **keys).finish()

    def command(self, *argv, **keys):
        return self.start_command(*argv, **keys).finish()


class Run:
    """A run that has started: its streams are ours to read."""

    def __init__(self, client, said):
        body = said.body
        self.client, self.id, self.tag, self.began = client, body["run"], body.get("tag"), time.monotonic()
        assert body["event"] == "started" and len(body["streams"]) == len(said.fds), said
        self.stream = dict(zip(body["streams"], said.fds))
        self.text = {name: bytearray() for name in self.stream if name != "stdin"}
        self.ended, self.events = None, []

    def feed(self, data):
        """All of the standard input, for programs that read it."""
        fd = self.stream.pop("stdin")
        with open(fd, "wb") as pipe:
            pipe.write(data)

    def line(self, stream="stdout"):
        """Reads until there is a whole line, and returns it."""
        text = self.text[stream]
        while b"\n" not in text:
            data = os.read(self.stream[stream], 65536)
            if not data:
                break
            text += data
        line, _, rest = bytes(text).partition(b"\n")
        self.text[stream] = bytearray(rest)
        return line.decode()

    def take(self, timeout=None):
        """The next event of this run; "ended" is kept."""
        body = self.client.until(lambda body: body.get("run") == self.id and "event" in body, timeout).body
        assert self.ended is None, f"after the end: {body}"
        assert body.get("tag") == self.tag, f"the tag of another run: {body}"
        self.events.append(body)
        if body["event"] == "ended":
            self.ended = body
            runs.SESSION.saw(body["record"])
        return body

    def wait(self, timeout=None):
        """Until the end, whatever is in the pipes."""
        while self.ended is None:
            self.take(timeout)
        return self.ended["record"]

    def finish(self, timeout=host.HANG):
        """Reads both streams to their end and the events to the last one."""
        if "stdin" in self.stream:
            os.close(self.stream.pop("stdin"))
        end = time.monotonic() + timeout
        with selectors.DefaultSelector() as waits:
            for name in self.text:
                waits.register(self.stream[name], selectors.EVENT_READ, name)
            while waits.get_map():
                ready = waits.select(max(0, end - time.monotonic()))
                if not ready:
                    raise TimeoutError(f"run {self.id} still has its output open after {timeout:g} s")
                for key, _ in ready:
                    data = os.read(key.fd, 65536)
                    self.text[key.data] += data
                    if not data:
                        waits.unregister(key.fd)
        self.wait(max(0.001, end - time.monotonic()))
        self.close()
        return Ended(self)

    def close(self):
        close_all(self.stream.values())
        self.stream = {}


class Ended:
    """What became of a run."""

    def __init__(self, run):
        self.id, self.events, self.record = run.id, run.events, run.ended["record"]
        self.exec_error, self.lost, self.left = (run.ended[key] for key in ("exec_error", "lost", "left"))
        self.stdout, self.stderr = (run.text[name].decode(errors="replace") for name in ("stdout", "stderr"))
        self.result = bytes(run.text.get("result", b""))
        self.reason, self.status = self.record["exit_reason"], self.record["exit_code"]

    def __str__(self):
        return f"run {self.id}\n  {json.dumps(self.events)[:3000]}\n  stdout {self.stdout[-1000:]!r}\n  stderr {self.stderr[-1000:]!r}"


def close_all(fds):
    for fd in fds:
        os.close(fd)


def connect_as(path, uid, gid=None, groups=(), timeout=host.HANG):
    """A connection that another user has made; he is gone when it arrives. OSError when he could not."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        connect_and_pass_on(path, uid, uid if gid is None else gid, groups, theirs, timeout)
    theirs.close()
    with ours:
        data, fds, _, _ = socket.recv_fds(ours, 16, 1)
    os.waitpid(pid, 0)
    if not fds:
        code = int(data or b"0")
        raise OSError(code, os.strerror(code))
    return Client(socket.socket(fileno=fds[0]), timeout)


def connect_and_pass_on(path, uid, gid, groups, to, timeout):
    """In a child: never returns. He need not be able to walk there: the path may lead through another process's mounts."""
    status = 1
    try:
        os.chdir(os.path.dirname(path))
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connect(sock, os.path.basename(path), timeout)
        socket.send_fds(to, [b"connected"], [sock.fileno()])
        status = 0
    except OSError as e:
        to.send(str(e.errno or 110).encode())
    finally:
        os._exit(status)
