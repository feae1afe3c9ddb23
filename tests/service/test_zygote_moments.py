"""A zygote that is killed at a chosen moment, beside processes that are held at one: each run is answered, or told that its zygote ended."""
import os
import signal
import subprocess
import time

import pytest

from rules import MANY
from support import daemon as daemons
from support import host, tiers, warm_load

HANG = 60 # seconds: what is held is let go long before


class Held:
    """A process, and with follow what it forks meanwhile, that stands still where strace is told to delay it; on every way out it goes on."""

    def __init__(self, pid, log, *delays, follow=False):
        if host.lacks("tool:strace"):
            pytest.skip(host.lacks("tool:strace"))
        self.log = log
        options = [word for calls, where in delays for word in ("-e", f"inject={calls}:{where}={HANG}s")]
        calls = ",".join(calls for calls, _ in delays)
        self.strace = subprocess.Popen(["strace", "-o", log, *["-f"] * follow, "-e", f"trace={calls}", *options, "-p", str(pid)],
                                       stderr=subprocess.PIPE, text=True)
        line = self.strace.stderr.readline()
        assert "attached" in line, line

    def __enter__(self):
        return self

    def wait(self, *words):
        """Until it has come to each of these calls."""
        assert host.poll(lambda: all(word in self.log.read_text() for word in words), 10), self.log.read_text()

    def let_go(self):
        self.strace.kill()
        self.strace.wait()

    def __exit__(self, *_):
        self.let_go()
        self.strace.stderr.close()


@pytest.fixture
def start(start_daemon, built):
    """start(way): a service with one zygote, and one cell of its profile that stands ready."""
    scratches = []

    def start_one(way):
        scratch, profiles = warm_load.only_basic(way, ready=1)
        scratches.append(scratch)
        daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(profiles)})
        assert warm_load.is_warm_again(daemon), daemon.words()
        daemon.settle()
        return daemon
    yield start_one
    for scratch in scratches:
        scratch.cleanup()


def zygote_of(daemon, old=None):
    """The one that serves, and knows the cell that waits for an order."""
    def find():
        found = [pid for pid in daemon.of_kind("zygote") if pid != old]
        return found if len(found) == 1 and daemon.has_all_leases("basic", 1) and daemon.has_leases() else None # one that is killed while it imports is not replaced at once
    found = host.poll(find, 10)
    assert found, f"{daemon.tree()}\n{daemon.words()}"
    return found[0]


def is_answered(run):
    return run.record["exit_reason"] == "exited" and run.record["exit_code"] == 0 and (run.stdout, run.stderr) == ("ran\n", "")


def is_told(run):
    """Not setup_failed, which says that no program ran."""
    return run.record["exit_reason"] == "cancelled" and run.record["error"] and "zygote" in run.record["error"]["message"]


def test_a_run_is_told_that_its_zygote_was_killed_just_after_the_fork(nothing_left, start, tmp_path):
    """The fork has taken the order by then. Nobody knows it but the zygote, and another zygote was asked for a program that was gone."""
    daemon = start("demand")
    zygote = zygote_of(daemon)
    with daemon.connect() as talk:
        at_birth = ("clone,clone3", "delay_exit"), ("setresuid", "delay_enter") # the zygote's, and its fork's
        with Held(zygote, tmp_path / "log", *at_birth, follow=True) as held:
            run = talk.start("print('ran')")
            held.wait("clone", "setresuid")
            daemons.kill(zygote)
        run = run.finish()
        assert is_told(run), str(run)


@pytest.mark.nightly
def test_a_program_that_is_over_before_its_zygote_has_told_of_it_is_not_lost(nothing_left, start, tmp_path):
    """It was reaped with what zygotes leave behind, and the run went on until its wall clock ended it."""
    daemon = start("demand")
    zygote = zygote_of(daemon)
    with daemon.connect() as talk, daemon.connect() as beside:
        with Held(zygote, tmp_path / "log", ("clone,clone3", "delay_exit")) as held:
            run = talk.start("print('ran'); import sys; sys.exit(3)")
            held.wait("clone")
            assert host.poll(lambda: [pid for pid in host.children(host.parent(zygote)) if host.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] == ["Z"]])
            end = time.monotonic() + 1.2 # it looks for such children twice a second, when something happens
            while time.monotonic() < end:
                beside.command("true", limits={"files": 99}) # no cell of the zygote fits it
        run = run.finish()
        assert (run.record["exit_reason"], run.record["exit_code"], run.stdout) == ("exited", 3, "ran\n"), str(run)


@pytest.mark.parametrize("cold", tiers.few([False, True], False), ids=["warm", "cold"])
def test_a_run_whose_zygote_stands_still_is_not_lost(nothing_left, start, cold):
    """Its cell was registered with the zygote, which knows nothing of the order yet: it is killed, and the run asked of the next fork server."""
    daemon = start("demand")
    zygote = zygote_of(daemon)
    with daemon.connect() as talk:
        daemons.kill(zygote, signal.SIGSTOP)
        run = talk.run("print('ran')", cold=cold)
        assert is_answered(run), str(run)
        assert host.poll(lambda: zygote not in daemon.of_kind("zygote"))


def test_a_fork_that_stands_ready_serves_its_run_though_its_zygote_is_gone(nothing_left, start):
    daemon = start("ready")
    zygote = daemon.one("zygote")
    with daemon.connect() as talk:
        daemons.kill(zygote)
        assert host.poll(lambda: zygote not in daemon.of_kind("zygote"))
        run = talk.run("print('ran')")
        assert is_answered(run) and run.record["warm"], str(run)


@pytest.mark.nightly
def test_zygotes_that_died_before_an_order_are_not_counted_for_it(nothing_left, start):
    """A cell waits for hours, and outlives many of them. The order is there before its supervisor hears of the last death."""
    daemon = start("demand")
    zygote = zygote_of(daemon)
    supervisor = host.parent(zygote)
    for _ in range(2):
        daemons.kill(zygote)
        zygote = zygote_of(daemon, zygote)
    with daemon.connect() as talk:
        os.kill(supervisor, signal.SIGSTOP)
        try:
            daemons.kill(zygote)
            run = talk.start("print('ran')")
        finally:
            daemons.kill(supervisor, signal.SIGCONT)
        run = run.finish()
        assert is_answered(run), str(run)


def test_a_run_that_is_no_fork_does_not_notice_that_a_zygote_is_killed(nothing_left, start):
    daemon = start("demand")
    with daemon.connect() as talk:
        run = talk.start("import sys; print('here', flush=True); sys.stdin.read(); print('ran'); sys.exit(7)", cold=True, stdin=True)
        assert run.line() == "here"
        daemons.kill(zygote_of(daemon))
        run.feed(b"go on")
        run = run.finish()
        assert run.record["exit_code"] == 7 and run.stdout == "ran\n", str(run)
