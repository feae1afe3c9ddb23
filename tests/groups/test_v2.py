"""Unified cgroup v2: cells live below what bounds us, limits hold, figures are the kernel's."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest

from support import brig as brig_tool, daemon as daemons, host
from support.groups import GROW, SLEEP, cell_of, group_of, start
from support.users import PLAIN

REPO = pathlib.Path(__file__).resolve().parents[2]
MIB = 1 << 20
NOBODY = 65534

pytestmark = pytest.mark.private("cells below the groups that their caller is in")


def below(group, *before):
    """Puts a shell into a group and lets it become brig, so that brig is alone in it."""
    return ["sh", "-c", f"echo $$ >{group}/cgroup.procs && exec \"$@\"", "sh", *before]


def delegate(group):
    os.setxattr(group, "trusted.delegate", b"1")


# --- what a run is told -------------------------------------------------------------------------------------

def test_every_limit_is_in_force_and_every_figure_is_measured(jail, new_group, tmp_path):
    delegate(new_group)
    record = start("open('/workspace/f', 'w').write('x' * 100000)", through=below(new_group), folder=tmp_path).wait().record
    assert not [layer for layer in record["isolation"] if layer.startswith("missing:") and "inert-ro" not in layer], record["isolation"]
    figures = ["cpu_ms", "memory_peak_bytes", "pids_peak", "io_read_bytes", "io_write_bytes"]
    assert not [name for name in figures if record[name] is None], record
    assert record["memory_peak_bytes"] > 3 * MIB and record["pids_peak"] >= 1 and record["cpu_ms"] > 1, record


def test_the_knobs_are_turned_to_what_was_asked_for(jail, v2, start_brig):
    child = start_brig("--memory", "64M", "--pids", "7", "--cpus", "0.5", "--timeout", "300", program=SLEEP, args=["knobs-token"], json_record=False)
    assert child.line() == "ready"
    cell = pathlib.Path(f"{v2}{cell_of('knobs-token')}")
    knobs = {name: (cell / name).read_text().strip() for name in ("memory.max", "memory.high", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max")
             if (cell / name).exists()}
    assert knobs == {"memory.max": str(64 * MIB), "memory.high": str(62 * MIB), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "8", "cpu.max": "50000 100000"}


def test_half_a_cpu_is_half_a_cpu(jail, v2, run_brig):
    record = run_brig("--cpus", "0.5", "--timeout", "2", program="while True: pass").record
    assert record["exit_reason"] == "timeout_wall" and record["cpu_ms"] <= 0.5 * record["wall_ms"] + 100, record # which is what the kernel deals out ahead


def test_a_refused_process_is_told_with_its_count(jail, v2, run_brig):
    program = "import os, signal\nn = 0\nfor _ in range(20):\n  try:\n    if os.fork() == 0: signal.pause()\n" \
              "  except OSError: n += 1\nprint(n)"
    run = run_brig("--pids", "8", "--timeout", "50", program=program)
    hit = next(hit for hit in run.record["limits_hit"] if hit["name"] == "pids")
    assert int(run.out) == 13 and hit["times"] >= 13 and hit["value"] == 8 and hit["peak"] == 8, str(run)


def test_memory_that_is_used_up_kills_every_process_at_once(jail, v2, run_brig):
    program = f"import os, time\nif os.fork() == 0:\n  time.sleep(600)\n  os._exit(0)\nexec({GROW!r})"
    run = run_brig("--memory", "64M", "--timeout", "50", program=program)
    assert (run.reason, run.status) == ("oom", 137) and run.record["memory_peak_bytes"] <= 64 * MIB + MIB, str(run)


def test_a_large_file_that_is_read_again_and_again_is_no_use_of_memory(jail, v2, run_brig, tmp_path):
    """The page cache counts as memory of the group, and is taken back when it is needed."""
    shown = tmp_path / "shown"
    shown.mkdir()
    with open(shown / "large", "wb") as f: # in no cache, or it is not the run's
        f.write(bytes(96 * MIB))
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    program = "own = bytearray(24 << 20)\nfor _ in range(8):\n  with open('/workspace/shown/large', 'rb') as f:\n    while f.read(1 << 20): pass\nprint('read')"
    run = run_brig("--memory", "64M", "--timeout", "100", "--ro", shown, program=program)
    assert (run.reason, run.out) == ("exited", "read\n"), str(run)


# --- where cells live -----------------------------------------------------------------------------------------

def test_a_delegated_group_that_holds_nobody_else_holds_the_cells(jail, new_group, tmp_path):
    """brig steps aside, and back: nothing of it stays, though the group does."""
    delegate(new_group)
    child = start(SLEEP, "--timeout", "300", through=below(new_group), args=["aside-token"], folder=tmp_path)
    assert cell_of("aside-token").startswith(f"/{new_group.name}/brig/cell-")
    assert group_of(child.pid).startswith(f"/{new_group.name}/")
    child.signal(15)
    assert child.wait().reason == "cancelled"
    assert [entry.name for entry in new_group.iterdir() if entry.is_dir()] == []
    assert (new_group / "cgroup.subtree_control").read_text().strip() == ""


def test_a_limit_of_a_delegated_group_bounds_its_cells(jail, new_group, tmp_path):
    delegate(new_group)
    (new_group / "memory.max").write_text(str(48 * MIB))
    if (new_group / "memory.swap.max").exists():
        (new_group / "memory.swap.max").write_text("0")
    run = start(GROW, "--memory", "512M", "--timeout", "50", through=below(new_group), folder=tmp_path).wait()
    assert run.reason == "oom" and "survived" not in run.out and run.record["memory_peak_bytes"] < 50 * MIB, str(run)
    assert "a control group above the run was full" in run.record["error"]["message"] and "--memory" not in run.stderr, str(run)


def test_a_delegated_group_with_other_processes_is_refused_and_not_left(jail, new_group, tmp_path):
    """What bounds us must bound cells, and processes of others are not ours to move."""
    delegate(new_group)
    other = subprocess.Popen(["sleep", "600"])
    try:
        (new_group / "cgroup.procs").write_text(str(other.pid))
        run = start("print('ran')", through=below(new_group), folder=tmp_path).wait()
        assert run.status == 125 and run.reason == "setup_failed", str(run)
        assert "holds other processes" in run.record["error"]["message"], str(run)
        assert group_of(other.pid) == f"/{new_group.name}"
    finally:
        other.kill()
        other.wait()


def test_a_group_that_is_not_delegated_is_left_for_the_nearest_one_above(jail, new_group, tmp_path):
    inner = new_group / "session" / "scope"
    inner.mkdir(parents=True)
    for group in (new_group.parent, new_group):
        (group / "cgroup.subtree_control").write_text("+memory +pids +cpu")
    child = start(SLEEP, "--timeout", "300", through=below(inner), args=["above-token"], folder=tmp_path)
    assert cell_of("above-token").startswith(f"/{new_group.name}/session/brig/cell-")
    assert group_of(child.pid) == f"/{new_group.name}/session/scope"
    child.signal(15)
    assert child.wait().reason == "cancelled"
    (new_group / "session" / "cgroup.subtree_control").write_text("-memory -pids -cpu -io")
    inner.rmdir()
    inner.parent.rmdir()


def test_root_does_not_put_cells_into_a_group_of_a_users(jail, new_group, tmp_path):
    """He could move them out of their limits; above it he cannot."""
    inner = new_group / "users"
    inner.mkdir()
    delegate(inner)
    for path in (inner, *inner.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    child = start(SLEEP, "--timeout", "300", through=below(inner), args=["users-token"], folder=tmp_path)
    assert cell_of("users-token").startswith(f"/{new_group.name}/brig/cell-")
    child.signal(15)
    assert child.wait().reason == "cancelled"
    assert [entry.name for entry in inner.iterdir() if entry.is_dir()] == []
    inner.rmdir()


def test_a_launcher_that_is_killed_leaves_nothing_in_a_delegated_group(jail, new_group, tmp_path):
    delegate(new_group)
    child = start(SLEEP, "--timeout", "300", through=below(new_group), args=["killed-token"], folder=tmp_path)
    cell_of("killed-token")
    os.kill(host.jail_below(child.pid)["launcher"], 9)
    assert child.wait().reason == "cancelled"
    assert host.poll(lambda: [entry.name for entry in new_group.iterdir() if entry.is_dir()] == [])


def test_a_users_launcher_that_is_killed_leaves_nothing_in_a_delegated_group(jail, new_group, world, tmp_path):
    """brigd cleans up; the launcher has moved it to another group together with itself."""
    for name in (".", "cgroup.procs", "cgroup.subtree_control"):
        os.chown(new_group / name, PLAIN.uid, PLAIN.uid)
    argv = world.as_user(PLAIN, world.binary, "run", "--json", "--timeout", "300", world.program(SLEEP), "users-token")
    child = brig_tool.Child([*below(new_group), *argv])
    assert f"/{new_group.name}/brig/cell-" in cell_of("users-token")
    os.kill(host.jail_below(child.pid)["launcher"], 9)
    assert child.wait().reason == "cancelled"
    assert host.poll(lambda: [entry.name for entry in new_group.iterdir() if entry.is_dir()] == [])


def part_of_hierarchy(group):
    """A container with the host's cgroup namespace: the tree that it sees begins at its own group."""
    line = f"mount --bind {group} /sys/fs/cgroup && echo $$ >/sys/fs/cgroup/cgroup.procs && exec \"$@\""
    return ["unshare", "-m", "sh", "-c", line, "sh"]


