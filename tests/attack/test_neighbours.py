"""What a program does to the host and its neighbours within its limits, judged on the host: brig-security(7), Exhaustion of resources."""
import array
import os
import select
import socket

import pytest

from support import bytewise, host

OTHERS = [pytest.param(name, marks=pytest.mark.nightly) for name in ("data-science", "filesystem", "network")]

# A connection with data that nobody reads, told to linger for longer than any test waits, and its peer: both are only
# in queues of sockets that are in each other's queues. The kernel's collector closes them when the program is gone.
LINGER = """
import array, socket, struct
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(1)
a = socket.create_connection(listener.getsockname()); b = listener.accept()[0]
try:
    a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
    print("lingers", flush=True)
except OSError as e:
    print(e.strerror, flush=True)
a.setblocking(False)
try:
    while True: a.send(b"x" * 65536)
except BlockingIOError: pass
x, y = socket.socketpair()
x.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [a.fileno(), b.fileno(), x.fileno(), y.fileno()]))])
"""


def cycle_with(fd):
    """A cycle of local sockets that holds the descriptor, and that nobody has but the kernel."""
    x, y = socket.socketpair()
    rights = array.array("i", [fd, x.fileno(), y.fileno()])
    x.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    x.close()
    y.close()


@pytest.mark.parametrize("profile", ["basic", *OTHERS])
def test_a_run_leaves_nothing_that_the_hosts_own_closing_of_files_waits_for(jail, run_brig, profile):
    """Before, this took as long as the program had told its socket to linger."""
    run = run_brig("--profile", profile, "--cold", program=LINGER)
    assert run.reason == "exited" and run.out == "Protocol not available\n", str(run)
    reading, writing = os.pipe()
    cycle_with(writing)
    os.close(writing)
    socket.socketpair() # whoever makes and closes local sockets has the collector look for cycles
    assert select.select([reading], [], [], host.HANG)[0] and os.read(reading, 1) == b"", "the host's own pipe is not closed"
    os.close(reading)


SYNC = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
f = os.open(os.__file__, os.O_RDONLY)
calls = {"fsync": lambda: libc.fsync(f), "fdatasync": lambda: libc.fdatasync(f), "syncfs": lambda: libc.syncfs(f), "sync": lambda: libc.sync() * 0,
         "sync_file_range": lambda: libc.sync_file_range(f, 0, 4096, 7)}
print({name: {call() for _ in range(200)} for name, call in calls.items()}, flush=True)
"""


def flushes():
    """How often disks of this host were told to make durable what they have: /proc/diskstats, field 16."""
    return sum(int(line.split()[18]) for line in host.read("/proc/diskstats").splitlines() if len(line.split()) > 18)


@pytest.mark.alone("counts what all disks of the machine were told")
@pytest.mark.parametrize("profile", ["basic", "strict", *OTHERS])
def test_no_disk_of_the_host_is_flushed_by_a_program(jail, run_brig, profile):
    before = flushes()
    run = run_brig("--profile", profile, program=SYNC)
    assert run.reason == "exited" and run.out.count("{0}") == 5, str(run)
    assert flushes() - before < 300, "1,000 times it was asked for"


SLACK = """
import ctypes, os, threading
def told(): print(ctypes.CDLL(None).prctl(30), flush=True) # PR_GET_TIMERSLACK: a thread's own
told()
print(ctypes.CDLL(None).prctl(29, ctypes.c_ulong(1)), flush=True)
try: open("/proc/self/timerslack_ns", "w").write("1")
except OSError as e: print(e.strerror, flush=True)
one = threading.Thread(target=told); one.start(); one.join()
if os.fork() == 0:
    told()
    os._exit(0)
