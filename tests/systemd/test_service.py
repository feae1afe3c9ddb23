"""A user without privilege runs Python through the service, and whatever ends the service leaves nothing."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from support import device_locks, host, service

TWO_CAPABILITIES = f"{1 << 6 | 1 << 7:016x}" # CAP_SETGID, CAP_SETUID
NONE = f"{0:016x}"
MIB = 1 << 20


# --- using it ---

def test_the_first_client_starts_it(anew):
    assert service.show("ActiveState") == "inactive"
    done = service.brig(service.MEMBER, "run", "-", stdin='print("hello from", __import__("os").getuid())')
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello from 1000\n", "")
    assert service.show("ActiveState") == "active"


def test_a_users_record_has_what_roots_own_has_and_no_layer_less(running):
    program = "print(sum(range(10)))"
    own = service.run("root", program, "--private")
    served = service.run(service.MEMBER, program)
    assert served.keys() == own.keys()
    assert [entry for entry in served["isolation"] if entry.startswith("missing:")] == []
    assert set(served["isolation"]) >= set(own["isolation"])
    for key in "exit_reason", "exit_code", "signal", "stdout", "stderr", "profile", "rootfs", "truncated", "limits_hit":
        assert served[key] == own[key], key
    assert [key for key in served if served[key] is None and own[key] is not None] == []


def test_strict_which_requires_every_layer_is_had_without_privilege(running):
    assert service.run(service.MEMBER, "print(1)", "-p", "strict")["exit_reason"] == "exited"


def test_who_is_not_in_the_group_is_told_so_and_what_to_do(anew):
    done = service.brig(service.STRANGER, "run", "-", stdin="print(1)")
    assert (done.returncode, done.stdout) == (125, "")
    assert "group brig" in done.stderr and "--private" in done.stderr, done.stderr
    assert service.show("ActiveState") == "inactive", "a stranger started it"


def test_ps_kill_and_stats_of_a_plain_user(running, start):
    one = start()
    listed = service.brig(service.MEMBER, "ps", "--json")
    assert listed.returncode == 0, listed.stderr
    runs = json.loads(listed.stdout)["runs"]
    assert [run["mine"] for run in runs] == [True], runs
    stats = service.brig(service.MEMBER, "stats", "--json")
    assert stats.returncode == 0 and json.loads(stats.stdout)["running"] == 1, stats.stdout + stats.stderr
    killed = service.brig(service.MEMBER, "kill", runs[0]["run"])
    assert killed.returncode == 0, killed.stderr
    assert one.ends()[0] == 143


def test_a_lock_on_a_device_is_not_met_by_programs_of_the_host(running, start):
    start(first=device_locks.TAKE)
    assert device_locks.met_on_host() == []


def test_a_directory_is_shown(running, tmp_path):
    folder = tmp_path / "shown"
    folder.mkdir()
    (folder / "word").write_text("read me")
    for at in (tmp_path, *tmp_path.parents):
        if at.owner() == "root" and str(at).startswith("/tmp/"):
            at.chmod(0o755)
    record = service.run(service.MEMBER, 'print(open("/workspace/shown/word").read())', "--ro", str(folder))
    assert record["stdout"] == "read me\n", record


def test_root_and_the_service_never_share_host_ids(running, start):
    start("root", options=["--private"])
    start(service.MEMBER)
    uids = [uid for _, uid in service.programs()]
    assert len(uids) == len(set(uids)) == 2, uids


@pytest.mark.requirement("A100", "A105")
def test_the_journal_has_a_line_of_each_run_with_fields(running):
    record = service.run(service.MEMBER, "print(1)")
    lines = host.poll(lambda: service.journal("-u", service.UNIT, "-o", "json", f"BRIG_RUN_ID={record['run_id']}"), 5)
    entry = json.loads(lines.splitlines()[-1])
    assert (entry["BRIG_PEER_UID"], entry["BRIG_REASON"] if "BRIG_REASON" in entry else entry["BRIG_EXIT_REASON"]) == ("1000", "exited"), entry
    assert record["run_id"] in entry["MESSAGE"]


# --- what its processes may ---

def test_the_server_has_an_account_and_nothing_else(running):
    uid, gid = service.ids("_brig-door")
    has = service.status(service.server())
    assert has["Uid"].split() == [str(uid)] * 4 and has["Gid"].split() == [str(gid)] * 4 and has["Groups"] == ""
    assert [has[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [NONE] * 4
    assert has["CapBnd"] == TWO_CAPABILITIES # what a process without capabilities cannot lower; nor use, see the next line
    assert (has["NoNewPrivs"], has["Seccomp"]) == ("1", "2")


def test_the_monitor_has_two_capabilities_and_can_get_no_other(running):
    uid, gid = service.ids("_brig-keeper")
    has = service.status(service.monitor())
    assert has["Uid"].split() == [str(uid)] * 4 and has["Gid"].split()[:3] == [str(gid)] * 3
    assert int(has["Gid"].split()[3]) >= service.FIRST_OF_JAILS # what it makes is for the profiles' group, which is nobody on the host
    assert [has[name] for name in ("CapPrm", "CapEff", "CapBnd")] == [TWO_CAPABILITIES] * 3
    assert (has["NoNewPrivs"], has["Seccomp"]) == ("1", "2")


def test_nothing_of_the_service_is_root_on_the_host(running, start):
    start()
    accounts = {str(service.ids(name)[0]) for name in ("_brig-door", "_brig-keeper")}
    for pid in service.below():
        uids = set(service.status(pid).get("Uid", "").split())
        assert uids <= accounts or all(int(uid) >= service.FIRST_OF_JAILS for uid in uids), service.status(pid)


# --- bounds of all runs together ---

def test_cells_are_below_the_slice_which_bounds_them_together(running, start):
    one = start()
    program = service.programs()[0][0]
    assert host.read(f"/proc/{program}/cgroup").strip().startswith("0::/brig.slice/brigd.service/")
    assert service.show("MemoryMax", service.SLICE) not in ("infinity", "")
    assert service.show("TasksMax", service.SLICE) not in ("infinity", "")
    assert one.process.poll() is None


def test_when_the_slice_is_full_a_run_ends_and_the_service_goes_on(spoiled):
    before = service.server()
    service.systemctl("set-property", "--runtime", service.SLICE, f"MemoryMax={120 * MIB}", check=True)
    try:
        record = service.run(service.MEMBER, "x = b'x' * (200 << 20)\nprint(len(x))") # the profile would allow it
    finally:
        service.systemctl("revert", service.SLICE)
    assert record["exit_reason"] == "oom", record
    assert service.server() == before
    assert service.run(service.MEMBER, "print(2)")["stdout"] == "2\n"


# --- the end of it ---

@pytest.mark.parametrize("verb", ["stop", "restart"])
def test_a_running_program_ends_with_the_service_and_its_client_is_told(spoiled, start, verb):
    one, before = start(), service.left()
    begin = service.journal("-o", "export", lines=1).partition("__CURSOR=")[2].splitlines()[0]
    service.systemctl(verb, service.UNIT, check=True)
    status, said = one.ends()
    assert status == 143 and "cancelled" in said, (status, said)
    said = service.journal("-u", service.UNIT, "-o", "cat", f"--after-cursor={begin}")
    assert "Killing process" not in said and "left-over" not in said, said
    assert not [entry for entry in service.left() if entry in before]
    assert service.run(service.MEMBER, "print(3)")["stdout"] == "3\n", "the next client has none"


def test_when_the_service_ends_its_slice_ends_with_it_and_comes_back(spoiled):
    service.run(service.MEMBER, "pass")
    assert service.GROUP.parent.exists() or service.GROUP_V1.parent.exists(), "the control: there is a slice"
    service.systemctl("stop", service.UNIT, check=True)
    assert host.poll(lambda: service.show("ActiveState", service.SLICE) == "inactive", 10), service.show("ActiveState", service.SLICE)
    assert not service.GROUP.parent.exists() and not service.GROUP_V1.parent.exists()
    assert service.run(service.MEMBER, "print(5)")["stdout"] == "5\n"
    assert service.show("TasksMax", service.SLICE) not in ("infinity", ""), "its limits are back"


@pytest.mark.parametrize("who", ["server", "monitor"])
def test_when_one_of_the_two_is_killed_all_is_gone_and_the_service_comes_back(spoiled, start, who):
    one, before, main = start(), service.left(), service.server()
    os.kill(getattr(service, who)(), signal.SIGKILL)
    status, said = one.ends()
    assert status == 143 and {"server": "brigd was killed", "monitor": "the monitor is gone"}[who] in said, (status, said)
    assert host.poll(lambda: service.show("ActiveState") == "active" and service.server() not in (0, main), 10), service.show("ActiveState")
    assert host.poll(lambda: not [entry for entry in service.left() if entry in before], 5), service.left()
    assert service.run(service.MEMBER, "print(4)")["stdout"] == "4\n"


def test_a_reload_ends_no_run_and_says_what_cannot_be_used(config, start):
    config('{"access": [{"user": "plain", "runs": 1}]}')
    service.run(service.MEMBER, "pass")
    one, server = start(), service.server()
    assert service.brig(service.MEMBER, "run", "--wait", "0", "-", stdin="pass").returncode == 75
    config('{"access": [{"user": "plain", "runs": 2}]}')
    service.systemctl("reload", service.UNIT, check=True)
    assert (record := service.run(service.MEMBER, "print(6)"))["stdout"] == "6\n", record
    config('{"runz": 1}')
    assert service.systemctl("reload", service.UNIT).returncode != 0
    assert host.poll(lambda: "runz: no such setting" in service.journal("-u", service.UNIT, lines=20), 5)
    assert (record := service.run(service.MEMBER, "print(7)"))["stdout"] == "7\n", record
    os.unlink("/etc/brig/brig.json") # as an editor does, for a moment: presets would let in more users
    assert service.systemctl("reload", service.UNIT).returncode != 0
    assert host.poll(lambda: "brig.json is gone" in service.journal("-u", service.UNIT, lines=20), 5)
    config('{"access": [{"user": "plain", "runs": 2}]}')
    service.systemctl("reload", service.UNIT, check=True)
    assert (service.server(), one.process.poll(), service.show("ActiveState")) == (server, None, "active")
    assert service.brig(service.MEMBER, "reload").returncode == 1, "a user who is not root"


@pytest.mark.row("E17")
def test_a_program_that_crashes_starts_no_crash_handler_whenever_the_host_got_one(anew, tmp_path):
    """Ubuntu's apport and systemd-coredump are such handlers: root's, with input from the jail."""
    pattern, handler, called = pathlib.Path("/proc/sys/kernel/core_pattern"), tmp_path / "handler", tmp_path / "called"
    handler.write_text(f"#!/bin/sh\necho $1 >>{called}\n")
    handler.chmod(0o755)
    before, crash = pattern.read_text(), "import os; os.abort()"
    try:
        service.run(service.MEMBER, "pass")
        pattern.write_text(f"|{handler} %s")
        assert service.run(service.MEMBER, crash)["signal"] == "SIGABRT" and not called.exists(), "the service was there first"
        service.begin_anew()
        assert service.run(service.MEMBER, crash)["signal"] == "SIGABRT" and not called.exists(), "the handler was"
        subprocess.run(["sh", "-c", "kill -ABRT $$"], check=False)
        assert host.poll(called.exists), "the host's own crashes do not start it either"
    finally:
        pattern.write_text(before)


def test_a_configuration_that_cannot_be_used_is_named_and_not_tried_again(anew, tmp_path):
    path = "/etc/brig/brig.json"
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(path, "w") as out:
        out.write('{ "runz": 4 }')
    try:
        assert service.systemctl("start", service.UNIT).returncode != 0
        assert service.show("ExecMainStatus") == "78" and service.show("NRestarts") == "0"
        said = service.journal("-u", service.UNIT, "-o", "cat")
        assert "runz" in said and path in said, said
    finally:
        os.unlink(path)
        service.systemctl("reset-failed", service.UNIT, service.SOCKET)
