"""Slots: what a service keeps of a cell for the next one of its profile, its ids and control groups, and that nothing of the run before is in them.

With cgroup v2 groups are made anew for each cell, and ids go round: the rows about a next run in the same slot then look at the next runs, whatever they have.
"""
import ctypes
import os
import pathlib
import re
import subprocess

import pytest

import left
from rules import LONG, MANY, SLEEP
from support import client, host, tiers, warm, warm_load
from support import daemon as daemons

MIB = 1 << 20
SLOT = "print(open('/proc/self/uid_map').read().split(), flush=True)\n" # its ids on the host, which no other run has at the time
OPEN = SLOT + "import sys; sys.stdin.read()" # until its input ends

# Each leaves as much as it can of one thing that a group or a user is charged for. (program, limits, how it ends)
HUNGRY = {
    "memory": ("b = bytearray(120 << 20)\nfor n in range(0, len(b), 4096): b[n] = 1", {}, "exited"),
    "more memory than there is": ("b = bytearray(1 << 30)", {"memory_bytes": "64M"}, "oom"),
    "files in memory": ("for f in '/tmp/f', '/workspace/f', '/dev/shm/f':\n  try:\n    with open(f, 'wb', 0) as file:\n      for n in range(64): file.write(bytes(1 << 20))\n  except OSError: pass", {}, "exited"),
    "many small files": ("for n in range(900): open(f'/workspace/{n}', 'w').write('x')", {}, "exited"),
    "names that are not there": ("import os\nfor n in range(20000): os.path.exists(f'/usr/none{n}')", {}, "exited"),
    "processes": ("import os, time\nfor n in range(10):\n  if os.fork() == 0: time.sleep(600)", {}, "exited"),
    "more processes than there may be": ("import os, time\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(600)\nexcept OSError: pass", {"pids": 8}, "exited"),
    "one process more than there may be": ("import os\ntry: os.fork()\nexcept OSError: pass", {"pids": 1}, "exited"),
    "threads": ("import threading, time\nfor n in range(10): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", {}, "exited"),
    "CPU time": ("import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass", {}, "exited"),
    "more CPU time than there is": ("while True: pass", {"cpu_ms": 1000}, "timeout_cpu"),
    "a small share of the CPU": ("import time\nend = time.monotonic() + .5\nwhile time.monotonic() < end: pass", {"cpus": 0.1}, "exited"),
    "wall time": ("import os, time\nfor n in range(4): os.fork()\ntime.sleep(600)", {"wall_ms": 1000, "pids": 30}, "timeout_wall"),
    "buffers of TCP": ("import socket\nl = socket.create_server(('127.0.0.1', 0))\nkeep = []\nfor n in range(6):\n  c = socket.create_connection(l.getsockname())\n  a, _ = l.accept()\n"
                       "  c.setblocking(False)\n  keep += [a, c]\n  try:\n    while True: c.send(bytes(65536))\n  except BlockingIOError: pass", {}, "exited"),
    "lower limits": ("pass", {"memory_bytes": "16M", "pids": 2, "cpus": 0.1}, "exited"),
}
LARGE = SLOT + """
import os, time
b = bytearray(100 << 20)
for n in range(12):
    if os.fork() == 0: time.sleep(600)
print('had it')
"""


class Kept:
    """A service, and how its runs are asked for."""

    def __init__(self, daemon, keys):
        self.daemon, self.keys, self.talk = daemon, keys, daemon.connect()

    def start(self, program, **keys):
        return self.talk.start(program, **self.keys, **keys)

    def run(self, program, **keys):
        return self.start(program, **keys).finish()

    def crowd(self, many, **keys):
        """So many at once."""
        runs = [self.start(OPEN, stdin=True, **keys) for _ in range(many)]
        slots = [run.line() for run in runs]
        return slots, [run.finish() for run in runs]

    def groups(self):
        return {(folder, inode) for folder, inode in host.cgroup_dirs() if f"/brigd-{self.daemon.pid}/" in folder}


# How cells are made: for a program that is executed, for a fork when it is asked for, ahead.
WAYS = {"cold": ("demand", 0, {"cold": True}), "demand": ("demand", 0, {}), "ready": ("ready", 2, {})}


@pytest.fixture(scope="module", params=tiers.few(WAYS, "cold", "ready"))
def kept(request, built):
    way, ready, keys = WAYS[request.param]
    scratch, profiles = warm_load.only_basic(way)
    with scratch, daemons.Daemon({**MANY, "ready": ready}, env={"BRIG_PRESETS": str(profiles)}) as daemon:
        made = Kept(daemon, keys)
        if not keys:
            warm.wait(made.talk)
        made.fresh = [run.record for run in made.crowd(8)[1]] # nearly all in slots that no run has had
        yield made
        made.talk.close()