def test_a_part_of_the_hierarchy_is_enough(jail, new_group, tmp_path):
    child = start(SLEEP, "--timeout", "300", through=part_of_hierarchy(new_group), args=["part-token"], folder=tmp_path)
    assert cell_of("part-token").startswith(f"/{new_group.name}/brig/cell-")
    child.signal(15)
    assert child.wait().reason == "cancelled"


# --- under systemd ----------------------------------------------------------------------------------------------

WAYS = {
    # how brig is started: where its cells are
    "in a scope that is delegated": (["--scope", "-p", "Delegate=yes"], "/system.slice/{unit}/brig/cell-"),
    "in a service that is delegated": (["--pipe", "--wait", "-p", "Delegate=yes"], "/system.slice/{unit}/brig/cell-"),
    "in a scope": (["--scope"], "/system.slice/brig/cell-"),
    "in a service": (["--pipe", "--wait"], "/system.slice/brig/cell-"),
}


@pytest.mark.parametrize("how, where", WAYS.values(), ids=WAYS)
def test_under_systemd(jail, systemd, needs_root, how, where, tmp_path):
    unit = f"brig-test-{time.monotonic_ns()}"
    kind = "scope" if "--scope" in how else "service"
    child = start(SLEEP, "--timeout", "300", through=["systemd-run", "-q", f"--unit={unit}.{kind}", *how, "--"], args=[unit], folder=tmp_path)
    assert cell_of(unit).startswith(where.format(unit=f"{unit}.{kind}"))
    subprocess.run(["systemctl", "kill", "--kill-whom=main" if kind == "service" else "--kill-whom=all", f"{unit}.{kind}"], check=True)
    run = child.wait()
    assert host.poll(lambda: not host.with_token(unit)), str(run)
    assert host.poll(lambda: not os.path.exists(f"/sys/fs/cgroup/system.slice/{unit}.{kind}")), str(run)


