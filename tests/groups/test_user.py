"""As a plain user: below the user's own systemd the limits hold that were delegated to it, elsewhere each that is missing is named."""
import json
import os
import re
import subprocess

import pytest

from support import brig, host
from support import daemon as daemons
from support.groups import GROW, SLEEP, cell_of, start

UID = os.geteuid()
MANAGER = f"/user.slice/user-{UID}.slice/user@{UID}.service"
CONTROLLERS = {"memory": "memory-limit", "pids": "pids-limit", "cpu": "cpu-limit"}
LIMITS = {*CONTROLLERS.values(), "cpu-time-limit"}
ROWS = {name.replace("cpu-time-limit", "cpu-time") for name in LIMITS} # as doctor calls them
SCOPE = ["systemd-run", "--user", "--scope", "--quiet", "-p", "Delegate=yes", "--"]

pytestmark = pytest.mark.skipif(UID == 0, reason="needs to be a plain user, and is root")


@pytest.fixture
def own(v2, needs_rootfs):
    """Our own control group."""
    return next(line[3:] for line in host.read("/proc/self/cgroup").splitlines() if line.startswith("0::"))


@pytest.fixture
def managed(own):
    if not own.startswith(MANAGER):
        pytest.skip("needs to run below the user's own systemd")


@pytest.fixture
def scoped(managed, tmp_path):
    """Like run_brig, each in a scope of its own that is delegated to it."""
    def run(*options, program, **kw):
        return start(program, *options, through=SCOPE, folder=tmp_path, **kw).wait()
    return run


def delegated(v2):
    return set(host.read(f"{v2}{MANAGER}/cgroup.controllers").split()) & set(CONTROLLERS)


def missing(run):
    return {entry.partition(":")[2] for entry in run.record["isolation"] if entry.startswith("missing:")}


def expected(v2, own):
    """What must be missing here."""
    return {CONTROLLERS[name] for name in CONTROLLERS if name not in delegated(v2)} if own.startswith(MANAGER) else LIMITS


def doctor(*through):
    done = subprocess.run([*through, brig.binary(), "doctor", "--json"], capture_output=True, text=True)
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


def groups_left(v2):
    return [folder for folder, _, _ in os.walk(f"{v2}{MANAGER}") if re.search(r"/brig(/|$)|brig-launcher", folder)]


# --- what is in force, and what is told ------------------------------------------------------------------------

def test_exactly_what_was_not_delegated_is_missing(v2, own, run_brig):
    run = run_brig("-v", program="print('runs')") # without -v they are named once a day
    assert run.out == "runs\n" and missing(run) & LIMITS == expected(v2, own), str(run)
    assert all(name in run.stderr for name in missing(run) & LIMITS), str(run)


def test_exactly_what_was_not_delegated_is_missing_in_a_scope(v2, own, scoped):
    run = scoped(program="print('runs')")
    assert run.out == "runs\n" and missing(run) & LIMITS == expected(v2, own), str(run)


def test_every_limit_is_in_force_and_measured_where_all_was_delegated(v2, managed, run_brig):
    assert delegated(v2) == set(CONTROLLERS)
    record = run_brig(program="pass").record
    assert LIMITS <= set(record["isolation"]), record
    assert record["memory_peak_bytes"] and record["pids_peak"] and record["cpu_ms"], record


def test_doctor_says_what_a_run_is_told(own, run_brig):
    """The rows of the limits, as the record has them."""
    run, rows = run_brig(program="pass"), doctor()
    lost = {name.replace("cpu-time-limit", "cpu-time") for name in missing(run) & LIMITS}
    assert {name for name in ROWS if rows[name]["result"] != "ok"} == lost, rows


def test_a_memory_bomb_in_a_scope_ends_as_oom(v2, scoped):
    assert "memory" in delegated(v2)
    run = scoped("--memory", "64M", program=GROW)
    assert (run.reason, run.status) == ("oom", 137) and "survived" not in run.out, str(run)
    assert 55 << 20 <= run.record["memory_peak_bytes"] <= 65 << 20, str(run)


def test_processes_in_a_scope_are_limited_and_counted(v2, scoped):
    assert "pids" in delegated(v2)
    run = scoped("--pids", "8", program="import os, signal\ntry:\n  while True:\n    if os.fork() == 0: signal.pause()\nexcept OSError: pass")
    hit = [h for h in run.record["limits_hit"] if h["name"] == "pids"]
    assert run.reason == "exited" and hit and hit[0]["value"] == 8, str(run)


def test_cpu_time_in_a_scope_ends_the_run(scoped):
    run = scoped("--cpu-time", "1", "--timeout", "50", program="while True: pass")
    assert (run.reason, run.status) == ("timeout_cpu", 124), str(run)


# --- where cells live, and what is left there --------------------------------------------------------------------

def test_cells_of_a_users_service_live_in_the_slice_above(managed):
    row = doctor()["cgroup-version"]
    assert f"{MANAGER}/app.slice/brig" in row["detail"], row


def test_cells_of_a_delegated_scope_live_in_it(managed):
    row = doctor(*SCOPE)["cgroup-version"]
    assert ".scope/brig" in row["detail"], row


def test_a_run_in_a_delegated_scope_has_its_cell_there(managed, tmp_path):
    """Though its launcher is in a user namespace, where it seems to be root."""
    child = start(SLEEP, "--timeout", "300", through=SCOPE, args=["scope-token"], folder=tmp_path)
    assert ".scope/brig/cell-" in cell_of("scope-token")
    child.signal(15)
    assert child.wait().reason == "cancelled"


def test_a_private_run_takes_no_group_away_from_a_daemon_of_the_same_user(managed, run_brig):
    """Both have their cells in one group, and the daemon has none at the time: the run removed that group, and all runs of the daemon failed."""
    with daemons.Daemon({"ready": 0}, through=()) as daemon:
        for _ in range(3):
            assert run_brig("--private", program="pass").reason == "exited"
            with daemon.connect() as talk:
                assert talk.run("print(1)").stdout == "1\n", daemon.words()


def test_no_group_is_left_below_the_users_systemd(v2, scoped):
    scoped(program="pass")
    assert host.poll(lambda: not groups_left(v2)), groups_left(v2)