def slot_of(run):
    return run.stdout.splitlines()[0]


def are_kept():
    """Whether this host's control groups can be set back."""
    return "cgroup" in host.kinds_of_groups()


def one_after(kept, first, program):
    """(a run of the first, the next run in its slot); where slots are not kept, the fourth after it. A slot may be given up, as when many rest."""
    def once():
        before = first()
        for n in range(4 if not are_kept() else 24): # twice as many as rest
            later = kept.run(program)
            if slot_of(later) == slot_of(before) if are_kept() else n == 3:
                return before, later
        return None
    found = host.poll(once, every=0)
    assert found, "no run had the slot of one before"
    return found


# --- the slot -------------------------------------------------------------------------------------------

def test_the_next_run_of_a_profile_has_the_ids_and_the_groups_of_the_one_before(kept):
    if not are_kept():
        pytest.skip("needs control groups of version 1: others are made anew")
    before = host.poll(kept.groups)
    one_after(kept, lambda: kept.run(SLOT), SLOT)
    assert before & kept.groups(), (before, kept.groups())


def test_no_two_runs_have_a_slot_at_once(kept):
    for _ in range(3):
        slots, _ = kept.crowd(12)
        assert len(set(slots)) == 12, slots


def test_a_profile_that_is_never_warm_has_new_ones_for_each_run(kept):
    seen = [slot_of(kept.talk.run(SLOT, profile="strict")) for _ in range(8)]
    assert len(set(seen)) == 8, seen


# --- the record -----------------------------------------------------------------------------------------

@pytest.mark.diagonal("kept")
@pytest.mark.parametrize("name", tiers.few(HUNGRY, "memory", "more memory than there is", "files in memory", "processes", "one process more than there may be", "CPU time"))
def test_nothing_of_a_hungry_run_is_in_the_record_of_the_next_one(kept, name):
    program, limits, reason = HUNGRY[name]
    hungry, small = one_after(kept, lambda: kept.run(SLOT + program, limits=limits), SLOT)
    record, peaks = small.record, [one["memory_peak_bytes"] for one in kept.fresh]
    assert hungry.reason == reason, hungry
    assert (small.reason, record["exit_code"], record["limits_hit"], record["pids_peak"]) == ("exited", 0, [], 1), small
    assert min(peaks) - MIB < record["memory_peak_bytes"] < max(peaks) + MIB, (peaks, record) # what processors charge in advance is in it, or not
    assert 0 < record["cpu_ms"] < max(one["cpu_ms"] for one in kept.fresh) + 300 * host.SLOWER, (kept.fresh[0], record)


@pytest.mark.diagonal("kept")
@pytest.mark.parametrize("name", tiers.few(["memory", "more memory than there is", "files in memory", "more processes than there may be", "lower limits"],
                                            "more memory than there is", "more processes than there may be"))
def test_nothing_of_a_hungry_run_is_missing_for_the_next_one(kept, name):
    program, limits, _ = HUNGRY[name]
    _, large = one_after(kept, lambda: kept.run(SLOT + program, limits=limits), LARGE)
    assert large.stdout.endswith("had it\n") and large.reason == "exited" and large.record["pids_peak"] == 13, large


def test_pages_of_a_file_that_a_run_was_the_first_to_read_are_not_in_the_record_of_the_next_one(kept):
    """A page is charged to the group that reads it first, and stays charged when the group's processes are gone."""
    tree = host.store_dir() / "names" / "basic"
    files = [path for name in ("libsqlite3.so*", "libdb-5*") for path in tree.glob(f"tree/usr/lib/*/{name}") if not path.is_symlink()]
    large = sum(path.stat().st_size for path in files)
    assert large > 3 * MIB, files
    names = [str(path).partition("/tree")[2] for path in files]

    def read():
        for path in files:
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        return kept.run(SLOT + f"print(sum(len(open(name, 'rb').read()) for name in {names}))")
    reader, small = one_after(kept, read, SLOT)
    assert reader.stdout.endswith(f"{large}\n"), reader
    assert small.record["memory_peak_bytes"] < max(one["memory_peak_bytes"] for one in kept.fresh) + MIB, small


