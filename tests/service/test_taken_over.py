"""Somebody has taken over a process of the service, and speaks and acts as it: what brig-security(7) says they gain, and no more.

Who talks to the monitor as a server is in test_monitor.py, to a supervisor in test_leases.py; docs/escape-matrix.md has the list.
"""
import contextlib
import ctypes
import os
import random
import re
import socket
import subprocess

import pytest

import left
from rules import MANY
from support import client, host, tiers, warm
from support import daemon as daemons

NONE = 0
TWO = 1 << 6 | 1 << 7 # CAP_SETGID, CAP_SETUID
RIGHTS = {
    # of a service that root started by hand: kind, (capabilities on the host, whether a filter is on)
    "server": (NONE, True), "sweeper": (NONE, True), "init": (NONE, True), "python3": (NONE, True),
    "monitor": (TWO, False), "reader": (TWO | 1 << 2, False), # CAP_DAC_READ_SEARCH
}


@pytest.fixture(scope="module")
def service(built, no_stock):
    """Two profiles with forks that stand ready: that of the process that is taken over, and another one."""
    scratch, profiles = warm.scratch_profiles(warm="ready")
    for path in profiles.glob("*.json"):
        if path.stem not in ("basic", "strict"):
            path.unlink()
    there = left.Snapshot()
    with daemons.Daemon({**MANY, "ready": 1}, env={"BRIG_PRESETS": str(profiles)}) as one:
        yield one
    assert not left.wrong(there), left.wrong(there)
    scratch.cleanup()


@pytest.fixture
def daemon(service):
    service.settle()
    return service


def status(pid):
    return dict(re.findall(r"^(\w+):\t(.*)$", host.read(f"/proc/{pid}/status"), re.M))


@pytest.mark.parametrize("kind", RIGHTS)
def test_a_process_has_these_rights_and_can_get_no_other(daemon, kind):
    capabilities, is_filtered = RIGHTS[kind]
    for pid in daemon.of_kind(kind):
        has = status(pid)
        assert {int(has[name], 16) for name in ("CapPrm", "CapEff")} == {capabilities}, (kind, has)
        assert (int(has["CapInh"], 16) | int(has["CapAmb"], 16)) & ~capabilities == 0, (kind, has)
        assert int(has["CapBnd"], 16) == capabilities or kind == "sweeper", (kind, has) # which cannot gain any: NoNewPrivs
        assert (has["NoNewPrivs"], has["Seccomp"]) == ("1", "2" if is_filtered else "0"), (kind, has)


def test_the_server_names_what_holds_it_and_owns_no_other_account(daemon):
    with daemon.connect() as talk:
        held = talk.ask("stats")["confinement"]
    assert {"no-new-privs", "no-caps", "not-dumpable", "seccomp"} <= set(held)
    assert status(daemon.pid)["Uid"].split() == [str(daemons.ACCOUNTS["_brig-door"])] * 4 and status(daemon.pid)["Groups"].strip() == ""


# --- another process of the same account, or of the same user namespace ---

