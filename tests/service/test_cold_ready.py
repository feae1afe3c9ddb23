"""Cold runs in cells that stand ready for warm ones: a zygote's fork executes a new Python, and nothing is left of the zygote."""
import contextlib
import errno
import json
import os

import pytest

from rules import MANY
from support import daemon as daemons
from support import host, warm_load
from support.traced import Traced

VIEW = r"""
import json, os, sys
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines())
kept = "Name Umask Pid PPid TracerPid Uid Gid Groups NSpid NSsid NStgid NSpgid KThread CoreDumping THP_enabled Threads SigQ SigPnd ShdPnd SigBlk SigIgn SigCgt " \
       "CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters".split()
print(json.dumps({
    **{name: status.get(name) for name in kept}, "limits": open("/proc/self/limits").read(),
    "descriptors": {fd: os.stat(int(fd)).st_mode >> 12 for fd in os.listdir("/proc/self/fd")[:-1]}, "argv": sys.argv, "orig": sys.orig_argv, "env": dict(os.environ),
    "cmdline": open("/proc/self/cmdline").read(), "comm": open("/proc/self/comm").read(), "environ": open("/proc/self/environ").read(),
    "cwd": os.getcwd(), "here": sorted(os.listdir(".")), "exe": os.readlink("/proc/self/exe"), "modules": sorted(sys.modules), "personality": open("/proc/self/personality").read() if os.path.exists("/proc/self/personality") else "",
    "scheduler": os.sched_getscheduler(0), "nice": os.getpriority(os.PRIO_PROCESS, 0), "owner": os.stat("/proc/self").st_uid, "session": os.getsid(0), "group": os.getpgrp(),
    "maps": sorted({line.split()[-1] for line in open("/proc/self/maps") if "/" in line}), "stdin": sys.stdin.read(),
}))
"""
RANDOM = "import sys; print(hash('x'), id(sys))"
WAYS = ("demand", "ready")
READY = 4


@contextlib.contextmanager
def started(way):
    scratch, profiles = warm_load.only_basic(way, ready=READY)
    with scratch, contextlib.closing(daemons.Daemon(MANY, env={"BRIG_PRESETS": str(profiles)})) as service:
        yield service


@pytest.fixture(scope="module")
def without(no_stock):
    """What a program and a command find where no zygote is. That service has ended before the next one starts: a host has ids for four."""
    with started("never") as service:
        return json.loads(cold(service, VIEW).stdout), listing(service)


@pytest.fixture(scope="module", params=WAYS)
def way(request):
    return request.param


@pytest.fixture(scope="module")
def service(without, way):
    with started(way) as running:
        assert warm_load.is_warm_again(running), running.words()
        yield running


def forks_of(service):
    """Those that stand ready: they map what a zygote loads, and are alone in their process ids but for PID 1."""
    return [pid for pid in service.of_kind("python3") if host.number_inside(pid) == 2]


def all_forks(service):
    """One that was made a moment later would be given the run, and not be traced."""
    assert host.poll(lambda: len(forks_of(service)) == READY), service.tree()
    service.settle()
    return forks_of(service)


def cold(service, program, **keys):
    service.settle()
    with service.connect() as talk:
        run = talk.run(program, cold=True, **keys)
    assert (run.record["exit_code"], run.stderr, run.record["warm"]) == (0, "", False), str(run)
    return run


def listing(service, **keys):
    service.settle()
    with service.connect() as talk:
        run = talk.command("ls", "-A", "/workspace", **keys)
    assert run.record["exit_reason"] == "exited", str(run)
    return run.stdout


def test_it_finds_what_a_python_finds_that_no_zygote_has_forked(service, without):
    seen = json.loads(cold(service, VIEW).stdout)
    assert {key: value for key, value in seen.items() if value != without[0][key]} == {}, without[0]


