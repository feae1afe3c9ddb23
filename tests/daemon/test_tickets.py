"""Runs by ticket: the keeper is not asked, and a door that has gone mad gets no more out of one than its profile allows (ticket_lies.c)."""
import os
import pathlib
import re
import signal

import pytest

import lies
from rules import MANY
from support import host, warm
from support import daemon as daemons

SOURCE = pathlib.Path(__file__).parent / "ticket_lies.c"
LIES = re.findall(r'^\t\{ "(.*?)", +lie', SOURCE.read_text(), re.M)
# A ready fork may begin before the supervisor has read the order: with the limits that the cell was built with.
DENIED = r"output [04]\nended denied: more was asked .*"
WALL = r"output 4\nended timeout_wall: "
# It may begin before the supervisor has noticed that there is no order.
KILLED = r"output [04]\n(hung up|ended cancelled: .*|ended client_gone: .*)"
FATES = {
    "an order that is too short": KILLED, "an order with a descriptor": KILLED, "a letter without an order": KILLED, "an order, and gone": KILLED,
    "a letter that is none": r"output 0\nended (setup_failed: set-up step read-letter: .*|exited: )", # a ready fork can no longer report it
    "an order of tomorrow": WALL,
    # By the clock of the set-up, or by that of a program where a fork stood there already.
    "an order of tomorrow, no letter": r"output 0\nended (setup_failed: the cell was not built within .*|timeout_wall: )",
    # When a cell has its order, its supervisor takes any other message for the end of the client.
    "a ticket used twice": r"output [04]\n(hung up|ended exited: )", "a ticket used twice, for more": r"output [04]\n(hung up|ended exited: )",
    "the truth, for ever": WALL,
}


@pytest.fixture(scope="module")
def liar(built):
    with lies.leaving_nothing("ticket_lies"):
        yield lambda lie, mode: lies.tell("ticket_lies", lie, mode).stdout


def test_every_lie_about_a_ticket_is_told(liar):
    listed = lies.listed("ticket_lies")
    assert listed == LIES and set(FATES) < set(LIES)


@pytest.mark.diagonal("mode")
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("mode", ["demand", "ready"])
def test_a_ticket_is_good_for_one_run_within_its_profile(liar, lie, mode):
    """Whatever became of it, the next ticket is good."""
    said = liar(lie, mode)
    assert re.fullmatch(FATES.get(lie, DENIED) + r"\nlives\n", said), said


@pytest.fixture(params=["demand", "ready"])
def daemon(start_daemon, built, request):
    scratch, profiles = warm.scratch_profiles("basic", warm=request.param)
    for path in profiles.glob("*.json"):
        if path.stem != "basic":
            path.unlink() # a machine may have no rootfs for them, and every letter is basic's
    started = start_daemon(MANY, env={"BRIG_PRESETS": str(profiles)})
    started.settle()
    with started.connect() as talk:
        warm.wait(talk)
        assert host.poll(lambda: letters(started) == 2), started.words()
    yield started
    scratch.cleanup()


def letters(daemon):
    return len(daemon.letters())


def test_a_run_by_ticket_needs_no_keeper(nothing_left, daemon):
    keeper = daemon.of_kind("keeper")[0]
    with daemon.connect() as talk:
        os.kill(keeper, signal.SIGSTOP)
        try:
            assert [talk.run(f"print({n})").stdout for n in range(2)] == ["0\n", "1\n"]
        finally:
            os.kill(keeper, signal.SIGCONT)
        assert talk.run("print(2)").stdout == "2\n"
        assert host.poll(lambda: letters(daemon) >= 2), "no new tickets"


def test_a_ticket_whose_supervisor_was_killed_costs_no_run(nothing_left, daemon):
    with daemon.connect() as talk:
        supervisors = daemon.roles()["supervisor"]
        for pid in supervisors:
            daemons.kill(pid)
        assert host.poll(lambda: not set(supervisors) & set(daemon.below())), "they do not die"
        ends = [talk.run(f"print({n})") for n in range(3)]
        assert [end.stdout for end in ends] == ["0\n", "1\n", "2\n"], f"{ends[0].record} {daemon.words()}"
        assert host.poll(lambda: letters(daemon) >= 2), "no new tickets"


def test_what_does_not_fit_a_ticket_gets_what_it_asked_for(nothing_left, daemon):
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


def test_more_runs_than_tickets_all_run(nothing_left, daemon):
    with daemon.connect() as talk:
        runs = [talk.start(f"import sys; print(sys.stdin.read(), {n})", stdin=True) for n in range(12)]
        for run in runs:
            run.feed(b"x")
        assert [run.finish().stdout for run in runs] == [f"x {n}\n" for n in range(12)]


def test_a_long_program_fits_a_letter(nothing_left, daemon):
    with daemon.connect() as talk:
        for size in (60_000, 70_000, 8_000_000):
            assert talk.run("#" * size + "\nprint('long')").stdout == "long\n"
