"""Descriptors of every kind that a client may think of, how they are sent, and what may be answered."""
import ctypes
import functools
import json
import os
import pty
import re
import select
import socket
import tempfile

from support import client, host, terminal
from support import daemon as daemons


def empty(flags=os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING):
    return os.memfd_create("code", flags)


def unsealed():
    fd = empty()
    os.write(fd, b"print(1)")
    return fd


def huge():
    """One byte more than a program may have, and none of it is memory."""
    fd = empty()
    os.ftruncate(fd, (8 << 20) + 1)
    return seal(fd)


def seal(fd):
    import fcntl
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, client.SEALS)
    return fd


def write_only():
    fd = client.sealed("print(1)")
    again = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_CLOEXEC) if os.geteuid() else os.open(f"/proc/self/fd/{fd}", os.O_PATH)
    os.close(fd)
    return again


def partly(seals):
    return lambda: client.sealed("print(1)", seals)


def deleted():
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(b"print(1)")
        return os.dup(file.fileno())


def gone():
    """A directory that nobody finds any more."""
    path = tempfile.mkdtemp(prefix="brig-test-")
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.rmdir(path)
    return fd


def pipe_end(n):
    def make():
        ends = os.pipe()
        os.close(ends[1 - n])
        return ends[n]
    return make


def fifo():
    """To open it for reading would wait for a writer that never comes."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as folder:
        os.mkfifo(f"{folder}/fifo")
        return os.open(f"{folder}/fifo", os.O_PATH)


def tty():
    ours, theirs = pty.openpty()
    os.close(ours)
    return theirs


def socket_fd(family=socket.AF_UNIX, kind=socket.SOCK_STREAM):
    return lambda: socket.socket(family, kind).detach()


def epoll():
    made = select.epoll()
    fd = os.dup(made.fileno())
    made.close()
    return fd


CALLS = {"fsopen": 430, "io_uring_setup": 425, "landlock_create_ruleset": 444, "memfd_secret": 447, "open_tree": 428, "perf_event_open": 298, "userfaultfd": 323} # x86-64
LIBC = ctypes.CDLL(None, use_errno=True)


def made_by(call, *args):
    """A descriptor that a system call, or a function of the C library, makes; OSError where this kernel has none, or gives none."""
    def make():
        ctypes.set_errno(0)
        fd = LIBC.syscall(CALLS[call], *args) if call in CALLS else LIBC[call](*args)
        if fd < 0:
            raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
        return fd
    return make


@functools.lru_cache(maxsize=None)
def only_inotify():
    """A user may have 128 of them."""
    return made_by("inotify_init1", os.O_CLOEXEC)()


def inotify():
    return os.dup(only_inotify())


def opened(path, flags=os.O_RDONLY):
    return lambda: os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY)


KINDS = {
    # a word for it: makes one
    "pipe": pipe_end(0), "pipe-writing": pipe_end(1), "fifo": fifo, "socket": socket_fd(), "datagram": socket_fd(kind=socket.SOCK_DGRAM),
    "internet": socket_fd(socket.AF_INET), "unsealed": unsealed, "empty": lambda: seal(empty()), "huge": huge, "memfd-opath": write_only,
    "unsealed-write": partly(client.SEALS & ~8), "unsealed-shrink": partly(client.SEALS & ~2), "unsealed-grow": partly(client.SEALS & ~4),
    "no-text": lambda: client.sealed(b"print('\xff')"), "tty": tty, "epoll": epoll, "opath": opened("/usr/lib/os-release", os.O_PATH), "file": opened("/usr/lib/os-release"), "device": opened("/dev/null"),
    "zero": opened("/dev/zero"), "deleted": deleted, "gone": gone, "directory": opened("/usr"), "proc": opened("/proc", os.O_PATH),
    "proc-self": opened("/proc/self"), "mem": opened("/proc/self/mem"), "sysfs": opened("/sys", os.O_PATH), "pidfd": lambda: os.pidfd_open(os.getpid()),
    "eventfd": lambda: os.eventfd(0), "namespace": opened("/proc/self/ns/user"), "link": opened("/proc/self/exe", os.O_PATH | os.O_NOFOLLOW),
}
RARE = {
    # what not every kernel has, or gives
    "io_uring": made_by("io_uring_setup", 4, ctypes.create_string_buffer(120)), "fuse": opened("/dev/fuse", os.O_RDWR), "tun": opened("/dev/net/tun", os.O_RDWR),
    "timerfd": made_by("timerfd_create", 1, 0), "signalfd": made_by("signalfd", -1, ctypes.create_string_buffer(128), 0), "inotify": inotify,
    "userfaultfd": made_by("userfaultfd", 1), "landlock": made_by("landlock_create_ruleset", ctypes.create_string_buffer(b"\1"), ctypes.c_size_t(8), 0), "secret-memory": made_by("memfd_secret", 0),
    "perf": made_by("perf_event_open", ctypes.create_string_buffer(b"\1\0\0\0\x80", 128), 0, -1, -1, 0), "file-system": made_by("fsopen", b"tmpfs", 0),
    "mount": made_by("open_tree", -100, b"/usr", 1), "huge-pages": made_by("memfd_create", b"code", 4), "netlink": socket_fd(socket.AF_NETLINK, socket.SOCK_RAW),
    "packet": socket_fd(socket.AF_PACKET, socket.SOCK_RAW), "descriptors": opened("/proc/self/fd"),
}


def make(kind):
    return client.sealed(CODE) if kind == "code" else (KINDS | RARE)[kind]()


@functools.lru_cache(maxsize=None)
def lacks(kind):
    """None when one can be made here and sent, else the reason to print for a skip. From Linux 6.8 on those of io_uring stay where they are."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            fd = make(kind)
        except OSError as e:
            return f"needs descriptors of the kind {kind}: {re.sub('^.Errno [0-9]+. ', '', str(e))}"
        try:
            socket.send_fds(ours, [b"x"], [fd])
        except OSError as e:
            return f"needs a kernel that sends descriptors of the kind {kind} over a socket: {e.strerror}"
        finally:
            os.close(fd)
    return None