@pytest.mark.diagonal("kept")
@pytest.mark.parametrize("helper", ["supervisor", "init"])
def test_a_slot_whose_helper_was_killed_is_as_good_as_another(kept, token, helper):
    run = kept.start(SLOT + "b = bytearray(100 << 20)\n" + SLEEP, args=[token], limits=LONG)
    run.line()
    assert run.line() == "up"
    program = next(pid for pid, _ in host.with_token(token))
    init = next(pid for pid in kept.daemon.of_kind("init") if host.read(f"/proc/{pid}/uid_map") == host.read(f"/proc/{program}/uid_map"))
    killed = init if helper == "init" else host.parent(init)
    daemons.kill(killed)
    assert run.wait()["exit_reason"] in ("signaled", "cancelled"), run
    run.close()
    assert host.poll(lambda: not host.with_token(token) and not left.is_alive(killed)) # before, the sockets of its other cells may be open
    later = [kept.run(SLOT) for _ in range(12)]
    assert all(one.record["memory_peak_bytes"] < 64 * MIB and one.record["pids_peak"] == 1 for one in later), later


def tried(kept, program):
    """The record, whether or not the run was started."""
    try:
        return kept.run(program).record
    except client.NotStarted as e:
        return e.record


@pytest.mark.diagonal("kept")
@pytest.mark.parametrize("call", tiers.few(["openat", "read", "pread64", "write", "unlinkat", "mkdirat", "fchmodat", "flock"], "openat", "write"))
def test_a_call_of_the_monitor_that_fails_may_cost_a_run_but_makes_no_record_wrong(kept, call):
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:error=EIO:when=1+7"] # each seventh
    monitor, found = kept.daemon.one("monitor"), []
    with subprocess.Popen(["strace", "-qq", "-o", "/dev/null", *inject, "-p", str(monitor)]) as strace:
        try:
            assert host.poll(lambda: f"TracerPid:\t{strace.pid}\n" in host.read(f"/proc/{monitor}/status"))
            for _ in range(6):
                tried(kept, "import os, time\nb = bytearray(100 << 20)\nfor n in range(8):\n  if os.fork() == 0: time.sleep(600)")
                found += [tried(kept, SLOT), tried(kept, SLOT)]
        finally:
            strace.terminate()
    for record in found:
        if record["exit_reason"] != "exited":
            assert (record["exit_reason"], record["memory_peak_bytes"]) == ("setup_failed", None) and record["error"]["message"], record
        else:
            assert record["memory_peak_bytes"] < 64 * MIB and record["pids_peak"] == 1 and not record["limits_hit"], record
    assert host.poll(lambda: tried(kept, SLOT)["exit_reason"] == "exited"), kept.daemon.words()


# --- what the kernel counts by user ---------------------------------------------------------------------

# Takes all that there is of each, says how much that was, and dies with it.
TAKE_ALL = SLOT + """
import array, ctypes, fcntl, os, resource, select, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
keep, found = [], {}

def many(make, most=3000):
    n = 0
    try:
        while n < most and make() >= 0: n += 1
    except OSError: pass
    return n

def large_pipe():
    pair = os.pipe()
    keep.append(pair)
    return fcntl.fcntl(pair[1], fcntl.F_SETPIPE_SZ, 1 << 20) - (1 << 20)

def in_flight(pairs=[]):
    if not pairs or len(pairs) % 30 == 0:
        pairs.append(socket.socketpair())
    else:
        pairs.append(pairs[-1])
    a, b = pairs[-1]
    a.setblocking(False)
    a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [a.fileno(), b.fileno()]))])
    return 0

def queued():
    return libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0))

memory = __import__('mmap').mmap(-1, 16 << 20)
def lock():
    keep.append(None)
    n = sum(one is None for one in keep)
    return libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)) + 4096 * n), 4096)

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
found['inotify instances'] = many(libc.inotify_init)
found['large pipes'] = many(large_pipe, 20)
found['descriptors in flight'] = many(in_flight)
found['queued signals'] = many(queued, 100000)
found['locked pages'] = many(lock)
def child():
    pid = os.fork()
    if pid == 0: signal.pause()
    return 0
found['processes'] = many(child)
print(sorted(found.items()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_run_gets_as_much_of_what_is_counted_by_user_as_the_one_before(kept):
    first, later = one_after(kept, lambda: kept.run(TAKE_ALL), TAKE_ALL)
    assert first.reason == "signaled" and "('processes', " in first.stdout, first
    assert later.stdout.splitlines()[1:] == first.stdout.splitlines()[1:], (first, later)


# Makes each pipe that it has as large as the kernel lets it, until its input ends.
LARGEST = """
import fcntl, sys
def enlarge(fd):
    try: return fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1 << 20)
    except OSError: return 0
