"""As a plain user: below the user's own systemd the limits hold that were delegated to it, elsewhere each that is missing is named."""
import os
import re

import pytest

from support import brig, host

UID = os.geteuid()
MANAGER = f"/user.slice/user-{UID}.slice/user@{UID}.service"
CONTROLLERS = {"memory": "memory-limit", "pids": "pids-limit", "cpu": "cpu-limit"}
LIMITS = {*CONTROLLERS.values(), "cpu-time-limit"}
SCOPE = ["systemd-run", "--user", "--scope", "--quiet", "-p", "Delegate=yes", "--"]
GROW = "keep = []\nfor n in range(160): keep.append(bytearray(1 << 20))\nprint('survived')"

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
    def run(*options, **kw):
        argv = [*SCOPE, *brig.command(*options, folder=tmp_path, **kw)]
        return brig.Child(argv, env={"XDG_RUNTIME_DIR": f"/run/user/{UID}"}).wait(60)
    return run


def delegated(v2):
    return set(host.read(f"{v2}{MANAGER}/cgroup.controllers").split()) & set(CONTROLLERS)


def missing(run):
    return {entry.partition(":")[2] for entry in run.record["isolation"] if entry.startswith("missing:")}


def expected(v2, own):
    """What must be missing here."""
    return {CONTROLLERS[name] for name in CONTROLLERS if name not in delegated(v2)} if own.startswith(MANAGER) else LIMITS


def test_exactly_what_was_not_delegated_is_missing(v2, own, run_brig):
    run = run_brig(program="print('runs')")
    assert run.out == "runs\n" and missing(run) & LIMITS == expected(v2, own), str(run)
    assert all(name in run.stderr for name in missing(run) & LIMITS), str(run)


def test_exactly_what_was_not_delegated_is_missing_in_a_scope(v2, own, scoped):
    run = scoped(program="print('runs')")
    assert run.out == "runs\n" and missing(run) & LIMITS == expected(v2, own), str(run)


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
    run = scoped("--cpu-time", "1", "--timeout", "60", program="while True: pass")
    assert (run.reason, run.status) == ("timeout_cpu", 124), str(run)


def test_no_group_is_left_below_the_users_systemd(v2, scoped):
    scoped(program="pass")
    left = [folder for folder, _, _ in os.walk(f"{v2}{MANAGER}") if re.search(r"/brig(/|$)|brig-launcher", folder)]
    assert not host.poll(lambda: not any(map(os.path.isdir, left)), 2) is False, left


def test_doctor_says_what_a_run_is_told(own, run_brig, brig_says):
    """The rows of the limits, as the record has them."""
    run, rows = run_brig(program="pass"), brig_says("doctor")
    degraded = {row["name"] for row in rows if row["result"] != "ok"}
    assert {name if name != "cpu-time-limit" else "cpu-time" for name in missing(run) & LIMITS} == degraded & {*CONTROLLERS.values(), "cpu-time"}, rows


@pytest.fixture
def brig_says():
    import json
    import subprocess

    def ask(command):
        done = subprocess.run([brig.binary(), command, "--json"], capture_output=True, text=True, env=brig.environment())
        return json.loads(done.stdout)["rows"]
    return ask