TRACE = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
space, uid, pids = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
if space:
    fd = os.open(space, os.O_RDONLY)
    if libc.setns(fd, 0x10000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
for pid in pids:
    for name in ("mem", "environ", "fd", "maps", "cwd"):
        path = f"/proc/{pid}/{name}"
        try:
            os.listdir(path) if name == "fd" else os.readlink(path) if name == "cwd" else open(path).close()
            print(pid, name)
        except OSError:
            pass
    try:
        os.kill(int(pid), 0)
        print(pid, "signal")
    except OSError:
        pass
    if libc.ptrace(0x4206, int(pid), 0, 0) == 0: # PTRACE_SEIZE: nobody is stopped, and all is over with us
        print(pid, "trace")
for path in ("/etc/shadow", "/proc/1/environ"):
    try:
        os.close(os.open(path, os.O_RDONLY))
        print(path, "read")
    except OSError:
        pass
for path in ("/usr", "/etc", "/root"):
    if os.access(path, os.W_OK, effective_ids=True):
        print(path, "written")
print("tried", len(pids))
"""


def reach(uid, pids, space=""):
    """What somebody with this id, in this user namespace, reaches of these processes: {(pid, how)}."""
    done = subprocess.run([host.PYTHON, "-c", TRACE, space, str(uid), *map(str, pids)], capture_output=True, text=True, timeout=host.HANG)
    lines = done.stdout.splitlines()
    assert lines and lines[-1] == f"tried {len(pids)}", done
    return {tuple(line.split()) for line in lines[:-1]}


@pytest.mark.parametrize("account", daemons.ACCOUNTS)
def test_the_account_of_a_process_looks_into_none_of_the_service(daemon, account):
    """Signals go to processes of the same account; nothing else does. The monitor's account has made the user namespaces: their root is below it."""
    kinds = ["server", "monitor", "reader", "sweeper"] + ["supervisor", "zygote", "init"] * (account == "_brig-door")
    pids = [pid for kind in kinds for pid in daemon.of_kind(kind)]
    found = {(daemons.kind_of(int(pid)), how) for pid, how in reach(daemons.ACCOUNTS[account], pids) if how != "signal"}
    assert found == set(), daemon.tree()


def test_control_the_account_of_a_process_looks_into_one_that_hides_nothing(daemon):
    uid = daemons.ACCOUNTS["_brig-door"]
    with subprocess.Popen(["sleep", "600"], user=uid, group=uid, extra_groups=[]) as plain:
        found = reach(uid, [plain.pid])
        plain.kill()
    assert {how for _, how in found} >= {"mem", "environ", "maps", "trace", "signal"}


def of_profile(daemon, name):
    """The supervisor of a profile: the parent of a program that runs in it."""
    with daemon.connect() as talk:
        run = talk.start("import os; print(os.readlink('/proc/self/ns/pid'), flush=True); input()", profile=name, stdin=True)
        space = run.line()
        [program] = [pid for pid in daemon.of_kind("python3") if daemons.link_of(f"/proc/{pid}/ns/pid") == space]
        supervisor = host.parent(program)
        run.feed(b"\n")
        run.finish()
    return supervisor


def test_root_of_a_profiles_user_namespace_reaches_no_other_profile_and_nothing_of_the_host(daemon):
    """As which supervisors, zygotes and forkers run."""
    ours, theirs = of_profile(daemon, "basic"), of_profile(daemon, "strict")
    daemon.settle()
    others = [pid for kind in ("server", "monitor", "reader", "sweeper") for pid in daemon.of_kind(kind)] + [theirs, *host.below(theirs)]
    assert len(others) > 6, daemon.tree()
    assert reach(0, others, f"/proc/{ours}/ns/user") == set()


def test_control_root_of_a_profiles_user_namespace_reaches_its_own_cells(daemon):
    ours = of_profile(daemon, "basic")
    daemon.settle()
    inits = [pid for pid in host.below(ours) if daemons.kind_of(pid) == "init"]
    assert {how for _, how in reach(0, inits, f"/proc/{ours}/ns/user")} >= {"mem", "fd", "signal", "trace"}


# --- what it says to the others ---

@contextlib.contextmanager
def sockets_of(pid):
    """Copies of all sockets that a process holds."""
    libc, found = ctypes.CDLL(None, use_errno=True), []
    try:
        own = os.pidfd_open(pid)
    except ProcessLookupError: # a cell or fork that was replaced meanwhile
        yield found
        return
    try:
        for fd in daemons.listed(f"/proc/{pid}/fd"):
            if daemons.link_of(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                copy = libc.syscall(438, own, int(fd), 0) # pidfd_getfd
                if copy >= 0:
                    found.append(socket.socket(fileno=copy))
        yield found
    finally:
        os.close(own)
        for one in found:
            one.close()


def words(dice):
    """Messages of every size that a struct may have, beginning with every kind that there is and a few more: zeros, ones and noise behind."""
    for size in [1, 3, *range(4, 2049, 4), 4096]:
        for fill in (bytes(size), b"\xff" * size, dice.randbytes(size)):
            yield fill
            yield (dice.randrange(1, 20).to_bytes(4, "little") + fill)[:size]


def lie_over(sock, dice):
    """How many messages were taken; some carry a descriptor."""
    taken = 0
    for word in words(dice):
        try:
            beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sock.fileno().to_bytes(4, "little"))] if dice.random() < .1 else []
            sock.sendmsg([word], beside, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            taken += 1
        except OSError: # BlockingIOError: it is not read as fast, and the rest would be the same
            break
    return taken


def lie_as(pid, dice):
    """Over every socket of it."""
    with sockets_of(pid) as found:
        return sum(lie_over(sock, dice) for sock in found)


def lie(daemon, kind, dice):
    """As every such process of a profile; false when there is none just now."""
    supervisor = of_profile(daemon, "basic")
    return sum(lie_as(pid, dice) for pid in [supervisor, *host.below(supervisor)] if daemons.kind_of(pid) == kind)


def is_served(talk, profile):
    """False: the client was told that the profile's supervisor, fork server or cell is gone. Any other answer fails the test."""
    try:
        return talk.run(f"print({profile!r})", profile=profile).stdout == f"{profile}\n"
    except (client.NotStarted, client.Refused):
        return False


@pytest.mark.parametrize("kind", tiers.few(["supervisor", "zygote", "init", "python3"], "supervisor", "python3"))
def test_whatever_a_process_of_one_profile_says_the_others_are_served(daemon, kind):
    """python3: forks that wait for an order. Its own profile may lose runs and cells; it is served again afterwards."""
    dice = random.Random(kind)
    kept = [daemon.pid, *daemon.of_kind("monitor")], [of_profile(daemon, "strict")]
    for _ in range(1 if kind == "zygote" else 3): # a zygote has one socket, from which nobody reads: it is full afterwards
        daemon.settle()
        assert host.poll(lambda: lie(daemon, kind, dice)), f"it has no socket that takes a message: {daemon.tree()}"
        with daemon.connect() as talk:
            run = talk.run("print(1)", profile="strict")
            assert (run.reason, run.stdout) == ("exited", "1\n"), run
            assert host.poll(lambda: is_served(talk, "basic")), daemon.words()
    assert ([daemon.pid, *daemon.of_kind("monitor")], [of_profile(daemon, "strict")]) == kept, daemon.words()
    assert daemon.alive()


def test_whatever_the_helper_of_a_runs_files_says_its_run_is_told_and_the_others_are_served(daemon):
    """It has the program's id, and is one that a file system or a client could have taken over."""
    dice, kept = random.Random("files"), [daemon.pid, *daemon.of_kind("monitor"), of_profile(daemon, "basic")]

    def moves(): # helpers that have their filter on: before that, a helper still holds the supervisor's sockets
        return [pid for pid in daemon.of_kind("files") if status(pid).get("Seccomp") == "2"]
    for _ in range(3):
        with daemon.connect() as talk, daemon.connect() as beside:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            with ours, theirs:
                code = client.sealed("print(1)")
                tag = talk.begin("run", [code, theirs.fileno()], files=True)
                os.close(code)
                assert host.poll(lambda: any(lie_as(pid, dice) for pid in moves())), daemon.tree()
                run = beside.run("print('beside')")
                assert (run.reason, run.stdout) == ("exited", "beside\n"), run
            with pytest.raises(client.NotStarted) as told: # its lists never came, or what it said was no message
                talk.started(tag)
            assert "files" in str(told.value) or "cell" in str(told.value), told.value
            assert host.poll(lambda: not daemon.of_kind("files")), daemon.tree()
            assert is_served(beside, "basic")
    assert [daemon.pid, *daemon.of_kind("monitor"), of_profile(daemon, "basic")] == kept, daemon.words()


def test_a_monitor_that_lies_ends_runs_that_are_told_and_leaves_nothing(built, no_stock):
    """It owns the ids and the control groups of all cells, and may end the service. No client waits for ever, and no process or group stays."""
    there, dice = left.Snapshot(), random.Random("monitor")
    with daemons.Daemon(MANY) as one:
        one.settle()
        with one.connect() as talk:
            run = talk.start("import time; print('up', flush=True); time.sleep(600)")
            assert run.line() == "up"
            assert lie_as(one.one("monitor"), dice)
            try:
                assert run.wait()["exit_reason"] in ("cancelled", "setup_failed", "signaled"), run
            except client.Closed: # the server ended: end of file is what the client is told then
                pass

        def goes_on_or_ends():
            try:
                with one.connect() as talk:
                    return is_served(talk, "basic")
            except (client.Closed, ConnectionError, FileNotFoundError):
                return not one.alive()
        assert host.poll(goes_on_or_ends), one.words()
    assert not left.wrong(there), left.wrong(there)
