"""Zygotes that are killed, stand still or cannot start: no run is lost without a word, and nothing is left."""
import ctypes
import errno
import os
import signal
import socket

import pytest

from rules import LONG, MANY, SLEEP
from support import daemon as daemons
from support import host, layout, tiers, warm

REPORT = layout.struct("child_report")


@pytest.fixture
def folder(built):
    scratch, profiles = warm.scratch_profiles()
    yield profiles
    scratch.cleanup()


def children_of_kind(pid, kind):
    return [child for child in host.children(pid) if daemons.kind_of(child) == kind]


def zygote_of(daemon, profile="basic"):
    """The zygote that answers for it."""
    found = children_of_kind(daemon.supervisor_of(profile), "zygote")
    return found[0] if found else None


def new_zygote(daemon, old):
    assert host.poll(lambda: zygote_of(daemon) not in (None, old)), f"{daemon.tree()}\n{daemon.words()}"
    return zygote_of(daemon)


def test_a_zygote_that_is_killed_is_replaced(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        for _ in range(3):
            old = zygote_of(daemon)
            daemons.kill(old)
            new_zygote(daemon, old)
            assert talk.run("print(1)").stdout == "1\n"
        assert host.poll(lambda: talk.run("print(1)").record["warm"])
    assert "another one is started" in daemon.words()


@pytest.mark.nightly
def test_zygotes_that_end_again_and_again_are_not_started_without_a_bound(nothing_left, folder, start_daemon):
    """As when a module of preload ends its process a moment after it was imported."""
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    is_over = lambda: "has no zygote: its runs are started cold; another one is tried in 10 s" in daemon.words()
    with daemon.connect() as talk:
        for _ in range(100):
            host.poll(lambda: is_over() or talk.run("print(1)").record["warm"]) # it serves
            if is_over():
                break
            old = zygote_of(daemon)
            daemons.kill(old)
            assert host.poll(lambda: is_over() or zygote_of(daemon) not in (None, old)), daemon.words()
        assert is_over() and 50 < daemon.words().count("another one is started") < 100, daemon.words()
        run = talk.run("print(2)")
        assert run.stdout == "2\n" and run.record["warm"] is False, run


def test_a_run_outlives_its_zygote(nothing_left, folder, start_daemon):
    """It is a child of the supervisor, which hears how it ends."""
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    with daemon.connect() as talk:
        warm.wait(talk)
        run = talk.start("import sys; print('up', flush=True); print(sys.stdin.read()); sys.exit(7)", stdin=True, limits=LONG)
        assert run.line() == "up"
        daemons.kill(zygote_of(daemon))
        run.feed(b"to its end")
        run = run.finish()
        assert (run.record["exit_reason"], run.record["exit_code"], run.record["warm"]) == ("exited", 7, True) and run.stdout.endswith("to its end\n"), run


def test_a_zygote_that_stands_still_is_killed_and_its_run_asked_of_the_next(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        stopped = zygote_of(daemon)
        os.kill(stopped, signal.SIGSTOP)
        late = [talk.run(f"print({n})") for n in range(3)]
        assert [run.stdout for run in late] == ["0\n", "1\n", "2\n"], late
        assert new_zygote(daemon, stopped)


def test_a_run_that_is_killed_ends_though_its_zygote_stands_still(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    with daemon.connect() as talk:
        warm.wait(talk)
        run = talk.start(SLEEP, limits={"wall_ms": 1000})
        assert run.line() == "up"
        os.kill(zygote_of(daemon), signal.SIGSTOP)
        assert run.wait()["exit_reason"] == "timeout_wall", run.ended
        run.close()


# Its child stops it and lets it go on, again and again.
STORM = """
import os, signal, time
program = os.getpid()
if os.fork() == 0:
    end, n = time.monotonic() + 2, 0
    while time.monotonic() < end:
        os.kill(program, signal.SIGSTOP); os.kill(program, signal.SIGCONT); n += 1
    print(n, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.nightly
def test_a_program_that_is_stopped_all_the_time_costs_its_zygote_nothing(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    with daemon.connect() as talk:
        warm.wait(talk)
        zygote = zygote_of(daemon)
        before = daemons.cpu_seconds(zygote)
        run = talk.run(STORM)
        spent = daemons.cpu_seconds(zygote) - before
        assert run.record["warm"] and int(run.stdout) > 1000 and spent < .1 * host.SLOWER, f"{spent:.2f} s for {run.stdout}"


# Many processes that end together, with a small part of a CPU: where the kernel holds back what is dying, that takes seconds.
CROWD = """
import os, time
for _ in range(24):
    if os.fork() == 0: time.sleep(600)
print('here', flush=True)
time.sleep(600)
"""


@pytest.mark.nightly
def test_a_cell_that_takes_its_time_to_die_costs_nobody_his_zygote(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    with daemon.connect() as talk:
        warm.wait(talk)
        beside = talk.start("import sys; print('beside', flush=True); print(sys.stdin.read())", stdin=True, limits={"wall_ms": 300000})
        assert beside.line() == "beside"
        crowd = talk.start(CROWD, limits={"cpus": 0.02 * host.SLOWER, "wall_ms": 200000})
        assert crowd.line() == "here"
        zygote = zygote_of(daemon)
        talk.ask("cancel", run=crowd.id)
        assert crowd.wait()["warm"] and crowd.ended["record"]["exit_reason"] == "cancelled", crowd.ended
        crowd.close()
        beside.feed(b"to the end")
        run = beside.finish()
        assert "to the end" in run.stdout and run.record["exit_reason"] == "exited", run
        assert zygote_of(daemon) == zygote, daemon.words()


def stop_while_it_imports(daemon, talk):
    """Its name is still the interpreter's then. If that is over when it stands, the next one is tried."""
    for _ in range(50):
        old = zygote_of(daemon)
        daemons.kill(old)
        young = []
        host.poll(lambda: young.extend(children_of_kind(daemon.supervisor_of(), "python3")) or young or zygote_of(daemon) not in (None, old), every=0)
        if young and daemons.kill(young[0], signal.SIGSTOP) and daemons.kind_of(young[0]) == "python3":
            return young[0]
        if young:
            daemons.kill(young[0], signal.SIGCONT)
        warm.wait(talk)
    raise AssertionError("no zygote was met while it imports")


@pytest.mark.nightly
def test_a_zygote_that_imports_for_long_is_given_the_time(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        young = stop_while_it_imports(daemon, talk)
        late = talk.start("print('late')")
        serves = zygote_of(daemon, "strict") # such a one may be silent for a while only
        os.kill(serves, signal.SIGSTOP)
        assert talk.run("print('other')", profile="strict").stdout == "other\n"
        assert host.poll(lambda: zygote_of(daemon, "strict") not in (None, serves)), daemon.tree()
        assert children_of_kind(daemon.supervisor_of(), "python3") == [young], daemon.words()
        os.kill(young, signal.SIGCONT)
        run = late.finish()
        assert (run.stdout, run.record["exit_reason"]) == ("late\n", "exited"), (run.record, daemon.words())


def memory_files(pid, name):
    return [entry for entry in daemons.listed(f"/proc/{pid}/fd") if daemons.link_of(f"/proc/{pid}/fd/{entry}").startswith(f"/memfd:{name}")]


def pipes(pid):
    found = {entry: daemons.link_of(f"/proc/{pid}/fd/{entry}") for entry in daemons.listed(f"/proc/{pid}/fd")}
    return {link for entry, link in found.items() if int(entry) > 2 and link.startswith("pipe:")}


def test_a_cell_holds_nothing_of_what_its_supervisor_holds(nothing_left, folder, start_daemon):
    """Its PID 1 is a fork of the supervisor, which has the filter that zygotes read, and the pipes and sockets of all runs of the profile."""
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        runs = [talk.start(SLEEP, cold=cold, limits=LONG) for cold in (False, True)]
        assert [run.line() for run in runs] == ["up", "up"]
        inits = [pid for pid in daemon.of_kind("init") if host.read(f"/proc/{pid}/comm") == "brig-init\n"]
        held = lambda: sorted(daemons.descriptors(pid) for pid in inits) # 0: it is gone
        assert len(inits) >= 2 and host.poll(lambda: held()[-2:] == [2, 2] and not set(held()) - {0, 2}), f"its end, and the lock on its ids: {held()}"
        supervisors = daemon.roles()["supervisor"]
        kept = [(pid, entry) for pid in supervisors for entry in memory_files(pid, "filter")]
        assert kept
        for pid, entry in kept:
            with pytest.raises(PermissionError): # sealed: root may open it, and write nothing
                with open(f"/proc/{pid}/fd/{entry}", "r+b", buffering=0) as file:
                    file.write(b"all is allowed")
        programs = [pid for pid in daemon.of_kind("python3") if host.number_inside(pid) == 2] # and no zygote that has yet to take its name
        cold = [pid for pid in programs if "zygote.so" not in host.read(f"/proc/{pid}/maps")] # no zygote's fork
        assert len(cold) == 1 and pipes(cold[0]) & set().union(*map(pipes, supervisors)) == set(), daemon.tree()
        for run in runs:
            talk.ask("cancel", run=run.id)
            run.wait()
            run.close()


def socket_of(pid):
    """A copy of the one socket that a process holds."""
    [fd] = [int(fd) for fd in daemons.listed(f"/proc/{pid}/fd") if daemons.link_of(f"/proc/{pid}/fd/{fd}").startswith("socket:")]
    own = os.pidfd_open(pid)
    copy = ctypes.CDLL(None, use_errno=True).syscall(438, own, fd, 0) # pidfd_getfd
    os.close(own)
    assert copy >= 0, os.strerror(ctypes.get_errno())
    return socket.socket(fileno=copy)


@pytest.mark.parametrize("cold", tiers.few([False, True], False), ids=["warm", "cold"])
def test_what_process_1_says_beside_a_program_is_not_read(nothing_left, folder, start_daemon, cold):
    """It has nothing to say by then: one that was taken over would end the run, or tell what it costs."""
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        run = talk.start("print('up', flush=True); input(); print('ran')", cold=cold, stdin=True)
        assert run.line() == "up"
        program = next(pid for pid in daemon.of_kind("python3") if host.number_inside(pid) == 2 and "stdin" not in daemons.link_of(f"/proc/{pid}/fd/0")
                       and any(daemons.link_of(f"/proc/{pid}/fd/0") == daemons.link_of(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")))
        init = next(pid for pid in daemon.of_kind("init") if daemons.link_of(f"/proc/{pid}/ns/pid") == daemons.link_of(f"/proc/{program}/ns/pid"))
        with socket_of(init) as as_init:
            for word in (*map(layout.number, ("CHILD_FAILED", "CHILD_PREPARED", "CHILD_EXECS", "CHILD_LISTENER")), 77): # the last is none
                as_init.send(bytes(REPORT(message=word, step=3, detail=-1, errnum=errno.EPERM, cpu_ns=1 << 40, cpu_before_ns=1 << 40)))
            as_init.send(b"\0")
            as_init.send(b"garbage")
        run.feed(b"\n")
        ended = run.finish()
    assert (ended.record["exit_reason"], ended.record["exit_code"], ended.stdout) == ("exited", 0, "ran\n"), str(ended)
    assert 0 < ended.record["cpu_ms"] < 10_000, ended.record


NO_ZYGOTE = """#!/bin/sh
[ ! -e /workspace/zygote.so ] || exit 1
exec /usr/bin/python3.13 "$@"
"""


def test_a_profile_that_imports_ahead_what_is_not_there_runs_cold_and_the_log_names_it(nothing_left, built, start_daemon):
    scratch, profiles = warm.scratch_profiles("basic", preload=["no_such_module"])
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(profiles)})
    with daemon.connect() as talk:
        run = talk.run("print('cold')")
        assert run.stdout == "cold\n" and not run.record["warm"]
        assert host.poll(lambda: "No module named 'no_such_module'" in daemon.words()), daemon.words()
    scratch.cleanup()


def test_a_rootfs_whose_python_cannot_be_a_zygote_runs_cold(nothing_left, folder, start_daemon, tmp_path):
    """It is said once, and tried again after a while."""
    host.open_way(tmp_path)
    store = tmp_path / "store"

    host.copy_rootfs("basic", store)
    root = (store / "names/basic").resolve() / "tree"
    (root / "usr/bin/python3").unlink()
    (root / "usr/bin/python3").write_text(NO_ZYGOTE)
    (root / "usr/bin/python3").chmod(0o755)
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder), "BRIG_STORE": str(store)})
    with daemon.connect() as talk:
        for n in range(5):
            run = talk.run(f"print({n})")
            assert run.stdout == f"{n}\n" and run.record["warm"] is False, run
    assert 1 <= daemon.words().count("profile basic has no zygote") <= host.SLOWER, daemon.words()


def most_descriptors(daemon, zygote):
    """With those of the cells that wait: when as many are built as there shall be."""
    daemon.settle()
    held = [daemons.descriptors(zygote)]

    def is_steady():
        held.append(daemons.descriptors(zygote))
        return len(held) > 20 and len(set(held[-20:])) == 1
    assert host.poll(is_steady), held
    return held[-1]


@pytest.mark.parametrize("runs", tiers.amounts(50, 400, "BRIG_WARM_RUNS"))
def test_many_warm_runs_leave_nothing(nothing_left, folder, start_daemon, runs):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        zygote = zygote_of(daemon)
        held = most_descriptors(daemon, zygote), daemons.resident(zygote)
        for n in range(runs):
            assert talk.run(f"print({n})").stdout == f"{n}\n"
        assert zygote_of(daemon) == zygote and most_descriptors(daemon, zygote) == held[0]
        assert daemons.resident(zygote) < held[1] + (1 << 20)


def all_zygotes(daemon):
    return set(daemon.of_kind("zygote"))


@pytest.mark.parametrize("rule", [{"zygote_runs": 5}, pytest.param({"zygote_ms": 1000}, marks=pytest.mark.nightly)])
def test_a_zygote_is_replaced_and_no_run_notices(nothing_left, start_daemon, built, rule):
    scratch, profiles = warm.scratch_profiles("basic", **rule)
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(profiles)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        long = talk.start("import sys; print('long', flush=True); print(sys.stdin.read())", stdin=True)
        assert long.line() == "long"
        first, seen, seeds = zygote_of(daemon), set(), set()

        def is_replaced():
            run = talk.run("print(hash('a'))")
            assert run.record["warm"], daemon.words()
            seen.update(all_zygotes(daemon))
            seeds.add(run.stdout)
            return len(seeds) > 2
        assert host.poll(is_replaced), f"{seen}\n{daemon.words()}"
        assert host.poll(lambda: first not in all_zygotes(daemon)), "one that has a successor ends"
        long.feed(b"end")
        assert long.finish().stdout.endswith("end\n") and long.ended["record"]["warm"]
    daemon.close()
    scratch.cleanup()
    assert "zygote" not in daemon.words(), daemon.words()