CODE = "pass"
MANY_DESCRIPTORS = [{"op": "run", "ro": ["a"]}, {"op": "hello"}, {"op": "exec", "argv": ["true"], "ro": [f"r{n}" for n in range(client.FDS_MAX)]}]


def with_descriptors(kinds):
    return [make(kind) for kind in kinds]


def say(talk, data, fds):
    try:
        talk.send(data, fds)
    finally:
        client.close_all(fds)


def hear_out(talk):
    """One answer: an error, a reply, or a run to its end. What it was."""
    said = talk.next()
    client.close_all(said.fds)
    if "error" in said.body:
        return check_error(said.body)
    if "reply" in said.body:
        return said.body["reply"]
    assert said.body["event"] in ("started", "ended"), said.body # ended at once: a command that is not there
    while said.body["event"] != "ended":
        said = talk.next()
    return "ended"


def check_error(body):
    error = body["error"]
    assert set(body) <= {"error", "tag"} and set(error) - {"retry_after_ms", "index", "reason"} == {"code", "message", "field"}, body
    assert error["code"] in client.ERRORS and error["field"] is None or isinstance(error["field"], str), body
    assert error["message"] and not terminal.obeyed(error["message"]) and "\n" not in error["message"] and len(error["message"]) < 600, body
    assert ("retry_after_ms" in error) == (error["code"] == "busy"), body
    return error["code"]


def check_253(daemon, talk, kind):
    """As many as one message may have are refused, closed, and cost nothing that stays."""
    talk.ask("hello") # it has been accepted by then
    flat = Flat(daemon)
    for message in MANY_DESCRIPTORS:
        say(talk, json.dumps(message).encode(), with_descriptors([kind] * client.FDS_MAX))
        assert hear_out(talk) in ("bad_descriptors", "bad_field", "bad_message"), message
    assert talk.ask("hello")["version"] == 1
    assert not (grown := flat.grown()), grown


class Flat:
    """Descriptors and memory of the daemon's own processes, which must not grow."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.pids = daemon.rest()
        self.before = self.take()

    def take(self):
        return {pid: (daemons.lasting_descriptors(pid), daemons.resident(pid)) for pid in self.pids}

    def grown(self, bytes_=1 << 20):
        """What has more than before in the end: descriptors, or so much more memory. A sanitizer keeps what was freed."""
        bytes_ += host.SANITIZERS_KEEP
        def more():
            return {daemons.kind_of(pid): (self.before[pid], now) for pid, now in self.take().items()
                    if now[0] > self.before[pid][0] or now[1] > self.before[pid][1] + bytes_}
        found = []
        host.poll(lambda: found.append(more()) or not found[-1])
        return found[-1]
