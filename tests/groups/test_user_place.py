"""Groups of users whose systemd delegates to them; run as such a user, in a service of theirs."""
import json
import os
import subprocess

import pytest

from support import host
from support.groups import SLEEP, cell_of, start

NOBODY = 65534
SCOPE = ["systemd-run", "--user", "--scope", "-q", "-p", "Delegate=yes", "--"]
LIMITS = ("memory-limit", "pids-limit", "cpu-limit", "cpu-time")


def doctor(brig, *through, **popen):
    done = subprocess.run([*through, brig, "doctor", "--json"], capture_output=True, text=True, **popen)
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


@pytest.fixture
def users_systemd(systemd):
    if os.geteuid() == 0:
        pytest.skip("needs a plain user: the guest's parts run as one")
    if "/user@" not in host.read("/proc/self/cgroup"):
        pytest.skip("needs to be started by the user's systemd: systemd-run --user")


def test_cells_of_a_users_service_live_in_the_slice_above(users_systemd, brig):
    rows = doctor(brig)
    assert [rows[name]["result"] for name in LIMITS] == ["ok"] * 4, rows
    assert f"user@{os.geteuid()}.service/app.slice/brig" in rows["cgroup-version"]["detail"], rows["cgroup-version"]


def test_cells_of_a_delegated_scope_live_in_it(users_systemd, brig):
    rows = doctor(brig, *SCOPE)
    assert [rows[name]["result"] for name in LIMITS] == ["ok"] * 4, rows
    assert ".scope/brig" in rows["cgroup-version"]["detail"], rows["cgroup-version"]


def test_a_users_run_has_every_limit(users_systemd, run_brig):
    record = run_brig(program="print('ran')").record
    assert record["exit_reason"] == "exited" and record["stdout"] == "ran\n", record
    assert {"memory-limit", "pids-limit", "cpu-limit", "cpu-time-limit"} <= set(record["isolation"]), record
    assert record["memory_peak_bytes"] and record["pids_peak"] and record["cpu_ms"], record


def test_a_users_run_in_a_delegated_scope_has_its_cell_there(users_systemd, brig, tmp_path):
    """Though its launcher is in a user namespace, where it seems to be root."""
    child = start(SLEEP, "--timeout", "30", through=SCOPE, args=["scope-token"], folder=tmp_path)
    assert ".scope/brig/cell-" in cell_of("scope-token")
    child.signal(15)
    assert child.wait(10).reason == "cancelled"


def test_a_user_whose_systemd_did_not_start_him_is_told_what_to_type(v2, needs_root, brig):
    rows = doctor(brig, user=NOBODY, group=NOBODY, extra_groups=[])
    for name in LIMITS:
        assert rows[name]["result"] == "degraded" and rows[name]["fix"] in ("systemd-run --user --scope -p Delegate=yes brig ...", "as for memory-limit",
                                                                             "as for cpu-limit"), rows[name]