print(sum(enlarge(fd) for fd in range(64)), flush=True)
sys.stdin.read()
"""
SIZES = """
import fcntl, os
print([fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) for fd in (0, 1, 2, *os.pipe())])
"""


@pytest.mark.diagonal("kept")
def test_large_pipes_of_other_runs_leave_a_run_its_own(kept):
    """The kernel counts pages of pipes by user, 16384 of them (pipe-user-pages-soft), and gives a user who has more pipes of two pages."""
    sizes = kept.run(SIZES, stdin=True).stdout
    others = [kept.start(LARGEST, stdin=True) for _ in range(24)]
    took = [int(run.line()) for run in others]
    beside = kept.run(SIZES, stdin=True).stdout
    for run in others:
        run.finish()
    assert sum(took) > (16384 << 12) and beside == sizes, (took, sizes, beside)


# Leaves a segment, a queue and semaphores of one key behind; or says what is there.
SYSTEM_V = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
"""
LEAVE_SYSTEM_V = SLOT + SYSTEM_V + """
shared = libc.shmget(42, 64 << 20, 0o1600)
ctypes.memset(libc.shmat(shared, None, 0), 1, 64 << 20)
print(shared >= 0, libc.msgget(42, 0o1600) >= 0, libc.semget(42, 9, 0o1600) >= 0)
"""
FIND_SYSTEM_V = SLOT + SYSTEM_V + """
for look in lambda: libc.shmget(42, 0, 0), lambda: libc.msgget(42, 0), lambda: libc.semget(42, 0, 0):
    print(look(), errno.errorcode[ctypes.get_errno()])
"""


def test_nothing_of_system_v_is_left_where_a_policy_allows_it(built):
    """POSIX queues cannot be made: RLIMIT_MSGQUEUE is 0."""
    scratch, profiles = warm_load.only_basic("demand")
    (profiles / "ipc.policy").write_text("include python\nallow @sysv-ipc\n")
    (profiles / "basic.json").write_text((profiles / "basic.json").read_text().replace('"policy": "python"', '"policy": "ipc"'))
    with scratch, daemons.Daemon({**MANY, "ready": 0}, env={"BRIG_PRESETS": str(profiles)}) as daemon:
        kept = Kept(daemon, {})
        warm.wait(kept.talk)
        peak = max(run.record["memory_peak_bytes"] for run in kept.crowd(4)[1])
        left, found = one_after(kept, lambda: kept.run(LEAVE_SYSTEM_V), FIND_SYSTEM_V)
        assert left.stdout.endswith("True True True\n"), left
        assert found.stdout.splitlines()[1:] == ["-1 ENOENT"] * 3 and found.record["memory_peak_bytes"] < peak + 2 * MIB, (peak, found)
        kept.talk.close()


# Has as many descriptors in flight as each of these ids may have, until its input ends.
IN_FLIGHT = """
import array, os, resource, socket, sys
for user in sys.argv[1:]:
    if os.fork() == 0:
        os.setresuid(int(user), int(user), int(user))
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)) # a program has 256
        keep = []
        try:
            while True:
                keep.append(socket.socketpair())
                keep[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [keep[-1][0].fileno()] * 100))])
        except OSError as error:
            assert error.errno == 109, error # ETOOMANYREFS
        os.write(1, b'full\\n')
        sys.stdin.read()
        os._exit(0)
sys.stdin.read()
"""


