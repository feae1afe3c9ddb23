"""Runs by lease: the monitor is not asked, and a server that has gone mad gets no more out of one than its profile allows (lease_lies.c)."""
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

import lies
from rules import MANY
from support import client, host, tiers, warm, warm_load
from support import daemon as daemons

LIES = lies.listed("lease_lies")
LEASES = 2 # as many cells as the preset keeps ready
# A ready fork may begin before the supervisor has read the order: with the limits that the cell was built with.
DENIED = r"output [04]\nended denied: more was asked .*"
WALL = r"output 4\nended timeout_wall: "
# It may begin before the supervisor has noticed that there is no order.
KILLED = r"output [04]\n(hung up|ended cancelled: .*|ended client_gone: .*)"
FATES = {
    "an order that is too short": KILLED, "an order with a descriptor": KILLED, "an order file without an order": KILLED, "an order, and gone": KILLED,
    "an order file that is none": r"output 0\nended (setup_failed: set-up step read-order: .*|exited: )", # a ready fork can no longer report it
    **dict.fromkeys(["an order file with tools and no socket", "an order file with tools, which is a directory"],
                    r"output 0\nended (setup_failed: set-up step read-order: .*|exited: )"),
    # It read the file before, or zeros of it.
    **dict.fromkeys(["an order file that shrinks", "an order file that is sealed and shrinks"], r"output [04]\nended (timeout_wall: |exited: |setup_failed: .*)"),
    "an order of tomorrow": WALL,
    # By the clock of the set-up, or by that of a program where a fork stood there already.
    "an order of tomorrow, no order file": r"output 0\nended (setup_failed: the cell was not built within .*|timeout_wall: )",
    # When a cell has its order, its supervisor takes any other message for the end of the client.
    # The supervisor tells the fork of a command; it may have read what the holder of the lease told it.
    "a command, and a program too": r"output [04]\n(hung up|ended (exited: |timeout_wall: |setup_failed: .*))",
    "a command, no order file": r"output 0\nended (setup_failed: (set-up step read-order: .*|the program died while it was set up)|exited: )",
    "a lease used twice": r"output [04]\n(hung up|ended exited: )", "a lease used twice, for more": r"output [04]\n(hung up|ended exited: )",
    "a session that is renewed for longer than the ceiling": KILLED, "a session that is renewed and ends sooner": WALL,
    "the truth, for ever": WALL,
}

KINDS_OF_LIES = [ # one of each: a limit, descriptors, a layer, an order that is none, a file that changes, a second use
    "more waiting for tools than the ceiling", "two sockets to tools", "a layer that is not missed", "all there is", "a command that executes nothing", "an order that is too short",
    "an order file with tools, which is a directory", "an order file that is sealed and shrinks", "a lease used twice, for more",
    "a session that is renewed for longer than the ceiling", "a session that is renewed and ends sooner", "the truth, for ever",
]


@pytest.fixture(scope="module")
def liar(built):
    with lies.leaving_nothing("lease_lies"):
        yield lambda lie, mode: lies.tell("lease_lies", lie, mode).stdout


def test_every_lie_about_a_lease_is_told(liar):
    assert set(FATES) < set(LIES)


@pytest.mark.diagonal("mode")
@pytest.mark.parametrize("lie", tiers.few(LIES, *KINDS_OF_LIES))
@pytest.mark.parametrize("mode", ["demand", "ready"])
def test_a_lease_is_good_for_one_run_within_its_profile(liar, lie, mode):
    """Whatever became of it, the next lease is good."""
    said = liar(lie, mode)
    assert re.fullmatch(FATES.get(lie, DENIED) + r"\nlives\n", said), said


def wait_for_leases(daemon):
    """Both: with one of them the second run waits for the monitor, who may be stopped."""
    assert host.poll(lambda: daemon.has_all_leases("basic", LEASES)), daemon.tree()


@pytest.fixture
def start(start_daemon, built):
    """start(way): a service with two cells of one profile that stand ready, and the server has their leases."""
    scratches = []

    def start_one(way, **env):
        scratch, profiles = warm.scratch_profiles("basic", warm=way)
        scratches.append(scratch)
        for path in profiles.glob("*.json"):
            if path.stem != "basic":
                path.unlink() # a machine may have no rootfs for them, and every cell is basic's
        started = start_daemon(MANY, env={"BRIG_PRESETS": str(profiles), **env})
        started.settle()
        with started.connect() as talk:
            warm.wait(talk)
        wait_for_leases(started)
        return started
    yield start_one
    for scratch in scratches:
        scratch.cleanup()