# --- doctor -------------------------------------------------------------------------------------------------------

def doctor(brig, *through, **popen):
    """The rows by name, as in a session: a service that runs the tests says so in its environment."""
    env = {name: value for name, value in os.environ.items() if name != "INVOCATION_ID"}
    done = subprocess.run([*through, brig, "doctor", "--json"], capture_output=True, text=True, env=env, **popen)
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


def test_doctor_tries_every_group_feature_with_success(jail, new_group, brig):
    delegate(new_group)
    rows = doctor(brig, *below(new_group))
    for name in ("memory-limit", "pids-limit", "cpu-limit", "cpu-time", "swap-limit", "io-figures", "memory-peak", "pids-peak",
                 "clone-into-cgroup", "cgroup-kill"):
        assert rows[name]["result"] == "ok", rows[name]
    assert rows["cgroup-version"]["detail"].startswith("v2"), rows["cgroup-version"]
    assert rows["cgroup-version"]["detail"].endswith(f"jails are below /{new_group.name}/brig"), rows["cgroup-version"]
    assert [entry.name for entry in new_group.iterdir() if entry.is_dir()] == []


def test_doctor_finds_a_part_of_the_hierarchy(jail, new_group, brig):
    rows = doctor(brig, *part_of_hierarchy(new_group))
    assert rows["cgroup-version"]["detail"].endswith("jails are below /brig"), rows["cgroup-version"]
    assert rows["memory-limit"]["result"] == "ok", rows["memory-limit"]