@pytest.mark.parametrize("way, ready", [pytest.param("demand", 0, marks=pytest.mark.nightly), ("ready", 2)], ids=["demand", "ready"])
def test_descriptors_of_a_run_that_another_process_holds_do_not_keep_the_next_run_from_its_slot(built, way, ready):
    """
    The kernel counts them by user, as long as they are in the queue of a socket. All together are less than 16000 here: with more it looks for such
    that nothing can receive at each message, before Linux 6.8, and everything waits.
    """
    if not are_kept():
        pytest.skip("slots are not kept: needs the control groups of version 1")
    scratch, profiles = warm_load.only_basic(way)
    with scratch, daemons.Daemon({**MANY, "ready": ready}, env={"BRIG_PRESETS": str(profiles)}) as daemon:
        kept = Kept(daemon, {})
        warm.wait(kept.talk)
        ids = sorted({word for _ in range(24) for word in re.findall(r"\d{5,}", slot_of(kept.run(SLOT)))})
        with subprocess.Popen(["/usr/bin/python3", "-c", IN_FLIGHT, *ids], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            for _ in ids:
                assert other.stdout.readline() == b"full\n"
            for cold in False, True:
                record = kept.run("import socket\nsocket.socketpair()", cold=cold).record
                assert record["exit_reason"] == "exited" and record["refused"] == [], record
            refused = kept.run("import os\ntry: os.chroot('/')\nexcept OSError: pass").record["refused"]
            assert [row["call"] for row in refused] == ["chroot"], "the supervisor has the listener"
        kept.talk.close()


@pytest.mark.diagonal("kept")
def test_keys_of_a_slot_do_not_pile_up(kept):
    """Each process 1 and each program has a session keyring of its own, counted for its id."""
    runs = [kept.run(SLOT) for _ in range(60)]
    ids = {word for run in runs for word in re.findall(r"\d{5,}", slot_of(run))}
    assert len(ids) > 1, runs[0]

    def keys():
        rows = re.findall(r"^\s*(\d+):\s+\d+\s+(\d+)/", host.read("/proc/key-users"), re.M)
        return [(uid, many) for uid, many in rows if uid in ids and int(many) > 8]
    assert host.poll(lambda: not keys()), keys()


def eventfd_number():
    """The kernel gives the lowest that is free."""
    libc = ctypes.CDLL(None)
    fd = libc.eventfd(0, 0)
    try:
        found = re.search(r"eventfd-id:\s*(\d+)", host.read(f"/proc/self/fdinfo/{fd}"))
        return int(found[1]) if found else pytest.skip("needs eventfd-id in /proc/PID/fdinfo: Linux 5.2")
    finally:
        os.close(fd)


@pytest.mark.diagonal("kept")
def test_events_of_cells_that_are_gone_do_not_pile_up_in_a_group(kept):
    """With version 1 each cell has an eventfd registered with the group's memory.oom_control."""
    before = eventfd_number()
    for _ in range(150):
        kept.run("pass")
    assert host.poll(lambda: eventfd_number() < before + 75), (before, eventfd_number())


# --- how many -------------------------------------------------------------------------------------------

@pytest.mark.diagonal("kept")
def test_a_crowd_leaves_a_bounded_number(kept):
    before = len(kept.groups())
    runs = [kept.start(OPEN, stdin=True) for _ in range(30)]
    for run in runs:
        run.line()
    trees = len({os.path.dirname(folder) for folder, _ in kept.groups()})
    for run in runs:
        run.finish()
    assert host.poll(lambda: len(kept.groups()) <= before + trees * 10), (before, trees, kept.groups())


def test_resting_slots_of_another_profile_make_room(built):
    """Where there are descriptors for a few cells only."""
    few = ["sh", "-c", 'ulimit -S -n 180; exec "$@"', "sh"]
    profiles = {**MANY, "ready": 0, "access": [{**MANY["access"][0], "profiles": ["basic", "filesystem"]}]}
    with daemons.Daemon(profiles, through=[*daemons.with_accounts(), *few]) as daemon:
        kept = Kept(daemon, {"cold": True})
        for profile in ("basic", "filesystem", "basic"):
            assert [run.reason for run in kept.crowd(10, profile=profile)[1]] == ["exited"] * 10
            assert host.poll(lambda: not daemon.of_kind("init") and host.rests(daemon.one("monitor"))) # it has cleaned up
        kept.talk.close()


def test_a_profile_that_is_not_served_any_more_keeps_none(built):
    scratch, profiles = warm_load.only_basic("demand")
    with scratch, daemons.Daemon({**MANY, "ready": 0}, env={"BRIG_PRESETS": str(profiles)}) as daemon:
        kept = Kept(daemon, {})
        of_proxies = kept.groups()
        for _ in range(3):
            kept.run("pass")
        before = kept.groups() - of_proxies
        path = pathlib.Path(profiles, "basic.json")
        path.write_text(path.read_text().replace('"policy"', '"limits": {"pids": 9}, "policy"'))
        kept.talk.ask("reload")
        assert host.poll(lambda: not before & kept.groups()), kept.groups()
        assert kept.run("pass").reason == "exited"
        kept.talk.close()


@pytest.mark.parametrize("way", ["stop", "kill_all"])
def test_the_end_of_a_service_is_the_end_of_its_slots(built, way):
    daemon = daemons.Daemon({**MANY, "ready": 0})
    try:
        for _ in range(3):
            daemon.run("pass")
        slots = warm_load.groups_of(daemon)
        getattr(daemon, way)()
        if way == "kill_all": # no process is left to remove them; the next start does
            daemon.start()
            daemon.stop()
        assert host.poll(lambda: not slots & {folder for folder, _ in host.cgroup_dirs()}), slots
    finally:
        daemon.close()