@pytest.fixture(params=[pytest.param("demand", marks=pytest.mark.nightly), "ready"])
def daemon(start, request):
    return start(request.param)


@contextlib.contextmanager
def standing(pid):
    """What needs this process waits."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        daemons.kill(pid, signal.SIGCONT)


def test_a_run_by_lease_needs_no_monitor(nothing_left, daemon):
    with daemon.connect() as talk:
        with standing(daemon.one("monitor")):
            assert [talk.run(f"print({n})").stdout for n in range(2)] == ["0\n", "1\n"]
        assert talk.run("print(2)").stdout == "2\n"
        wait_for_leases(daemon) # there are new ones
        with standing(daemon.one("monitor")):
            assert [talk.run(f"print({n})").stdout for n in range(2)] == ["0\n", "1\n"]


def test_what_fits_a_lease_needs_no_monitor(nothing_left, start):
    """More time, another length of output, less of a network, a new interpreter, and every stream: these are no limits of the cell."""
    daemon = start("demand")
    limits = {"wall_ms": 60000}, {"cpu_ms": 29999}, {"output_bytes": 4096}, {"tool_wait_ms": 1}, {"net_bytes": 1 << 20, "net_connections": 3, "net_rate": 1 << 20}
    for keys in *({"limits": one} for one in limits), {"cold": True}, {"stdin": True, "mode": "report"}:
        wait_for_leases(daemon)
        with daemon.connect() as talk, standing(daemon.one("monitor")):
            run = talk.start("import sys\nprint(sys.stdin.read())\n6 * 7", **keys)
            if "stdin" in keys:
                run.feed(b"given")
            ended = run.finish()
            assert (ended.reason, ended.stdout) == ("exited", "given\n" if "stdin" in keys else "\n"), (keys, ended)
            assert "mode" not in keys or json.loads(run.text["result"])["result"] == 42, run.text
    wait_for_leases(daemon)
    with daemon.connect() as talk, standing(daemon.one("monitor")):
        ended = talk.command("sh", "-c", "ls -A /workspace; echo $0 $$")
        assert (ended.reason, ended.stdout, ended.record["warm"]) == ("exited", "sh 2\n", False), str(ended)


def standing_forks(daemon):
    return [pid for pid in daemon.of_kind("python3") if host.number_inside(pid) == 2]


def test_a_lease_whose_supervisor_was_killed_costs_no_run(nothing_left, daemon):
    with daemon.connect() as talk:
        supervisors = daemon.roles()["supervisor"]
        for pid in supervisors:
            daemons.kill(pid)
        assert host.poll(lambda: not set(supervisors) & set(daemon.below())), "they do not die"
        ends = [talk.run(f"print({n})") for n in range(3)]
        assert [end.stdout for end in ends] == ["0\n", "1\n", "2\n"], f"{ends[0].record} {daemon.words()}"
        daemon.settle()


def test_a_lease_whose_fork_was_killed_costs_no_run(nothing_left, start):
    """Nobody has told the server yet."""
    daemon = start("ready")
    forks = standing_forks(daemon)
    assert len(forks) == 2, daemon.tree()
    with daemon.connect() as talk:
        with standing(daemon.one("supervisor")):
            for pid in forks:
                daemons.kill(pid)
            assert host.poll(lambda: not any(daemons.descriptors(pid) for pid in forks))
            code = client.sealed("print('ran')")
            tag = talk.begin("run", [code])
            os.close(code)
            talk.ask("list") # the server has read it
        ended = talk.started(tag).finish()
        assert (ended.reason, ended.stdout) == ("exited", "ran\n"), ended


@pytest.mark.parametrize("way", [pytest.param("demand", marks=pytest.mark.nightly), "ready"])
def test_a_cell_of_a_rootfs_that_was_built_anew_is_not_used(nothing_left, start, tmp_path, way):
    host.open_way(tmp_path)
    store = tmp_path / "store"
    host.copy_rootfs("basic", store)
    name = store / "names" / "basic"
    old = name.resolve()
    new = old.with_name("f" * len(old.name))
    subprocess.run(["cp", "-a", "--reflink=auto", old, new], check=True)
    (new / "tree/usr/built-anew").touch()
    daemon = start(way, BRIG_STORE=str(store))
    program = "import os; print(os.path.exists('/usr/built-anew'))"
    with daemon.connect() as talk:
        assert talk.run(program).stdout == "False\n"
        daemon.settle()
        (store / "names" / "next").symlink_to(f"../trees/{new.name}")
        (store / "names" / "next").rename(name)
        assert [talk.run(program).stdout for _ in range(3)] == ["True\n"] * 3


def test_more_runs_than_leases_all_run(nothing_left, daemon):
    with daemon.connect() as talk:
        runs = [talk.start(f"import sys; print(sys.stdin.read(), {n})", stdin=True) for n in range(12)]
        for run in runs:
            run.feed(b"x")
        assert [run.finish().stdout for run in runs] == [f"x {n}\n" for n in range(12)]


def test_limits_that_do_not_fit_a_lease_are_held(nothing_left, daemon):
    with daemon.connect() as talk:
        less = talk.run("b = bytearray(60 << 20)", limits={"memory_bytes": 40 << 20}).record
        assert less["exit_reason"] == "oom", less
        files = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
        assert talk.run(files, limits={"files": 100}).stdout == "100\n"
        assert talk.run(files).stdout != "100\n"
        spent = talk.run("while True: pass", limits={"cpu_ms": 200, "wall_ms": 20000}).record
        assert spent["exit_reason"] == "timeout_cpu", spent
        assert talk.run("print(1)", cold=True).record["warm"] is False
        late = talk.run("import time; time.sleep(100)", limits={"wall_ms": 300}).record
        assert late["exit_reason"] == "timeout_wall", late


def test_a_long_program_fits_an_order_file(nothing_left, daemon):
    with daemon.connect() as talk:
        for size in (60_000, 70_000, 8_000_000):
            assert talk.run("#" * size + "\nprint('long')").stdout == "long\n"


# --- one service for a table of runs, last: its cells come and go beside the rows that look for what is left ---

SIZES = """
import os, resource, time
of = os.statvfs
mib = lambda path: of(path).f_blocks * of(path).f_frsize >> 20
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], mib("/tmp"), mib("/workspace"), of("/tmp").f_files)
"""
OTHERS = {
    # of a run that only the monitor can start: its limit, what the program sees of it, leases of two that are left to other runs
    "more CPU time": ({"cpu_ms": 40000}, "256 64 256 10000", 2), "more memory": ({"memory_bytes": 300 << 20}, "256 64 256 10000", 2),
    "fewer processes": ({"pids": 9}, "256 64 256 10000", 2), "fewer descriptors": ({"files": 99}, "99 64 256 10000", 2),
    "a larger /tmp": ({"tmp_bytes": 80 << 20}, "256 80 256 10000", 2), "a larger workspace": ({"workspace_bytes": 300 << 20}, "256 64 300 10000", 2),
    "more files": ({"inodes": 20000}, "256 64 256 20000", 2),
    # What the monitor can make fit, it makes fit: the cell is used.
    "less memory": ({"memory_bytes": 100 << 20}, "256 64 256 10000", 1), "more of a CPU": ({"cpus": 1.5}, "256 64 256 10000", 1),
}


@pytest.fixture(scope="module")
def kept(built, no_stock):
    scratch, profiles = warm_load.only_basic("demand", ready=LEASES)
    with daemons.Daemon(MANY, env={"BRIG_PRESETS": str(profiles)}) as one:
        assert warm_load.is_warm_again(one), one.words()
        yield one
    scratch.cleanup()


@pytest.mark.parametrize("what", tiers.few(OTHERS, "more CPU time", "more memory", "fewer descriptors", "less memory"))
def test_what_does_not_fit_waits_for_the_monitor_and_leaves_the_lease_to_the_next_one(kept, what):
    limits, seen, left = OTHERS[what]
    wait_for_leases(kept)
    with kept.connect() as talk, kept.connect() as beside:
        with standing(kept.one("monitor")):
            code = client.sealed(SIZES)
            tag = talk.begin("run", [code], limits=limits)
            os.close(code)
            assert [beside.run(f"print({n})").stdout for n in range(left)] == [f"{n}\n" for n in range(left)]
            with pytest.raises(TimeoutError): # as long as the monitor does nothing
                talk.read(0.1)
        ended = talk.started(tag).finish()
        assert (ended.reason, ended.stdout.rstrip("\n")) == ("exited", seen), ended