def test_doctor_tells_of_a_delegated_group_with_other_processes(jail, new_group, brig):
    """Even of controllers that the kernel would switch on there: no jail could be put below."""
    delegate(new_group)
    rows = doctor(brig, *below(new_group, "sh", "-c", "\"$@\"; true", "sh"))
    for name in ("memory-limit", "pids-limit", "cpu-limit", "cpu-time"):
        assert rows[name]["result"] == "missing" and "other processes" in rows[name]["cause"], rows[name]
        assert rows[name]["fix"] == "systemd-run --scope -p Delegate=yes brig ...", rows[name]
    assert "no group for jails" in rows["cgroup-version"]["detail"]


def test_doctor_says_which_controller_is_not_handed_down(jail, new_group, brig):
    inner = new_group / "inner"
    inner.mkdir()
    (new_group / "cgroup.subtree_control").write_text("+memory +pids +cpu")
    delegate(inner)
    rows = doctor(brig, *below(inner))
    assert rows["memory-limit"]["result"] == "ok", rows["memory-limit"]
    assert rows["io-figures"]["result"] == "degraded" and "cgroup.subtree_control" in rows["io-figures"]["fix"], rows["io-figures"]
    inner.rmdir()


def test_doctor_tells_a_user_whose_systemd_did_not_start_him_what_to_type(v2, needs_root, brig):
    rows = doctor(brig, user=NOBODY, group=NOBODY, extra_groups=[])
    for name in ("memory-limit", "pids-limit", "cpu-limit", "cpu-time"):
        fixes = ("systemd-run --user --scope -p Delegate=yes brig ...", "as for memory-limit", "as for cpu-limit")
        assert rows[name]["result"] == "degraded" and rows[name]["fix"] in fixes, rows[name]


# --- the network of a service ------------------------------------------------------------------------------

def test_every_brig_proxy_of_a_service_is_in_one_group_with_a_mark_on_its_memory(jail, v2, new_group, tmp_path):
    """v2 counts sockets as memory. Above memory.high the kernel shrinks their windows; memory.max would let it kill what other runs use, too."""
    delegate(new_group)
    for path in (REPO / "profiles").glob("*.policy"):
        shutil.copy(path, tmp_path)
    basic = json.loads((REPO / "profiles" / "basic.json").read_text())
    for name in ("one", "other"):
        (tmp_path / f"{name}.json").write_text(json.dumps({**basic, "network": {"allow": [f"{name}.example"]}}))
    host.open_way(tmp_path)
    with daemons.Daemon({"ready": 0}, env={"BRIG_PROFILES": str(tmp_path)}, through=below(new_group, *daemons.with_accounts())) as daemon:
        for name in ("one", "other"):
            assert daemon.run("pass", profile=name).record["exit_code"] == 0
        proxies = [pid for pid in daemon.below() if host.read(f"/proc/{pid}/comm") == "brig-proxy\n"]
        groups = {host.read(f"/proc/{pid}/cgroup").splitlines()[-1].removeprefix("0::") for pid in proxies}
        assert len(proxies) == 2 and len(groups) == 1 and (group := groups.pop()).startswith(f"{new_group}"[len(str(v2)):] + "/"), groups
        mark, whole = int((pathlib.Path(f"{v2}{group}") / "memory.high").read_text()), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert 512 * MIB < mark <= whole // 32 + 512 * MIB and (pathlib.Path(f"{v2}{group}") / "memory.max").read_text() == "max\n"
        assert (pathlib.Path(f"{v2}{group}") / "cpu.weight").read_text() == "10000\n", "cells that burn hold the network of others back"
    assert not os.path.exists(f"{v2}{group}"), "left behind"
    (new_group / "brig-launcher").rmdir() # brigd was in it itself