os.wait()
told()
"""


@pytest.mark.parametrize("way", [[], ["--cold"], ["--json"]], ids=["", "cold", "json"])
@pytest.mark.parametrize("profile", ["basic", "strict", *OTHERS])
def test_timers_of_programs_wake_together_and_no_program_changes_that(jail, run_brig, profile, way):
    """Sleeps of a microsecond, in forty processes, kept honest runs from the processor for half a second."""
    run = run_brig("--profile", profile, *way, program=SLACK, json_record=False)
    out = run.stdout if way != ["--json"] else run.record["stdout"]
    assert out.split("\n") == ["500000", "-1", "Read-only file system", "500000", "500000", "500000", ""], run


DATABASES = """
import dbm, os, shelve, sqlite3
db = sqlite3.connect("x.db")
db.execute("pragma synchronous=extra"); db.execute("pragma journal_mode=wal")
with db: db.execute("create table t (a)"); db.executemany("insert into t values (?)", [(n,) for n in range(100)])
print(db.execute("select sum(a) from t").fetchone()[0])
with shelve.open("s") as s: s["a"] = [1]; s.sync()
with shelve.open("s") as s: print(s["a"])
with dbm.dumb.open("d", "c") as d: d["k"] = b"v"; d.sync()
with open("f", "w") as f: f.write("x"); f.flush(); os.fsync(f.fileno())
print(open("f").read())
"""


@pytest.mark.parametrize("profile", ["basic", "strict", *OTHERS])
def test_what_makes_its_files_durable_works_as_before(jail, run_brig, profile):
    run = run_brig("--profile", profile, program=DATABASES.replace("import dbm,", "import dbm.dumb,"))
    assert run.out == "4950\n[1]\nx\n", str(run)


# As many full connections, and datagrams, as its descriptors last for.
BUFFERS = """
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept, sent = [], 0
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(100)
try:
    for n in range(200):
        a = socket.create_connection(listener.getsockname()); b = listener.accept()[0]
        for s in a, b: s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20); s.setblocking(False)
        kept += [a, b]
        for s in a, b:
            try:
                while True: sent += s.send(b"x" * 65536)
            except BlockingIOError: pass
except OSError: pass
print(sent, flush=True)
time.sleep(600)
"""


SOCKETS = "memory.kmem.tcp.limit_in_bytes"


def socket_bytes():
    """What TCP and UDP hold on the whole host."""
    lines = {line.split(":")[0]: line.split() for line in host.read("/proc/net/sockstat").splitlines()}
    return sum(int(lines[name][lines[name].index("mem") + 1]) for name in ("TCP", "UDP")) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.alone("counts what sockets of the whole machine hold")
@pytest.mark.parametrize("profile", ["basic", *OTHERS])
def test_what_sockets_of_a_run_hold_is_a_small_part_of_what_the_host_lets_them(jail, start_brig, profile):
    if not os.path.exists(f"/sys/fs/cgroup/memory/{SOCKETS}"):
        pytest.skip("needs a control group of memory, version 1: version 2 counts sockets as memory of the run")
    before = socket_bytes()
    child = start_brig("--profile", profile, "--memory", "512M", program=BUFFERS, json_record=False)
    try:
        assert int(child.line()) > 8 << 20
        assert socket_bytes() - before < 48 << 20
        bounds = [host.read(f"{os.path.dirname(folder)}/{SOCKETS}") for folder, _ in host.cgroup_dirs()] # of other hierarchies: nothing
        assert any(bounds) and max(int(bound) for bound in bounds if bound) <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 32, "TCP of a host may hold a sixteenth"
    finally:
        child.kill()
        child.wait()


def test_output_byte_by_byte_does_not_wake_its_reader_for_each_byte(jail, start_brig):
    """It would cost the reader as much CPU as the program, and no limit counts that."""
    child = start_brig(program=bytewise.PROGRAM + "time.sleep(600)", json_record=False)
    try:
        assert child.line().strip() == "." * bytewise.BYTES
        took_ms = int(child.line())
        assert bytewise.wakes(child.pid) < bytewise.bound(took_ms), took_ms
    finally:
        child.kill()
        child.wait()