def test_it_shares_neither_its_hash_seed_nor_its_addresses(service):
    with service.connect() as talk:
        shared = talk.run(RANDOM)
    assert shared.record["warm"]
    seeds, addresses = zip(*[cold(service, RANDOM).stdout.split() for _ in range(3)], shared.stdout.split())
    assert len(set(seeds)) == 4, seeds
    assert len(set(addresses)) == 4 or host.read("/proc/sys/kernel/randomize_va_space") == "0\n", addresses


def test_its_cell_stood_before(service):
    service.settle()
    stood = {daemons.link_of(f"/proc/{pid}/ns/pid") for pid in service.of_kind("init")}
    with service.connect() as talk:
        run = talk.start("import time; print('up', flush=True); time.sleep(600)", cold=True)
        assert run.line() == "up"
        program = [pid for pid in service.of_kind("python3") if host.read(f"/proc/{pid}/cmdline").endswith("\0main.py\0") and host.number_inside(pid) == 2
                   and "zygote.so" not in host.read(f"/proc/{pid}/maps")]
        assert [daemons.link_of(f"/proc/{pid}/ns/pid") in stood for pid in program] == [True], service.tree()
        talk.ask("cancel", run=run.id)
        run.finish()


def test_limits_input_and_report_are_those_of_its_order(service):
    with service.connect() as talk:
        run = talk.start("import sys\nprint(sys.stdin.read())\n6 * 7", cold=True, stdin=True, mode="report", limits={"wall_ms": 9000})
        run.feed(b"given")
        ended = run.finish()
    assert (ended.stdout, json.loads(run.text["result"])["result"], ended.record["warm"]) == ("given\n", 42, False), str(ended)


@pytest.mark.parametrize("call, error, told", [("execve", "ENOEXEC", "the program (in the rootfs)"), ("dup2", "ENOMEM", "set-up step streams")], ids=["exec", "streams"])
def test_what_fails_before_it_executes_is_told_and_nothing_has_started(service, tmp_path, way, call, error, told):
    """In a fork that waits, too, which has had the filter on since long before."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    zygote, waits = service.one("zygote"), all_forks(service) if way == "ready" else []
    first = 1 if call == "execve" or way == "ready" else 9 # as it enters, a fork puts eight descriptors where they belong
    traces = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={first}+"]
    with Traced(zygote, tmp_path / "log", *traces, *(word for pid in waits for word in ("-p", str(pid)))), service.connect() as talk:
        run = talk.start("print('ran')", cold=True).finish()
    record = run.record
    assert (record["exit_reason"], record["started_at"], run.stdout) == ("setup_failed", None, ""), str(run)
    assert told in record["error"]["message"] and os.strerror(getattr(errno, error)) in record["error"]["message"], record["error"]


def test_a_command_finds_no_main_py(service, without):
    """By lease, in a ready cell that only the monitor can make fit, and in a cell that is built for it."""
    for keys in {}, {"limits": {"memory_bytes": 100 << 20}}, {"limits": {"files": 99}}:
        assert (listing(service, **keys), without[1]) == ("", ""), keys
    with service.connect() as talk: # with no time in between
        assert [talk.command("ls", "-A", "/workspace").stdout for _ in range(20)] == [""] * 20


def test_its_command_stood_before(service):
    service.settle()
    stood = {daemons.link_of(f"/proc/{pid}/ns/pid") for pid in service.of_kind("init")}
    with service.connect() as talk:
        assert talk.command("readlink", "/proc/self/ns/pid").stdout.strip() in stood


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_a_run_that_no_cell_fits_that_stands_ready_leaves_them_to_the_next_ones(service, cold):
    """Each such run cost the server the lease of one, until the monitor was asked for every run."""
    assert host.poll(lambda: service.has_all_leases("basic", READY)), service.tree()
    with service.connect() as talk:
        for _ in range(2):
            assert talk.run("print(1)", cold=cold, limits={"pids": 16}).stdout == "1\n"
    assert host.poll(lambda: service.has_all_leases("basic", READY)), service.tree()
